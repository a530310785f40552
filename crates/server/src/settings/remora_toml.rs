//! A `remora.toml` and its meaning.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use remora_engine::{Durability, Schema};
use remora_source::schema_file::{DeclaredWords, SchemaFile, WordsFile};
use serde::Deserialize;
use toml::Spanned;

use super::{
    Cidr, QueryLogFormat, Settings, agents::AgentsSection, keys, mysql, set::set, sql::SqlSection,
    synonyms, users,
};
use crate::{Error, Result};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RemoraToml {
    data: Option<PathBuf>,
    listen: ListenSection,
    http: HttpSection,
    mysql: Option<Spanned<toml::Value>>,
    tables: BTreeMap<String, Spanned<toml::Table>>,
    limits: LimitsSection,
    durability: DurabilitySection,
    memory: MemorySection,
    dump: DumpSection,
    auth: AuthSection,
    network: NetworkSection,
    bm25: Bm25Section,
    cache: CacheSection,
    logging: LoggingSection,
    sql: SqlSection,
    agents: AgentsSection,
    users: Option<Spanned<toml::Value>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ListenSection {
    line: Option<String>,
    line_socket: Option<PathBuf>,
    sql: Option<String>,
    sql_socket: Option<PathBuf>,
    sphinx: Option<String>,
    sphinx_api: Option<String>,
    sphinx_api_user: Option<String>,
    tiedot: Option<String>,
    http: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    max_connections: Option<usize>,
    trusted_proxies: Option<Vec<String>>,
    cors_allow_origin: Option<String>,
    read_timeout_s: Option<u64>,
    write_timeout_s: Option<u64>,
    max_body_bytes: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct LimitsSection {
    max_connections: Option<usize>,
    worker_threads: Option<usize>,
    default_limit: Option<usize>,
    max_limit: Option<usize>,
    max_query_length: Option<usize>,
    max_request_bytes: Option<usize>,
    recv_timeout_s: Option<u64>,
    idle_timeout_s: Option<u64>,
    max_query_time_ms: Option<u64>,
    write_queue_bytes: Option<usize>,
    buffered_bytes: Option<usize>,
    pending_requests: Option<usize>,
    pending_bytes: Option<usize>,
    max_transaction_rows: Option<usize>,
    rate: RateSection,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RateSection {
    enable: Option<bool>,
    capacity: Option<u64>,
    refill_rate: Option<u64>,
    max_clients: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct DurabilitySection {
    mode: Option<String>,
    interval_ms: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct MemorySection {
    row_cache_mb: Option<u64>,
    checkpoint_mb: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct DumpSection {
    dir: Option<PathBuf>,
    default_filename: Option<String>,
    load_on_startup: Option<bool>,
    interval_s: Option<u64>,
    retain: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct AuthSection {
    admin_token: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct NetworkSection {
    allow_cidrs: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Bm25Section {
    k1: Option<f64>,
    b: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct CacheSection {
    enabled: Option<bool>,
    max_memory_mb: Option<u64>,
    min_query_cost_ms: Option<f64>,
    ttl_s: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct LoggingSection {
    level: Option<String>,
    format: Option<String>,
    file: Option<PathBuf>,
    query_log: Option<PathBuf>,
    query_log_format: Option<String>,
    query_log_min_msec: Option<u64>,
}

/// Parses a `remora.toml`.
pub(super) fn parse(text: &str, folder: &Path) -> Result<Settings> {
    let typed: RemoraToml = from_toml(text).map_err(Error::Settings)?;
    typed.into_settings(text, folder).map_err(Error::Settings)
}

fn from_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| keys::line_of(text, span.start));
        format!("line {line}: {}", keys::explain(error.message()))
    })
}

impl RemoraToml {
    fn into_settings(self, text: &str, folder: &Path) -> Result<Settings, String> {
        let mut settings = Settings::default();
        set(&mut settings.data, self.data.map(|data| folder.join(data)));
        self.listen.apply(&mut settings, folder);
        self.http.apply(&mut settings)?;
        for (name, keys) in self.tables {
            let line = keys::line_of(text, keys.span().start);
            let place = |error| format!("line {line}, table '{name}': {error}");
            match read_table(&name, keys.into_inner(), folder).map_err(place)? {
                Table::Defined(schema) => settings.tables.push(*schema),
                Table::FollowedSource(words) => settings.words.push((name, words)),
            }
        }
        if let Some(sections) = self.mysql {
            let line = keys::line_of(text, sections.span().start);
            settings.sources = mysql::read(sections.into_inner(), folder)
                .map_err(|error| format!("line {line}, mysql: {error}"))?;
        }
        self.limits.apply(&mut settings);
        settings.durability = self.durability.meaning()?;
        set(&mut settings.memory.row_cache_mb, self.memory.row_cache_mb);
        set(&mut settings.memory.checkpoint_mb, self.memory.checkpoint_mb);
        self.dump.apply(&mut settings, folder);
        set(&mut settings.admin_token, self.auth.admin_token);
        if let Some(list) = self.network.allow_cidrs {
            settings.allow_cidrs = Some(Cidr::parse_list(&list)?);
        }
        set(&mut settings.bm25.k1, self.bm25.k1);
        set(&mut settings.bm25.b, self.bm25.b);
        set(&mut settings.cache.enabled, self.cache.enabled);
        set(&mut settings.cache.max_memory_mb, self.cache.max_memory_mb);
        set(&mut settings.cache.min_query_cost_ms, self.cache.min_query_cost_ms);
        set(&mut settings.cache.ttl_s, self.cache.ttl_s);
        set(&mut settings.logging.level, self.logging.level);
        set(&mut settings.logging.format, self.logging.format);
        settings.logging.file = self.logging.file.map(|file| folder.join(file));
        settings.query_log.file = self.logging.query_log.map(|file| folder.join(file));
        set(&mut settings.query_log.min_msec, self.logging.query_log_min_msec);
        if let Some(format) = self.logging.query_log_format {
            settings.query_log.format = QueryLogFormat::parse(&format)?;
        }
        self.sql.apply(&mut settings.sql, folder)?;
        self.agents.apply(&mut settings.agents);
        if let Some(sections) = self.users {
            let line = keys::line_of(text, sections.span().start);
            settings.users = users::read(sections.into_inner(), folder)
                .map_err(|error| format!("line {line}, users: {error}"))?;
        }
        Ok(settings)
    }
}

impl ListenSection {
    fn apply(self, settings: &mut Settings, folder: &Path) {
        set(&mut settings.listen.line, self.line);
        set(&mut settings.listen.http, self.http);
        set(&mut settings.listen.sql, self.sql);
        set(&mut settings.listen.sphinx, self.sphinx);
        set(&mut settings.listen.sphinx_api, self.sphinx_api);
        set(&mut settings.listen.sphinx_api_user, self.sphinx_api_user);
        set(&mut settings.listen.tiedot, self.tiedot);
        settings.listen.sql_socket = self.sql_socket.map(|path| folder.join(path));
        settings.listen.line_socket = self.line_socket.map(|path| folder.join(path));
    }
}

impl HttpSection {
    fn apply(self, settings: &mut Settings) -> Result<(), String> {
        let http = &mut settings.http;
        set(&mut http.max_connections, self.max_connections);
        set(&mut http.read_timeout_s, self.read_timeout_s);
        set(&mut http.write_timeout_s, self.write_timeout_s);
        set(&mut http.max_body_bytes, self.max_body_bytes);
        http.cors_allow_origin = self.cors_allow_origin.filter(|origin| !origin.is_empty());
        http.trusted_proxies = Cidr::parse_list(&self.trusted_proxies.unwrap_or_default())?;
        Ok(())
    }
}

impl LimitsSection {
    fn apply(self, settings: &mut Settings) {
        let limits = &mut settings.limits;
        set(&mut limits.max_connections, self.max_connections);
        set(&mut limits.worker_threads, self.worker_threads);
        set(&mut limits.default_limit, self.default_limit);
        set(&mut limits.max_limit, self.max_limit);
        set(&mut limits.max_query_length, self.max_query_length);
        set(&mut limits.max_request_bytes, self.max_request_bytes);
        set(&mut limits.recv_timeout_s, self.recv_timeout_s);
        set(&mut limits.idle_timeout_s, self.idle_timeout_s);
        set(&mut limits.max_query_time_ms, self.max_query_time_ms);
        set(&mut limits.write_queue_bytes, self.write_queue_bytes);
        set(&mut limits.buffered_bytes, self.buffered_bytes);
        set(&mut limits.pending_requests, self.pending_requests);
        set(&mut limits.pending_bytes, self.pending_bytes);
        set(&mut limits.max_transaction_rows, self.max_transaction_rows);
        let rate = &mut settings.rate_limiting;
        set(&mut rate.enable, self.rate.enable);
        set(&mut rate.capacity, self.rate.capacity);
        set(&mut rate.refill_rate, self.rate.refill_rate);
        set(&mut rate.max_clients, self.rate.max_clients);
    }
}

impl DurabilitySection {
    fn meaning(&self) -> Result<Durability, String> {
        super::variables::parse_durability(
            self.mode.as_deref().unwrap_or("always"),
            Duration::from_millis(self.interval_ms.unwrap_or(100)),
        )
    }
}

impl DumpSection {
    fn apply(self, settings: &mut Settings, folder: &Path) {
        set(&mut settings.dump.dir, self.dir.map(|dir| folder.join(dir)));
        set(&mut settings.dump.default_filename, self.default_filename);
        set(&mut settings.dump.load_on_startup, self.load_on_startup);
        set(&mut settings.dump.interval_s, self.interval_s);
        set(&mut settings.dump.retain, self.retain);
    }
}

/// The contents of `[tables.NAME]`.
enum Table {
    /// A table's definition.
    Defined(Box<Schema>),
    /// Ranked search of a table that its source defines.
    FollowedSource(DeclaredWords),
}

/// Parses `[tables.NAME]`: the keys of a schema file, whose name is the section's, and
/// `synonyms_file`; or only `words`.
fn read_table(name: &str, mut keys: toml::Table, folder: &Path) -> Result<Table, String> {
    if keys.len() == 1
        && let Some(words) = keys.remove("words")
    {
        let words: WordsFile =
            words.try_into().map_err(|error: toml::de::Error| keys::explain(error.message()))?;
        return words
            .declared(folder)
            .map(Table::FollowedSource)
            .map_err(|error| error.to_string());
    }
    let groups = match keys.remove("synonyms_file") {
        None => None,
        Some(toml::Value::String(path)) => Some(synonyms::read(&folder.join(path))?),
        Some(_) => return Err("synonyms_file is the path of a file, in quotes".to_owned()),
    };
    keys.insert("name".to_owned(), toml::Value::String(name.to_owned()));
    let mut file: SchemaFile =
        keys.try_into().map_err(|error: toml::de::Error| keys::explain(error.message()))?;
    file.synonyms.extend(groups.unwrap_or_default());
    file.to_schema()
        .map(|schema| Table::Defined(Box::new(schema)))
        .map_err(|error| error.to_string())
}
