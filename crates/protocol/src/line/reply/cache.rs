//! Replies to CACHE, and the statistics of the result cache for other replies.

use std::time::Duration;

use super::{human_bytes, line, named, text};

/// The statistics of the result cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheStats {
    /// Whether the cache is enabled.
    pub enabled: bool,
    /// Lookups.
    pub queries: u64,
    /// Lookups that found a valid reply.
    pub hits: u64,
    /// Lookups that found no entry.
    pub misses_not_found: u64,
    /// Lookups that found an expired entry.
    pub misses_expired: u64,
    /// Lookups that found an entry older than a write.
    pub misses_invalidated: u64,
    /// The current number of entries.
    pub entries: u64,
    /// The size of the entries in bytes.
    pub memory_bytes: u64,
    /// The limit of their size.
    pub max_memory_bytes: u64,
    /// The least duration of a query whose reply is kept, in milliseconds.
    pub min_query_cost_ms: f64,
    /// The lifetime of a reply in seconds; 0 means no limit.
    pub ttl_seconds: u64,
    /// Entries that were removed to make room.
    pub evictions: u64,
    /// Entries that expired.
    pub ttl_expirations: u64,
    /// Replies that were not kept because their query was too cheap.
    pub rejections_cheap: u64,
    /// Replies that were not kept because they exceed the size of the cache.
    pub rejections_oversize: u64,
    /// Replies that were not kept because they were present.
    pub rejections_duplicate: u64,
    /// How often all entries, or those of a table, were cleared.
    pub forced_clears: u64,
    /// Entries invalidated by a write, found by a lookup.
    pub invalidations_immediate: u64,
    /// Entries invalidated by a write, found by a sweep.
    pub invalidations_deferred: u64,
    /// Sweeps that found invalidated entries.
    pub invalidation_batches: u64,
    /// The total duration of hits.
    pub hit_time: Duration,
    /// The total duration of misses.
    pub miss_time: Duration,
    /// The total time that hits saved.
    pub saved: Duration,
}

impl CacheStats {
    /// Lookups that were not answered from the cache.
    pub(crate) fn misses(&self) -> u64 {
        self.misses_not_found + self.misses_expired + self.misses_invalidated
    }

