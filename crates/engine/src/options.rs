//! The settings of a database.

use std::time::Duration;

/// How soon a batch is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// fsync before the acknowledgement.
    Always,
    /// fsync at this interval.
    Interval(Duration),
    /// When the operating system pleases.
    None,
}

/// Settings of a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// How soon a batch is safe.
    pub durability: Durability,
    /// Bytes of the row store's cache of blocks, and as many of its cache of rows.
    pub row_cache_bytes: u64,
    /// Bytes of text in memory segments before they are written to a file.
    pub checkpoint_bytes: u64,
    /// Most changes of one batch.
    pub max_batch_changes: usize,
    /// Most bytes of one row.
    pub max_row_bytes: usize,
    /// Most bytes of rows that a large batch stages on the disk.
    pub max_large_batch_bytes: u64,
    /// Most bytes of a segment that merges make, and of text of a table that one batch indexes.
    pub max_segment_bytes: u64,
    /// Most documents of a segment that merges make.
    pub max_segment_documents: u64,
    /// Most bytes of what paths lead to that a merge holds while it indexes rows by paths that were declared after they
    /// were written, an eighth of it before it is put in order. What has more is indexed by several merges, which leave
    /// several segments. One document may have as many bytes beside that: where it has more, its segment is left without
    /// the path, which [`crate::Database::merge_failures`] tells.
    pub path_index_bytes: u64,
    /// Most bytes of changes that are kept for those who watch, and of one transaction more; who is
    /// further behind is told so.
    pub max_watch_bytes: u64,
    /// BM25's parameters.
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
