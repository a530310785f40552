//! Connects to a source and finds out what server it is.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use mysql::{ClientIdentity, Conn, DriverError, OptsBuilder, SslOpts, prelude::Queryable};

use super::{
    client_error::{client_error, unreachable},
    coordinates::Coordinates,
    gtid::{Flavor, GtidSet},
    quote::quoted,
    settings::{MysqlSettings, Tls, TlsMode},
};
use crate::{Error, Result};

/// The largest packet of a server.
const MAX_PACKET_BYTES: usize = 1 << 30;
/// A statement fails if it returns nothing for this long.
const QUERY_TIMEOUT: Duration = Duration::from_secs(600);
/// The time after which an idle connection is probed, so that a vanished host is noticed.
const KEEPALIVE_MS: u32 = 10_000;
const KEEPALIVE_INTERVAL_SECONDS: u32 = 5;
const KEEPALIVE_PROBES: u32 = 4;

/// From this version on MySQL executes foreign key actions above the storage engine and logs their rows.
const LOGS_CASCADES_SINCE: (u16, u16, u16) = (9, 6, 0);
/// From this version on MySQL's binlog tells for each statement whether it changed the data dictionary.
const LOGS_DICTIONARY_CHANGES_SINCE: (u16, u16, u16) = (8, 0, 3);

/// How to enable a source's binlog.
pub(super) const BINLOG_ADVICE: &str =
    "add to the [mysqld] section of the source's my.cnf: log_bin=binlog, and restart it";

/// Statements that each connection begins with: texts in UTF-8, times in UTC, no writes.
const SESSION: [&str; 3] = [
    "SET NAMES utf8mb4",
    "SET time_zone = '+00:00', sql_mode = '', autocommit = 1, net_write_timeout = 600",
    "SET SESSION TRANSACTION READ ONLY",
];

/// A connection for queries, with what is known of the server.
pub struct Connection {
    /// The client's connection.
    pub conn: Conn,
    /// Which server, and its version.
    pub server: Server,
    settings: MysqlSettings,
}

/// A callback for the names of columns and a row whose values are texts.
pub type RowCallback<'t> = dyn FnMut(&[String], Option<Vec<Vec<u8>>>) -> Result<()> + 't;

/// What is known of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// MySQL or MariaDB.
    pub flavor: Flavor,
    /// Major, minor, patch.
    pub version: (u16, u16, u16),
    /// The version in the server's spelling.
    pub version_text: String,
    /// MySQL's `server_uuid`; MariaDB's `server_uid`, or else its server id.
    pub uuid: String,
    /// Whether the server stores names of databases and tables in lower case.
    pub folds_names: bool,
    /// Whether its binlog has the rows that foreign key actions change.
    pub logs_cascades: bool,
    /// Whether its binlog tells for each statement whether it changed the data dictionary.
    pub logs_dictionary_changes: bool,
}

/// Connects for queries: texts in UTF-8, times in UTC, no writes.
///
/// # Errors
/// - [`Error::Unreachable`]: no server answers there, or not with the MySQL protocol.
/// - [`Error::AccessDenied`]: the source refuses the user.
/// - [`Error::Requirement`]: only one side supports TLS and the other requires it.
/// - [`Error::Statement`]: the source refuses one of the first statements.
pub fn connect(settings: &MysqlSettings) -> Result<Connection> {
    let mut conn = open(settings, QUERY_TIMEOUT)?;
    let server = guarded(settings, "SELECT @@version", || read_server(&mut conn))?;
    Ok(Connection { conn, server, settings: settings.clone() })
}

/// A client connection whose reads fail after `read_timeout` without data.
pub(super) fn open(settings: &MysqlSettings, read_timeout: Duration) -> Result<Conn> {
    let connect = |encrypted: bool| {
        let options = options(settings, encrypted, read_timeout);
        catch_unwind(|| Conn::new(options)).map_err(|_| unreachable(settings, MALFORMED))
    };
    let encrypted = settings.tls.mode != TlsMode::Off;
    let mut result = connect(encrypted)?;
    let optional = settings.tls.mode == TlsMode::Preferred;
    if result.as_ref().is_err_and(|error| optional && is_of_tls(error)) {
        result = connect(false)?;
    }
    result.map_err(|error| client_error(settings, "connecting", error))
}

const MALFORMED: &str = "what answers there does not speak the MySQL protocol rightly";

/// Calls the client crate and converts a panic, which malformed bytes of a server may cause, to an error of the
/// connection.
pub(super) fn guarded<T>(
    settings: &MysqlSettings,
    doing: &str,
    work: impl FnOnce() -> mysql::Result<T>,
) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| unreachable(settings, MALFORMED))?
        .map_err(|error| client_error(settings, doing, error))
}

