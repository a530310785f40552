//! The table of all single-valued settings, with their names, meanings and accessors. CONFIG, SHOW VARIABLES, SET,
//! SIGHUP and the environment all use it.

use std::{path::PathBuf, str::FromStr, time::Duration};

use remora_engine::Durability;
use remora_source::mysql::settings::MysqlSettings;

use super::{Cidr, Dialect, Settings, keys};

/// When a new value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Immediately; SET may change it too.
    Set,
    /// Immediately, by SIGHUP only.
    Reload,
    /// At the next start.
    Restart,
}

/// One single-valued setting.
pub struct Variable {
    /// MygramDB's name, which SET and SHOW VARIABLES use in either dialect.
    pub name: &'static str,
    /// The key in `remora.toml`.
    pub key: &'static str,
    /// Its description.
    pub help: &'static str,
    /// When a new value takes effect.
    pub change: Change,
    /// Whether its value is shown as `***`.
    pub secret: bool,
    read: fn(&Settings) -> String,
    write: fn(&mut Settings, &str) -> Result<(), String>,
}

impl Variable {
    /// The value as text.
    pub fn show(&self, settings: &Settings) -> String {
        let value = (self.read)(settings);
        if self.secret && !value.is_empty() { "***".to_owned() } else { value }
    }

    /// Sets the value from a text.
    ///
    /// # Errors
    /// A message that says what the value must be. `settings` may then be partly changed.
    pub fn set(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        if let Some(file) = &mut settings.mygramdb {
            file.set(self.name, text)?;
        }
        (self.write)(settings, text)
    }

    /// Copies the value to other settings. A value that `to` cannot hold is skipped.
    pub fn copy(&self, from: &Settings, to: &mut Settings) {
        if let (Some(from), Some(to)) = (&from.mygramdb, &mut to.mygramdb) {
            to.copy(from, self.name);
        }
        let _ = (self.write)(to, &(self.read)(from));
    }

    /// The name in a dialect.
    pub fn name(&self, dialect: Dialect) -> &'static str {
        if dialect == Dialect::Remora { self.key } else { self.name }
    }
}

/// Declares a variable for a field that is parsed and printed directly.
macro_rules! plain {
    ($name:literal, $key:literal, $change:ident, $($field:ident).+, $help:literal) => {
        Variable {
            name: $name,
            key: $key,
            help: $help,
            change: Change::$change,
            secret: false,
            read: |settings| settings.$($field).+.to_string(),
            write: |settings, text| parse(text).map(|value| settings.$($field).+ = value),
        }
    };
}

/// Declares a variable with accessor functions.
macro_rules! custom {
    ($name:literal, $key:literal, $change:ident, $read:expr, $write:expr, $help:literal) => {
        Variable {
            name: $name,
            key: $key,
            help: $help,
            change: Change::$change,
            secret: false,
            read: $read,
            write: $write,
        }
    };
}

