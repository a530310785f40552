//! What look-ups and merges of a table did since the directory was opened.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use remora_index::BloomCounts;

/// Counters of one table, shared by all its views. Updating them takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    bloom_checks: AtomicU64,
    bloom_saves: AtomicU64,
    merges: AtomicU64,
    merged_bytes: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub bloom: BloomCounts,
    pub merges: u64,
    pub merged_bytes: u64,
}

impl Activity {
    /// Adds what the bloom filters were asked.
    #[inline]
    pub fn looked_up(&self, counts: BloomCounts) {
        if counts.checks > 0 {
            self.bloom_checks.fetch_add(counts.checks, Relaxed);
        }
        if counts.saves > 0 {
            self.bloom_saves.fetch_add(counts.saves, Relaxed);
        }
    }

    /// Adds a merge of so many bytes of segments.
    pub fn merged(&self, bytes: u64) {
        self.merges.fetch_add(1, Relaxed);
        self.merged_bytes.fetch_add(bytes, Relaxed);
    }

    pub fn done(&self) -> Done {
        Done {
            bloom: BloomCounts {
                checks: self.bloom_checks.load(Relaxed),
                saves: self.bloom_saves.load(Relaxed),
            },
            merges: self.merges.load(Relaxed),
            merged_bytes: self.merged_bytes.load(Relaxed),
        }
    }
}
