//! `/metrics`: Prometheus' text format 0.0.4, with MygramDB's names. Metrics that MygramDB does not
//! have are named for Remora.
//!
//! ```text
//! family = "# HELP " name " " sentence LF "# TYPE " name " " kind LF { sample }
//! sample = name [ "{" label "=" quoted { "," label "=" quoted } "}" ] " " number LF
//! ```

mod cache;

use std::fmt::{Display, Write};

use remora_engine::TableStatistics;

use crate::line::reply::{InfoReport, MemoryHealth, ReplicationState, ReplicationStatus};

/// The values of all metrics.
#[derive(Debug, Default)]
pub struct Metrics<'m> {
    /// The server, as in INFO.
    pub info: InfoReport,
    /// Remora's release.
    pub remora_version: &'m str,
    /// The position of the newest batch.
    pub position: u64,
    /// The tables.
    pub tables: Vec<TableMetrics>,
    /// The sum of all sources, as in REPLICATION STATUS.
    pub replication: Option<ReplicationStatus>,
    /// The sources.
    pub sources: Vec<SourceMetrics>,
    /// When a dump was last saved, in seconds since 1970; 0 if none was.
    pub dump_last_success: u64,
    /// The numbers of failed dumps: requested and automatic ones.
    pub dump_failures: [u64; 2],
    /// Refused requests and connections.
    pub denials: Denials,
    /// The number of threads that answer requests.
    pub workers: u64,
}

/// One table.
#[derive(Clone, Debug, Default)]
pub struct TableMetrics {
    /// Its name.
    pub name: String,
    /// Its statistics.
    pub statistics: TableStatistics,
    /// How often each index was used: its columns, the purpose, and the count.
    pub index_answers: Vec<(String, &'static str, u64)>,
}

/// One source.
#[derive(Clone, Debug, Default)]
pub struct SourceMetrics {
    /// Its name.
    pub name: String,
    /// The delay of its changes, in seconds.
    pub lag_seconds: Option<f64>,
    /// The number of transactions that are not applied yet.
    pub lag_transactions: Option<u64>,
    /// The number of changes that wait to be applied.
    pub queue_length: u64,
    /// The statements in its binlog, counted by class.
    pub statements: [(&'static str, u64); 4],
    /// Its tables.
    pub tables: Vec<SourceTableMetrics>,
}

/// A table of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceTableMetrics {
    /// Its name.
    pub name: String,
    /// The numbers of rows copied and expected, while it is copied.
    pub copying: Option<(u64, u64)>,
    /// Whether its changes are applied.
    pub live: bool,
}

/// Requests and connections that were refused, by reason; each on the line protocol and on HTTP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Denials {
    /// Because of `network.allow_cidrs`.
    pub acl: [u64; 2],
    /// Because of the rate limit.
    pub rate_limit: [u64; 2],
    /// Because of the limit of connections.
    pub connection_limit: [u64; 2],
}

/// The reply to `/metrics`.
pub fn write_metrics(metrics: &Metrics<'_>) -> String {
    let mut page = Page::default();
    page.server(metrics);
    page.memory(&metrics.info);
    page.index(&metrics.tables);
    page.clients(metrics);
    page.replication(metrics);
    page.cache(&metrics.info.cache);
    page.own(metrics);
    page.text
}

/// The labels of a sample.
type Labels<'l> = &'l [(&'l str, &'l str)];

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn server(&mut self, metrics: &Metrics<'_>) {
        let info = &metrics.info;
        self.family("mygramdb_server_info", "gauge", "Version of the server");
        self.sample("mygramdb_server_info", &[("version", info.identity.version)], 1);
        self.gauge(
            "mygramdb_server_uptime_seconds",
            "Seconds since the start",
            info.uptime_seconds,
        );
        self.counter("mygramdb_server_commands_total", "Commands understood", info.commands);
        let failures = info.text_normalization_failures;
        let name = "mygramdb_text_normalization_failures_total";
        self.counter(name, "Texts that were not UTF-8", failures);
        self.family("mygramdb_command_total", "counter", "Commands by kind");
        for (name, count) in &info.commands_by_name {
            let kind = name.strip_prefix("cmd_").unwrap_or(name);
            self.sample("mygramdb_command_total", &[("command", kind)], count);
        }
    }

