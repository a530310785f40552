//! The keys of a MygramDB file with MygramDB's defaults.

use std::path::PathBuf;

use serde::Deserialize;

/// Declares a table of keys: each with its type and default; a leading underscore marks a key
/// that is accepted and has no effect.
macro_rules! keys {
    ($(#[$note:meta])* $name:ident {
        $($field:ident $(as $key:literal)? : $kind:ty = $default:expr),* $(,)?
    }) => {
        $(#[$note])*
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $name {
            $($(#[serde(rename = $key)])? pub(super) $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Typed {
    pub(super) mysql: TypedMySql,
    pub(super) tables: Vec<TypedTable>,
    #[serde(default, rename = "index")]
    _index: TypedIndex,
    #[serde(default, rename = "build")]
    _build: TypedBuild,
    #[serde(default)]
    pub(super) replication: TypedReplication,
    #[serde(default)]
    pub(super) memory: TypedMemory,
    #[serde(default)]
    pub(super) dump: TypedDump,
    #[serde(default)]
    pub(super) api: TypedApi,
    #[serde(default)]
    pub(super) network: TypedNetwork,
    #[serde(default)]
    pub(super) logging: TypedLogging,
    #[serde(default)]
    pub(super) cache: TypedCache,
    #[serde(default)]
    pub(super) bm25: TypedBm25,
}

keys!(TypedMySql {
    host: String = "127.0.0.1".to_owned(),
    port: u16 = 3306,
    user: String = String::new(),
    password: String = String::new(),
    database: String = String::new(),
    use_gtid: bool = true,
    _binlog_format as "binlog_format": String = "ROW".to_owned(),
    _binlog_row_image as "binlog_row_image": String = "FULL".to_owned(),
    connect_timeout_ms: u64 = 3000,
    _read_timeout_ms as "read_timeout_ms": u64 = 3_600_000,
    _write_timeout_ms as "write_timeout_ms": u64 = 3_600_000,
    _session_timeout_sec as "session_timeout_sec": u64 = 3600,
    ssl_enable: bool = false,
    ssl_ca: String = String::new(),
    ssl_cert: String = String::new(),
    ssl_key: String = String::new(),
    ssl_verify_server_cert: bool = true,
    ignored_ddl_prefixes: Vec<String> = Vec::new(),
    datetime_timezone: String = "+00:00".to_owned(),
});

/// One table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedTable {
    pub(super) name: String,
    pub(super) database: Option<String>,
    #[serde(default = "id")]
    pub(super) primary_key: String,
    pub(super) text_source: TypedTextSource,
    #[serde(default)]
    pub(super) required_filters: Vec<TypedRequired>,
    #[serde(default)]
    pub(super) filters: Vec<TypedFilter>,
    #[serde(rename = "ngram_size")]
    _ngram_size: Option<u8>,
    #[serde(rename = "kanji_ngram_size")]
    _kanji_ngram_size: Option<u8>,
    #[serde(rename = "cross_boundary_ngrams")]
    _cross_boundary_ngrams: Option<bool>,
    #[serde(default, rename = "posting")]
    _posting: TypedPosting,
    pub(super) synonyms: Option<TypedSynonyms>,
}

fn id() -> String {
    "id".to_owned()
}

keys!(TypedTextSource {
    column: Option<String> = None,
    concat: Option<Vec<String>> = None,
    delimiter: String = " ".to_owned(),
});

/// A condition that every row of the table satisfies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedRequired {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) op: String,
    pub(super) value: Option<serde_json::Value>,
    #[serde(rename = "bitmap_index")]
    _bitmap_index: Option<bool>,
}

/// A column that can be filtered, sorted and counted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedFilter {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(rename = "dict_compress")]
    _dict_compress: Option<bool>,
    #[serde(rename = "bitmap_index")]
    _bitmap_index: Option<bool>,
    #[serde(rename = "bucket")]
    _bucket: Option<String>,
}

keys!(TypedPosting {
    _block_size as "block_size": u32 = 128,
    _freq_bits as "freq_bits": u32 = 0,
    _use_roaring as "use_roaring": String = "auto".to_owned(),
});

keys!(TypedSynonyms { enable: bool = false, file: PathBuf = PathBuf::new() });

keys!(TypedIndex {
    _ngram_size as "ngram_size": u8 = 2,
});

keys!(TypedBuild {
    _mode as "mode": String = "select_snapshot".to_owned(),
    _batch_size as "batch_size": u32 = 5000,
    _parallelism as "parallelism": u32 = 2,
    _throttle_ms as "throttle_ms": u32 = 0,
});

keys!(TypedReplication {
    enable: bool = true,
    _auto_initial_snapshot as "auto_initial_snapshot": bool = false,
    server_id: u32 = 0,
    _start_from as "start_from": String = "snapshot".to_owned(),
    _queue_size as "queue_size": u32 = 10_000,
    _reconnect_backoff_min_ms as "reconnect_backoff_min_ms": u32 = 500,
    _reconnect_backoff_max_ms as "reconnect_backoff_max_ms": u32 = 10_000,
});

keys!(TypedMemory {
    _hard_limit_mb as "hard_limit_mb": u64 = 8192,
    _soft_target_mb as "soft_target_mb": u64 = 4096,
    _arena_chunk_mb as "arena_chunk_mb": u64 = 64,
    _roaring_threshold as "roaring_threshold": f64 = 0.18,
    _minute_epoch as "minute_epoch": bool = true,
    normalize: TypedNormalize = TypedNormalize::default(),
    _verify_text as "verify_text": String = "off".to_owned(),
});

keys!(TypedNormalize {
    nfkc: bool = true,
    width: String = "narrow".to_owned(),
    lower: bool = false,
});

keys!(TypedDump {
    dir: PathBuf = PathBuf::from("/var/lib/mygramdb/dumps"),
    default_filename: String = "mygramdb.dmp".to_owned(),
    load_on_startup: bool = false,
    interval_sec: u64 = 0,
    retain: usize = 3,
    _restore_memory_budget_mb as "restore_memory_budget_mb": u64 = 4096,
    _restore_max_section_mb as "restore_max_section_mb": u64 = 2048,
});

keys!(TypedApi {
    tcp: TypedTcp = TypedTcp::default(),
    unix_socket: TypedSocket = TypedSocket::default(),
    http: TypedHttp = TypedHttp::default(),
    default_limit: usize = 100,
    max_query_length: usize = 128,
    admin_token: String = String::new(),
    rate_limiting: TypedRate = TypedRate::default(),
});

keys!(TypedTcp {
    bind: String = "127.0.0.1".to_owned(),
    port: u16 = 11016,
    max_connections: usize = 10_000,
    worker_threads: usize = 0,
    recv_timeout_sec: u64 = 60,
    idle_timeout_sec: u64 = 300,
    _reaper_interval_sec as "reaper_interval_sec": u64 = 5,
    _thread_pool_queue_size as "thread_pool_queue_size": u64 = 1000,
    _keepalive as "keepalive": TypedKeepalive = TypedKeepalive::default(),
    max_write_queue_bytes: usize = 16 << 20,
    max_total_buffered_bytes: usize = 256 << 20,
    max_pending_frames: usize = 1024,
    max_pending_frame_bytes: usize = 4 << 20,
});

keys!(TypedKeepalive {
    _enabled as "enabled": bool = true,
    _idle_sec as "idle_sec": u32 = 60,
    _interval_sec as "interval_sec": u32 = 20,
    _probe_count as "probe_count": u32 = 3,
});

keys!(TypedSocket { path: PathBuf = PathBuf::new() });

keys!(TypedHttp {
    enable: bool = false,
    bind: String = "127.0.0.1".to_owned(),
    port: u16 = 8080,
    max_connections: usize = 10_000,
    trusted_proxies: Vec<String> = Vec::new(),
    enable_cors: bool = false,
    cors_allow_origin: String = String::new(),
    read_timeout_sec: u64 = 5,
    write_timeout_sec: u64 = 5,
    max_body_bytes: usize = 16 << 20,
});

keys!(TypedRate {
    enable: bool = false,
    capacity: u64 = 100,
    refill_rate: u64 = 10,
    max_clients: usize = 10_000,
});

keys!(TypedNetwork {
    allow_cidrs: Vec<String> = Vec::new(),
});

keys!(TypedLogging {
    level: String = "info".to_owned(),
    format: String = "json".to_owned(),
    file: PathBuf = PathBuf::new(),
});

keys!(TypedCache {
    enabled: bool = true,
    max_memory_mb: u64 = 32,
    min_query_cost_ms: f64 = 10.0,
    ttl_seconds: u64 = 3600,
    _invalidation_strategy as "invalidation_strategy": String = "ngram".to_owned(),
    _compression_enabled as "compression_enabled": bool = true,
    _eviction_batch_size as "eviction_batch_size": u32 = 10,
    _invalidation as "invalidation": TypedInvalidation = TypedInvalidation::default(),
});

keys!(TypedInvalidation {
    _batch_size as "batch_size": u32 = 1000,
    _max_delay_ms as "max_delay_ms": u32 = 100,
    _max_queue_size as "max_queue_size": u32 = 100_000,
});

keys!(TypedBm25 { enable: bool = false, k1: f64 = 1.2, b: f64 = 0.75 });
