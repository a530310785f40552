//! INFO: the state of the server.

use super::{CacheStats, cache::write_cache_info, human_bytes, line, text};

/// The figures of INFO.
#[derive(Clone, Debug, Default)]
pub struct InfoReport {
    /// The identity of the server.
    pub identity: Identity,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Whether all tables have their rows.
    pub data_initialized: bool,
    /// Whether queries are answered.
    pub ready: bool,
    /// What cannot be written to disk, and why; `None` if there is no such problem.
    pub storage_error: Option<String>,
    /// The number of valid commands.
    pub commands: u64,
    /// The number of connections since the start.
    pub connections: u64,
    /// The number of requests since the start.
    pub requests: u64,
    /// The number of texts that were not valid UTF-8.
    pub text_normalization_failures: u64,
    /// Counts by name (`cmd_search` …). Zeros are omitted.
    pub commands_by_name: Vec<(&'static str, u64)>,
    /// The use of memory.
    pub memory: MemoryInfo,
    /// The sums over the indexes of all tables.
    pub index: IndexInfo,
    /// The names of the tables.
    pub tables: Vec<String>,
    /// The number of open connections.
    pub connected_clients: u64,
    /// Replication.
    pub replication: ReplicationInfo,
    /// The result cache.
    pub cache: CacheStats,
}

/// The identity that a server reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `Remora`, or `MygramDB` in its dialect.
    pub server: &'static str,
    /// The version of that. MygramDB's clients compare it.
    pub version: &'static str,
    /// Remora's version, if it is not `version`.
    pub remora_version: Option<&'static str>,
}

/// The use of memory, in bytes.
#[derive(Clone, Debug, Default)]
pub struct MemoryInfo {
    /// The tables: indexes and documents.
    pub used: u64,
    /// The highest value of `used`.
    pub used_peak: u64,
    /// The indexes.
    pub index: u64,
    /// The documents.
    pub documents: u64,
    /// The memory of the machine.
    pub system_total: u64,
    /// The available memory of the machine.
    pub system_available: u64,
    /// The resident memory of the process.
    pub process_rss: u64,
    /// The highest value of `process_rss`.
    pub process_rss_peak: u64,
    /// The assessment.
    pub health: MemoryHealth,
}

/// How much memory is available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryHealth {
    /// Enough memory.
    Healthy,
    /// Little memory.
    Warning,
    /// Very little memory.
    Critical,
    /// Unknown: the operating system does not report it.
    #[default]
    Unknown,
}

impl MemoryHealth {
    /// Its name in replies.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Healthy => "HEALTHY",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// Sums over all tables.
#[derive(Clone, Debug, Default)]
pub struct IndexInfo {
    /// The number of rows.
    pub documents: u64,
    /// The number of distinct terms.
    pub terms: u64,
    /// The number of pairs of a term and a row.
    pub postings: u64,
    /// The number of posting lists stored as deltas.
    pub delta_lists: u64,
    /// The number of posting lists stored as bitmaps.
    pub bitmap_lists: u64,
    /// Whether a merge is running.
    pub optimizing: bool,
}

/// The counters of replication since the start.
#[derive(Clone, Debug)]
pub struct ReplicationInfo {
    /// `running`, `stopped` or `disabled`.
    pub status: &'static str,
    /// The applied position.
    pub gtid: String,
    /// The number of events.
    pub events: u64,
    /// Counters without the prefix `replication_`, such as `inserts_applied`, in the order of
    /// [`ReplicationInfo::COUNTERS`].
    pub counters: [u64; 11],
}

impl ReplicationInfo {
    /// The names of [`ReplicationInfo::counters`].
    pub const COUNTERS: [&'static str; 11] = [
        "inserts_applied",
        "inserts_skipped",
        "updates_applied",
        "updates_added",
        "updates_removed",
        "updates_modified",
        "updates_skipped",
        "deletes_applied",
        "deletes_skipped",
        "ddl_executed",
        "events_skipped_other_tables",
    ];
}

impl ReplicationInfo {
    /// The counter of this name.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let found = Self::COUNTERS.iter().zip(self.counters).find(|(known, _)| **known == name);
        found.map_or(0, |(_, count)| count)
    }
}

impl Default for ReplicationInfo {
    fn default() -> Self {
        Self { status: "disabled", gtid: String::new(), events: 0, counters: [0; 11] }
    }
}

/// The reply to INFO.
pub fn write_info(out: &mut Vec<u8>, report: &InfoReport) {
    text(out, "OK INFO\r\n");
    write_server(out, report);
    write_memory(out, &report.memory);
    write_index(out, &report.index);
    section(out, "Tables");
    line(out, "tables", report.tables.join(","));
    section(out, "Clients");
    line(out, "connected_clients", report.connected_clients);
    write_replication(out, &report.replication);
    section(out, "Cache");
    write_cache_info(out, &report.cache);
    text(out, "\r\nEND");
}

