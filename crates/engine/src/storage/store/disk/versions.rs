//! A cache of row versions.
//!
//! A point read of the LSM tree searches memtables, filters, an index and a block, which takes microseconds. A
//! recently read version is found here in a tenth of that. The key is the document that has the row ([`RowVersion`]),
//! so nothing is ever invalidated: a rewritten row is a new document. Versions that no snapshot has any more, for
//! example after a merge of their segments, are not read again, so they are replaced first.
//!
//! Once the cache is full, only one in [`KEPT_SHARE`] of missed versions is added. So reads spread over more rows
//! than fit cost little more than without a cache, and rows that are read often still get in.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use quick_cache::{
    OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use rustc_hash::FxBuildHasher;

use crate::storage::store::{RowVersion, StoredBytes};

/// Bytes of an entry besides its row: the key, the slot in the hash table, the header of the bytes.
const ENTRY_BYTES: u64 = 96;
/// Longer rows are not cached: decoding them costs more than finding them.
const MAX_ROW_BYTES: usize = 16 << 10;
/// Typical bytes of an entry, for the initial size of the hash table.
const USUAL_ENTRY_BYTES: u64 = 320;
/// When the cache is full, one of this many missed versions is added.
const KEPT_SHARE: u64 = 16;
/// Shards with a lock each.
const SHARDS: usize = 16;

/// Recently read row versions, up to a number of bytes.
pub(super) struct RowVersions {
    /// The cache; `None` if the limit is too small for one.
    cache: Option<Cache<RowVersion, StoredBytes, ByBytes, FxBuildHasher>>,
    bytes: u64,
    /// Bytes added so far, including those of replaced versions. Counted until the cache was filled
    /// once.
    kept_bytes: AtomicU64,
    /// The number of misses since the cache was filled.
    missed: AtomicU64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<RowVersion, StoredBytes> for ByBytes {
    fn weight(&self, _: &RowVersion, row: &StoredBytes) -> u64 {
        ENTRY_BYTES + row.len() as u64
    }
}

impl RowVersions {
    /// A cache of this many bytes; it caches nothing if a shard could not hold the longest row.
    pub fn new(bytes: u64) -> Arc<Self> {
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity((bytes / USUAL_ENTRY_BYTES) as usize)
            .weight_capacity(bytes)
            .build()
            .ok()
            .filter(|_| bytes / SHARDS as u64 > MAX_ROW_BYTES as u64);
        let cache = options.map(|options| {
            Cache::with_options(options, ByBytes, FxBuildHasher, DefaultLifecycle::default())
        });
        Arc::new(Self { cache, bytes, kept_bytes: AtomicU64::new(0), missed: AtomicU64::new(0) })
    }

    /// The version, if it is cached.
    pub fn get(&self, version: RowVersion) -> Option<StoredBytes> {
        self.cache.as_ref()?.get(&version)
    }

    /// Offers a version that was missed; it may be added.
    pub fn offer(&self, version: RowVersion, row: &StoredBytes) {
        if let Some(cache) = &self.cache
            && row.len() <= MAX_ROW_BYTES
            && self.is_kept(ByBytes.weight(&version, row))
        {
            // A copy is cached, because the slice that was read keeps its whole block in memory.
            cache.insert(version, StoredBytes::from(&**row));
        }
    }

    fn is_kept(&self, weight: u64) -> bool {
        if self.kept_bytes.load(Ordering::Relaxed) < self.bytes {
            self.kept_bytes.fetch_add(weight, Ordering::Relaxed);
            return true;
        }
        self.missed.fetch_add(1, Ordering::Relaxed).is_multiple_of(KEPT_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(doc: u32) -> RowVersion {
        RowVersion { segment: 7, doc }
    }

    fn row(doc: u32) -> StoredBytes {
        StoredBytes::from(vec![doc as u8; 200])
    }

    #[test]
    fn rows_that_fit_are_kept_and_memory_is_bounded() {
        let bytes = 1 << 20;
        let versions = RowVersions::new(bytes);
        let fit = (bytes / 2 / (ENTRY_BYTES + 200)) as u32;
        (0..fit).for_each(|doc| versions.offer(version(doc), &row(doc)));
        let found = (0..fit).filter(|&doc| versions.get(version(doc)) == Some(row(doc))).count();
        // Shards are not filled evenly.
        assert!(found as u32 > fit * 9 / 10, "{found} of {fit}");
        assert_eq!(versions.get(RowVersion { segment: 8, doc: 0 }), None);

        (fit..fit * 100).for_each(|doc| versions.offer(version(doc), &row(doc)));
        let cache = versions.cache.as_ref().unwrap();
        assert!(cache.weight() <= bytes, "{}", cache.weight());
        let kept = (fit * 2..fit * 100).filter(|&doc| versions.get(version(doc)).is_some()).count();
        assert!(kept > 0, "nothing comes in once it is full");
    }

    #[test]
    fn frequently_read_row_enters_a_full_cache() {
        let versions = RowVersions::new(1 << 20);
        for doc in 0..100_000 {
            versions.offer(version(doc), &row(doc));
            let often = version(u32::MAX);
            if versions.get(often).is_none() {
                versions.offer(often, &row(9));
            }
        }
        assert_eq!(versions.get(version(u32::MAX)), Some(row(9)));
    }

    #[test]
    fn long_rows_are_not_kept_nor_any_without_room() {
        let versions = RowVersions::new(1 << 20);
        versions.offer(version(1), &StoredBytes::from(vec![0; MAX_ROW_BYTES + 1]));
        assert_eq!(versions.get(version(1)), None);
        let none = RowVersions::new(1 << 10);
        none.offer(version(1), &row(1));
        assert_eq!(none.get(version(1)), None);
    }
}
