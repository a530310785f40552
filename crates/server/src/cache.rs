//! The query-result cache: replies by request, exact by construction.
//!
//! An entry remembers the version its table had before it was answered. It is given again only
//! while that is still the newest version, so no entry ever has to be invalidated: a write makes
//! every older one of its table unreachable, and the least recently used go when room is needed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_engine::TableVersion;

use crate::settings;

/// Bytes that an entry takes beside its request and reply.
const ENTRY_OVERHEAD: usize = 160;

/// A kept reply.
#[derive(Clone)]
pub(crate) struct CachedReply {
    /// The reply without the frame's end and without a DEBUG block.
    pub body: Arc<[u8]>,
    /// What it cost to find.
    pub cost: Duration,
    /// When it was kept.
    pub kept_at: Instant,
}

/// Replies by request. All methods may be called from any thread; one short lock.
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

/// What the cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CacheFigures {
    /// Replies asked for.
    pub queries: u64,
    /// Replies given again.
    pub hits: u64,
    /// Requests that had no entry.
    pub misses_absent: u64,
    /// Requests whose entry was older than the newest write to its table.
    pub misses_outdated: u64,
    /// Entries that outlived their time.
    pub expirations: u64,
    /// Entries that made room.
    pub evictions: u64,
    /// Replies that were too cheap or too large to keep.
    pub rejections: u64,
    /// Entries now.
    pub entries: u64,
    /// Their bytes.
    pub bytes: usize,
    /// Time that hits saved.
    pub saved: Duration,
}

impl QueryCache {
    /// The reply to this request at this version of its table, if it is kept.
    pub(crate) fn find(
        &self,
        request: &[u8],
        version: TableVersion,
        settings: &settings::Cache,
    ) -> Option<CachedReply> {
        let inner = &mut *self.inner.lock();
        inner.figures.queries += 1;
        let Some(entry) = inner.entries.get_mut(request) else {
            inner.figures.misses_absent += 1;
            return None;
        };
        let expired = settings.ttl_s > 0
            && entry.reply.kept_at.elapsed() > Duration::from_secs(settings.ttl_s);
        if expired || entry.version != version {
            let counter = if expired {
                &mut inner.figures.expirations
            } else {
                &mut inner.figures.misses_outdated
            };
            *counter += 1;
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
        Some(entry.reply.clone())
    }

    /// Keeps a reply if it was dear enough and fits.
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
        if cost.as_secs_f64() * 1000.0 < settings.min_query_cost_ms || bytes > room {
            inner.figures.rejections += 1;
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

    /// Forgets the replies about one table, or all.
    pub(crate) fn clear(&self, table: Option<&str>) {
        let inner = &mut *self.inner.lock();
        let of_table = |entry: &Entry| table.is_none_or(|table| *entry.table == *table);
        let entries = inner.entries.iter();
        let gone: Vec<Arc<[u8]>> =
            entries.filter(|(_, entry)| of_table(entry)).map(|(key, _)| Arc::clone(key)).collect();
        for key in gone {
            inner.remove(&key);
        }
    }

    /// What it has done.
    pub(crate) fn figures(&self) -> CacheFigures {
        let inner = self.inner.lock();
        CacheFigures { entries: inner.entries.len() as u64, ..inner.figures }
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
    fn cheap_replies_are_not_kept() {
        let cache = QueryCache::default();
        let cost = Duration::from_micros(10);
        cache.keep(b"a", "t", at(1), b"x", cost, &settings());
        assert_eq!(find(&cache, "a", 1), None);
        assert_eq!(cache.figures().rejections, 1);
    }
}
