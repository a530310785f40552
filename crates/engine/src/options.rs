//! The settings of a database.

use std::time::Duration;

use crate::memory::{memory_limit_bytes, share_of};

/// The memory that a database takes before it merges, when it serves some dozens of threads.
const BASE_BYTES: u64 = 64 << 20;

/// When a batch becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before it is acknowledged (fsync).
    Always,
    /// At this interval (fsync).
    Interval(Duration),
    /// When the operating system writes it; no fsync.
    None,
}

/// Settings of a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a batch becomes durable.
    pub durability: Durability,
    /// Bytes of the row store's caches: half for blocks, half for rows that are read often.
    pub row_cache_bytes: u64,
    /// Bytes of a table's rows in memory (memtable) before they are flushed to a file. Up to four memtables of a table
    /// that is written to are in memory.
    pub memtable_bytes: u64,
    /// The most bytes of changes in the writer's queue. Beyond it, callers that submit changes
    /// wait. A single larger batch is allowed.
    pub queue_bytes: usize,
    /// The most bytes of segment file pages that this process caches. The limit is shared by all
    /// databases, and the one opened last sets it.
    pub page_cache_bytes: u64,
    /// A checkpoint is due after this many bytes of indexed text and of changes that are in no file yet.
    pub checkpoint_bytes: u64,
    /// The most changes of one batch.
    pub max_batch_changes: usize,
    /// The most bytes of one row.
    pub max_row_bytes: usize,
    /// The most bytes of rows that a large batch stages on disk.
    pub max_large_batch_bytes: u64,
    /// The most bytes of a table's text that one batch indexes: they become one segment.
    pub max_batch_text_bytes: u64,
    /// The most bytes of a segment that a merge creates; a merge takes up to three times as much memory.
    pub max_segment_bytes: u64,
    /// The most documents of a segment that a merge creates.
    pub max_segment_documents: u64,
    /// The most bytes of path values that a merge holds in memory when it indexes existing rows by
    /// a new path; an eighth of them unsorted. Larger amounts are indexed by several merges, which
    /// leave several segments. One document may have as many bytes in addition. If it has more, its
    /// segment stays without the path, which [`crate::Database::merge_failures`] reports.
    pub path_index_bytes: u64,
    /// The most bytes of changes kept for watchers, plus one transaction. A watcher that is further
    /// behind gets an error.
    pub max_watch_bytes: u64,
    /// The parameters k1 and b of BM25.
    pub bm25: (f64, f64),
}

impl Options {
    /// The defaults for a process that may use so many bytes of memory. With less than 8 GiB some
    /// limits are lower, with less than 1 GiB most are.
    pub fn for_memory(memory_bytes: u64) -> Self {
        let share = |parts: u64, most: u64| share_of(memory_bytes, parts, most);
        let beyond_base = memory_bytes.saturating_sub(BASE_BYTES);
        Self {
            durability: Durability::Always,
            row_cache_bytes: share(24, 16 << 20),
            memtable_bytes: share(96, 16 << 20),
            queue_bytes: usize::try_from(share(32, 64 << 20)).unwrap_or(usize::MAX),
            page_cache_bytes: share(16, 64 << 20),
            checkpoint_bytes: share(32, 16 << 20),
            max_batch_changes: 1_000_000,
            max_row_bytes: 64 << 20,
            max_large_batch_bytes: 256 << 30,
            max_batch_text_bytes: 1 << 30,
            max_segment_bytes: share_of(beyond_base, 8, 1 << 30),
            max_segment_documents: 64 << 20,
            path_index_bytes: share(16, 256 << 20),
            max_watch_bytes: 1 << 30,
            bm25: (1.2, 0.75),
        }
    }
}

/// The defaults for the memory that this process may use ([`memory_limit_bytes`]).
impl Default for Options {
    fn default() -> Self {
        Self::for_memory(memory_limit_bytes().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_memory_of_the_process() {
        let large = Options::for_memory(u64::MAX);
        assert_eq!((large.row_cache_bytes, large.memtable_bytes), (16 << 20, 16 << 20));
        assert_eq!((large.queue_bytes, large.path_index_bytes), (64 << 20, 256 << 20));
        assert_eq!((large.max_segment_bytes, large.page_cache_bytes), (1 << 30, 64 << 20));
        let small = Options::for_memory(96 << 20);
        assert_eq!((small.row_cache_bytes, small.memtable_bytes), (4 << 20, 1 << 20));
        assert_eq!((small.max_segment_bytes, small.page_cache_bytes), (4 << 20, 6 << 20));
        assert_eq!((small.queue_bytes, small.path_index_bytes), (3 << 20, 6 << 20));
        assert_eq!(Options::for_memory(0).memtable_bytes, 1 << 20);
    }
}
