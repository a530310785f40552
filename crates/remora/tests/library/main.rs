//! The library as a program uses it.

mod documents;
mod joint_paths;
mod keyed;
mod kills;
mod opening;
mod path_texts;
mod paths;
#[cfg(feature = "follow")]
mod replica;
#[cfg(feature = "follow")]
mod replica_keys;
mod sessions;
mod statements;
mod tables;
mod unique;
mod watching;

/// What a test ends with.
type Tested = Result<(), Box<dyn std::error::Error>>;
