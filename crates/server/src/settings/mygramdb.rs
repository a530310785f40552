//! A MygramDB configuration (YAML or JSON) as it is typed, and what it means.
//!
//! Every key of MygramDB 1.10 is accepted and any other refused. Keys that MygramDB reads without
//! effect, or that tell an n-gram index how to be built, have no effect here either: answers are
//! exact whatever they say. Their fields begin with an underscore.

mod table;
mod typed;
mod unused;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use remora_source::{
    mysql::settings::{MysqlSettings, Tls, TlsMode},
    schema_file::WidthName,
};

use super::{
    Bm25, Cache, Dialect, Dump, Http, Limits, Listen, Logging, RateLimiting, Settings, keys, mysql,
};
use crate::{Error, Result, session::Cidr};
use typed::{
    Typed, TypedApi, TypedCache, TypedDump, TypedHttp, TypedLogging, TypedMySql, TypedNormalize,
    TypedRate, TypedReplication,
};

/// The settings of a MygramDB file.
pub(super) fn parse(text: &str, folder: &Path) -> Result<Settings> {
    let typed: Typed = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().map_or(1, |location| location.line());
        Error::Settings(format!("line {line}: {}", keys::explain(&error.to_string())))
    })?;
    let settings = typed.into_settings(folder).map_err(Error::Settings)?;
    Ok(Settings { unused: unused::named(text), ..settings })
}

impl Typed {
    fn into_settings(self, folder: &Path) -> Result<Settings, String> {
        if self.tables.is_empty() {
            return Err("'tables' names no table; MygramDB needs one at least".to_owned());
        }
        if !self.mysql.use_gtid {
            return Err("mysql.use_gtid is always true; take the key out".to_owned());
        }
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
        if api.http.enable && api.http.enable_cors && api.http.cors_allow_origin.is_empty() {
            return Err("api.http.enable_cors needs api.http.cors_allow_origin".to_owned());
        }
        let defaults = Settings::default();
        Ok(Settings {
            dialect: Dialect::MygramDb,
            file: None,
            data: PathBuf::from("remora-data"),
            listen: api.listen(),
            http: api.http.meaning()?,
            tables,
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
            unused: Vec::new(),
            sources,
            sql: defaults.sql,
            users: Vec::new(),
        })
    }
}

impl TypedMySql {
    fn meaning(
        self,
        tables: Vec<String>,
        replication: &TypedReplication,
    ) -> Result<MysqlSettings, String> {
        if self.ssl_enable && self.ssl_verify_server_cert && self.ssl_ca.is_empty() {
            return Err("mysql.ssl_enable needs mysql.ssl_ca, or mysql.ssl_verify_server_cert: \
                        false to trust any certificate"
                .to_owned());
        }
        Ok(MysqlSettings {
            tls: self.tls(),
            host: self.host,
            port: self.port,
            user: self.user,
            password: self.password,
            database: Some(self.database).filter(|database| !database.is_empty()),
            tables,
            time_zone: self.datetime_timezone,
            server_id: Some(replication.server_id).filter(|id| *id > 0),
            connect_timeout: Duration::from_millis(self.connect_timeout_ms),
            strict_schema: true,
            // The file does not name the type of the primary key.
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

impl TypedNormalize {
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

impl TypedApi {
    fn listen(&self) -> Listen {
        let (tcp, http) = (&self.tcp, &self.http);
        let socket = &self.unix_socket.path;
        Listen {
            line: address(&tcp.bind, tcp.port),
            line_socket: (!socket.as_os_str().is_empty()).then(|| socket.clone()),
            http: if http.enable { address(&http.bind, http.port) } else { String::new() },
            sql: String::new(),
            sql_socket: None,
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

impl TypedHttp {
    fn meaning(&self) -> Result<Http, String> {
        Ok(Http {
            max_connections: self.max_connections,
            trusted_proxies: Cidr::parse_list(&self.trusted_proxies)?,
            cors_allow_origin: self.enable_cors.then(|| self.cors_allow_origin.clone()),
            read_timeout_s: self.read_timeout_sec,
            write_timeout_s: self.write_timeout_sec,
            max_body_bytes: self.max_body_bytes,
        })
    }
}

impl TypedRate {
    fn meaning(&self) -> RateLimiting {
        RateLimiting {
            enable: self.enable,
            capacity: self.capacity,
            refill_rate: self.refill_rate,
            max_clients: self.max_clients,
        }
    }
}

impl TypedDump {
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

impl TypedCache {
    fn meaning(&self) -> Cache {
        Cache {
            enabled: self.enabled,
            max_memory_mb: self.max_memory_mb,
            min_query_cost_ms: self.min_query_cost_ms,
            ttl_s: self.ttl_seconds,
        }
    }
}

impl TypedLogging {
    fn meaning(self) -> Logging {
        let file = (!self.file.as_os_str().is_empty()).then_some(self.file);
        Logging { level: self.level, format: self.format, file }
    }
}
