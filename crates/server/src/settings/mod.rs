//! Settings: what a file, the environment and the command line mean.
//!
//! A settings file is read in two steps. The *low* settings are the typed text: `remora_toml` for Remora's own file,
//! `mygramdb` for a MygramDB YAML or JSON, `sphinx_conf` for a sphinx.conf. The *high* settings, [`Settings`], are
//! their meaning. All files map onto them, each with the defaults of its own dialect.

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

use remora_engine::{Durability, Schema};
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
pub use sql::Sql;
pub use users::{HostPattern, User, find_user, fits_pattern};
pub use variables::{Change, VARIABLES, Variable, changes, find_variable};

use crate::{Error, Result, zone};

/// Whose rules a server follows, by the file it was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Remora's own.
    Remora,
    /// MygramDB's, to the letter.
    MygramDb,
}

/// Everything a server can be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose rules.
    pub dialect: Dialect,
    /// The file they were read from.
    pub file: Option<PathBuf>,
    /// The data directory.
    pub data: PathBuf,
    /// Where to listen.
    pub listen: Listen,
    /// HTTP.
    pub http: Http,
    /// Tables to make where they are missing.
    pub tables: Vec<Schema>,
    /// Words of tables that are followed and that their sources define, by name.
    pub words: Vec<(String, DeclaredWords)>,
    /// Limits of sessions and requests.
    pub limits: Limits,
    /// Requests per client address.
    pub rate_limiting: RateLimiting,
    /// How soon a batch is safe.
    pub durability: Durability,
    /// Memory.
    pub memory: Memory,
    /// Dumps.
    pub dump: Dump,
    /// The token that everything needs, or under MygramDB's rules what is administrative; empty means
    /// that there is none.
    pub admin_token: String,
    /// Who may connect; `None` means everybody who can reach the address.
    pub allow_cidrs: Option<Vec<Cidr>>,
    /// BM25.
    pub bm25: Bm25,
    /// The query-result cache.
    pub cache: Cache,
    /// Logging.
    pub logging: Logging,
    /// Keys of the file that are accepted and have no effect.
    pub unused: Vec<String>,
    /// The MygramDB file, if it was one.
    pub mygramdb: Option<MygramFile>,
    /// What a sphinx.conf says beyond this, if it was one.
    pub sphinx_conf: Option<SphinxSettings>,
    /// The MySQL and MariaDB servers to follow.
    pub sources: Vec<MysqlSettings>,
    /// The zone in which TIMESTAMPs are shown and read, if the sources' settings name one.
    pub time_zone: Option<Zone>,
    /// The MySQL protocol.
    pub sql: Sql,
    /// Other servers whose tables distributed tables may name.
    pub agents: Agents,
    /// Who may come in by any door; nobody named means everybody on this machine, or whoever has the
    /// token.
    pub users: Vec<User>,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq)]
pub struct Listen {
    /// The line protocol's address, `HOST:PORT`; empty means none.
    pub line: String,
    /// The line protocol's Unix socket.
    pub line_socket: Option<PathBuf>,
    /// HTTP's address, `HOST:PORT`; empty means none.
    pub http: String,
    /// The MySQL protocol's address, `HOST:PORT`; empty means none.
    pub sql: String,
    /// The MySQL protocol's Unix socket.
    pub sql_socket: Option<PathBuf>,
    /// SphinxAPI's address, `HOST:PORT`; empty means none.
    pub sphinx_api: String,
    /// The user that clients of SphinxAPI are, which has no login; empty means none.
    pub sphinx_api_user: String,
    /// The address of tiedot's HTTP API, `HOST:PORT`; empty means none.
    pub tiedot: String,
}

/// HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// Most connections at a time.
    pub max_connections: usize,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Cidr>,
    /// The web page's origin that may ask; `None` means that CORS is off.
    pub cors_allow_origin: Option<String>,
    /// Seconds to wait for the rest of a request that has begun.
    pub read_timeout_s: u64,
    /// Seconds to wait for a client to read.
    pub write_timeout_s: u64,
    /// Bytes of a request's body.
    pub max_body_bytes: usize,
}

/// Limits of sessions and requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Most connections at a time.
    pub max_connections: usize,
    /// Threads that answer; 0 means one per processor.
    pub worker_threads: usize,
    /// LIMIT where a request gives none.
    pub default_limit: usize,
    /// Largest LIMIT.
    pub max_limit: usize,
    /// Characters of a query expression; 0 means no limit.
    pub max_query_length: usize,
    /// Bytes of one request.
    pub max_request_bytes: usize,
    /// Seconds to wait for the rest of a request that has begun, and for a client to read; 0 means
    /// as long as for the next request.
    pub recv_timeout_s: u64,
    /// Seconds to wait for the next request; 0 means for ever.
    pub idle_timeout_s: u64,
    /// Bytes of one connection's replies.
    pub write_queue_bytes: usize,
    /// Bytes of all connections' buffers together.
    pub buffered_bytes: usize,
    /// Whole requests of one connection that wait for their answers.
    pub pending_requests: usize,
    /// Their bytes.
    pub pending_bytes: usize,
    /// Rows that one transaction, statement or batch may change.
    pub max_transaction_rows: usize,
}

