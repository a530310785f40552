//! Replies about the server: the contents of INFO, CONFIG and REPLICATION STATUS as JSON.

use serde_json::{Map, Value, json};

use super::TableMetrics;
use crate::line::reply::{
    CacheStats, InfoReport, MemoryHealth, MemoryInfo, ReplicationState, ReplicationStatus,
    human_bytes,
};

/// The state of replication in readiness probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    /// No source is configured.
    #[default]
    Disabled,
    /// Changes arrive.
    Connected,
    /// Following is starting.
    Starting,
    /// Following failed.
    Failed,
    /// Following was stopped on request.
    Disconnected,
}

impl Availability {
    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Connected => "connected",
            Self::Starting => "starting",
            Self::Failed => "failed",
            Self::Disconnected => "disconnected",
        }
    }

    /// Whether a server in this state may answer queries.
    pub fn is_available(self) -> bool {
        !matches!(self, Self::Failed | Self::Disconnected)
    }
}

/// Whether the server is ready, and why not. Probes, INFO and the health details all use it.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    /// A dump is being loaded.
    pub loading: bool,
    /// Whether each configured table has its rows.
    pub data_initialized: bool,
    /// A table is being copied.
    pub sync_in_progress: bool,
    /// The state of replication.
    pub availability: Availability,
    /// The figures of replication.
    pub replication: Option<ReplicationStatus>,
    /// A failure of the storage, for example that nothing can be written. Reads still work, so it
    /// does not affect readiness.
    pub storage_error: Option<String>,
    /// Whether writes are refused because of it.
    pub writes_refused: bool,
}

impl Readiness {
    /// Why the server is not ready; `None` if it is.
    pub fn reason(&self) -> Option<String> {
        let failed = |status: &ReplicationStatus| {
            let known = !status.last_error.is_empty();
            (!self.availability.is_available() && known).then(|| status.last_error.clone())
        };
        if !self.data_initialized {
            return Some("Initial data has not been loaded".to_owned());
        }
        if self.loading {
            return Some("Server is loading".to_owned());
        }
        if self.replication.as_ref().is_some_and(|status| status.schema_incompatible) {
            return Some("Replication stopped due to an incompatible schema".to_owned());
        }
        if let Some(error) = self.replication.as_ref().and_then(failed) {
            return Some(error);
        }
        let unavailable = !self.availability.is_available();
        unavailable.then(|| "Replication is not running".to_owned())
    }

    /// Whether the server is ready to answer.
    pub fn is_ready(&self) -> bool {
        self.reason().is_none()
    }
}

/// The body of `/health/ready`.
pub fn readiness(readiness: &Readiness, timestamp: u64) -> Value {
    let mut body = json!({
        "loading": readiness.loading,
        "data_initialized": readiness.data_initialized,
        "sync_in_progress": readiness.sync_in_progress,
        "status": if readiness.is_ready() { "ready" } else { "not_ready" },
        "timestamp": timestamp,
    });
    if let Some(reason) = readiness.reason() {
        set(&mut body, "reason", reason);
    }
    if let Some(error) = &readiness.storage_error {
        set(&mut body, "storage_error", error.clone());
        set(&mut body, "writes_refused", readiness.writes_refused);
    }
    let Some(status) = &readiness.replication else { return body };
    let starting = readiness.availability == Availability::Starting;
    set(&mut body, "replication_running", readiness.availability.is_available());
    set(&mut body, "replication_starting", starting);
    set(&mut body, "replication_paused_for_dump", false);
    set(&mut body, "replication_last_error", status.last_error.clone());
    set(&mut body, "replication_last_error_code", status.last_error_code);
    set(&mut body, "replication_crc_errors", status.crc_errors);
    set(&mut body, "replication_schema_incompatible", status.schema_incompatible);
    set(&mut body, "replication_last_applied_unixtime", status.last_applied_unixtime);
    let since = status.seconds_since_last_applied;
    set(&mut body, "replication_seconds_since_last_applied", since);
    body
}

/// The body of `/health/detail`.
pub fn health_detail(info: &InfoReport, readiness: &Readiness, timestamp: u64) -> Value {
    let server = if readiness.loading { "loading" } else { "ready" };
    let storage = match &info.storage_error {
        None => json!({ "status": "ok" }),
        Some(error) => json!({ "status": "failing", "error": error }),
    };
    let mut components = json!({
        "server": { "status": server, "loading": readiness.loading },
        "storage": storage,
        "index": {
            "status": "ok",
            "total_terms": info.index.terms,
            "total_documents": info.index.documents,
        },
        "cache": cache_health(&info.cache),
    });
    if let Some(status) = &readiness.replication {
        set(&mut components, "binlog", binlog_health(status, readiness.availability));
    }
    let is_healthy = readiness.is_ready() && info.storage_error.is_none();
    let mut body = json!({
        "status": if is_healthy { "healthy" } else { "degraded" },
        "timestamp": timestamp,
        "uptime_seconds": info.uptime_seconds,
        "components": components,
    });
    if let Some(reason) = readiness.reason() {
        set(&mut body, "reason", reason);
    }
    body
}

