//! Settings from a file, the environment and the command line.
//!
//! A settings file is read in two steps. The *low* settings are the typed text: `remora_toml` for Remora's own file,
//! `mygramdb` for a MygramDB YAML or JSON, `sphinx_conf` for a sphinx.conf. The *high* settings, [`Settings`], are
//! their meaning. All formats map onto them, each with the defaults of its own dialect.

mod address;
mod agents;
mod check;
mod cidr;
mod followed_words;
mod keys;
mod mygramdb;
mod mysql;
mod remora_toml;
mod set;
mod sphinx_conf;
mod sql;
mod synonyms;
mod users;
mod variables;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use remora_engine::{Durability, Schema, memory_share};
use remora_mysql::Zone;
use remora_source::{
    mysql::{schema::Selection, settings::MysqlSettings},
    schema_file::DeclaredWords,
};

pub use agents::Agents;
pub(crate) use agents::serves;
pub use cidr::Cidr;
pub(crate) use mygramdb::help as mygramdb_help;
pub use mygramdb::{MYGRAMDB_VERSION, MygramFile};
pub use sphinx_conf::SphinxSettings;
pub(crate) use sphinx_conf::percolate_table;
pub use sql::Sql;
pub use users::{HostPattern, User, find_user, fits_pattern};
pub use variables::{Change, VARIABLES, Variable, changes, find_variable};

use crate::{Error, Result, zone};

/// The rules that a server follows, which depend on the kind of settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Remora's own.
    Remora,
    /// MygramDB's, exactly.
    MygramDb,
}

/// All settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The dialect.
    pub dialect: Dialect,
    /// The settings file.
    pub file: Option<PathBuf>,
    /// The data directory.
    pub data: PathBuf,
    /// Listening addresses.
    pub listen: Listen,
    /// HTTP.
    pub http: Http,
    /// Tables that are created if they are missing.
    pub tables: Vec<Schema>,
    /// Ranked search of followed tables that their sources define, by table name.
    pub words: Vec<(String, DeclaredWords)>,
    /// Limits of sessions and requests.
    pub limits: Limits,
    /// Rate limits per client address.
    pub rate_limiting: RateLimiting,
    /// When a batch is synced.
    pub durability: Durability,
    /// Memory.
    pub memory: Memory,
    /// Dumps.
    pub dump: Dump,
    /// The token that everything requires, or in MygramDB's dialect administration; empty if there is none.
    pub admin_token: String,
    /// The networks that may connect; `None` means all.
    pub allow_cidrs: Option<Vec<Cidr>>,
    /// BM25.
    pub bm25: Bm25,
    /// The query-result cache.
    pub cache: Cache,
    /// Logging.
    pub logging: Logging,
    /// The log of queries.
    pub query_log: QueryLogging,
    /// Keys of the file that are accepted but have no effect.
    pub unused: Vec<String>,
    /// The MygramDB file, if the settings come from one.
    pub mygramdb: Option<MygramFile>,
    /// Further settings of a sphinx.conf, if the settings come from one.
    pub sphinx_conf: Option<SphinxSettings>,
    /// The MySQL and MariaDB servers to follow.
    pub sources: Vec<MysqlSettings>,
    /// The time zone for TIMESTAMPs, if the sources' settings name one.
    pub time_zone: Option<Zone>,
    /// The MySQL protocol.
    pub sql: Sql,
    /// Other servers whose tables distributed tables may name.
    pub agents: Agents,
    /// The accounts for all protocols. Without any, everyone on this machine, or everyone with the token, has access.
    pub users: Vec<User>,
}

/// Listening addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Listen {
    /// The line protocol's address, `HOST:PORT`; empty for none.
    pub line: String,
    /// The line protocol's Unix socket.
    pub line_socket: Option<PathBuf>,
    /// HTTP's address, `HOST:PORT`; empty for none.
    pub http: String,
    /// The MySQL protocol's address, `HOST:PORT`; empty for none.
    pub sql: String,
    /// The MySQL protocol's Unix socket.
    pub sql_socket: Option<PathBuf>,
    /// Another address of the MySQL protocol, whose sessions begin in Sphinx's dialect; empty for none.
    pub sphinx: String,
    /// SphinxAPI's address, `HOST:PORT`; empty for none.
    pub sphinx_api: String,
    /// The user that clients of SphinxAPI act as, because it has no login; empty for none.
    pub sphinx_api_user: String,
    /// The address of tiedot's HTTP API, `HOST:PORT`; empty for none.
    pub tiedot: String,
}

/// HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// The most connections.
    pub max_connections: usize,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<Cidr>,
    /// The permitted CORS origin; `None` disables CORS.
    pub cors_allow_origin: Option<String>,
    /// The timeout in seconds for the rest of a request.
    pub read_timeout_s: u64,
    /// The timeout in seconds for a client to read.
    pub write_timeout_s: u64,
    /// The most bytes of a request's body.
    pub max_body_bytes: usize,
}

/// Limits of sessions and requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The most connections.
    pub max_connections: usize,
    /// The number of worker threads; 0 means one per processor.
    pub worker_threads: usize,
    /// The default LIMIT.
    pub default_limit: usize,
    /// The largest LIMIT.
    pub max_limit: usize,
    /// The most characters of a query expression; 0 means no limit.
    pub max_query_length: usize,
    /// The most bytes of a request.
    pub max_request_bytes: usize,
    /// The timeout in seconds for the rest of a request, and for a client to read; 0 means the idle timeout.
    pub recv_timeout_s: u64,
    /// The timeout in seconds for the next request; 0 means none.
    pub idle_timeout_s: u64,
    /// The time limit of a query in milliseconds; 0 means none.
    pub max_query_time_ms: u64,
    /// The most bytes of a connection's unsent replies.
    pub write_queue_bytes: usize,
    /// The most bytes of all connections' buffers.
    pub buffered_bytes: usize,
    /// The most complete requests of a connection that wait for their answers.
    pub pending_requests: usize,
    /// The most bytes of those requests.
    pub pending_bytes: usize,
    /// The most rows that a transaction, a statement or a batch may change.
    pub max_transaction_rows: usize,
}

/// Rate limits per client address: a token bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimiting {
    /// Whether rates are limited.
    pub enable: bool,
    /// The bucket's capacity: requests in a burst.
    pub capacity: u64,
    /// The refill rate in requests per second.
    pub refill_rate: u64,
    /// The most addresses that are remembered.
    pub max_clients: usize,
}

/// Memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Megabytes of the row store's caches: half for blocks, half for rows that are read often.
    pub row_cache_mb: u64,
    /// The MiB of text in memory segments after which they are written to files.
    pub checkpoint_mb: u64,
}

/// Dumps.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    /// The dump directory. DUMP commands are confined to it.
    pub dir: PathBuf,
    /// The file name of `DUMP SAVE` without a name.
    pub default_filename: String,
    /// Whether the newest dump is loaded into an empty data directory.
    pub load_on_startup: bool,
    /// The seconds between automatic dumps; 0 means none.
    pub interval_s: u64,
    /// The number of automatic dumps to keep.
    pub retain: usize,
}

/// BM25.
#[derive(Clone, Debug, PartialEq)]
pub struct Bm25 {
    /// Whether `SORT _score` is permitted.
    pub enable: bool,
    /// Term frequency saturation.
    pub k1: f64,
    /// Length normalization.
    pub b: f64,
}

/// The query-result cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Whether replies are cached.
    pub enabled: bool,
    /// The size of the cache in MiB.
    pub max_memory_mb: u64,
    /// The least milliseconds that a query must have taken for its reply to be cached.
    pub min_query_cost_ms: f64,
    /// The seconds that a reply is cached; 0 means without expiry.
    pub ttl_s: u64,
}

/// Logging.
#[derive(Clone, Debug, PartialEq)]
pub struct Logging {
    /// trace, debug, info, warn, error or off.
    pub level: String,
    /// text or json.
    pub format: String,
    /// The file; `None` means standard error.
    pub file: Option<PathBuf>,
}

/// The log of queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryLogging {
    /// The file; `None` for no log.
    pub file: Option<PathBuf>,
    /// How lines are written.
    pub format: QueryLogFormat,
    /// Queries that took less time, in milliseconds, are left out.
    pub min_msec: u64,
}

/// How a log of queries is written: as by Sphinx's `query_log_format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryLogFormat {
    /// Statements, with figures in comments.
    #[default]
    SphinxQl,
    /// Figures in brackets, and the query's text.
    Plain,
}

