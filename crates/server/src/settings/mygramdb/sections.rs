//! The keys of a MygramDB file that have a meaning here. The file is valid and completed, so all of them exist.

use std::path::PathBuf;

use serde::Deserialize;

/// The whole file.
#[derive(Deserialize)]
pub(super) struct FileSections {
    pub mysql: MySqlSection,
    pub tables: Vec<TableSection>,
    pub replication: ReplicationSection,
    pub memory: YamlMemorySection,
    pub dump: YamlDumpSection,
    pub api: ApiSection,
    pub network: YamlNetworkSection,
    pub logging: YamlLoggingSection,
    pub cache: YamlCacheSection,
    pub bm25: YamlBm25Section,
}

#[derive(Deserialize)]
pub(super) struct MySqlSection {
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
pub(super) struct TableSection {
    pub name: String,
    pub database: Option<String>,
    pub primary_key: String,
    pub text_source: TextSourceSection,
    #[serde(default)]
    pub required_filters: Vec<RequiredSection>,
    #[serde(default)]
    pub filters: Vec<FilterSection>,
    pub synonyms: SynonymsSection,
}

#[derive(Deserialize)]
pub(super) struct TextSourceSection {
    pub column: Option<String>,
    pub concat: Option<Vec<String>>,
    pub delimiter: String,
}

/// A condition that every row of the table satisfies.
#[derive(Deserialize)]
pub(super) struct RequiredSection {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub op: String,
    pub value: Option<serde_json::Value>,
}

/// A column that can be filtered, sorted and counted.
#[derive(Deserialize)]
pub(super) struct FilterSection {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Deserialize)]
pub(super) struct SynonymsSection {
    pub enable: bool,
    #[serde(default)]
    pub file: PathBuf,
}

#[derive(Deserialize)]
pub(super) struct ReplicationSection {
    pub enable: bool,
    pub server_id: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct YamlMemorySection {
    pub normalize: NormalizeSection,
}

#[derive(Deserialize)]
pub(super) struct NormalizeSection {
    pub nfkc: bool,
    pub width: String,
    pub lower: bool,
}

#[derive(Deserialize)]
pub(super) struct YamlDumpSection {
    pub dir: PathBuf,
    pub default_filename: String,
    pub load_on_startup: bool,
    pub interval_sec: u64,
    pub retain: usize,
}

#[derive(Deserialize)]
pub(super) struct ApiSection {
    pub tcp: TcpSection,
    pub unix_socket: SocketSection,
    pub http: YamlHttpSection,
    pub default_limit: usize,
    pub max_query_length: usize,
    pub admin_token: String,
    pub rate_limiting: YamlRateSection,
}

#[derive(Deserialize)]
pub(super) struct TcpSection {
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
pub(super) struct SocketSection {
    pub path: PathBuf,
}

#[derive(Deserialize)]
pub(super) struct YamlHttpSection {
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
pub(super) struct YamlRateSection {
    pub enable: bool,
    pub capacity: u64,
    pub refill_rate: u64,
    pub max_clients: usize,
}

#[derive(Deserialize)]
pub(super) struct YamlNetworkSection {
    pub allow_cidrs: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct YamlLoggingSection {
    pub level: String,
    pub format: String,
    pub file: PathBuf,
}

#[derive(Deserialize)]
pub(super) struct YamlCacheSection {
    pub enabled: bool,
    pub max_memory_mb: u64,
    pub min_query_cost_ms: f64,
    pub ttl_seconds: u64,
}

#[derive(Deserialize)]
pub(super) struct YamlBm25Section {
    pub enable: bool,
    pub k1: f64,
    pub b: f64,
}
