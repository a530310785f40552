//! Settings of a followed source: its address, and which of its tables to follow.
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

/// The settings of a followed MySQL or MariaDB.
#[derive(Clone)]
pub struct MysqlSettings {
    /// The source's name, under which positions are stored.
    pub name: String,
    /// A host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The user's name at the source.
    pub user: String,
    /// Never printed.
    pub password: String,
    /// The database of unqualified table names.
    pub database: Option<String>,
    /// The tables to follow: `database.table`, or `table` in `database`, with `*` and `?` as wildcards. Empty means all
    /// tables of `database`, or, without one, of all databases that are not the server's own.
    pub tables: Vec<String>,
    /// Encryption of the connection.
    pub tls: Tls,
    /// The time zone in which the tables' server shows TIMESTAMPs. It does not affect reading from the source.
    pub time_zone: Option<Zone>,
    /// Our server id among the source's replicas; `None` chooses one at random.
    pub server_id: Option<u32>,
    /// The timeout for connecting.
    pub connect_timeout: Duration,
    /// The most rows per second that copies read.
    pub copy_rows_per_second: Option<u64>,
    /// The number of connections that copy at the same time.
    pub copy_threads: usize,
    /// Rows read by one statement of a copy.
    pub chunk_rows: usize,
    /// Whether any schema change stops following.
    pub strict_schema: bool,
    /// What to do if the source does not have, or no longer has, the transactions after our position.
    pub on_lost_position: OnLostPosition,
    /// Prefixes of statements that change no table here, whatever they do at the source. Case, spaces and backquotes do
    /// not matter.
    pub ignored_ddl_prefixes: Vec<String>,
    /// Tables whose definition is configured instead of derived from the source's.
    pub definitions: Vec<Schema>,
    /// Whether the key's columns have the source's types, whatever those definitions say.
    pub source_types_keys: bool,
    /// Ranked search of tables that the source defines, by `database.table`. It can only be changed by changing these
    /// settings.
    pub words: Vec<(String, DeclaredWords)>,
}

/// What to do when following cannot continue from our position: the source purged its binlog, was reset or restored
/// from a backup, or another server answers in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLostPosition {
    /// Copies all tables again, while the current rows stay readable.
    #[default]
    Copy,
    /// Stops following; the current rows stay readable.
    Stop,
}

/// Encryption of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The mode.
    pub mode: TlsMode,
    /// PEM file of trusted certificates, in addition to the public ones.
    pub ca: Option<PathBuf>,
    /// Our own certificate and its key, PEM or DER files.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// PEM file of the server's RSA key, which encrypts a `caching_sha2_password` without TLS; `None` asks the server
    /// for its key.
    pub server_public_key: Option<PathBuf>,
}

/// Whether the connection is encrypted, and what is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// Never.
    Off,
    /// If the server supports it; nothing is verified.
    #[default]
    Preferred,
    /// Always; nothing is verified.
    Required,
    /// The server's certificate must be signed by a trusted authority.
    VerifyCa,
    /// As `VerifyCa`, and the certificate must be for the host's name.
    VerifyIdentity,
}

impl MysqlSettings {
    /// Parses a URL. All other settings get their defaults.
    ///
    /// # Errors
    /// [`crate::Error::Setting`] names what is wrong.
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

/// Everything except the password.
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
