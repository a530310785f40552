//! `[sql]` of a `remora.toml`: the MySQL protocol.

use std::path::{Path, PathBuf};

use remora_engine::memory_share;
use serde::Deserialize;

use super::{Settings, address::is_loopback_address};

/// Settings of the MySQL protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Sql {
    /// The most connections.
    pub max_connections: usize,
    /// The most connections of one user; 0 means no limit.
    pub max_user_connections: usize,
    /// The timeout of a login, in seconds.
    pub connect_timeout_s: u64,
    /// The timeout for the next command, in seconds.
    pub wait_timeout_s: u64,
    /// The timeout for a client to read, in seconds.
    pub write_timeout_s: u64,
    /// The time limit of a statement in milliseconds; 0 means none.
    pub max_execution_time_ms: u64,
    /// The most bytes of a message after the login.
    pub max_allowed_packet: usize,
    /// The most prepared statements of all connections.
    pub max_prepared_statements: usize,
    /// The memory in MiB for all connections' buffers.
    pub buffered_mb: usize,
    /// The memory in MiB for a statement, and for a connection's temporary tables.
    pub max_query_memory_mb: u64,
    /// The memory in MiB for all statements.
    pub max_total_query_memory_mb: u64,
    /// The disk space in MiB for rows that statements spill.
    pub max_spill_mb: u64,
    /// The memory in MiB for all connections' temporary tables.
    pub max_temporary_memory_mb: u64,
    /// The database of tables without one in their name.
    pub default_database: String,
    /// The initial dialect of sessions: `mysql` or `sphinx`.
    pub dialect: String,
    /// Whether LOAD DATA may request a file from the client.
    pub local_infile: bool,
    /// Whether TCP connections must use TLS.
    pub require_tls: bool,
    /// Certificate chain and key in PEM; `None` means no TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// The limits of memory are lower if the process may use less than 4 GiB.
impl Default for Sql {
    fn default() -> Self {
        let half_mb = memory_share(2, 2 << 30) >> 20;
        Self {
            max_connections: 1_000,
            max_user_connections: 0,
            connect_timeout_s: 10,
            wait_timeout_s: 28_800,
            write_timeout_s: 60,
            max_execution_time_ms: 0,
            max_allowed_packet: 1 << 30,
            max_prepared_statements: 16_382,
            buffered_mb: usize::try_from(half_mb).unwrap_or(usize::MAX),
            max_query_memory_mb: memory_share(4, 1 << 30) >> 20,
            max_total_query_memory_mb: half_mb,
            max_spill_mb: 10_240,
            max_temporary_memory_mb: half_mb,
            default_database: "remora".to_owned(),
            dialect: "mysql".to_owned(),
            local_infile: false,
            require_tls: false,
            tls: None,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SqlSection {
    max_connections: Option<usize>,
    max_user_connections: Option<usize>,
    connect_timeout_s: Option<u64>,
    wait_timeout_s: Option<u64>,
    write_timeout_s: Option<u64>,
    max_execution_time_ms: Option<u64>,
    max_allowed_packet: Option<usize>,
    max_prepared_statements: Option<usize>,
    buffered_mb: Option<usize>,
    max_query_memory_mb: Option<u64>,
    max_total_query_memory_mb: Option<u64>,
    max_spill_mb: Option<u64>,
    max_temporary_memory_mb: Option<u64>,
    default_database: Option<String>,
    dialect: Option<String>,
    local_infile: Option<bool>,
    require_tls: Option<bool>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

impl SqlSection {
    pub(super) fn apply(self, sql: &mut Sql, folder: &Path) -> Result<(), String> {
        use super::set::set;
        set(&mut sql.max_connections, self.max_connections);
        set(&mut sql.max_user_connections, self.max_user_connections);
        set(&mut sql.connect_timeout_s, self.connect_timeout_s);
        set(&mut sql.wait_timeout_s, self.wait_timeout_s);
        set(&mut sql.write_timeout_s, self.write_timeout_s);
        set(&mut sql.max_execution_time_ms, self.max_execution_time_ms);
        set(&mut sql.max_allowed_packet, self.max_allowed_packet);
        set(&mut sql.max_prepared_statements, self.max_prepared_statements);
        set(&mut sql.buffered_mb, self.buffered_mb);
        set(&mut sql.max_query_memory_mb, self.max_query_memory_mb);
        set(&mut sql.max_total_query_memory_mb, self.max_total_query_memory_mb);
        set(&mut sql.max_spill_mb, self.max_spill_mb);
        set(&mut sql.max_temporary_memory_mb, self.max_temporary_memory_mb);
        set(&mut sql.default_database, self.default_database);
        set(&mut sql.dialect, self.dialect);
        set(&mut sql.local_infile, self.local_infile);
        set(&mut sql.require_tls, self.require_tls);
        sql.tls = match (self.tls_cert, self.tls_key) {
            (Some(cert), Some(key)) => Some((folder.join(cert), folder.join(key))),
            (None, None) => None,
            _ => return Err("sql: tls_cert and tls_key belong together: set both".to_owned()),
        };
        Ok(())
    }
}

/// Why these settings are refused, with advice.
pub(super) fn refusal(settings: &Settings) -> Option<String> {
    let sql = &settings.sql;
    let ranges = [
        ("sql.max_connections", sql.max_connections, 1, 1_000_000),
        ("sql.max_allowed_packet", sql.max_allowed_packet, 1 << 10, 1 << 30),
        ("sql.max_prepared_statements", sql.max_prepared_statements, 1, 1 << 22),
        ("sql.buffered_mb", sql.buffered_mb, 1, 1 << 20),
    ];
    for (name, value, least, most) in ranges {
        if !(least..=most).contains(&value) {
            return Some(format!("{name} is {value}; it lies between {least} and {most}"));
        }
    }
    if sql.connect_timeout_s == 0 || sql.wait_timeout_s == 0 || sql.write_timeout_s == 0 {
        return Some(
            "sql.connect_timeout_s, sql.wait_timeout_s and sql.write_timeout_s are 1 or more"
                .to_owned(),
        );
    }
    if !matches!(sql.dialect.as_str(), "mysql" | "sphinx") {
        return Some(format!("sql.dialect is '{}'; it is 'mysql' or 'sphinx'", sql.dialect));
    }
    if sql.require_tls && sql.tls.is_none() {
        return Some("sql.require_tls needs sql.tls_cert and sql.tls_key".to_owned());
    }
    let listen = &settings.listen;
    let refusal = |key, address: &String| refused_address(settings, key, address);
    refusal("listen.sql", &listen.sql).or_else(|| refusal("listen.sphinx", &listen.sphinx))
}

/// Why an address of the MySQL protocol is refused.
fn refused_address(settings: &Settings, key: &str, address: &str) -> Option<String> {
    if address.is_empty() {
        return None;
    }
    match is_loopback_address(address) {
        None => Some(format!("{key} '{address}' is not HOST:PORT, as 127.0.0.1:9306 is")),
        Some(true) => None,
        Some(false) if settings.users.is_empty() => Some(format!(
            "'{address}' can be reached from other machines and there are no users: add [[users]] \
             with passwords, or listen on 127.0.0.1"
        )),
        Some(false) => {
            let open = settings.users.iter().find(|user| user.password.is_empty())?;
            Some(format!(
                "'{address}' can be reached from other machines and user '{}' has an empty \
                 password: give it one",
                open.name
            ))
        }
    }
}