    fn memory(&mut self, info: &InfoReport) {
        let memory = &info.memory;
        let name = "mygramdb_memory_used_bytes";
        self.family(name, "gauge", "Memory in use");
        let kinds =
            [("index", memory.index), ("documents", memory.documents), ("total", memory.used)];
        for (kind, bytes) in kinds {
            self.sample(name, &[("type", kind)], bytes);
        }
        self.gauge("mygramdb_memory_peak_bytes", "Memory in use at most", memory.used_peak);
        let fragmentation = memory.used_peak as f64 / memory.used.max(1) as f64;
        let name = "mygramdb_memory_fragmentation_ratio";
        self.gauge(name, "The most memory by what is in use now", format!("{fragmentation:.2}"));
        let name = "mygramdb_memory_system_total_bytes";
        self.gauge(name, "Memory of the machine", memory.system_total);
        let name = "mygramdb_memory_system_available_bytes";
        self.gauge(name, "Memory that the machine has left", memory.system_available);
        let used = memory.system_total.saturating_sub(memory.system_available);
        let ratio = used as f64 / memory.system_total.max(1) as f64;
        let name = "mygramdb_memory_system_usage_ratio";
        self.gauge(name, "Share of the machine's memory in use", format!("{ratio:.2}"));
        let name = "mygramdb_memory_process_rss_bytes";
        self.gauge(name, "Resident memory", memory.process_rss);
        let name = "mygramdb_memory_process_rss_peak_bytes";
        self.gauge(name, "Resident memory at most", memory.process_rss_peak);
        let health = match memory.health {
            MemoryHealth::Unknown => 0,
            MemoryHealth::Healthy => 1,
            MemoryHealth::Warning => 2,
            MemoryHealth::Critical => 3,
        };
        let help = "0 unknown, 1 healthy, 2 warning, 3 critical";
        self.gauge("mygramdb_memory_health_status", help, health);
    }

    fn index(&mut self, tables: &[TableMetrics]) {
        type Figure = fn(&TableStatistics) -> f64;
        let families: [(&str, &str, Figure); 7] = [
            ("index_documents_total", "Rows", |t| t.rows as f64),
            ("index_terms_total", "Distinct terms", |t| t.terms as f64),
            ("index_postings_total", "Pairs of term and row", |t| t.postings as f64),
            ("index_postings_per_term_avg", "Rows per term", |t| {
                t.postings as f64 / t.terms.max(1) as f64
            }),
            ("index_delta_encoded_lists", "Posting lists held as deltas", |t| {
                t.terms.saturating_sub(t.bitmap_lists) as f64
            }),
            ("index_roaring_bitmap_lists", "Posting lists held as bits", |t| t.bitmap_lists as f64),
            ("index_optimization_in_progress", "Whether a merge runs", |t| {
                f64::from(u8::from(t.merging))
            }),
        ];
        for (name, help, figure) in families {
            self.by_table(&format!("mygramdb_{name}"), help, tables, figure);
        }
    }

    fn by_table(
        &mut self,
        name: &str,
        help: &str,
        tables: &[TableMetrics],
        figure: fn(&TableStatistics) -> f64,
    ) {
        self.family(name, "gauge", help);
        for table in tables {
            self.sample(name, &[("table", &table.name)], figure(&table.statistics));
        }
    }

    /// The progress of indexes that are built over existing rows.
    fn indexes(&mut self, tables: &[TableMetrics]) {
        let name = "remora_table_indexed_rows";
        self.family(name, "gauge", "Rows that a secondary index has");
        for table in tables {
            for index in &table.statistics.indexes {
                let labels = [("table", table.name.as_str()), ("index", index.columns.as_str())];
                self.sample(name, &labels, index.rows);
            }
        }
    }

    fn clients(&mut self, metrics: &Metrics<'_>) {
        let info = &metrics.info;
        let connected = info.connected_clients;
        self.gauge("mygramdb_clients_connected", "Connections now", connected);
        self.counter("mygramdb_clients_total", "Connections since the start", info.connections);
        let name = "mygramdb_dump_last_success_timestamp_seconds";
        self.gauge(name, "When a dump was saved last", metrics.dump_last_success);
        let name = "mygramdb_dump_failures_total";
        self.family(name, "counter", "Dumps that failed");
        for (trigger, count) in ["manual", "auto"].iter().zip(metrics.dump_failures) {
            self.sample(name, &[("trigger", trigger)], count);
        }
        let name = "mygramdb_requests_denied_total";
        self.family(name, "counter", "Requests and connections turned away");
        let denials = &metrics.denials;
        let reasons = [
            ("acl", denials.acl),
            ("rate_limit", denials.rate_limit),
            ("connection_limit", denials.connection_limit),
        ];
        for (reason, counts) in reasons {
            for (surface, count) in ["tcp", "http"].iter().zip(counts) {
                self.sample(name, &[("reason", reason), ("surface", surface)], count);
            }
        }
        // Where MygramDB refuses a connection, here it waits in the operating system's queue.
        self.sample(name, &[("reason", "pool_full"), ("surface", "tcp")], 0);
        // Requests are answered by the thread that receives them, so none waits in a queue.
        self.gauge("mygramdb_thread_pool_queue_depth", "Requests that wait for a thread", 0);
        self.gauge("mygramdb_thread_pool_queue_capacity", "The most that may wait", 0);
        self.gauge("mygramdb_thread_pool_workers", "Threads that answer", metrics.workers);
    }