impl QueryLogging {
    /// The least time of a query in the log.
    pub fn least_time(&self) -> Duration {
        Duration::from_millis(self.min_msec)
    }
}

impl QueryLogFormat {
    /// The format of this name.
    ///
    /// # Errors
    /// A message that says which names there are.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "sphinxql" => Ok(Self::SphinxQl),
            "plain" => Ok(Self::Plain),
            other => {
                Err(format!("logging.query_log_format '{other}' is neither sphinxql nor plain"))
            }
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialect: Dialect::Remora,
            file: None,
            data: PathBuf::from("remora-data"),
            listen: Listen::default(),
            http: Http::default(),
            tables: Vec::new(),
            words: Vec::new(),
            limits: Limits::default(),
            rate_limiting: RateLimiting::default(),
            durability: Durability::Always,
            memory: Memory {
                row_cache_mb: memory_share(24, 16 << 20) >> 20,
                checkpoint_mb: memory_share(32, 64 << 20) >> 20,
            },
            dump: Dump::default(),
            admin_token: String::new(),
            allow_cidrs: None,
            bm25: Bm25 { enable: true, k1: 1.2, b: 0.75 },
            cache: Cache { enabled: false, max_memory_mb: 32, min_query_cost_ms: 1.0, ttl_s: 3600 },
            logging: Logging { level: "info".to_owned(), format: "text".to_owned(), file: None },
            query_log: QueryLogging::default(),
            unused: Vec::new(),
            mygramdb: None,
            sphinx_conf: None,
            sources: Vec::new(),
            time_zone: None,
            sql: Sql::default(),
            agents: Agents::default(),
            users: Vec::new(),
        }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            line: "127.0.0.1:11016".to_owned(),
            line_socket: None,
            http: "127.0.0.1:9308".to_owned(),
            sql: "127.0.0.1:9306".to_owned(),
            sql_socket: None,
            sphinx: String::new(),
            sphinx_api: String::new(),
            sphinx_api_user: String::new(),
            tiedot: String::new(),
        }
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            trusted_proxies: Vec::new(),
            cors_allow_origin: None,
            read_timeout_s: 60,
            write_timeout_s: 60,
            max_body_bytes: 16 << 20,
        }
    }
}

impl Limits {
    /// The time limit of a query; `None` if there is none.
    pub(crate) fn max_query_time(&self) -> Option<Duration> {
        (self.max_query_time_ms > 0).then(|| Duration::from_millis(self.max_query_time_ms))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            worker_threads: 0,
            default_limit: 100,
            max_limit: 1_000_000,
            max_query_length: 65_536,
            max_request_bytes: 1 << 20,
            recv_timeout_s: 60,
            idle_timeout_s: 300,
            max_query_time_ms: 60_000,
            write_queue_bytes: 16 << 20,
            buffered_bytes: 256 << 20,
            pending_requests: 1024,
            pending_bytes: 4 << 20,
            max_transaction_rows: remora_engine::Options::default().max_batch_changes,
        }
    }
}

impl Default for RateLimiting {
    fn default() -> Self {
        Self { enable: false, capacity: 100, refill_rate: 10, max_clients: 10_000 }
    }
}

impl Default for Dump {
    fn default() -> Self {
        Self {
            dir: PathBuf::new(),
            default_filename: "remora.dump".to_owned(),
            load_on_startup: false,
            interval_s: 0,
            retain: 3,
        }
    }
}

