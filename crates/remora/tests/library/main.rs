//! The library, used like by a program.

mod declared;
mod documents;
mod joint_paths;
mod keyed;
mod kills;
mod mixed_kills;
mod opening;
mod path_texts;
mod paths;
#[cfg(feature = "follow")]
mod replica;
#[cfg(feature = "follow")]
mod replica_keys;
mod sessions;
mod snapshots;
mod statements;
mod tables;
mod transactions;
mod unique;
mod watching;

/// The result of a test.
type Tested = Result<(), Box<dyn std::error::Error>>;
