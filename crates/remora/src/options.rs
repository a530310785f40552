//! The settings of a database.

use remora_engine::{Durability, memory_share};

/// The settings of a database. [`Options::default`] suits most programs. Its memory limits are
/// lower if less than 4 GiB is available to the process, by the machine or by its control group.
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
    /// When a write survives a loss of power. A crash of the process it always survives. The default is
    /// [`Durability::Always`].
    pub durability: Durability,
    /// The bytes of the row store's caches: half for blocks, half for rows that are read often. If
    /// all rows fit into their half, a read by key takes a third of the time. The default is 16 MiB.
    pub row_cache_bytes: u64,
    /// The most bytes of changes that are kept on disk for watchers, exceeded by at most one
    /// transaction. A watcher that is further behind gets [`Error::Gone`](crate::Error::Gone).
    /// Nothing is kept while there is no watcher. The default is 1 GiB.
    pub max_watch_bytes: u64,
    /// The most memory of one statement in bytes. Beyond it rows are spilled to disk, or the
    /// statement fails. The default is 1 GiB.
    pub max_query_memory_bytes: u64,
    /// The most memory of all statements together, in bytes. The default is 2 GiB.
    pub max_total_memory_bytes: u64,
    /// The most bytes that all running statements together may spill to disk. The default is 10 GiB.
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