impl Settings {
    /// Reads a settings file according to its extension, then the environment, then checks all settings.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Settings`] if a setting of the file or the environment is
    /// wrong or unknown, or if settings contradict each other.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::io("cannot read the settings file", path, source))?;
        let mut settings = Self::parse(path, &text)?;
        settings.file = Some(path.to_owned());
        settings.overlay_environment(std::env::vars_os())?;
        settings.finish()
    }

    /// The defaults and the environment.
    ///
    /// # Errors
    /// [`Error::Settings`] if a setting of the environment is wrong or unknown.
    pub fn without_file() -> Result<Self> {
        let mut settings = Self::default();
        settings.overlay_environment(std::env::vars_os())?;
        settings.finish()
    }

    /// Parses a settings file, without the environment. Relative paths start at its folder.
    ///
    /// # Errors
    /// [`Error::Settings`] if the extension is unknown, the text is malformed, or a setting is wrong or unknown.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        match extension {
            "toml" => remora_toml::parse(text, folder),
            "yaml" | "yml" | "json" => mygramdb::parse(text, folder),
            // Its errors name the file and the line.
            "conf" => return sphinx_conf::parse(path, text),
            _ => Err(Error::Settings(
                "the name of a settings file ends in .toml, in .yaml, .yml or .json for a MygramDB \
                 file, or in .conf for a sphinx.conf"
                    .to_owned(),
            )),
        }
        .map_err(|error| Error::Settings(format!("{}: {error}", path.display())))
    }

    /// Fills in settings that depend on others, and checks all settings.
    ///
    /// # Errors
    /// [`Error::Settings`] names the refused setting.
    pub fn finish(mut self) -> Result<Self> {
        if self.dump.dir.as_os_str().is_empty() {
            self.dump.dir = self.data.join("dumps");
        }
        check::check(&self)?;
        self.time_zone = self.named_time_zone();
        self.define_followed();
        Ok(self)
    }

    /// Gives each source the definitions, and the ranked search, that the settings have for its tables.
    fn define_followed(&mut self) {
        for source in &mut self.sources {
            let selection = Selection::of(source);
            let is_selected = |schema: &&Schema| {
                let name = schema.name.split_once('.');
                name.is_some_and(|(database, table)| selection.matches(database, table))
            };
            let zone = self.time_zone.as_ref();
            let wanted = self.tables.iter().filter(is_selected);
            source.definitions = wanted.map(|schema| zone::in_utc(schema, zone)).collect();
            source.words = followed_words::of_source(&self.words, source);
        }
    }

    /// Refuses ranked search of tables that are not followed, once the sources are known.
    ///
    /// # Errors
    /// [`Error::Settings`] names the table.
    pub fn refuse_words_of_unfollowed(&self) -> Result<()> {
        followed_words::refusal(self, true).map_or(Ok(()), |why| Err(Error::Settings(why)))
    }

    /// The time zone that the sources name; they do not differ. A MygramDB file has one even without following.
    fn named_time_zone(&self) -> Option<Zone> {
        let file = || Zone::parse_offset(self.mygramdb.as_ref()?.text(mygramdb::ZONE_KEY)).ok();
        self.sources.iter().find_map(|source| source.time_zone.clone()).or_else(file)
    }

    /// Whether HTTP is only reachable from this machine.
    pub fn http_is_local(&self) -> bool {
        address::is_loopback_address(&self.listen.http) == Some(true)
    }

    /// Whether a configured table is followed, so that its source creates it.
    pub fn is_followed(&self, table: &str) -> bool {
        let mut definitions = self.sources.iter().flat_map(|source| &source.definitions);
        definitions.any(|schema| schema.name == table)
    }

    /// Applies all environment variables `REMORA_…`; unknown ones are refused. Names and values of other variables need
    /// not be UTF-8.
    fn overlay_environment(
        &mut self,
        vars: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<()> {
        for (name, value) in vars {
            let Some(name) = name.to_str() else { continue };
            let value = value.to_string_lossy();
            variables::apply_environment(self, name, &value)
                .map_err(|error| Error::Settings(format!("{name} in the environment: {error}")))?;
        }
        Ok(())
    }

    /// The engine's options.
    pub fn engine_options(&self) -> remora_engine::Options {
        remora_engine::Options {
            durability: self.durability,
            row_cache_bytes: self.memory.row_cache_mb << 20,
            checkpoint_bytes: self.memory.checkpoint_mb << 20,
            max_batch_changes: self.limits.max_transaction_rows,
            bm25: (self.bm25.k1, self.bm25.b),
            ..remora_engine::Options::default()
        }
    }

    /// The timeout for the rest of a request, and for a client to read.
    pub fn request_timeout(&self) -> Duration {
        match self.limits.recv_timeout_s {
            0 => self.idle_timeout(),
            seconds => Duration::from_secs(seconds),
        }
    }

    /// The timeout between requests.
    pub fn idle_timeout(&self) -> Duration {
        match self.limits.idle_timeout_s {
            0 => Duration::from_secs(u64::from(u32::MAX)),
            seconds => Duration::from_secs(seconds),
        }
    }
}

#[cfg(test)]
mod tests;