/// Requests per client address, as a token bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimiting {
    /// Whether requests are limited.
    pub enable: bool,
    /// Requests that may come at once.
    pub capacity: u64,
    /// Requests per second.
    pub refill_rate: u64,
    /// Addresses remembered.
    pub max_clients: usize,
}

/// Memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Megabytes of the row store's caches: half for blocks, half for rows that are read often.
    pub row_cache_mb: u64,
    /// Megabytes of text in memory segments before they are written to a file.
    pub checkpoint_mb: u64,
}

/// Dumps.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    /// Their directory; DUMP commands reach nothing outside of it.
    pub dir: PathBuf,
    /// The file that `DUMP SAVE` without a name writes.
    pub default_filename: String,
    /// Whether the newest dump is loaded when the data directory is empty.
    pub load_on_startup: bool,
    /// Seconds between automatic dumps; 0 means none.
    pub interval_s: u64,
    /// Automatic dumps kept.
    pub retain: usize,
}

/// BM25.
#[derive(Clone, Debug, PartialEq)]
pub struct Bm25 {
    /// Whether `SORT _score` is answered.
    pub enable: bool,
    /// Term saturation.
    pub k1: f64,
    /// Length normalisation.
    pub b: f64,
}

/// The query-result cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Whether replies are kept.
    pub enabled: bool,
    /// Megabytes of replies.
    pub max_memory_mb: u64,
    /// Milliseconds a query must have taken for its reply to be kept.
    pub min_query_cost_ms: f64,
    /// Seconds a reply is kept; 0 means as long as there is room.
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
            memory: Memory { row_cache_mb: 16, checkpoint_mb: 64 },
            dump: Dump::default(),
            admin_token: String::new(),
            allow_cidrs: None,
            bm25: Bm25 { enable: true, k1: 1.2, b: 0.75 },
            cache: Cache { enabled: false, max_memory_mb: 32, min_query_cost_ms: 1.0, ttl_s: 3600 },
            logging: Logging { level: "info".to_owned(), format: "text".to_owned(), file: None },
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
    /// Reads a settings file by its ending, then the environment, then checks the whole.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Settings`] if a setting of the file or
    /// the environment is wrong or not known, or if they do not go together.
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
    /// [`Error::Settings`] if a setting of the environment is wrong or not known.
    pub fn without_file() -> Result<Self> {
        let mut settings = Self::default();
        settings.overlay_environment(std::env::vars_os())?;
        settings.finish()
    }

    /// A settings file's text, before the environment. Relative paths in it start at its folder.
    ///
    /// # Errors
    /// [`Error::Settings`] if the name does not end in one of the known ways, the text is not
    /// well-formed, or a setting is wrong or not known.
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

    /// Fills what depends on other settings and refuses what cannot be served.
    ///
    /// # Errors
    /// [`Error::Settings`] names the setting that cannot be served.
    pub fn finish(mut self) -> Result<Self> {
        if self.dump.dir.as_os_str().is_empty() {
            self.dump.dir = self.data.join("dumps");
        }
        check::check(&self)?;
        self.time_zone = self.named_time_zone();
        self.define_followed();
        Ok(self)
    }

    /// Gives each source the definitions of those of its tables that are defined here, and the words of others.
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

    /// Refuses words of tables that nobody defines, once it is known whom this server follows.
    ///
    /// # Errors
    /// [`Error::Settings`] names the table.
    pub fn refuse_words_of_nobody(&self) -> Result<()> {
        followed_words::refusal(self, true).map_or(Ok(()), |why| Err(Error::Settings(why)))
    }

    /// The zone of the sources that name one: no two name different ones. A MygramDB file has one
    /// whether it follows or not.
    fn named_time_zone(&self) -> Option<Zone> {
        let file = || Zone::parse_offset(self.mygramdb.as_ref()?.text(mygramdb::ZONE_KEY)).ok();
        self.sources.iter().find_map(|source| source.time_zone.clone()).or_else(file)
    }

    /// Whether only this machine reaches HTTP.
    pub fn http_is_local(&self) -> bool {
        address::is_loopback_address(&self.listen.http) == Some(true)
    }

    /// Whether a table of these settings is a source's to make.
    pub fn is_followed(&self, table: &str) -> bool {
        let mut definitions = self.sources.iter().flat_map(|source| &source.definitions);
        definitions.any(|schema| schema.name == table)
    }

    /// Sets every variable `REMORA_…` of the environment; unknown ones are refused. Names and values
    /// of other programs need not be UTF-8.
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

    /// How long a client may take to send a request that it has begun, or to read.
    pub fn request_timeout(&self) -> Duration {
        match self.limits.recv_timeout_s {
            0 => self.idle_timeout(),
            seconds => Duration::from_secs(seconds),
        }
    }

    /// How long a client may be silent between requests.
    pub fn idle_timeout(&self) -> Duration {
        match self.limits.idle_timeout_s {
            0 => Duration::from_secs(u64::from(u32::MAX)),
            seconds => Duration::from_secs(seconds),
        }
    }
}

#[cfg(test)]
mod tests;
