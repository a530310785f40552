//! A MygramDB configuration file (YAML or JSON) and its meaning.
//!
//! The file is read as a tree, validated by the table of keys as MygramDB does, and completed with MygramDB's defaults.
//! `FileSections` then gives it its meaning.

mod file;
mod key_table;
mod kind;
mod node;
mod sections;
mod table;
mod unused;
mod validate;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use remora_mysql::Zone;
use remora_source::{
    mysql::settings::{MysqlSettings, Tls, TlsMode},
    schema_file::WidthName,
};
use serde::Deserialize;

use super::{
    Bm25, Cache, Cidr, Dialect, Dump, Http, Limits, Listen, Logging, RateLimiting, Settings, mysql,
};
use crate::{Error, Result};
use sections::{
    ApiSection, FileSections, MySqlSection, NormalizeSection, ReplicationSection, YamlCacheSection,
    YamlDumpSection, YamlHttpSection, YamlLoggingSection, YamlRateSection,
};

pub use file::MygramFile;
pub(crate) use file::help;

/// The release whose protocol and files are supported. Its clients compare it.
pub const MYGRAMDB_VERSION: &str = "1.10.0";

/// The key of the time zone of DATETIMEs.
pub(super) const ZONE_KEY: &str = "mysql.datetime_timezone";

/// The largest body of an HTTP request if the file sets no limit.
const LARGEST_BODY_BYTES: usize = 1 << 30;

/// Parses a MygramDB file.
pub(super) fn parse(text: &str, folder: &Path) -> Result<Settings> {
    let wrong = Error::Settings;
    let node = node::read(text).map_err(wrong)?;
    validate::validate(&node).map_err(wrong)?;
    let file = MygramFile::new(node.to_value());
    let typed =
        FileSections::deserialize(file.values()).map_err(|error| wrong(error.to_string()))?;
    let settings = typed.into_settings(folder).map_err(wrong)?;
    Ok(Settings { unused: unused::named(&node), mygramdb: Some(file), ..settings })
}

impl FileSections {
    fn into_settings(self, folder: &Path) -> Result<Settings, String> {
        let normalize = &self.memory.normalize;
        let mut tables = Vec::new();
        for table in &self.tables {
            tables.push(table.schema(&self.mysql.database, normalize, folder)?);
        }
        let sources = match self.replication.enable {
            true => {
                let names = tables.iter().map(|table| table.name.clone()).collect();
                vec![self.mysql.meaning(names, &self.replication)?]
            }
            false => Vec::new(),
        };
        let api = self.api;
        let defaults = Settings::default();
        Ok(Settings {
            dialect: Dialect::MygramDb,
            file: None,
            data: PathBuf::from("remora-data"),
            listen: api.listen(),
            http: api.http.meaning()?,
            tables,
            words: Vec::new(),
            limits: api.limits(),
            rate_limiting: api.rate_limiting.meaning(),
            durability: defaults.durability,
            memory: defaults.memory,
            dump: self.dump.meaning(),
            admin_token: api.admin_token,
            allow_cidrs: Some(Cidr::parse_list(&self.network.allow_cidrs)?),
            bm25: Bm25 { enable: self.bm25.enable, k1: self.bm25.k1, b: self.bm25.b },
            cache: self.cache.meaning(),
            logging: self.logging.meaning(),
            query_log: defaults.query_log,
            unused: Vec::new(),
            mygramdb: None,
            sphinx_conf: None,
            sources,
            time_zone: None,
            sql: defaults.sql,
            users: Vec::new(),
            agents: defaults.agents,
        })
    }
}

impl MySqlSection {
    fn meaning(
        self,
        tables: Vec<String>,
        replication: &ReplicationSection,
    ) -> Result<MysqlSettings, String> {
        let zone = Zone::parse_offset(&self.datetime_timezone)
            .map_err(|error| format!("{ZONE_KEY}: {error}"))?;
        Ok(MysqlSettings {
            tls: self.tls(),
            host: self.host,
            port: self.port,
            user: self.user,
            password: self.password,
            database: Some(self.database).filter(|database| !database.is_empty()),
            tables,
            time_zone: Some(zone),
            server_id: replication.server_id,
            connect_timeout: Duration::from_millis(self.connect_timeout_ms),
            strict_schema: true,
            // The file does not give the type of the primary key.
            source_types_keys: true,
            ignored_ddl_prefixes: mysql::prefixes(self.ignored_ddl_prefixes)?,
            ..MysqlSettings::default()
        })
    }

