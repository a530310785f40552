//! The keys of a MygramDB file that have a meaning here. The file is valid and completed, so all of them exist.

use std::path::PathBuf;

use serde::Deserialize;

/// The whole file.
#[derive(Deserialize)]
pub(super) struct Typed {
    pub mysql: TypedMySql,
    pub tables: Vec<TypedTable>,
    pub replication: TypedReplication,
    pub memory: TypedMemory,
    pub dump: TypedDump,
    pub api: TypedApi,
    pub network: TypedNetwork,
    pub logging: TypedLogging,
    pub cache: TypedCache,
    pub bm25: TypedBm25,
}

#[derive(Deserialize)]
pub(super) struct TypedMySql {
    pub host: String,
    pub port: u16,
    #[serde(default)]
    pub user: String,
    pub password: String,
    #[serde(default)]
    pub database: String,
    pub connect_timeout_ms: u64,
    pub ssl_enable: bool,
    pub ssl_ca: String,
    pub ssl_cert: String,
    pub ssl_key: String,
    pub ssl_verify_server_cert: bool,
    pub ignored_ddl_prefixes: Vec<String>,
    pub datetime_timezone: String,
}

/// One table.
#[derive(Deserialize)]
pub(super) struct TypedTable {
    pub name: String,
    pub database: Option<String>,
    pub primary_key: String,
    pub text_source: TypedTextSource,
    #[serde(default)]
    pub required_filters: Vec<TypedRequired>,
    #[serde(default)]
    pub filters: Vec<TypedFilter>,
    pub synonyms: TypedSynonyms,
}

#[derive(Deserialize)]
pub(super) struct TypedTextSource {
    pub column: Option<String>,
    pub concat: Option<Vec<String>>,
    pub delimiter: String,
}

/// A condition that every row of the table satisfies.
#[derive(Deserialize)]
pub(super) struct TypedRequired {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub op: String,
    pub value: Option<serde_json::Value>,
}

/// A column that can be filtered, sorted and counted.
#[derive(Deserialize)]
pub(super) struct TypedFilter {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Deserialize)]
pub(super) struct TypedSynonyms {
    pub enable: bool,
    #[serde(default)]
    pub file: PathBuf,
}

#[derive(Deserialize)]
pub(super) struct TypedReplication {
    pub enable: bool,
    pub server_id: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct TypedMemory {
    pub normalize: TypedNormalize,
}

#[derive(Deserialize)]
pub(super) struct TypedNormalize {
    pub nfkc: bool,
    pub width: String,
    pub lower: bool,
}

#[derive(Deserialize)]
pub(super) struct TypedDump {
    pub dir: PathBuf,
    pub default_filename: String,
    pub load_on_startup: bool,
    pub interval_sec: u64,
    pub retain: usize,
}

#[derive(Deserialize)]
pub(super) struct TypedApi {
    pub tcp: TypedTcp,
    pub unix_socket: TypedSocket,
    pub http: TypedHttp,
    pub default_limit: usize,
    pub max_query_length: usize,
    pub admin_token: String,
    pub rate_limiting: TypedRate,
}

#[derive(Deserialize)]
pub(super) struct TypedTcp {
    pub bind: String,
    pub port: u16,
    pub max_connections: usize,
    pub worker_threads: usize,
    pub recv_timeout_sec: u64,
    pub idle_timeout_sec: u64,
    pub max_write_queue_bytes: usize,
    pub max_total_buffered_bytes: usize,
    pub max_pending_frames: usize,
    pub max_pending_frame_bytes: usize,
}

#[derive(Deserialize)]
pub(super) struct TypedSocket {
    pub path: PathBuf,
}

#[derive(Deserialize)]
pub(super) struct TypedHttp {
    pub enable: bool,
    pub bind: String,
    pub port: u16,
    pub max_connections: usize,
    pub trusted_proxies: Vec<String>,
    pub enable_cors: bool,
    pub cors_allow_origin: String,
    pub read_timeout_sec: u64,
    pub write_timeout_sec: u64,
    pub max_body_bytes: usize,
}

#[derive(Deserialize)]
pub(super) struct TypedRate {
    pub enable: bool,
    pub capacity: u64,
    pub refill_rate: u64,
    pub max_clients: usize,
}

#[derive(Deserialize)]
pub(super) struct TypedNetwork {
    pub allow_cidrs: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct TypedLogging {
    pub level: String,
    pub format: String,
    pub file: PathBuf,
}

#[derive(Deserialize)]
pub(super) struct TypedCache {
    pub enabled: bool,
    pub max_memory_mb: u64,
    pub min_query_cost_ms: f64,
    pub ttl_seconds: u64,
}

#[derive(Deserialize)]
pub(super) struct TypedBm25 {
    pub enable: bool,
    pub k1: f64,
    pub b: f64,
}
