//! The settings of a database.

pub use remora_engine::Durability;
use remora_engine::memory_share;

/// Settings of a database; [`Options::default`] is what most programs want. Its limits of memory are lower if the
/// process may use less than 4 GiB: as much as the machine has, or as its control group allows.
///
/// ```
/// use remora::{Durability, Options};
/// use std::time::Duration;
///
/// // A write returns before its sync, which follows within 100 ms.
/// let options =
///     Options { durability: Durability::Interval(Duration::from_millis(100)), ..Options::default() };
/// assert!(options.row_cache_bytes <= 16 << 20);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// How soon a write is safe from a loss of power; from a crash of the process it is always.
    pub durability: Durability,
    /// Bytes of the row store's caches: half for blocks, half for rows that are read often. If all rows fit into their
    /// half, a read by key takes a third of the time.
    pub row_cache_bytes: u64,
    /// Most bytes on the disk of changes that are kept for watchers, and of one transaction more. A watcher that is
    /// further behind gets [`Error::Gone`](crate::Error::Gone). Nothing is kept while there is none.
    pub max_watch_bytes: u64,
    /// Most memory of one statement, in bytes; more is put on the disk or refused.
    pub max_query_memory_bytes: u64,
    /// Most memory of all statements together, in bytes.
    pub max_total_memory_bytes: u64,
    /// Most bytes that statements may put on the disk while they run, in all.
    pub max_spill_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Always,
            row_cache_bytes: memory_share(24, 16 << 20),
            max_watch_bytes: 1 << 30,
            max_query_memory_bytes: memory_share(4, 1 << 30),
            max_total_memory_bytes: memory_share(2, 2 << 30),
            max_spill_bytes: 10 << 30,
        }
    }
}
