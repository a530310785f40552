//! The server's statistics for INFO and HTTP.

use remora_engine::{IndexAnswers, Reader, TableStatistics};
use remora_protocol::{
    http::{Denials, Metrics, Readiness, TableMetrics},
    line::reply::{CacheStats, Identity, IndexInfo, InfoReport, MemoryHealth, MemoryInfo},
};

use crate::{
    counters::Denial,
    process::MemoryFigures,
    settings::{Dialect, MYGRAMDB_VERSION},
    shared::ServerState,
};

/// Whether the client may know about a table.
pub(crate) type TableVisibility<'s> = &'s (dyn Fn(&str) -> bool + Sync);

/// The answer to INFO. Cost: the statistics of every table.
pub(crate) fn info(shared: &ServerState, is_visible: TableVisibility<'_>) -> InfoReport {
    let counters = &shared.counters;
    let mut tables = shared.database.tables();
    tables.retain(|table| is_visible(table));
    let sum = statistics(shared, &tables);
    let readiness = readiness(shared);
    InfoReport {
        identity: identity(shared.settings.load().dialect),
        uptime_seconds: shared.started.elapsed().as_secs(),
        data_initialized: readiness.data_initialized,
        ready: readiness.is_ready(),
        storage_error: storage_error(shared).or_else(|| merge_failure(shared, is_visible)),
        commands: counters.commands(),
        connections: counters.connections(),
        requests: counters.requests(),
        text_normalization_failures: counters.normalization_failures(),
        commands_by_name: counters.commands_by_name().collect(),
        memory: memory(&sum),
        index: index(&sum),
        tables,
        connected_clients: counters.connected() as u64,
        replication: shared.sources.info(),
        cache: cache_stats(shared),
    }
}

/// MygramDB's clients compare the server's version. In its dialect, this is the version of its protocol.
fn identity(dialect: Dialect) -> Identity {
    let own = env!("CARGO_PKG_VERSION");
    match dialect {
        Dialect::Remora => Identity { server: "Remora", version: own, remora_version: None },
        Dialect::MygramDb => {
            Identity { server: "MygramDB", version: MYGRAMDB_VERSION, remora_version: Some(own) }
        }
    }
}

/// The most severe storage error: writing is impossible, or segments cannot be written. Reads continue.
pub(crate) fn storage_error(shared: &ServerState) -> Option<String> {
    let database = &shared.database;
    let refused = database.write_refusal().map(|why| format!("writes are refused: {why}"));
    let failed = || database.checkpoint_failure().as_deref().map(checkpoint_failed);
    refused.or_else(failed)
}

/// The message for a failed checkpoint.
fn checkpoint_failed(why: &str) -> String {
    format!("checkpoint failed, and is tried again: {why}")
}

/// The message for the first visible table whose segments cannot be merged.
fn merge_failure(shared: &ServerState, is_visible: TableVisibility<'_>) -> Option<String> {
    let mut failures = shared.database.merge_failures().into_iter();
    failures.find(|(table, _)| is_visible(table)).map(|(_, told)| told)
}

/// Whether the server can answer: the same result for INFO and all probes.
pub(crate) fn readiness(shared: &ServerState) -> Readiness {
    let sources = &shared.sources;
    let (replication, availability) = sources.replication().unzip();
    Readiness {
        loading: shared.dump.is_loading(),
        data_initialized: sources.is_initialized(&shared.database),
        sync_in_progress: sources.is_copying(),
        availability: availability.unwrap_or_default(),
        replication,
        storage_error: storage_error(shared),
        writes_refused: shared.database.write_refusal().is_some(),
    }
}

/// The statistics of each table. A table that is dropped meanwhile is left out.
pub(crate) fn tables(shared: &ServerState, is_visible: TableVisibility<'_>) -> Vec<TableMetrics> {
    let tables = shared.database.tables().into_iter().filter(|table| is_visible(table));
    let figures = tables.filter_map(|name| {
        let statistics = shared.database.statistics(&name).ok()?;
        let index_answers = index_answers(&shared.database.reader(), &name).ok()?;
        Some(TableMetrics { name, statistics, index_answers })
    });
    figures.collect()
}

