//! A MygramDB configuration (YAML or JSON) as it is typed, and what it means.
//!
//! Every key of MygramDB 1.10 is accepted and any other refused. Keys that MygramDB reads without
//! effect, or that tell an n-gram index how to be built, have no effect here either: answers are
//! exact whatever they say. Their fields begin with an underscore.

mod table;
mod typed;

use std::path::{Path, PathBuf};

use remora_source::schema_file::WidthName;

use super::{
    Bm25, Cache, Dialect, Dump, Limits, Listen, Logging, MySql, RateLimiting, Settings, keys,
};
use crate::{Error, Result, session::Cidr};
use typed::{
    Typed, TypedApi, TypedCache, TypedDump, TypedLogging, TypedMySql, TypedNormalize, TypedRate,
};

/// The settings of a MygramDB file.
pub(super) fn parse(text: &str, folder: &Path) -> Result<Settings> {
    let typed: Typed = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().map_or(1, |location| location.line());
        Error::Settings(format!("line {line}: {}", keys::explain(&error.to_string())))
    })?;
    typed.into_settings(folder).map_err(Error::Settings)
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
            mysql: Some(self.mysql.meaning()?),
        })
    }
}

impl TypedMySql {
    fn meaning(self) -> Result<MySql, String> {
        if self.ssl_enable && self.ssl_verify_server_cert && self.ssl_ca.is_empty() {
            return Err("mysql.ssl_enable needs mysql.ssl_ca, or mysql.ssl_verify_server_cert: \
                        false to trust any certificate"
                .to_owned());
        }
        let Self { host, port, user, password, database, .. } = self;
        Ok(MySql { host, port, user, password, database })
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
        let bind = &self.tcp.bind;
        let host = if bind.contains(':') { format!("[{bind}]") } else { bind.clone() };
        let socket = &self.unix_socket.path;
        Listen {
            line: format!("{host}:{}", self.tcp.port),
            line_socket: (!socket.as_os_str().is_empty()).then(|| socket.clone()),
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
        }
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