fn cache_health(stats: &CacheStats) -> Value {
    json!({
        "status": "ok",
        "enabled": stats.enabled,
        "hit_rate": stats.hit_rate(),
        "total_hits": stats.hits,
        "total_misses": stats.misses(),
        "current_entries": stats.entries,
    })
}

fn binlog_health(status: &ReplicationStatus, availability: Availability) -> Value {
    let mut body = replication_figures(status);
    let running = matches!(availability, Availability::Connected | Availability::Starting);
    set(&mut body, "status", availability.name());
    set(&mut body, "running", running);
    set(&mut body, "starting", availability == Availability::Starting);
    set(&mut body, "replication_state", status.state.name());
    body
}

/// The body of `/replication/status`.
pub fn replication(status: &ReplicationStatus) -> Value {
    let mut body = replication_figures(status);
    set(&mut body, "enabled", status.state == ReplicationState::Running);
    set(&mut body, "status", status.state.name());
    body
}

fn replication_figures(status: &ReplicationStatus) -> Value {
    json!({
        "current_gtid": status.current_gtid,
        "processed_events": status.processed_events,
        "queue_size": status.queue_size,
        "crc_errors": status.crc_errors,
        "schema_incompatible": status.schema_incompatible,
        "last_error_code": status.last_error_code,
        "last_error": status.last_error,
        "last_applied_unixtime": status.last_applied_unixtime,
        "seconds_since_last_applied": status.seconds_since_last_applied,
    })
}

/// What `/config` tells everybody. It contains no name, address or secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfigSummary {
    /// Whether a source is configured.
    pub mysql: bool,
    /// Whether the source has a database.
    pub database: bool,
    /// Whether CORS is enabled.
    pub cors: bool,
    /// Whether the line protocol is enabled on TCP.
    pub tcp: bool,
    /// Whether allowed networks are configured.
    pub allow_cidrs: bool,
}

/// The body of `/config`.
pub fn config(summary: &ConfigSummary) -> Value {
    json!({
        "mysql": { "configured": summary.mysql, "database_defined": summary.database },
        "api": {
            "tcp": { "enabled": summary.tcp },
            "http": { "enabled": true, "cors_enabled": summary.cors },
        },
        "network": { "allow_cidrs_configured": summary.allow_cidrs },
        "replication": { "enable": summary.mysql },
        "notes": "Sensitive configuration values are redacted over HTTP. Use CONFIG SHOW over a \
                  secured connection for details.",
    })
}

/// The body of `/optimize`, which contains the reply of the line protocol.
pub fn optimized(line: &str) -> Value {
    json!({ "status": "ok", "result": line.strip_prefix("OK ").unwrap_or(line) })
}

/// The body of `/info`.
pub fn info(info: &InfoReport, tables: &[TableMetrics]) -> Value {
    let mut index = json!({
        "total_documents": info.index.documents,
        "total_terms": info.index.terms,
        "total_postings": info.index.postings,
        "delta_encoded_lists": info.index.delta_lists,
        "roaring_bitmap_lists": info.index.bitmap_lists,
    });
    if info.index.terms > 0 {
        let average = info.index.postings as f64 / info.index.terms as f64;
        set(&mut index, "avg_postings_per_term", average);
    }
    let tables = tables.iter().map(|table| (table.name.clone(), table_info(table)));
    let mut body = json!({
        "server": info.identity.server,
        "version": info.identity.version,
        "uptime_seconds": info.uptime_seconds,
        "total_requests": info.requests,
        "total_commands_processed": info.commands,
        "memory": memory(&info.memory),
        "index": index,
        "tables": tables.collect::<Map<String, Value>>(),
        "cache": cache(&info.cache),
    });
    if let Some(own) = info.identity.remora_version {
        set(&mut body, "remora_version", own);
    }
    body
}

fn table_info(table: &TableMetrics) -> Value {
    let figures = &table.statistics;
    json!({
        "documents": figures.rows,
        "terms": figures.terms,
        "postings": figures.postings,
        "segments": figures.segments,
        "store_bytes": figures.store_bytes,
        "memory_bytes": figures.index_bytes,
        "memory_human": human_bytes(figures.index_bytes),
    })
}