/// All variables, in the order of output.
pub static VARIABLES: &[Variable] = &[
    custom!(
        "data",
        "data",
        Restart,
        |s| s.data.display().to_string(),
        |s, text| {
            s.data = PathBuf::from(text);
            Ok(())
        },
        "The data directory."
    ),
    plain!(
        "api.tcp.bind",
        "listen.line",
        Restart,
        listen.line,
        "Address of the line protocol, HOST:PORT; port 0 takes a free one."
    ),
    custom!(
        "api.unix_socket.path",
        "listen.line_socket",
        Restart,
        |s| s.listen.line_socket.as_ref().map_or(String::new(), |path| path.display().to_string()),
        |s, text| {
            s.listen.line_socket = (!text.is_empty()).then(|| PathBuf::from(text));
            Ok(())
        },
        "Unix socket of the line protocol; empty means none."
    ),
    plain!(
        "api.http.bind",
        "listen.http",
        Restart,
        listen.http,
        "Address of HTTP, HOST:PORT; empty means none."
    ),
    plain!(
        "listen.sql",
        "listen.sql",
        Restart,
        listen.sql,
        "Address of the MySQL protocol, HOST:PORT; empty means none."
    ),
    custom!(
        "listen.sql_socket",
        "listen.sql_socket",
        Restart,
        |s| s.listen.sql_socket.as_ref().map_or(String::new(), |path| path.display().to_string()),
        |s, text| {
            s.listen.sql_socket = (!text.is_empty()).then(|| PathBuf::from(text));
            Ok(())
        },
        "Unix socket of the MySQL protocol; empty means none."
    ),
    plain!(
        "listen.sphinx",
        "listen.sphinx",
        Restart,
        listen.sphinx,
        "Address of the MySQL protocol in Sphinx's dialect, HOST:PORT; empty means none."
    ),
    plain!(
        "listen.sphinx_api",
        "listen.sphinx_api",
        Restart,
        listen.sphinx_api,
        "Address of SphinxAPI, HOST:PORT; empty means none."
    ),
    plain!(
        "listen.sphinx_api_user",
        "listen.sphinx_api_user",
        Reload,
        listen.sphinx_api_user,
        "The user that clients of SphinxAPI are, which has no login; needed where there are users."
    ),
    plain!(
        "listen.tiedot",
        "listen.tiedot",
        Restart,
        listen.tiedot,
        "Address of tiedot's HTTP API, HOST:PORT; empty means none."
    ),
    plain!(
        "sql.max_connections",
        "sql.max_connections",
        Reload,
        sql.max_connections,
        "Most MySQL connections at a time; further ones get error 1040."
    ),
    plain!(
        "sql.max_user_connections",
        "sql.max_user_connections",
        Reload,
        sql.max_user_connections,
        "Most MySQL connections of one user; 0 means no limit."
    ),
    plain!(
        "sql.connect_timeout_s",
        "sql.connect_timeout_s",
        Reload,
        sql.connect_timeout_s,
        "Seconds for a login over the MySQL protocol."
    ),
    plain!(
        "sql.wait_timeout_s",
        "sql.wait_timeout_s",
        Reload,
        sql.wait_timeout_s,
        "Seconds to wait for a MySQL client's next command."
    ),
    plain!(
        "sql.write_timeout_s",
        "sql.write_timeout_s",
        Reload,
        sql.write_timeout_s,
        "Seconds to wait for a MySQL client that does not read."
    ),
    plain!(
        "sql.max_execution_time_ms",
        "sql.max_execution_time_ms",
        Reload,
        sql.max_execution_time_ms,
        "Milliseconds of one SQL statement; 0 means no limit."
    ),
    plain!(
        "sql.max_allowed_packet",
        "sql.max_allowed_packet",
        Reload,
        sql.max_allowed_packet,
        "Bytes of one message of the MySQL protocol."
    ),
    plain!(
        "sql.max_prepared_statements",
        "sql.max_prepared_statements",
        Reload,
        sql.max_prepared_statements,
        "Prepared SQL statements of all connections together."
    ),
    plain!(
        "sql.buffered_mb",
        "sql.buffered_mb",
        Reload,
        sql.buffered_mb,
        "Megabytes of all MySQL connections' buffers together."
    ),
    plain!(
        "sql.max_query_memory_mb",
        "sql.max_query_memory_mb",
        Restart,
        sql.max_query_memory_mb,
        "Megabytes that one SQL statement may take, and one connection's temporary tables."
    ),
    plain!(
        "sql.max_total_query_memory_mb",
        "sql.max_total_query_memory_mb",
        Restart,
        sql.max_total_query_memory_mb,
        "Megabytes that all SQL statements may take together."
    ),
    plain!(
        "sql.max_spill_mb",
        "sql.max_spill_mb",
        Restart,
        sql.max_spill_mb,
        "Megabytes on the disk of rows that SQL statements have no room for in memory."
    ),
    plain!(
        "sql.max_temporary_memory_mb",
        "sql.max_temporary_memory_mb",
        Restart,
        sql.max_temporary_memory_mb,
        "Megabytes of all connections' temporary tables together."
    ),
    plain!(
        "sql.default_database",
        "sql.default_database",
        Restart,
        sql.default_database,
        "The database of tables that have none in their name."
    ),
    plain!(
        "sql.dialect",
        "sql.dialect",
        Restart,
        sql.dialect,
        "What statements mean that MySQL and Sphinx both have, as sessions begin: mysql or sphinx."
    ),
    plain!(
        "sql.local_infile",
        "sql.local_infile",
        Reload,
        sql.local_infile,
        "Whether LOAD DATA LOCAL may ask a client for a file."
    ),
    plain!(
        "sql.require_tls",
        "sql.require_tls",
        Reload,
        sql.require_tls,
        "Whether MySQL clients must use TLS or a Unix socket."
    ),
    plain!(
        "api.http.max_connections",
        "http.max_connections",
        Reload,
        http.max_connections,
        "Most HTTP connections at a time; further ones are answered 503."
    ),
    custom!(
        "api.http.trusted_proxies",
        "http.trusted_proxies",
        Reload,
        |s| join(&s.http.trusted_proxies),
        |s, text| {
            s.http.trusted_proxies = parse_cidrs(text)?;
            Ok(())
        },
        "Proxies whose X-Forwarded-For is believed."
    ),
    custom!(
        "api.http.cors_allow_origin",
        "http.cors_allow_origin",
        Reload,
        |s| s.http.cors_allow_origin.clone().unwrap_or_default(),
        |s, text| {
            s.http.cors_allow_origin = (!text.is_empty()).then(|| text.to_owned());
            Ok(())
        },
        "Origin of the web pages that may ask over HTTP; empty means none."
    ),
    plain!(
        "api.http.read_timeout_sec",
        "http.read_timeout_s",
        Reload,
        http.read_timeout_s,
        "Seconds to wait for the rest of an HTTP request."
    ),
    plain!(
        "api.http.write_timeout_sec",
        "http.write_timeout_s",
        Reload,
        http.write_timeout_s,
        "Seconds to wait for an HTTP client that does not read."
    ),
    plain!(
        "api.http.max_body_bytes",
        "http.max_body_bytes",
        Reload,
        http.max_body_bytes,
        "Bytes of an HTTP request's body; a longer one is answered 413."
    ),
    plain!(
        "api.tcp.max_connections",
        "limits.max_connections",
        Reload,
        limits.max_connections,
        "Most connections at a time; further ones are answered SERVER_BUSY."
    ),
    plain!(
        "api.tcp.worker_threads",
        "limits.worker_threads",
        Restart,
        limits.worker_threads,
        "Threads that answer; 0 means one per processor."
    ),
    plain!(
        "api.default_limit",
        "limits.default_limit",
        Set,
        limits.default_limit,
        "Rows returned where a request has no LIMIT."
    ),
    plain!("api.max_limit", "limits.max_limit", Reload, limits.max_limit, "Largest LIMIT."),
    plain!(
        "api.max_query_length",
        "limits.max_query_length",
        Set,
        limits.max_query_length,
        "Characters of a query expression; 0 means no limit."
    ),
    plain!(
        "api.tcp.max_request_bytes",
        "limits.max_request_bytes",
        Reload,
        limits.max_request_bytes,
        "Bytes of one request; a longer one closes the connection."
    ),
    plain!(
        "api.tcp.recv_timeout_sec",
        "limits.recv_timeout_s",
        Reload,
        limits.recv_timeout_s,
        "Seconds to wait for the rest of a request, and for a client that does not read."
    ),
    plain!(
        "api.tcp.idle_timeout_sec",
        "limits.idle_timeout_s",
        Reload,
        limits.idle_timeout_s,
        "Seconds a connection may be silent; 0 means for ever."
    ),
    plain!(
        "limits.max_query_time_ms",
        "limits.max_query_time_ms",
        Reload,
        limits.max_query_time_ms,
        "Milliseconds of a SEARCH, COUNT or FACET; a longer one ends with an error. 0 means no limit."
    ),
    plain!(
        "api.tcp.max_write_queue_bytes",
        "limits.write_queue_bytes",
        Reload,
        limits.write_queue_bytes,
        "Bytes of one reply."
    ),
    plain!(
        "api.tcp.max_total_buffered_bytes",
        "limits.buffered_bytes",
        Reload,
        limits.buffered_bytes,
        "Bytes of all connections' buffers together."
    ),
    plain!(
        "api.tcp.max_pending_frames",
        "limits.pending_requests",
        Reload,
        limits.pending_requests,
        "Whole requests of one connection that wait; further ones are not read."
    ),
    plain!(
        "api.tcp.max_pending_frame_bytes",
        "limits.pending_bytes",
        Reload,
        limits.pending_bytes,
        "Bytes of one connection's waiting requests; further ones are not read."
    ),
    plain!(
        "limits.max_transaction_rows",
        "limits.max_transaction_rows",
        Restart,
        limits.max_transaction_rows,
        "Rows that one transaction, statement or batch may change."
    ),
    plain!(
        "api.rate_limiting.enable",
        "limits.rate.enable",
        Set,
        rate_limiting.enable,
        "Whether requests per client address are limited."
    ),
    plain!(
        "api.rate_limiting.capacity",
        "limits.rate.capacity",
        Set,
        rate_limiting.capacity,
        "Requests that one address may send at once."
    ),
    plain!(
        "api.rate_limiting.refill_rate",
        "limits.rate.refill_rate",
        Set,
        rate_limiting.refill_rate,
        "Requests per second that one address may go on sending."
    ),
    plain!(
        "api.rate_limiting.max_clients",
        "limits.rate.max_clients",
        Reload,
        rate_limiting.max_clients,
        "Client addresses remembered."
    ),
    Variable {
        secret: true,
        ..plain!(
            "api.admin_token",
            "auth.admin_token",
            Reload,
            admin_token,
            "Token that everything needs, or under a MygramDB file administration; empty: none."
        )
    },
    custom!(
        "network.allow_cidrs",
        "network.allow_cidrs",
        Reload,
        show_cidrs,
        |s, text| {
            s.allow_cidrs = Some(parse_cidrs(text)?);
            Ok(())
        },
        "Networks that may connect."
    ),
    custom!(
        "durability.mode",
        "durability.mode",
        Restart,
        show_durability,
        |s, text| {
            s.durability = parse_durability(text, Duration::from_millis(100))?;
            Ok(())
        },
        "always: fsync before a write is acknowledged; interval; none."
    ),
    plain!(
        "memory.row_cache_mb",
        "memory.row_cache_mb",
        Restart,
        memory.row_cache_mb,
        "Megabytes of the row store's caches: half for blocks, half for rows that are read often."
    ),
    plain!(
        "memory.checkpoint_mb",
        "memory.checkpoint_mb",
        Restart,
        memory.checkpoint_mb,
        "Megabytes of new text held in memory before it is written to a segment file."
    ),
    custom!(
        "dump.dir",
        "dump.dir",
        Reload,
        |s| s.dump.dir.display().to_string(),
        |s, text| {
            s.dump.dir = PathBuf::from(text);
            Ok(())
        },
        "Directory of dumps; DUMP commands reach nothing outside of it."
    ),
    plain!(
        "dump.default_filename",
        "dump.default_filename",
        Reload,
        dump.default_filename,
        "File that DUMP SAVE without a name writes."
    ),
    plain!(
        "dump.load_on_startup",
        "dump.load_on_startup",
        Restart,
        dump.load_on_startup,
        "Whether the newest dump is loaded into an empty data directory at start."
    ),
    plain!(
        "dump.interval_sec",
        "dump.interval_s",
        Reload,
        dump.interval_s,
        "Seconds between automatic dumps; 0 means none."
    ),
    plain!("dump.retain", "dump.retain", Reload, dump.retain, "Automatic dumps kept."),
    plain!("bm25.enable", "bm25.enable", Restart, bm25.enable, "Whether SORT _score is answered."),
    plain!("bm25.k1", "bm25.k1", Restart, bm25.k1, "BM25's term saturation."),
    plain!("bm25.b", "bm25.b", Restart, bm25.b, "BM25's length normalisation, 0 to 1."),
    plain!(
        "cache.enabled",
        "cache.enabled",
        Set,
        cache.enabled,
        "Whether replies are kept to be given again."
    ),
    plain!(
        "cache.max_memory_mb",
        "cache.max_memory_mb",
        Reload,
        cache.max_memory_mb,
        "Megabytes of kept replies."
    ),
    plain!(
        "cache.min_query_cost_ms",
        "cache.min_query_cost_ms",
        Set,
        cache.min_query_cost_ms,
        "Milliseconds a query must have taken for its reply to be kept."
    ),
    plain!(
        "cache.ttl_seconds",
        "cache.ttl_s",
        Set,
        cache.ttl_s,
        "Seconds a reply is kept; 0 means as long as there is room."
    ),
    plain!(
        "logging.level",
        "logging.level",
        Set,
        logging.level,
        "trace, debug, info, warn, error or off."
    ),
    plain!("logging.format", "logging.format", Set, logging.format, "text or json."),
    custom!(
        "logging.file",
        "logging.file",
        Restart,
        |s| s.logging.file.as_ref().map_or(String::new(), |path| path.display().to_string()),
        |s, text| {
            s.logging.file = (!text.is_empty()).then(|| PathBuf::from(text));
            Ok(())
        },
        "Log file; empty means standard error."
    ),
    custom!(
        "mysql.host",
        "mysql.host",
        Restart,
        |s| mysql(s, |m| m.host.clone()),
        |s, text| with_mysql(s, |m| m.host = text.to_owned()),
        "MySQL server to follow."
    ),
    custom!(
        "mysql.port",
        "mysql.port",
        Restart,
        |s| mysql(s, |m| m.port.to_string()),
        |s, text| {
            let port = if text.is_empty() { 0 } else { parse(text)? };
            with_mysql(s, |m| m.port = port)
        },
        "Its port."
    ),
    custom!(
        "mysql.user",
        "mysql.user",
        Restart,
        |s| mysql(s, |m| m.user.clone()),
        |s, text| with_mysql(s, |m| m.user = text.to_owned()),
        "User there."
    ),
    Variable {
        secret: true,
        ..custom!(
            "mysql.password",
            "mysql.password",
            Restart,
            |s| mysql(s, |m| m.password.clone()),
            |s, text| with_mysql(s, |m| m.password = text.to_owned()),
            "Password there."
        )
    },
    custom!(
        "mysql.database",
        "mysql.database",
        Restart,
        |s| mysql(s, |m| m.database.clone().unwrap_or_default()),
        |s, text| with_mysql(s, |m| m.database = (!text.is_empty()).then(|| text.to_owned())),
        "Database there."
    ),
];

