//! The metrics of the result cache. They are also present while the cache is off, so that turning
//! it off does not look like a missing server.

use super::Page;
use crate::line::reply::CacheStats;

impl Page {
    pub(super) fn cache(&mut self, cache: &CacheStats) {
        self.counter("mygramdb_cache_hits_total", "Replies given again", cache.hits);
        self.by_label(
            ("mygramdb_cache_misses_total", "counter", "Replies that were not kept or outdated"),
            "reason",
            &[
                ("not_found", cache.misses_not_found),
                ("ttl_expired", cache.misses_expired),
                ("invalidated", cache.misses_invalidated),
            ],
        );
        self.gauge("mygramdb_cache_entries", "Replies kept", cache.entries);
        // The cache has neither an index nor a queue of invalidations.
        self.by_label(
            ("mygramdb_cache_memory_bytes", "gauge", "Bytes of the replies kept"),
            "type",
            &[
                ("cache", cache.memory_bytes),
                ("invalidation_index", 0),
                ("invalidation_queue", 0),
                ("accounted_total", cache.memory_bytes),
            ],
        );
        self.cache_losses(cache);
        self.cache_settings(cache);
        self.by_label(
            ("mygramdb_cache_invalidations_total", "counter", "Replies that a write made wrong"),
            "phase",
            &[
                ("immediate", cache.invalidations_immediate),
                ("deferred", cache.invalidations_deferred),
                ("batch", cache.invalidation_batches),
            ],
        );
        let rate = format!("{:.4}", cache.hit_rate());
        self.gauge("mygramdb_cache_hit_rate", "Share of replies given again", rate);
    }

    /// Replies that were not kept or were dropped.
    fn cache_losses(&mut self, cache: &CacheStats) {
        self.counter("mygramdb_cache_evictions_total", "Replies that made room", cache.evictions);
        let name = "mygramdb_cache_ttl_expirations_total";
        self.counter(name, "Replies that outlived their time", cache.ttl_expirations);
        let name = "mygramdb_cache_rejections_total";
        self.counter(name, "Replies too cheap to keep", cache.rejections_cheap);
        self.by_label(
            ("mygramdb_cache_insert_rejections_total", "counter", "Other replies not kept"),
            "reason",
            &[
                ("oversize", cache.rejections_oversize),
                ("memory_budget", 0),
                ("duplicate", cache.rejections_duplicate),
            ],
        );
        let name = "mygramdb_cache_stale_entry_removals_total";
        self.counter(name, "Replies whose content was found stale: none can be", 0);
        let name = "mygramdb_cache_decompression_failures_total";
        self.counter(name, "Replies that could not be unpacked: none is packed", 0);
        let name = "mygramdb_cache_stale_lru_entries_total";
        self.counter(name, "Entries of the order of use without a reply: none can be", 0);
        let name = "mygramdb_cache_forced_clears_total";
        self.counter(name, "Times that replies were forgotten on demand", cache.forced_clears);
    }

    fn cache_settings(&mut self, cache: &CacheStats) {
        let name = "mygramdb_cache_max_memory_bytes";
        self.gauge(name, "Bytes that replies may take", cache.max_memory_bytes);
        let cost = format!("{:.3}", cache.min_query_cost_ms);
        let name = "mygramdb_cache_min_query_cost_ms";
        self.gauge(name, "Milliseconds a query must have taken", cost);
        let name = "mygramdb_cache_ttl_seconds";
        self.gauge(name, "Seconds a reply is kept; 0 is for ever", cache.ttl_seconds);
        let name = "mygramdb_cache_compression_enabled";
        self.gauge(name, "Whether replies are packed", 0);
    }

    /// A family with one label.
    fn by_label(&mut self, family: (&str, &str, &str), label: &str, samples: &[(&str, u64)]) {
        let (name, kind, help) = family;
        self.family(name, kind, help);
        for (value, count) in samples {
            self.sample(name, &[(label, value)], count);
        }
    }
}
