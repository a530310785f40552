//! The query-result cache: replies by request, never stale.
//!
//! An entry has the table's version from before it was computed. It is returned only while that is the newest version,
//! so nothing needs to be invalidated: a write makes older entries of its table unreachable. They are removed when a
//! request meets them, when the statistics are read, or when room is needed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_engine::TableVersion;

use crate::settings;

/// The memory of an entry without its request and reply.
const ENTRY_OVERHEAD: usize = 160;

/// A cached reply.
#[derive(Clone)]
pub(crate) struct CachedReply {
    /// The reply without the frame's end and without DEBUG output.
    pub body: Arc<[u8]>,
    /// The time it took to compute.
    pub cost: Duration,
    /// When it was cached.
    pub kept_at: Instant,
}

/// Replies by request. All methods may be called from any thread; they share one lock that is held briefly.
#[derive(Default)]
pub(crate) struct QueryCache {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<Arc<[u8]>, Entry>,
    by_use: BTreeMap<u64, Arc<[u8]>>,
    uses: u64,
    figures: CacheFigures,
}

struct Entry {
    table: Box<str>,
    version: TableVersion,
    last_use: u64,
    reply: CachedReply,
}

/// Statistics of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CacheFigures {
    /// Lookups.
    pub queries: u64,
    /// Lookups that found a reply.
    pub hits: u64,
    /// Lookups without an entry.
    pub misses_absent: u64,
    /// Lookups with an expired entry.
    pub misses_expired: u64,
    /// Lookups with an entry older than the newest write to its table.
    pub misses_outdated: u64,
    /// Outdated entries that sweeps removed.
    pub swept: u64,
    /// Sweeps that removed entries.
    pub sweeps: u64,
    /// Entries that expired.
    pub expirations: u64,
    /// Entries evicted to make room.
    pub evictions: u64,
    /// Replies not cached because they were too cheap.
    pub rejections_cheap: u64,
    /// Replies not cached because they were larger than the cache.
    pub rejections_oversize: u64,
    /// Replies that were cached already.
    pub rejections_duplicate: u64,
    /// How often the cache was cleared on demand.
    pub clears: u64,
    /// The current number of entries.
    pub entries: u64,
    /// The current bytes of entries.
    pub bytes: usize,
    /// The total time of hits.
    pub hit_time: Duration,
    /// The total time of misses.
    pub miss_time: Duration,
    /// The time that hits saved.
    pub saved: Duration,
}

impl QueryCache {
    /// The cached reply to this request at this version of its table.
    pub(crate) fn find(
        &self,
        request: &[u8],
        version: TableVersion,
        settings: &settings::Cache,
    ) -> Option<CachedReply> {
        let asked = Instant::now();
        let inner = &mut *self.inner.lock();
        inner.figures.queries += 1;
        let Some(entry) = inner.entries.get_mut(request) else {
            inner.figures.misses_absent += 1;
            return None;
        };
        let expired = entry.has_expired(settings);
        if expired || entry.version != version {
            if expired {
                inner.figures.expirations += 1;
                inner.figures.misses_expired += 1;
            } else {
                inner.figures.misses_outdated += 1;
            }
            inner.remove(request);
            return None;
        }
        inner.uses += 1;
        if let Some(key) = inner.by_use.remove(&entry.last_use) {
            inner.by_use.insert(inner.uses, key);
        }
        entry.last_use = inner.uses;
        inner.figures.hits += 1;
        inner.figures.saved += entry.reply.cost;
        inner.figures.hit_time += asked.elapsed();
        Some(entry.reply.clone())
    }

