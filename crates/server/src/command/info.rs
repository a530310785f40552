//! INFO: the server's true figures.

use remora_engine::TableStatistics;
use remora_protocol::line::reply::{
    self, CacheStats, IndexInfo, InfoReport, MemoryHealth, MemoryInfo, ReplicationInfo,
};

use super::{Answer, Session, blocking};
use crate::{process::MemoryFigures, server::Shared};

impl Session {
    pub(super) fn info(&self, out: &mut Vec<u8>) -> Answer {
        reply::write_info(out, &blocking(|| report(&self.shared)));
        Ok(())
    }
}

fn report(shared: &Shared) -> InfoReport {
    let counters = &shared.counters;
    let tables = shared.database.tables();
    let sum = statistics(shared, &tables);
    InfoReport {
        version: concat!("Remora v", env!("CARGO_PKG_VERSION")).to_owned(),
        uptime_seconds: shared.started.elapsed().as_secs(),
        data_initialized: !tables.is_empty(),
        ready: true,
        commands: counters.commands(),
        connections: counters.connections(),
        requests: counters.requests(),
        text_normalization_failures: counters.normalization_failures(),
        commands_by_name: counters.commands_by_name().collect(),
        memory: memory(&sum),
        index: index(&sum),
        tables,
        connected_clients: counters.connected() as u64,
        replication: ReplicationInfo::default(),
        cache: shared.settings.load().cache.enabled.then(|| cache_stats(shared)),
    }
}

/// The sum over tables; a table that is dropped meanwhile counts nothing.
pub(super) fn statistics(shared: &Shared, tables: &[String]) -> TableStatistics {
    let mut sum = TableStatistics::default();
    for statistics in tables.iter().filter_map(|table| shared.database.statistics(table).ok()) {
        sum.rows += statistics.rows;
        sum.terms += statistics.terms;
        sum.postings += statistics.postings;
        sum.bitmap_lists += statistics.bitmap_lists;
        sum.index_bytes += statistics.index_bytes;
        sum.merging |= statistics.merging;
    }
    sum
}

/// Texts lie on disk behind a cache, so what documents take in memory is what the process holds
/// beside the index.
fn memory(sum: &TableStatistics) -> MemoryInfo {
    let figures = MemoryFigures::read();
    MemoryInfo {
        used: figures.resident,
        used_peak: figures.resident_peak,
        index: sum.index_bytes,
        documents: figures.resident.saturating_sub(sum.index_bytes),
        system_total: figures.system_total,
        system_available: figures.system_available,
        process_rss: figures.resident,
        process_rss_peak: figures.resident_peak,
        health: health(&figures),
    }
}

fn health(figures: &MemoryFigures) -> MemoryHealth {
    match figures.usage_ratio() {
        None => MemoryHealth::Unknown,
        Some(usage) if usage > 0.9 => MemoryHealth::Critical,
        Some(usage) if usage > 0.8 => MemoryHealth::Warning,
        Some(_) => MemoryHealth::Healthy,
    }
}

fn index(sum: &TableStatistics) -> IndexInfo {
    IndexInfo {
        documents: sum.rows,
        terms: sum.terms,
        postings: sum.postings,
        delta_lists: sum.terms.saturating_sub(sum.bitmap_lists),
        bitmap_lists: sum.bitmap_lists,
        optimizing: sum.merging,
    }
}

/// The result cache's figures.
pub(super) fn cache_stats(shared: &Shared) -> CacheStats {
    let figures = shared.cache.figures();
    CacheStats {
        queries: figures.queries,
        hits: figures.hits,
        misses_not_found: figures.misses_absent,
        misses_invalidated: figures.misses_outdated,
        entries: figures.entries,
        memory_bytes: figures.bytes as u64,
        max_memory_bytes: shared.settings.load().cache.max_memory_mb << 20,
        evictions: figures.evictions,
        ttl_expirations: figures.expirations,
        rejections: figures.rejections,
        saved: figures.saved,
    }
}