    fn replication(&mut self, metrics: &Metrics<'_>) {
        if let Some(status) = &metrics.replication {
            self.source(status);
        }
        let info = &metrics.info.replication;
        let counter = |name: &str| info.counter(name);
        for (family, help, states) in [
            ("inserts", "Inserts of the source", ["applied", "skipped"].as_slice()),
            (
                "updates",
                "Updates of the source",
                &["applied", "added", "removed", "modified", "skipped"],
            ),
            ("deletes", "Deletes of the source", &["applied", "skipped"]),
        ] {
            let name = format!("mygramdb_replication_{family}_total");
            self.family(&name, "counter", help);
            for state in states {
                let count = counter(&format!("{family}_{state}"));
                self.sample(&name, &[("status", state)], count);
            }
        }
        let help = "Definitions followed";
        self.counter("mygramdb_replication_ddl_total", help, counter("ddl_executed"));
    }

    fn source(&mut self, status: &ReplicationStatus) {
        let running = status.state == ReplicationState::Running;
        let name = "mygramdb_replication_running";
        self.gauge(name, "Whether the source is followed", u8::from(running));
        let name = "mygramdb_replication_state";
        self.family(name, "gauge", "The state of following the source");
        for state in
            [ReplicationState::Running, ReplicationState::Stopped, ReplicationState::Failed]
        {
            let is = u8::from(state == status.state);
            self.sample(name, &[("state", state.name())], is);
        }
        let name = "mygramdb_replication_events_processed";
        self.counter(name, "Events of the source applied", status.processed_events);
        let name = "mygramdb_replication_crc_errors_total";
        self.counter(name, "Events with a wrong checksum", status.crc_errors);
        let name = "mygramdb_replication_schema_incompatible";
        let incompatible = u8::from(status.schema_incompatible);
        self.gauge(name, "Whether a table's definition no longer fits", incompatible);
        let name = "mygramdb_replication_last_error_code";
        self.gauge(name, "Code of the last error; 0 is none", status.last_error_code);
        let name = "mygramdb_replication_last_applied_unixtime";
        self.gauge(name, "When an event was applied last", status.last_applied_unixtime);
        let name = "mygramdb_replication_seconds_since_last_applied";
        self.gauge(name, "Seconds since then", status.seconds_since_last_applied);
    }

    /// The metrics that MygramDB does not have.
    fn own(&mut self, metrics: &Metrics<'_>) {
        self.family("remora_server_info", "gauge", "Release of the server");
        self.sample("remora_server_info", &[("version", metrics.remora_version)], 1);
        self.counter("remora_position", "Position of the newest batch", metrics.position);
        let failing = u8::from(metrics.info.storage_error.is_some());
        let help =
            "Whether writes are refused, the last checkpoint failed, or a table's merges fail";
        self.gauge("remora_storage_failing", help, failing);
        self.by_table("remora_table_segments", "Segments", &metrics.tables, |t| t.segments as f64);
        let help = "Bytes of the index in memory";
        self.by_table("remora_table_index_bytes", help, &metrics.tables, |t| t.index_bytes as f64);
        let help = "Bytes of the row store on disk";
        self.by_table("remora_table_store_bytes", help, &metrics.tables, |t| t.store_bytes as f64);
        self.index_answers(&metrics.tables);
        self.indexes(&metrics.tables);
        if metrics.sources.is_empty() {
            return;
        }
        type Figure = fn(&SourceMetrics) -> Option<f64>;
        let figures: [(&str, &str, Figure); 3] = [
            ("lag_seconds", "Seconds behind the source", |source| source.lag_seconds),
            ("lag_transactions", "Transactions not applied yet", |source| {
                source.lag_transactions.map(|count| count as f64)
            }),
            ("queue_length", "Changes that wait to be applied", |source| {
                Some(source.queue_length as f64)
            }),
        ];
        for (name, help, figure) in figures {
            let name = format!("remora_source_{name}");
            self.family(&name, "gauge", help);
            for source in &metrics.sources {
                if let Some(number) = figure(source) {
                    self.sample(&name, &[("source", &source.name)], number);
                }
            }
        }
        self.source_statements(&metrics.sources);
        self.source_tables(&metrics.sources);
    }