fn memory(memory: &MemoryInfo) -> Value {
    let used = memory.system_total.saturating_sub(memory.system_available);
    let mut body = json!({
        "used_memory_bytes": memory.used,
        "used_memory_human": human_bytes(memory.used),
        "peak_memory_bytes": memory.used_peak,
        "peak_memory_human": human_bytes(memory.used_peak),
        "used_memory_index": human_bytes(memory.index),
        "used_memory_documents": human_bytes(memory.documents),
        "process_rss": memory.process_rss,
        "process_rss_human": human_bytes(memory.process_rss),
        "process_rss_peak": memory.process_rss_peak,
        "process_rss_peak_human": human_bytes(memory.process_rss_peak),
        "memory_health": memory.health.name(),
    });
    if memory.health != MemoryHealth::Unknown {
        set(&mut body, "total_system_memory", memory.system_total);
        set(&mut body, "total_system_memory_human", human_bytes(memory.system_total));
        set(&mut body, "available_system_memory", memory.system_available);
        set(&mut body, "available_system_memory_human", human_bytes(memory.system_available));
        let ratio = used as f64 / memory.system_total.max(1) as f64;
        set(&mut body, "system_memory_usage_ratio", ratio);
    }
    body
}

fn cache(cache: &CacheStats) -> Value {
    if !cache.enabled {
        return json!({ "enabled": false });
    }
    json!({
        "enabled": true,
        "hits": cache.hits,
        "misses": cache.misses(),
        "misses_not_found": cache.misses_not_found,
        "misses_ttl_expired": cache.misses_expired,
        "misses_invalidated": cache.misses_invalidated,
        "total_queries": cache.queries,
        "hit_rate": cache.hit_rate(),
        "current_entries": cache.entries,
        "memory_bytes": cache.memory_bytes,
        "memory_human": human_bytes(cache.memory_bytes),
        "evictions": cache.evictions,
        "ttl_expirations": cache.ttl_expirations,
        "rejection_count": cache.rejections_cheap,
        "rejection_oversize": cache.rejections_oversize,
        "rejection_memory_budget": 0,
        "rejection_duplicate": cache.rejections_duplicate,
        "stale_entry_removals": 0,
        "decompression_failures": 0,
        "stale_lru_entries": 0,
        "invalidation_index_memory_bytes": 0,
        "invalidation_queue_memory_bytes": 0,
        "accounted_memory_bytes": cache.memory_bytes,
        "accounted_memory_human": human_bytes(cache.memory_bytes),
        "invalidations_immediate": cache.invalidations_immediate,
        "invalidations_deferred": cache.invalidations_deferred,
        "invalidations_batches": cache.invalidation_batches,
        "avg_hit_latency_ms": cache.hit_ms(),
        "avg_miss_latency_ms": cache.miss_ms(),
        "total_time_saved_ms": cache.saved_ms(),
    })
}

fn set(body: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = body {
        fields.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> ReplicationStatus {
        ReplicationStatus {
            state: ReplicationState::Failed,
            current_gtid: "u:1-5".to_owned(),
            last_error: "the binlog is purged".to_owned(),
            last_error_code: 2010,
            ..ReplicationStatus::default()
        }
    }

    #[test]
    fn readiness_has_its_reason() {
        let ready = Readiness { data_initialized: true, ..Readiness::default() };
        assert_eq!(readiness(&ready, 7)["status"], "ready");
        assert_eq!(readiness(&ready, 7).get("replication_running"), None);
        assert_eq!(health_detail(&InfoReport::default(), &ready, 7)["status"], "healthy");
        let loading = Readiness { loading: true, ..ready.clone() };
        assert_eq!(readiness(&loading, 7)["reason"], "Server is loading");
        let empty = Readiness::default();
        assert_eq!(readiness(&empty, 7)["reason"], "Initial data has not been loaded");
        let gone = Readiness { availability: Availability::Disconnected, ..ready.clone() };
        assert_eq!(gone.reason().as_deref(), Some("Replication is not running"));
        let stopped =
            Readiness { availability: Availability::Failed, replication: Some(failed()), ..ready };
        let body = readiness(&stopped, 7);
        assert_eq!(body["reason"], "the binlog is purged");
        assert_eq!(body["replication_running"], false);
        let detail = health_detail(&InfoReport::default(), &stopped, 7);
        assert_eq!(detail["status"], "degraded");
        assert_eq!(detail["components"]["binlog"]["status"], "failed");
        assert_eq!(detail["components"]["binlog"]["last_error_code"], 2010);
    }

    #[test]
    fn the_source_and_the_server_report() {
        let body = replication(&failed());
        assert_eq!((&body["enabled"], &body["status"]), (&json!(false), &json!("failed")));
        assert_eq!(body["current_gtid"], "u:1-5");
        let body = info(&InfoReport::default(), &[]);
        assert_eq!(body["cache"], json!({"enabled": false}));
        assert_eq!(body["index"].get("avg_postings_per_term"), None);
        assert_eq!(optimized("OK OPTIMIZED tables=1")["result"], "OPTIMIZED tables=1");
        assert_eq!(config(&ConfigSummary::default())["mysql"]["configured"], false);
    }
}
