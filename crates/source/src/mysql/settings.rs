//! How a source is reached and which of its tables are wanted.
//!
//! ```text
//! mysql://user:password@host:3306/database?tables=a,b*,other.t&ssl-mode=verify_ca&ssl-ca=/ca.pem
//! ```
//! Parts of the URL are percent-encoded. Parameters: `tables`, `name`, `ssl-mode` (`off`, `preferred`,
//! `required`, `verify_ca`, `verify_identity`), `ssl-ca`, `ssl-cert`, `ssl-key`, `server-public-key`,
//! `time-zone`, `server-id`, `connect-timeout` (seconds), `copy-rows-per-second`, `copy-threads`,
//! `chunk-rows`, `strict-schema` (`true`, `false`), `on-lost-position` (`copy`, `stop`).

mod url;

use std::{fmt, path::PathBuf, time::Duration};

use remora_engine::Schema;
use remora_mysql::Zone;

use crate::{Result, schema_file::DeclaredWords};

/// How a MySQL or MariaDB is followed.
#[derive(Clone)]
pub struct MysqlSettings {
    /// The source's name: positions are stored under it.
    pub name: String,
    /// A host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The user's name at the source.
    pub user: String,
    /// Never printed.
    pub password: String,
    /// The database that table names without one belong to.
    pub database: Option<String>,
    /// Tables to follow: `database.table`, or `table` of `database`, with `*` and `?` as patterns.
    /// Empty: every table of `database`, or without one of all databases that are not the
    /// server's own.
    pub tables: Vec<String>,
    /// Encryption of the connection.
    pub tls: Tls,
    /// The zone in which whoever serves the tables shows TIMESTAMPs. What is read from the source are
    /// moments, whatever stands here.
    pub time_zone: Option<Zone>,
    /// Our id among the source's replicas; none: one is chosen at random.
    pub server_id: Option<u32>,
    /// For connecting.
    pub connect_timeout: Duration,
    /// At most this many rows are read per second while copying.
    pub copy_rows_per_second: Option<u64>,
    /// Connections that copy at the same time.
    pub copy_threads: usize,
    /// Rows read by one statement of a copy.
    pub chunk_rows: usize,
    /// Whether any schema change stops following, instead of being followed.
    pub strict_schema: bool,
    /// What happens when the source does not have, or no longer has, what comes after our position.
    pub on_lost_position: OnLostPosition,
    /// Statements that begin with one of these change no table here, whatever they do at the source.
    /// Case, spaces and back quotes do not matter.
    pub ignored_ddl_prefixes: Vec<String>,
    /// Tables whose definition is given instead of derived from the source's.
    pub definitions: Vec<Schema>,
    /// Whether the types of the key's columns are the source's, whatever those definitions say.
    pub source_types_keys: bool,
    /// The words of tables that the source defines, by `database.table`. Nobody changes them but who
    /// changes these settings.
    pub words: Vec<(String, DeclaredWords)>,
}

/// What happens when following cannot go on from our position: the source purged its binlog, was
/// reset or restored from a backup, or another server answers in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLostPosition {
    /// All tables are copied anew, beside what can be read.
    #[default]
    Copy,
    /// Following stops; what can be read stays.
    Stop,
}

/// Encryption of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether, and what is checked.
    pub mode: TlsMode,
    /// PEM file of the certificates that are trusted, beside the public ones.
    pub ca: Option<PathBuf>,
    /// Our own certificate and its key, PEM or DER files.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// PEM file of the server's RSA key, with which a `caching_sha2_password` is sent without TLS;
    /// none: the server is asked for its key.
    pub server_public_key: Option<PathBuf>,
}

/// Whether the connection is encrypted, and what is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// Never.
    Off,
    /// If the server offers it; nothing is checked.
    #[default]
    Preferred,
    /// Always; nothing is checked.
    Required,
    /// The server's certificate must be signed by a trusted one.
    VerifyCa,
    /// And be for the host's name.
    VerifyIdentity,
}

impl MysqlSettings {
    /// The settings that a URL gives, all others at their defaults.
    ///
    /// # Errors
    /// [`crate::Error::Setting`] says what of the URL is wrong.
    pub fn from_url(text: &str) -> Result<Self> {
        url::parse(text)
    }

    /// `host:port`, as it appears in messages.
    pub fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl Default for MysqlSettings {
    fn default() -> Self {
        Self {
            name: "mysql".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 3306,
            user: "root".to_owned(),
            password: String::new(),
            database: None,
            tables: Vec::new(),
            tls: Tls::default(),
            time_zone: None,
            server_id: None,
            connect_timeout: Duration::from_secs(10),
            copy_rows_per_second: None,
            copy_threads: 2,
            chunk_rows: 10_000,
            strict_schema: false,
            on_lost_position: OnLostPosition::Copy,
            ignored_ddl_prefixes: Vec::new(),
            definitions: Vec::new(),
            source_types_keys: false,
            words: Vec::new(),
        }
    }
}

/// All but the password.
impl fmt::Debug for MysqlSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlSettings")
            .field("name", &self.name)
            .field("address", &self.address())
            .field("user", &self.user)
            .field("database", &self.database)
            .field("tables", &self.tables)
            .field("tls", &self.tls)
            .field("time_zone", &self.time_zone)
            .finish_non_exhaustive()
    }
}