    fn index_answers(&mut self, tables: &[TableMetrics]) {
        let name = "remora_index_answers_total";
        self.family(name, "counter", "Requests that an index answered, by what it was asked");
        for table in tables {
            for (index, kind, count) in &table.index_answers {
                let labels =
                    [("table", table.name.as_str()), ("index", index.as_str()), ("kind", kind)];
                self.sample(name, &labels, count);
            }
        }
    }

    fn source_statements(&mut self, sources: &[SourceMetrics]) {
        let name = "remora_source_statements_total";
        self.family(name, "counter", "Statements of the binlog by what they were taken for");
        for source in sources {
            for (class, number) in source.statements {
                let labels = [("source", source.name.as_str()), ("class", class)];
                self.sample(name, &labels, number);
            }
        }
    }

    fn source_tables(&mut self, sources: &[SourceMetrics]) {
        type Figure = fn(&SourceTableMetrics) -> Option<u64>;
        let figures: [(&str, &str, Figure); 3] = [
            ("live", "Whether the table's changes are applied", |table| {
                Some(u64::from(table.live))
            }),
            ("copied_rows", "Rows copied, while a copy runs", |table| Some(table.copying?.0)),
            ("expected_rows", "Rows to copy, as the source estimates it", |table| {
                Some(table.copying?.1)
            }),
        ];
        for (name, help, figure) in figures {
            let name = format!("remora_source_table_{name}");
            self.family(&name, "gauge", help);
            for source in sources {
                for table in &source.tables {
                    let labels = [("source", source.name.as_str()), ("table", &table.name)];
                    if let Some(number) = figure(table) {
                        self.sample(&name, &labels, number);
                    }
                }
            }
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String never fails, here and below.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"", if at == 0 { '{' } else { ',' });
            self.escaped(text);
            self.text.push('"');
        }
        self.text.push_str(if labels.is_empty() { "" } else { "}" });
        let _ = writeln!(self.text, " {value}");
    }

    fn escaped(&mut self, text: &str) {
        for char in text.chars() {
            match char {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                char => self.text.push(char),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::reply::{CacheStats, Identity};

    #[test]
    fn every_line_is_well_formed_and_every_family_comes_once() {
        let table = TableMetrics { name: "a\"b\\c\nd".into(), ..TableMetrics::default() };
        let source = SourceMetrics {
            name: "mysql".into(),
            lag_seconds: Some(0.25),
            statements: [("definition", 1), ("rows", 0), ("harmless", 0), ("not_understood", 2)],
            tables: vec![SourceTableMetrics {
                name: "shop.items".into(),
                copying: Some((5, 10)),
                live: false,
            }],
            ..SourceMetrics::default()
        };
        let info = InfoReport {
            commands_by_name: vec![("cmd_search", 2)],
            identity: Identity { server: "MygramDB", version: "1.10.0", remora_version: None },
            cache: CacheStats {
                misses_expired: 4,
                invalidations_deferred: 3,
                ..CacheStats::default()
            },
            ..InfoReport::default()
        };
        let metrics = Metrics {
            info,
            remora_version: "0.1.0",
            tables: vec![table],
            replication: Some(ReplicationStatus::default()),
            sources: vec![source],
            ..Metrics::default()
        };
        let text = write_metrics(&metrics);
        let mut families = std::collections::BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let name = rest.split(' ').next().unwrap();
                assert!(families.insert(name), "{name} comes twice");
            } else if !line.starts_with('#') {
                let (sample, number) = line.rsplit_once(' ').unwrap();
                assert!(number.parse::<f64>().is_ok(), "{line}");
                assert!(families.contains(sample.split('{').next().unwrap()), "{line}");
            }
        }
        for expected in [
            "mygramdb_server_info{version=\"1.10.0\"} 1\n",
            "remora_server_info{version=\"0.1.0\"} 1\n",
            "mygramdb_cache_misses_total{reason=\"ttl_expired\"} 4\n",
            "mygramdb_cache_memory_bytes{type=\"accounted_total\"} 0\n",
            "mygramdb_cache_invalidations_total{phase=\"deferred\"} 3\n",
            "mygramdb_cache_insert_rejections_total{reason=\"duplicate\"} 0\n",
            "mygramdb_command_total{command=\"search\"} 2\n",
            "mygramdb_index_documents_total{table=\"a\\\"b\\\\c\\nd\"} 0\n",
            "mygramdb_replication_state{state=\"stopped\"} 1\n",
            "mygramdb_requests_denied_total{reason=\"rate_limit\",surface=\"http\"} 0\n",
            "remora_source_lag_seconds{source=\"mysql\"} 0.25\n",
            "remora_source_statements_total{source=\"mysql\",class=\"not_understood\"} 2\n",
            "remora_source_table_copied_rows{source=\"mysql\",table=\"shop.items\"} 5\n",
        ] {
            assert!(text.contains(expected), "{expected}");
        }
    }
}
