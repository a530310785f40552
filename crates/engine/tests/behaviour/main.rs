//! What a database promises, one behaviour a file.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails, in its helpers as well"
)]

#[path = "../common/mod.rs"]
mod common;

mod apply_and_reopen;
mod atomic_batches;
mod checkpoints;
mod damage;
mod damaged_store;
mod definitions;
mod group_commit;
mod indexes;
mod joint_paths;
mod key_ranges;
mod large;
mod left_in_files;
mod long_texts;
mod merges;
mod model;
mod own_changes;
mod path_pieces;
mod path_texts;
mod reader;
mod sources;
mod tables;
mod transactions;
mod waiting;
mod watching;