    /// Caches a reply if it was expensive enough and fits.
    pub(crate) fn keep(
        &self,
        request: &[u8],
        table: &str,
        version: TableVersion,
        body: &[u8],
        cost: Duration,
        settings: &settings::Cache,
    ) {
        let room = usize::try_from(settings.max_memory_mb << 20).unwrap_or(usize::MAX);
        let bytes = request.len() + table.len() + body.len() + ENTRY_OVERHEAD;
        let inner = &mut *self.inner.lock();
        inner.figures.miss_time += cost;
        let rejections = if cost.as_secs_f64() * 1000.0 < settings.min_query_cost_ms {
            Some(&mut inner.figures.rejections_cheap)
        } else if bytes > room {
            Some(&mut inner.figures.rejections_oversize)
        } else if inner.entries.get(request).is_some_and(|entry| entry.version == version) {
            Some(&mut inner.figures.rejections_duplicate)
        } else {
            None
        };
        if let Some(rejections) = rejections {
            *rejections += 1;
            return;
        }
        inner.remove(request);
        while inner.figures.bytes + bytes > room {
            let Some((_, key)) = inner.by_use.pop_first() else { break };
            inner.remove(&key);
            inner.figures.evictions += 1;
        }
        inner.uses += 1;
        let key: Arc<[u8]> = request.into();
        let reply = CachedReply { body: body.into(), cost, kept_at: Instant::now() };
        let entry = Entry { table: table.into(), version, last_use: inner.uses, reply };
        inner.by_use.insert(inner.uses, Arc::clone(&key));
        inner.entries.insert(key, entry);
        inner.figures.bytes += bytes;
    }

    /// Removes the replies about one table, or all.
    pub(crate) fn clear(&self, table: Option<&str>) {
        let inner = &mut *self.inner.lock();
        let of_table = |entry: &Entry| table.is_none_or(|table| *entry.table == *table);
        let entries = inner.entries.iter();
        let gone: Vec<Arc<[u8]>> =
            entries.filter(|(_, entry)| of_table(entry)).map(|(key, _)| Arc::clone(key)).collect();
        for key in gone {
            inner.remove(&key);
        }
        inner.figures.clears += 1;
    }

    /// Removes unreachable entries: expired ones, and those older than the newest write to their table. `newest` gives
    /// a table's version; it is called without holding the lock.
    pub(crate) fn sweep(
        &self,
        settings: &settings::Cache,
        newest: impl Fn(&str) -> Option<TableVersion>,
    ) {
        let tables: BTreeSet<Box<str>> = {
            let inner = self.inner.lock();
            inner.entries.values().map(|entry| entry.table.clone()).collect()
        };
        let newest: HashMap<Box<str>, Option<TableVersion>> =
            tables.into_iter().map(|table| (table.clone(), newest(&table))).collect();
        let inner = &mut *self.inner.lock();
        let (mut expired, mut outdated) = (Vec::new(), Vec::new());
        for (key, entry) in &inner.entries {
            if entry.has_expired(settings) {
                expired.push(Arc::clone(key));
            } else if newest.get(&entry.table).is_some_and(|newest| entry.is_older_than(newest)) {
                outdated.push(Arc::clone(key));
            }
        }
        inner.figures.expirations += expired.len() as u64;
        inner.figures.swept += outdated.len() as u64;
        inner.figures.sweeps += u64::from(!outdated.is_empty());
        expired.iter().chain(&outdated).for_each(|key| inner.remove(key));
    }

    /// The statistics.
    pub(crate) fn figures(&self) -> CacheFigures {
        let inner = self.inner.lock();
        CacheFigures { entries: inner.entries.len() as u64, ..inner.figures }
    }
}

impl Entry {
    fn has_expired(&self, settings: &settings::Cache) -> bool {
        settings.ttl_s > 0 && self.reply.kept_at.elapsed() > Duration::from_secs(settings.ttl_s)
    }

    /// Whether the table was written, replaced or dropped since this version. Entries computed after `newest` was read
    /// are newer than it.
    fn is_older_than(&self, newest: &Option<TableVersion>) -> bool {
        newest.is_none_or(|newest| {
            newest.table != self.version.table || newest.changed > self.version.changed
        })
    }
}

