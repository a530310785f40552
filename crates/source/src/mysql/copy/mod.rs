//! Copies a table chunk by chunk, each at its position in the stream: without a lock and without a position of its own.
//! A and H below are the low and high watermarks of a chunk.
//!
//! A chunk is a range of keys. It is read by one statement and enters the table between two transactions of the stream:
//! 1. The applier opens a window: from now on it records the keys of this table's changes in the stream. What it has
//!    applied so far is A.
//! 2. The copy waits until the source shows A to a new statement (the stream may be slightly ahead), and reads the
//!    chunk. The statement sees A, and perhaps more.
//! 3. It asks for the end of the binlog: H. All that the statement saw is before H.
//! 4. When the stream has passed H, the applier puts the chunk's rows, except those whose key changed in the window:
//!    the stream has their newer values. The progress of the copy goes into the same commit.
//!
//! So at any time the copy equals its key range at the stream's position, and a copy that was killed continues where it
//! was. A table without a key has no ranges: it is read whole, as of one moment ([`whole`]). A copy fills a hidden
//! table; when it is complete, a rename replaces the old table.

mod literal;
mod queue;
mod read;
mod run;
mod throttle;
mod whole;
mod windows;
mod worker;

use std::sync::Arc;

pub(crate) use queue::CopyQueue;
pub(crate) use read::{estimate, wait_until_executed};
pub(crate) use run::run;
pub(crate) use throttle::Throttle;
pub(crate) use windows::{Cascade, Windows, write_key};
pub(crate) use worker::Worker;

use super::schema::SourceTable;

/// A copy to make.
#[derive(Clone, Debug)]
pub(crate) struct CopyTask {
    /// Its number, unique in a session.
    pub copy: u64,
    /// The table to read.
    pub source: Arc<SourceTable>,
    /// The key to start after, as literals; empty for the beginning.
    pub after: Vec<String>,
    /// The source's estimate of a row's bytes; 0 if there is none.
    pub row_bytes: u64,
}