impl Connection {
    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// [`Error::Statement`] or [`Error::AccessDenied`] if the source refuses the statement,
    /// [`Error::Unreachable`] if the connection breaks or a row is not of this type.
    pub fn rows<T: mysql::prelude::FromRow>(&mut self, statement: &str) -> Result<Vec<T>> {
        let conn = &mut self.conn;
        guarded(&self.settings, statement, || conn.query(statement))
    }

    /// Runs a statement and returns its first row.
    ///
    /// # Errors
    /// The same as those of [`Connection::rows`].
    pub fn first<T: mysql::prelude::FromRow>(&mut self, statement: &str) -> Result<Option<T>> {
        let conn = &mut self.conn;
        guarded(&self.settings, statement, || conn.query_first(statement))
    }

    /// Reverts the restrictions of [`connect`]: the session may write, and times are in the server's zone. For
    /// statements that users wrote for a connection of their own.
    ///
    /// # Errors
    /// The same as those of [`Connection::rows`].
    pub fn allow_all(&mut self) -> Result<()> {
        self.run("SET SESSION TRANSACTION READ WRITE")?;
        self.run("SET time_zone = @@GLOBAL.time_zone, sql_mode = @@GLOBAL.sql_mode")?;
        match self.settings.database.clone() {
            Some(database) => self.run(&format!("USE {}", quoted(&database))),
            None => Ok(()),
        }
    }

    /// Runs a statement and discards its rows.
    ///
    /// # Errors
    /// The same as those of [`Connection::rows`].
    pub fn run(&mut self, statement: &str) -> Result<()> {
        let conn = &mut self.conn;
        guarded(&self.settings, statement, || conn.query_drop(statement))
    }

    /// Runs a statement and passes its rows to `take` one by one, as texts, with NULL as an empty text. The first call
    /// has the column names only.
    ///
    /// # Errors
    /// Those of [`Connection::rows`], and any error of `take`, which ends the statement and makes the connection
    /// unusable.
    pub fn each_row(&mut self, statement: &str, take: &mut RowCallback<'_>) -> Result<()> {
        let (conn, settings) = (&mut self.conn, &self.settings);
        let id = conn.connection_id();
        let mut failed = None;
        guarded(settings, statement, || {
            let mut result = conn.query_iter(statement)?;
            let names: Vec<String> =
                result.columns().as_ref().iter().map(|it| it.name_str().into_owned()).collect();
            let mut taken = take(&names, None);
            while taken.is_ok()
                && let Some(row) = result.next()
            {
                taken = take(&names, Some(row?.unwrap().into_iter().map(text).collect()));
            }
            if taken.is_err() {
                // Otherwise the client would read the rest of the result.
                stop(settings, id);
            }
            failed = taken.err();
            Ok(())
        })
        .or_else(|error| if failed.is_some() { Ok(()) } else { Err(error) })?;
        failed.map_or(Ok(()), Err)
    }

    /// All transactions that the source has executed and logged. A stream may be slightly ahead of it.
    ///
    /// # Errors
    /// Those of [`Connection::rows`], and [`Error::Setting`] if the answer is no GTID set.
    pub fn executed(&mut self) -> Result<GtidSet> {
        let variable = match self.server.flavor {
            Flavor::MySql => "@@GLOBAL.gtid_executed",
            Flavor::MariaDb => "@@GLOBAL.gtid_binlog_pos",
        };
        self.gtid_set(variable)
    }

    /// The transactions that were purged from the source's binlog. MariaDB does not report them.
    ///
    /// # Errors
    /// The same as those of [`Connection::executed`].
    pub fn purged(&mut self) -> Result<GtidSet> {
        match self.server.flavor {
            Flavor::MySql => self.gtid_set("@@GLOBAL.gtid_purged"),
            Flavor::MariaDb => Ok(GtidSet::empty(Flavor::MariaDb)),
        }
    }

    /// The current end of the source's binlog.
    ///
    /// # Errors
    /// [`Error::Requirement`] if the source writes no binlog; else those of [`Connection::rows`].
    pub fn binlog_end(&mut self) -> Result<Coordinates> {
        let status = self.binlog_status()?;
        let end = status.and_then(|row| Some((row.get_opt(0)?.ok()?, row.get_opt(1)?.ok()?)));
        let (file, offset) = end.ok_or_else(|| Error::Requirement {
            message: format!("the binlog of {} is off", self.settings.address()),
            advice: BINLOG_ADVICE.to_owned(),
        })?;
        Ok(Coordinates { file, offset })
    }

    /// The databases of `binlog_do_db` (empty means all) and of `binlog_ignore_db`.
    pub(super) fn binlog_filters(&mut self) -> Result<[Vec<String>; 2]> {
        let status = self.binlog_status()?;
        Ok([2, 3].map(|column| {
            let names = status.as_ref().and_then(|row| row.get_opt::<String, _>(column)?.ok());
            let names = names.unwrap_or_default();
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        }))
    }