/// The variable of this name, in either dialect's spelling.
pub fn find_variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| {
        variable.name.eq_ignore_ascii_case(name) || variable.key.eq_ignore_ascii_case(name)
    })
}

/// The variables in which two settings differ.
pub fn changes(old: &Settings, new: &Settings) -> Vec<&'static Variable> {
    VARIABLES.iter().filter(|variable| (variable.read)(old) != (variable.read)(new)).collect()
}

/// Applies an environment variable. A name that is `REMORA_` followed by a section's name must be known; all others
/// (except MygramDB's own six in its dialect) are skipped.
pub(super) fn apply_environment(
    settings: &mut Settings,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let mygramdb = settings.dialect == Dialect::MygramDb;
    let Some((key, own)) = name
        .strip_prefix("REMORA_")
        .map(|key| (key, true))
        .or(name.strip_prefix("MYGRAM_").filter(|_| mygramdb).map(|key| (key, false)))
    else {
        return Ok(());
    };
    let spelled = |variable: &Variable| {
        let path = if own { variable.key } else { variable.name };
        path.replace('.', "_").to_uppercase()
    };
    let section = |name: &str| name.split('_').next().unwrap_or("").to_owned();
    let of_known_section =
        || VARIABLES.iter().any(|variable| section(&spelled(variable)) == section(key));
    match VARIABLES.iter().find(|variable| spelled(variable) == key) {
        Some(variable) => variable.set(settings, value),
        None if own && of_known_section() => {
            let known: Vec<String> = VARIABLES.iter().map(spelled).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Err(keys::unknown_key(key, &known))
        }
        None => Ok(()),
    }
}

