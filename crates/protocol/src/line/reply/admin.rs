//! Replies of AUTH, DEBUG, OPTIMIZE, CACHE, CONFIG and SET.

use std::time::Duration;

use super::{human_bytes, line, named, one_line, text};

/// The answer to AUTH with the right token.
pub fn write_auth_ok(out: &mut Vec<u8>) {
    text(out, "OK AUTHENTICATED");
}

/// The answer to DEBUG.
pub fn write_debug(out: &mut Vec<u8>, on: bool) {
    text(out, if on { "OK DEBUG_ON" } else { "OK DEBUG_OFF" });
}

/// The figures of OPTIMIZE, after it.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptimizeReport {
    /// Tables optimised.
    pub tables: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Posting lists held as deltas.
    pub delta_lists: u64,
    /// Posting lists held as bits.
    pub bitmap_lists: u64,
    /// Bytes of the indexes.
    pub memory_bytes: u64,
}

/// The answer to OPTIMIZE.
pub fn write_optimized(out: &mut Vec<u8>, report: &OptimizeReport) {
    let OptimizeReport { tables, terms, delta_lists, bitmap_lists, memory_bytes } = report;
    let memory = human_bytes(*memory_bytes);
    let lists = format!("delta={delta_lists} roaring={bitmap_lists}");
    text(out, &format!("OK OPTIMIZED tables={tables} terms={terms} {lists} memory={memory}"));
}

/// The answer to CACHE CLEAR.
pub fn write_cache_cleared(out: &mut Vec<u8>, table: Option<&str>) {
    text(out, "OK CACHE_CLEARED");
    if let Some(table) = table {
        named(out, " table=", table);
    }
}

/// The answer to CACHE ENABLE and CACHE DISABLE.
pub fn write_cache_enabled(out: &mut Vec<u8>, enabled: bool) {
    text(out, if enabled { "OK CACHE_ENABLED" } else { "OK CACHE_DISABLED" });
}

/// The figures of CACHE STATS and of INFO's last section.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheStats {
    /// Replies asked for.
    pub queries: u64,
    /// Replies given again.
    pub hits: u64,
    /// Requests that had no entry.
    pub misses_not_found: u64,
    /// Requests whose entry was older than a write.
    pub misses_invalidated: u64,
    /// Entries now.
    pub entries: u64,
    /// Their bytes.
    pub memory_bytes: u64,
    /// The most they may take.
    pub max_memory_bytes: u64,
    /// Entries that made room.
    pub evictions: u64,
    /// Entries that outlived their time.
    pub ttl_expirations: u64,
    /// Replies that were too cheap or too large.
    pub rejections: u64,
    /// What hits saved.
    pub saved: Duration,
}

impl CacheStats {
    /// The share of replies that were given again.
    pub(crate) fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.queries.max(1) as f64
    }

    /// Calls `visit` with every key and its value.
    pub(super) fn each(&self, mut visit: impl FnMut(&str, String)) {
        let misses = self.queries.saturating_sub(self.hits);
        let saved_ms = self.saved.as_secs_f64() * 1000.0;
        let mut whole = |key, value: u64| visit(key, value.to_string());
        whole("total_queries", self.queries);
        whole("cache_hits", self.hits);
        whole("cache_misses", misses);
        whole("cache_misses_not_found", self.misses_not_found);
        whole("cache_misses_invalidated", self.misses_invalidated);
        whole("current_entries", self.entries);
        whole("current_memory_bytes", self.memory_bytes);
        whole("max_memory_bytes", self.max_memory_bytes);
        whole("evictions", self.evictions);
        whole("ttl_expirations", self.ttl_expirations);
        whole("rejections", self.rejections);
        visit("hit_rate", format!("{:.4}", self.hit_rate()));
        visit("total_query_saved_time_ms", format!("{saved_ms:.3}"));
    }
}

/// The answer to CACHE STATS.
pub fn write_cache_stats(out: &mut Vec<u8>, enabled: bool, stats: &CacheStats) {
    text(out, "OK CACHE_STATS\r\n\r\n# Cache\r\n");
    line(out, "enabled", enabled);
    stats.each(|key, value| line(out, key, value));
    text(out, "END");
}

/// The answer to CONFIG: `+OK` and the lines of a text. Empty lines are left out, since a client
/// takes one for the end.
pub fn write_config(out: &mut Vec<u8>, shown: &str) {
    text(out, "+OK\r\n");
    for shown_line in shown.lines().filter(|shown_line| !shown_line.trim().is_empty()) {
        one_line(out, shown_line);
        text(out, "\r\n");
    }
}

/// The answer to SET: what was set, in the order of the request.
pub fn write_set(out: &mut Vec<u8>, set: &[(String, String)]) {
    match set {
        [(name, value)] => one_line(out, &format!("+OK Variable '{name}' set to '{value}'")),
        all => text(out, &format!("+OK {} variables set", all.len())),
    }
    text(out, "\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_statistics_end_with_end() {
        let cache = printed(|out| write_cache_stats(out, true, &CacheStats::default()));
        assert!(cache.starts_with("OK CACHE_STATS\r\n\r\n# Cache\r\nenabled: true\r\n"));
        assert!(cache.ends_with("\r\nEND"));
    }

    #[test]
    fn plus_ok_replies_end_their_last_line() {
        let pair = |name: &str| (name.to_owned(), "1".to_owned());
        let one = printed(|out| write_set(out, &[pair("a")]));
        assert_eq!(one, "+OK Variable 'a' set to '1'\r\n");
        let two = printed(|out| write_set(out, &[pair("a"), pair("b")]));
        assert_eq!(two, "+OK 2 variables set\r\n");
        let config = printed(|out| write_config(out, "a:\n\n  b: 1\n"));
        assert_eq!(config, "+OK\r\na:\r\n  b: 1\r\n");
    }

    #[test]
    fn optimize_is_one_line() {
        let report = OptimizeReport {
            tables: 1,
            terms: 2,
            delta_lists: 3,
            bitmap_lists: 4,
            memory_bytes: 813 << 20,
        };
        let expected = "OK OPTIMIZED tables=1 terms=2 delta=3 roaring=4 memory=813MB";
        assert_eq!(printed(|out| write_optimized(out, &report)), expected);
    }
}