    /// The fraction of lookups that were hits.
    pub(crate) fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses()).max(1) as f64
    }

    /// The average duration of a hit in milliseconds.
    pub(crate) fn hit_ms(&self) -> f64 {
        milliseconds(self.hit_time) / self.hits.max(1) as f64
    }

    /// The average duration of a miss in milliseconds.
    pub(crate) fn miss_ms(&self) -> f64 {
        milliseconds(self.miss_time) / self.misses().max(1) as f64
    }

    /// The total time that hits saved, in milliseconds.
    pub(crate) fn saved_ms(&self) -> f64 {
        milliseconds(self.saved)
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The reply to CACHE CLEAR.
pub fn write_cache_cleared(out: &mut Vec<u8>, table: Option<&str>) {
    text(out, "OK CACHE_CLEARED");
    if let Some(table) = table {
        named(out, " table=", table);
    }
}

/// The reply to CACHE ENABLE and CACHE DISABLE.
pub fn write_cache_enabled(out: &mut Vec<u8>, enabled: bool) {
    text(out, if enabled { "OK CACHE_ENABLED" } else { "OK CACHE_DISABLED" });
}

/// The reply to CACHE STATS. Figures of an index or a queue of invalidations and of compression are
/// 0, because this cache has none of them.
pub fn write_cache_stats(out: &mut Vec<u8>, stats: &CacheStats) {
    text(out, "OK CACHE_STATS\r\n\r\n# Cache\r\n");
    line(out, "enabled", stats.enabled);
    line(out, "total_queries", stats.queries);
    line(out, "cache_hits", stats.hits);
    line(out, "cache_misses", stats.misses());
    line(out, "cache_misses_not_found", stats.misses_not_found);
    line(out, "cache_misses_ttl_expired", stats.misses_expired);
    line(out, "cache_misses_invalidated", stats.misses_invalidated);
    line(out, "hit_rate", format_args!("{:.4}", stats.hit_rate()));
    line(out, "current_entries", stats.entries);
    line(out, "current_memory_bytes", stats.memory_bytes);
    line(out, "invalidation_index_memory_bytes", 0);
    line(out, "invalidation_queue_memory_bytes", 0);
    line(out, "accounted_memory_bytes", stats.memory_bytes);
    line(out, "evictions", stats.evictions);
    line(out, "ttl_expirations", stats.ttl_expirations);
    line(out, "rejection_count", stats.rejections_cheap);
    write_shared(out, "", stats);
    line(out, "avg_cache_hit_time_ms", format_args!("{:.3}", stats.hit_ms()));
    line(out, "avg_cache_miss_time_ms", format_args!("{:.3}", stats.miss_ms()));
    line(out, "total_time_saved_ms", format_args!("{:.2}", stats.saved_ms()));
    text(out, "END");
}

/// The last section of INFO.
pub(super) fn write_cache_info(out: &mut Vec<u8>, stats: &CacheStats) {
    line(out, "cache_enabled", u8::from(stats.enabled));
    if !stats.enabled {
        return;
    }
    line(out, "cache_hits", stats.hits);
    line(out, "cache_misses", stats.misses());
    line(out, "cache_misses_not_found", stats.misses_not_found);
    line(out, "cache_misses_ttl_expired", stats.misses_expired);
    line(out, "cache_misses_invalidated", stats.misses_invalidated);
    line(out, "cache_total_queries", stats.queries);
    line(out, "cache_hit_rate", format_args!("{:.4}", stats.hit_rate()));
    line(out, "cache_current_entries", stats.entries);
    line(out, "cache_memory_bytes", stats.memory_bytes);
    line(out, "cache_memory_human", human_bytes(stats.memory_bytes));
    line(out, "cache_invalidation_queue_memory_bytes", 0);
    line(out, "cache_accounted_memory_bytes", stats.memory_bytes);
    line(out, "cache_accounted_memory_human", human_bytes(stats.memory_bytes));
    line(out, "cache_evictions", stats.evictions);
    line(out, "cache_ttl_expirations", stats.ttl_expirations);
    line(out, "cache_rejections", stats.rejections_cheap);
    write_shared(out, "cache_", stats);
    line(out, "cache_forced_clears", stats.forced_clears);
    line(out, "cache_avg_hit_latency_ms", format_args!("{:.3}", stats.hit_ms()));
    line(out, "cache_avg_miss_latency_ms", format_args!("{:.3}", stats.miss_ms()));
    line(out, "cache_total_time_saved_ms", format_args!("{:.2}", stats.saved_ms()));
    line(out, "cache_max_memory_bytes", stats.max_memory_bytes);
    line(out, "cache_max_memory_human", human_bytes(stats.max_memory_bytes));
    line(out, "cache_min_query_cost_ms", format_args!("{:.3}", stats.min_query_cost_ms));
    line(out, "cache_ttl_seconds", stats.ttl_seconds);
    line(out, "cache_compression_enabled", 0);
}

/// Writes the statistics that CACHE STATS and INFO have under the same names.
fn write_shared(out: &mut Vec<u8>, prefix: &str, stats: &CacheStats) {
    let mut figure = |name: &str, number: u64| line(out, &format!("{prefix}{name}"), number);
    figure("rejection_oversize", stats.rejections_oversize);
    figure("rejection_memory_budget", 0);
    figure("rejection_duplicate", stats.rejections_duplicate);
    figure("stale_entry_removals", 0);
    figure("decompression_failures", 0);
    figure("stale_lru_entries", 0);
    figure("invalidations_immediate", stats.invalidations_immediate);
    figure("invalidations_deferred", stats.invalidations_deferred);
    figure("invalidations_batches", stats.invalidation_batches);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_end_with_end() {
        let mut out = Vec::new();
        write_cache_stats(&mut out, &CacheStats { enabled: true, ..CacheStats::default() });
        let cache = String::from_utf8(out).unwrap();
        assert!(cache.starts_with("OK CACHE_STATS\r\n\r\n# Cache\r\nenabled: true\r\n"));
        assert!(cache.ends_with("\r\nEND"));
    }

    #[test]
    fn rates_match_their_counts() {
        let stats = CacheStats {
            hits: 3,
            misses_not_found: 1,
            misses_expired: 1,
            misses_invalidated: 1,
            hit_time: Duration::from_millis(6),
            miss_time: Duration::from_millis(12),
            ..CacheStats::default()
        };
        assert_eq!((stats.misses(), stats.hit_rate()), (3, 0.5));
        assert_eq!((stats.hit_ms(), stats.miss_ms()), (2.0, 4.0));
        assert_eq!(CacheStats::default().hit_rate(), 0.0);
    }
}