/// How often each index of a table was used: its columns, the purpose, and the number.
fn index_answers(
    reader: &Reader,
    table: &str,
) -> remora_engine::Result<Vec<(String, &'static str, u64)>> {
    let (schema, usage) = (reader.schema(table)?, reader.index_usage(table)?);
    let named = |columns: &mut dyn Iterator<Item = usize>| {
        columns.map(|place| schema.shown_name(place)).collect::<Vec<_>>().join(",")
    };
    let mut all = Vec::new();
    let mut add = |index: &str, counted: &IndexAnswers, is_text: bool| {
        let kinds = [
            ("lookup", counted.lookups),
            ("equality", counted.equalities),
            ("range", counted.ranges),
            ("order", counted.orders),
            ("text", counted.searches),
        ];
        let of_kind = kinds.into_iter().filter(|(kind, _)| (*kind == "text") == is_text);
        all.extend(of_kind.map(|(kind, count)| (index.to_owned(), kind, count)));
    };
    add("PRIMARY", &usage.key, false);
    for (index, counted) in schema.indexes.iter().zip(&usage.secondary) {
        let columns = &mut index.columns.iter().map(|part| part.column);
        add(&named(columns), counted, false);
    }
    for (text, counted) in schema.texts.iter().zip(&usage.texts) {
        add(&named(&mut text.columns.iter().copied()), counted, true);
    }
    Ok(all)
}

/// The metrics.
pub(crate) fn metrics(shared: &ServerState, is_visible: TableVisibility<'_>) -> Metrics<'static> {
    let counters = &shared.counters;
    let denials = Denials {
        acl: counters.denials(Denial::Network),
        rate_limit: counters.denials(Denial::Rate),
        connection_limit: counters.denials(Denial::Connections),
    };
    let mut sources = shared.sources.metrics();
    for source in &mut sources {
        source.tables.retain(|table| is_visible(&table.name));
    }
    Metrics {
        info: info(shared, is_visible),
        remora_version: env!("CARGO_PKG_VERSION"),
        position: shared.database.position().0,
        tables: tables(shared, is_visible),
        replication: readiness(shared).replication,
        sources,
        dump_last_success: shared.dump.last_success(),
        dump_failures: shared.dump.failures(),
        denials,
        workers: tokio::runtime::Handle::current().metrics().num_workers() as u64,
    }
}

/// The sum over tables. Distributed tables and tables that are dropped meanwhile count nothing.
pub(crate) fn statistics(shared: &ServerState, tables: &[String]) -> TableStatistics {
    let mut sum = TableStatistics::default();
    let reader = shared.database.reader();
    let of_its_own = |table: &&String| reader.parts(table).is_empty();
    let tables = tables.iter().filter(of_its_own);
    for statistics in tables.filter_map(|table| shared.database.statistics(table).ok()) {
        sum.rows += statistics.rows;
        sum.terms += statistics.terms;
        sum.postings += statistics.postings;
        sum.bitmap_lists += statistics.bitmap_lists;
        sum.index_bytes += statistics.index_bytes;
        sum.merging |= statistics.merging;
    }
    sum
}

/// Texts are on disk behind a cache, so the memory of documents is the process's memory without the index.
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

/// The statistics of the result cache, after removing unreachable entries.
pub(crate) fn cache_stats(shared: &ServerState) -> CacheStats {
    let settings = &shared.settings.load().cache;
    shared.cache.sweep(settings, |table| shared.database.table_version(table).ok());
    let figures = shared.cache.figures();
    CacheStats {
        enabled: settings.enabled,
        queries: figures.queries,
        hits: figures.hits,
        misses_not_found: figures.misses_absent,
        misses_expired: figures.misses_expired,
        misses_invalidated: figures.misses_outdated,
        entries: figures.entries,
        memory_bytes: figures.bytes as u64,
        max_memory_bytes: settings.max_memory_mb << 20,
        min_query_cost_ms: settings.min_query_cost_ms,
        ttl_seconds: settings.ttl_s,
        evictions: figures.evictions,
        ttl_expirations: figures.expirations,
        rejections_cheap: figures.rejections_cheap,
        rejections_oversize: figures.rejections_oversize,
        rejections_duplicate: figures.rejections_duplicate,
        forced_clears: figures.clears,
        invalidations_immediate: figures.misses_outdated,
        invalidations_deferred: figures.swept,
        invalidation_batches: figures.sweeps,
        hit_time: figures.hit_time,
        miss_time: figures.miss_time,
        saved: figures.saved,
    }
}
