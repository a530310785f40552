//! What a database promises, one behaviour a file.

#[path = "../common/mod.rs"]
mod common;

mod apply_and_reopen;
mod atomic_batches;
mod checkpoints;
mod damage;
mod group_commit;
mod merges;
mod model;
mod tables;
mod waiting;