fn section(out: &mut Vec<u8>, name: &str) {
    text(out, "\r\n# ");
    text(out, name);
    text(out, "\r\n");
}

fn write_server(out: &mut Vec<u8>, report: &InfoReport) {
    section(out, "Server");
    let Identity { server, version, remora_version } = report.identity;
    line(out, "version", format_args!("{server} v{version}"));
    if let Some(own) = remora_version {
        line(out, "remora_version", format_args!("v{own}"));
    }
    line(out, "uptime_seconds", report.uptime_seconds);
    line(out, "data_initialized", report.data_initialized);
    line(out, "readiness", if report.ready { "ready" } else { "not_ready" });
    if let Some(error) = &report.storage_error {
        line(out, "storage_error", error);
    }
    section(out, "Stats");
    line(out, "total_commands_processed", report.commands);
    line(out, "total_connections_received", report.connections);
    line(out, "total_requests", report.requests);
    line(out, "text_normalization_failures", report.text_normalization_failures);
    section(out, "Commandstats");
    for (name, count) in report.commands_by_name.iter().filter(|(_, count)| *count > 0) {
        line(out, name, count);
    }
}

fn write_memory(out: &mut Vec<u8>, memory: &MemoryInfo) {
    section(out, "Memory");
    both(out, "used_memory", memory.used);
    both(out, "used_memory_peak", memory.used_peak);
    line(out, "used_memory_index", human_bytes(memory.index));
    line(out, "used_memory_documents", human_bytes(memory.documents));
    let fragmentation = ratio(memory.used_peak, memory.used).unwrap_or(1.0);
    line(out, "memory_fragmentation_ratio", format_args!("{fragmentation:.2}"));
    line(out, "total_system_memory", human_bytes(memory.system_total));
    line(out, "available_system_memory", human_bytes(memory.system_available));
    let used = memory.system_total.saturating_sub(memory.system_available);
    let usage = ratio(used, memory.system_total).unwrap_or(0.0);
    line(out, "system_memory_usage_ratio", format_args!("{usage:.2}"));
    line(out, "process_rss", human_bytes(memory.process_rss));
    line(out, "process_rss_peak", human_bytes(memory.process_rss_peak));
    line(out, "memory_health", memory.health.name());
}

fn both(out: &mut Vec<u8>, key: &str, bytes: u64) {
    line(out, &format!("{key}_bytes"), bytes);
    line(out, &format!("{key}_human"), human_bytes(bytes));
}

fn write_index(out: &mut Vec<u8>, index: &IndexInfo) {
    section(out, "Index");
    line(out, "total_documents", index.documents);
    line(out, "total_terms", index.terms);
    line(out, "total_postings", index.postings);
    let average = ratio(index.postings, index.terms).unwrap_or(0.0);
    line(out, "avg_postings_per_term", format_args!("{average:.2}"));
    line(out, "delta_encoded_lists", index.delta_lists);
    line(out, "roaring_bitmap_lists", index.bitmap_lists);
    line(out, "optimization_status", if index.optimizing { "in_progress" } else { "idle" });
}

fn write_replication(out: &mut Vec<u8>, replication: &ReplicationInfo) {
    section(out, "Replication");
    line(out, "replication_status", replication.status);
    line(out, "replication_gtid", &replication.gtid);
    line(out, "replication_events", replication.events);
    for (name, count) in ReplicationInfo::COUNTERS.iter().zip(replication.counters) {
        line(out, &format!("replication_{name}"), count);
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_has_every_section_and_ends_with_end() {
        let report = InfoReport {
            commands_by_name: vec![("cmd_search", 2), ("cmd_count", 0)],
            cache: CacheStats { enabled: true, ..CacheStats::default() },
            ..InfoReport::default()
        };
        let mut out = Vec::new();
        write_info(&mut out, &report);
        let info = String::from_utf8(out).unwrap();
        let sections: Vec<&str> = info.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        let expected = [
            "Server",
            "Stats",
            "Commandstats",
            "Memory",
            "Index",
            "Tables",
            "Clients",
            "Replication",
            "Cache",
        ];
        assert_eq!(sections, expected);
        assert!(info.starts_with("OK INFO\r\n\r\n# Server\r\n"));
        assert!(info.ends_with("\r\nEND"));
        assert!(info.contains("cmd_search: 2\r\n") && !info.contains("cmd_count"));
        assert!(info.contains("cache_hits: 0\r\n") && info.contains("cache_total_queries: 0\r\n"));
    }
}