    fn tls(&self) -> Tls {
        let file = |path: &str| (!path.is_empty()).then(|| PathBuf::from(path));
        let mode = match (self.ssl_enable, self.ssl_verify_server_cert) {
            (false, _) => TlsMode::Off,
            (true, false) => TlsMode::Required,
            (true, true) => TlsMode::VerifyIdentity,
        };
        let identity = file(&self.ssl_cert).zip(file(&self.ssl_key));
        Tls { mode, ca: file(&self.ssl_ca), identity, ..Tls::default() }
    }
}

impl NormalizeSection {
    fn width(&self) -> Result<WidthName, String> {
        match self.width.as_str() {
            "keep" => Ok(WidthName::Keep),
            "narrow" => Ok(WidthName::Narrow),
            "wide" => Ok(WidthName::Wide),
            other => {
                Err(format!("memory.normalize.width is '{other}'; write keep, narrow or wide"))
            }
        }
    }
}

impl ApiSection {
    fn listen(&self) -> Listen {
        let (tcp, http) = (&self.tcp, &self.http);
        let socket = &self.unix_socket.path;
        let line_socket = (!socket.as_os_str().is_empty()).then(|| socket.clone());
        Listen {
            // A socket replaces TCP, so that no port is opened unintentionally.
            line: if line_socket.is_none() { address(&tcp.bind, tcp.port) } else { String::new() },
            line_socket,
            http: if http.enable { address(&http.bind, http.port) } else { String::new() },
            sql: String::new(),
            sql_socket: None,
            sphinx: String::new(),
            sphinx_api: String::new(),
            sphinx_api_user: String::new(),
            tiedot: String::new(),
        }
    }

    fn limits(&self) -> Limits {
        let tcp = &self.tcp;
        Limits {
            max_connections: tcp.max_connections,
            worker_threads: tcp.worker_threads,
            default_limit: self.default_limit,
            max_limit: 1000,
            max_query_length: self.max_query_length,
            max_request_bytes: 1 << 20,
            recv_timeout_s: tcp.recv_timeout_sec,
            idle_timeout_s: tcp.idle_timeout_sec,
            write_queue_bytes: tcp.max_write_queue_bytes,
            buffered_bytes: tcp.max_total_buffered_bytes,
            pending_requests: tcp.max_pending_frames,
            pending_bytes: tcp.max_pending_frame_bytes,
            ..Limits::default()
        }
    }
}

/// `HOST:PORT`, with brackets around an IPv6 address.
fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl YamlHttpSection {
    fn meaning(&self) -> Result<Http, String> {
        Ok(Http {
            max_connections: self.max_connections,
            trusted_proxies: Cidr::parse_list(&self.trusted_proxies)?,
            cors_allow_origin: self.enable_cors.then(|| self.cors_allow_origin.clone()),
            read_timeout_s: self.read_timeout_sec,
            write_timeout_s: self.write_timeout_sec,
            max_body_bytes: match self.max_body_bytes {
                0 => LARGEST_BODY_BYTES,
                bytes => bytes,
            },
        })
    }
}

impl YamlRateSection {
    fn meaning(&self) -> RateLimiting {
        RateLimiting {
            enable: self.enable,
            capacity: self.capacity,
            refill_rate: self.refill_rate,
            max_clients: self.max_clients,
        }
    }
}

impl YamlDumpSection {
    fn meaning(self) -> Dump {
        Dump {
            dir: self.dir,
            default_filename: self.default_filename,
            load_on_startup: self.load_on_startup,
            interval_s: self.interval_sec,
            retain: self.retain,
        }
    }
}

impl YamlCacheSection {
    fn meaning(&self) -> Cache {
        Cache {
            enabled: self.enabled,
            max_memory_mb: self.max_memory_mb,
            min_query_cost_ms: self.min_query_cost_ms,
            ttl_s: self.ttl_seconds,
        }
    }
}

impl YamlLoggingSection {
    fn meaning(self) -> Logging {
        let file = (!self.file.as_os_str().is_empty()).then_some(self.file);
        Logging { level: self.level, format: self.format, file }
    }
}

#[cfg(test)]
mod tests;