    fn binlog_status(&mut self) -> Result<Option<mysql::Row>> {
        let modern = self.server.flavor == Flavor::MySql && self.server.version >= (8, 2, 0);
        self.first(if modern { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" })
    }

    fn gtid_set(&mut self, variable: &str) -> Result<GtidSet> {
        let text: Option<String> = self.first(&format!("SELECT {variable}"))?;
        GtidSet::parse_as(self.server.flavor, &text.unwrap_or_default())
    }
}

/// A value in a row of a text-protocol statement.
fn text(value: mysql::Value) -> Vec<u8> {
    match value {
        mysql::Value::NULL => Vec::new(),
        mysql::Value::Bytes(bytes) => bytes,
        other => other.as_sql(true).into_bytes(),
    }
}

/// Kills the statement of a connection.
fn stop(settings: &MysqlSettings, id: u32) {
    let stopped =
        connect(settings).and_then(|mut other| other.first::<u8>(&format!("KILL QUERY {id}")));
    if let Err(error) = stopped {
        tracing::debug!("a statement ends late: {error}");
    }
}

fn read_server(conn: &mut Conn) -> mysql::Result<Server> {
    let row = conn.query_first(
        "SELECT @@version, @@version_comment, @@server_id, @@lower_case_table_names",
    )?;
    let (version_text, comment, id, folded): (String, String, u64, u8) = row.unwrap_or_default();
    let mariadb = [&version_text, &comment].iter().any(|text| text.contains("MariaDB"));
    let flavor = if mariadb { Flavor::MariaDb } else { Flavor::MySql };
    let variable = if mariadb { "@@server_uid" } else { "@@server_uuid" };
    let uuid = match conn.query_first::<String, _>(format!("SELECT {variable}")) {
        // Older versions of MariaDB lack this variable.
        Err(mysql::Error::MySqlError(_)) => None,
        other => other?,
    };
    let version = parse_version(&version_text);
    // If the storage engine executes foreign key actions itself, they are not logged.
    let native = match conn.query_first::<u8, _>("SELECT @@GLOBAL.innodb_native_foreign_keys") {
        Err(mysql::Error::MySqlError(_)) => false,
        other => other? != Some(0),
    };
    Ok(Server {
        flavor,
        version,
        version_text,
        uuid: uuid.unwrap_or_else(|| format!("server_id {id}")),
        folds_names: folded == 1,
        logs_cascades: !mariadb && version >= LOGS_CASCADES_SINCE && !native,
        logs_dictionary_changes: !mariadb && version >= LOGS_DICTIONARY_CHANGES_SINCE,
    })
}

/// The first three numbers.
fn parse_version(text: &str) -> (u16, u16, u16) {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next(), next())
}

fn options(settings: &MysqlSettings, encrypted: bool, read_timeout: Duration) -> OptsBuilder {
    let host = match settings.host.contains(':') {
        true => format!("[{}]", settings.host),
        false => settings.host.clone(),
    };
    OptsBuilder::new()
        .ip_or_hostname(Some(host))
        .tcp_port(settings.port)
        .user(Some(settings.user.clone()))
        .pass(Some(settings.password.clone()))
        // Otherwise the client would switch a connection to a local server to its socket file.
        .prefer_socket(false)
        .max_allowed_packet(Some(MAX_PACKET_BYTES))
        .tcp_connect_timeout(Some(settings.connect_timeout))
        .read_timeout(Some(read_timeout))
        .write_timeout(Some(QUERY_TIMEOUT))
        .tcp_keepalive_time_ms(Some(KEEPALIVE_MS))
        .tcp_keepalive_probe_interval_secs(Some(KEEPALIVE_INTERVAL_SECONDS))
        .tcp_keepalive_probe_count(Some(KEEPALIVE_PROBES))
        .server_key_path(settings.tls.server_public_key.clone())
        .init(SESSION.to_vec())
        .ssl_opts(encrypted.then(|| ssl_options(&settings.tls)))
}

fn ssl_options(tls: &Tls) -> SslOpts {
    let identity = tls.identity.clone().map(|(cert, key)| ClientIdentity::new(cert, key));
    let verifies_name = tls.mode == TlsMode::VerifyIdentity;
    let verifies = verifies_name || tls.mode == TlsMode::VerifyCa;
    SslOpts::default()
        .with_client_identity(identity)
        .with_root_cert_path(tls.ca.clone())
        .with_danger_skip_domain_validation(!verifies_name)
        .with_danger_accept_invalid_certs(!verifies)
}

/// Whether the server has no TLS, or none that this client supports.
fn is_of_tls(error: &mysql::Error) -> bool {
    match error {
        mysql::Error::DriverError(error) => *error == DriverError::TlsNotSupported,
        mysql::Error::TlsError(_) | mysql::Error::IoError(_) => true,
        _ => false,
    }
}
