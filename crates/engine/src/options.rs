//! The settings of a database.

use std::time::Duration;

/// When a batch becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before the acknowledgement (fsync).
    Always,
    /// At this interval (fsync).
    Interval(Duration),
    /// When the operating system writes it.
    None,
}

/// Settings of a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a batch becomes durable.
    pub durability: Durability,
    /// Bytes of the row store's caches: half for blocks, half for rows that are read often.
    pub row_cache_bytes: u64,
    /// A checkpoint is due after this many bytes of indexed text and of changes that are in no file yet.
    pub checkpoint_bytes: u64,
    /// Most changes of one batch.
    pub max_batch_changes: usize,
    /// Most bytes of one row.
    pub max_row_bytes: usize,
    /// Most bytes of rows that a large batch stages on disk.
    pub max_large_batch_bytes: u64,
    /// Most bytes of a segment that a merge creates, and of a table's text that one batch indexes.
    pub max_segment_bytes: u64,
    /// Most documents of a segment that a merge creates.
    pub max_segment_documents: u64,
    /// Most bytes of path values that a merge holds in memory when it indexes existing rows by a new path; an eighth
    /// of them unsorted. Larger amounts are indexed by several merges, which leave several segments. One document may
    /// have as many bytes in addition. If it has more, its segment stays without the path, which
    /// [`crate::Database::merge_failures`] reports.
    pub path_index_bytes: u64,
    /// Most bytes of changes kept for watchers, plus one transaction. A watcher that is further behind gets an error.
    pub max_watch_bytes: u64,
    /// The parameters k1 and b of BM25.
    pub bm25: (f64, f64),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Always,
            row_cache_bytes: 16 << 20,
            checkpoint_bytes: 16 << 20,
            max_batch_changes: 1_000_000,
            max_row_bytes: 64 << 20,
            max_large_batch_bytes: 256 << 30,
            max_segment_bytes: 1 << 30,
            max_segment_documents: 64 << 20,
            path_index_bytes: 256 << 20,
            max_watch_bytes: 1 << 30,
            bm25: (1.2, 0.75),
        }
    }
}