impl Inner {
    fn remove(&mut self, request: &[u8]) {
        if let Some((key, entry)) = self.entries.remove_entry(request) {
            self.by_use.remove(&entry.last_use);
            let bytes = key.len() + entry.table.len() + entry.reply.body.len() + ENTRY_OVERHEAD;
            self.figures.bytes = self.figures.bytes.saturating_sub(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> settings::Cache {
        settings::Cache { enabled: true, max_memory_mb: 1, min_query_cost_ms: 1.0, ttl_s: 0 }
    }

    fn at(position: u64) -> TableVersion {
        TableVersion { table: 1, changed: remora_engine::Position(position) }
    }

    fn keep(cache: &QueryCache, request: &str, position: u64, body: &str) {
        let cost = Duration::from_millis(5);
        let at = at(position);
        cache.keep(request.as_bytes(), "t", at, body.as_bytes(), cost, &settings());
    }

    fn find(cache: &QueryCache, request: &str, position: u64) -> Option<String> {
        let reply = cache.find(request.as_bytes(), at(position), &settings());
        reply.map(|reply| String::from_utf8_lossy(&reply.body).into_owned())
    }

    #[test]
    fn a_write_makes_older_replies_unreachable() {
        let cache = QueryCache::default();
        keep(&cache, "a", 1, "one");
        assert_eq!(find(&cache, "a", 1).as_deref(), Some("one"));
        assert_eq!(find(&cache, "a", 2), None);
        assert_eq!(cache.figures().misses_outdated, 1);
        assert_eq!((cache.figures().entries, cache.figures().bytes), (0, 0));
    }

    #[test]
    fn the_least_recently_used_makes_room() {
        let cache = QueryCache::default();
        let body = "x".repeat(300_000);
        for request in ["a", "b", "c"] {
            keep(&cache, request, 1, &body);
        }
        assert!(find(&cache, "a", 1).is_some());
        keep(&cache, "d", 1, &body);
        assert!(find(&cache, "b", 1).is_none());
        assert!(find(&cache, "a", 1).is_some() && find(&cache, "d", 1).is_some());
        assert_eq!(cache.figures().evictions, 1);
        assert!(cache.figures().bytes <= 1 << 20);
        cache.clear(Some("other"));
        assert_eq!(cache.figures().entries, 3);
        cache.clear(None);
        assert_eq!((cache.figures().entries, cache.figures().bytes), (0, 0));
    }

    #[test]
    fn cheap_replies_are_not_cached() {
        let cache = QueryCache::default();
        let cost = Duration::from_micros(10);
        cache.keep(b"a", "t", at(1), b"x", cost, &settings());
        assert_eq!(find(&cache, "a", 1), None);
        assert_eq!(cache.figures().rejections_cheap, 1);
        keep(&cache, "b", 1, &"x".repeat(2 << 20));
        assert_eq!(cache.figures().rejections_oversize, 1);
        keep(&cache, "c", 1, "x");
        keep(&cache, "c", 1, "x");
        assert_eq!((cache.figures().rejections_duplicate, cache.figures().entries), (1, 1));
    }

    #[test]
    fn cache_sweep_removes_unreachable_replies() {
        let cache = QueryCache::default();
        keep(&cache, "a", 1, "one");
        keep(&cache, "b", 3, "three");
        cache.sweep(&settings(), |_| Some(at(1)));
        assert_eq!((cache.figures().entries, cache.figures().sweeps), (2, 0));
        cache.sweep(&settings(), |_| Some(at(2)));
        assert_eq!((cache.figures().swept, cache.figures().sweeps), (1, 1));
        assert_eq!(find(&cache, "a", 2), None);
        assert_eq!((cache.figures().misses_absent, cache.figures().misses_outdated), (1, 0));
        assert_eq!(find(&cache, "b", 3).as_deref(), Some("three"));
        cache.sweep(&settings(), |_| None);
        assert_eq!((cache.figures().swept, cache.figures().bytes), (2, 0));
    }

    #[test]
    fn expired_replies_are_removed_once() {
        let cache = QueryCache::default();
        let settings = settings::Cache { ttl_s: 1, ..settings() };
        for request in ["a", "b"] {
            keep(&cache, request, 1, "x");
        }
        std::thread::sleep(Duration::from_millis(1100));
        assert!(cache.find(b"a", at(1), &settings).is_none());
        cache.sweep(&settings, |_| Some(at(1)));
        let figures = cache.figures();
        assert_eq!((figures.misses_expired, figures.expirations, figures.swept), (1, 2, 0));
    }
}