/// A durability by name.
pub(super) fn parse_durability(mode: &str, interval: Duration) -> Result<Durability, String> {
    match mode {
        "always" => Ok(Durability::Always),
        "interval" => Ok(Durability::Interval(interval)),
        "none" => Ok(Durability::None),
        _ => Err(format!("durability.mode '{mode}' is none of always, interval, none")),
    }
}

fn parse<T: FromStr>(text: &str) -> Result<T, String> {
    let kind = match std::any::type_name::<T>() {
        "bool" => "true or false",
        "f64" => "a number",
        _ => "a whole number",
    };
    let text = match text.to_ascii_lowercase().as_str() {
        "on" | "yes" if kind == "true or false" => "true".to_owned(),
        "off" | "no" if kind == "true or false" => "false".to_owned(),
        _ => text.to_owned(),
    };
    text.parse().map_err(|_| format!("'{text}' is not {kind}"))
}

fn show_cidrs(settings: &Settings) -> String {
    join(settings.allow_cidrs.as_deref().unwrap_or(&[]))
}

fn join(list: &[Cidr]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn parse_cidrs(text: &str) -> Result<Vec<Cidr>, String> {
    let list: Vec<String> = text.split([',', ' ']).map(str::to_owned).collect();
    Cidr::parse_list(&list)
}

fn show_durability(settings: &Settings) -> String {
    match settings.durability {
        Durability::Always => "always",
        Durability::Interval(_) => "interval",
        Durability::None => "none",
    }
    .to_owned()
}

/// Reads a setting of the first source.
fn mysql(settings: &Settings, read: impl Fn(&MysqlSettings) -> String) -> String {
    settings.sources.first().map_or(String::new(), read)
}

/// Changes the first source. Without one this has no effect: the environment may give the password of a source on the
/// command line.
fn with_mysql(
    settings: &mut Settings,
    write: impl FnOnce(&mut MysqlSettings),
) -> Result<(), String> {
    if let Some(source) = settings.sources.first_mut() {
        write(source);
    }
    Ok(())
}
