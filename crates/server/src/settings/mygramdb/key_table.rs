//! All keys of a MygramDB 1.10 file: path, permitted values, default.
//!
//! This one table validates files, supplies defaults, and feeds CONFIG and SHOW VARIABLES. Keys that MygramDB ignores,
//! or that configure its n-gram index, have no effect here: answers are always exact.

use super::kind::{FILTER_TYPES, Kind};

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    /// Its path; `tables[]` means each table.
    pub path: &'static str,
    pub kind: Kind,
    pub default: Default,
    /// Its description.
    pub help: &'static str,
}

/// The default of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Default {
    /// The file must set it.
    Required,
    /// None: another key or the environment provides it.
    Absent,
    Flag(bool),
    Whole(u64),
    Number(f64),
    Text(&'static str),
    EmptyList,
}

const MOST: u64 = u64::MAX;
const DAY_S: u64 = 86_400;
const DAY_MS: u64 = 86_400_000;
const GIB: u64 = 1 << 30;

const fn key(path: &'static str, kind: Kind, default: Default, help: &'static str) -> Key {
    Key { path, kind, default, help }
}

const fn flag(path: &'static str, default: bool, help: &'static str) -> Key {
    key(path, Kind::Flag, Default::Flag(default), help)
}

const fn whole(path: &'static str, range: (u64, u64), default: u64, help: &'static str) -> Key {
    key(path, Kind::Whole(range.0, range.1), Default::Whole(default), help)
}

const fn number(path: &'static str, range: (f64, f64), default: f64, help: &'static str) -> Key {
    key(path, Kind::Number(range.0, range.1), Default::Number(default), help)
}

const fn text(path: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Key {
    key(path, kind, Default::Text(default), help)
}

const NO_EFFECT: &str = "Accepted; has no effect.";
const N_GRAMS: &str = "Accepted; answers are exact for pieces of text of any length.";

/// All keys.
pub(super) static KEYS: &[Key] = &[
    text("mysql.host", Kind::Text, "127.0.0.1", "The server to follow."),
    whole("mysql.port", (1, 65_535), 3306, "Its port."),
    key("mysql.user", Kind::Name, Default::Absent, "The account there."),
    text("mysql.password", Kind::Text, "", "Its password."),
    key("mysql.database", Kind::Name, Default::Absent, "The database of tables that name none."),
    key("mysql.use_gtid", Kind::True, Default::Flag(true), "Positions are GTIDs."),
    text("mysql.binlog_format", Kind::Choice(&["ROW"]), "ROW", "What the server must have."),
    text("mysql.binlog_row_image", Kind::Choice(&["FULL"]), "FULL", "What the server must have."),
    whole("mysql.connect_timeout_ms", (100, 60_000), 3000, "Milliseconds to connect."),
    whole("mysql.read_timeout_ms", (1000, DAY_MS), 3_600_000, NO_EFFECT),
    whole("mysql.write_timeout_ms", (1000, DAY_MS), 3_600_000, NO_EFFECT),
    whole("mysql.session_timeout_sec", (60, DAY_S), 3600, NO_EFFECT),
    flag("mysql.ssl_enable", false, "Whether connections to the server use TLS."),
    text("mysql.ssl_ca", Kind::Path, "", "File of the authorities that may sign its certificate."),
    text("mysql.ssl_cert", Kind::Path, "", "File of this client's certificate."),
    text("mysql.ssl_key", Kind::Path, "", "File of its key."),
    flag("mysql.ssl_verify_server_cert", true, "Whether the server's certificate is verified."),
    key(
        "mysql.ignored_ddl_prefixes",
        Kind::Statements,
        Default::EmptyList,
        "Statements that begin so change nothing here.",
    ),
    text("mysql.datetime_timezone", Kind::ZoneOffset, "+00:00", "Time zone of DATETIME values."),
    key("tables[].name", Kind::Name, Default::Required, "Its name."),
    key("tables[].database", Kind::Name, Default::Absent, "Its database, if not mysql.database."),
    text("tables[].primary_key", Kind::Name, "id", "Column of its key."),
    key("tables[].text_source.column", Kind::Name, Default::Absent, "Column that is searched."),
    key(
        "tables[].text_source.concat",
        Kind::Names(2),
        Default::Absent,
        "Columns that are searched as one text.",
    ),
    text("tables[].text_source.delimiter", Kind::Text, " ", "What stands between them."),
    key("tables[].required_filters[].name", Kind::Name, Default::Required, "Column."),
    key(
        "tables[].required_filters[].type",
        Kind::Choice(FILTER_TYPES),
        Default::Required,
        "Its type in MySQL.",
    ),
    key(
        "tables[].required_filters[].op",
        Kind::Choice(&["=", "!=", "<", ">", "<=", ">=", "IS NULL", "IS NOT NULL"]),
        Default::Required,
        "How it is compared.",
    ),
    key("tables[].required_filters[].value", Kind::Scalar, Default::Absent, "With what."),
    flag("tables[].required_filters[].bitmap_index", false, NO_EFFECT),
    key("tables[].filters[].name", Kind::Name, Default::Required, "Column."),
    key(
        "tables[].filters[].type",
        Kind::Choice(FILTER_TYPES),
        Default::Required,
        "Its type in MySQL.",
    ),
    flag("tables[].filters[].dict_compress", false, NO_EFFECT),
    flag("tables[].filters[].bitmap_index", false, NO_EFFECT),
    key(
        "tables[].filters[].bucket",
        Kind::Choice(&["minute", "hour", "day"]),
        Default::Absent,
        NO_EFFECT,
    ),
    key("tables[].ngram_size", Kind::Whole(1, 10), Default::Absent, N_GRAMS),
    key("tables[].kanji_ngram_size", Kind::Whole(0, 10), Default::Absent, N_GRAMS),
    flag("tables[].cross_boundary_ngrams", true, N_GRAMS),
    whole("tables[].posting.block_size", (8, 1024), 128, NO_EFFECT),
    key("tables[].posting.freq_bits", Kind::WholeOf(&[0, 4, 8]), Default::Whole(0), NO_EFFECT),
    text(
        "tables[].posting.use_roaring",
        Kind::Choice(&["auto", "always", "never"]),
        "auto",
        NO_EFFECT,
    ),
    flag("tables[].synonyms.enable", false, "Whether the synonyms are used."),
    key(
        "tables[].synonyms.file",
        Kind::File,
        Default::Absent,
        "A group on each line, TAB between.",
    ),
    key("index.ngram_size", Kind::Whole(1, 10), Default::Absent, N_GRAMS),
    text("build.mode", Kind::Choice(&["select_snapshot"]), "select_snapshot", NO_EFFECT),
    whole("build.batch_size", (100, 100_000), 5000, NO_EFFECT),
    whole("build.parallelism", (1, 64), 2, NO_EFFECT),
    whole("build.throttle_ms", (0, 10_000), 0, NO_EFFECT),
    flag("replication.enable", true, "Whether the server is followed."),
    flag("replication.auto_initial_snapshot", false, "Accepted; the first copy begins by itself."),
    key(
        "replication.server_id",
        Kind::Whole(1, 4_294_967_295),
        Default::Absent,
        "A number that no other replica of the server has.",
    ),
    text("replication.start_from", Kind::StartFrom, "snapshot", "Accepted; a copy comes first."),
    whole("replication.queue_size", (100, 1_000_000), 10_000, NO_EFFECT),
    whole("replication.reconnect_backoff_min_ms", (100, 60_000), 500, NO_EFFECT),
    whole("replication.reconnect_backoff_max_ms", (1000, 600_000), 10_000, NO_EFFECT),
    whole("memory.hard_limit_mb", (256, MOST), 8192, NO_EFFECT),
    whole("memory.soft_target_mb", (128, MOST), 4096, NO_EFFECT),
    whole("memory.arena_chunk_mb", (1, 1024), 64, NO_EFFECT),
    number("memory.roaring_threshold", (0.0, 1.0), 0.18, NO_EFFECT),
    flag("memory.minute_epoch", true, NO_EFFECT),
    flag("memory.normalize.nfkc", true, "Whether texts are normalised by NFKC."),
    text(
        "memory.normalize.width",
        Kind::Choice(&["keep", "narrow", "wide"]),
        "narrow",
        "The width of characters that have two.",
    ),
    flag("memory.normalize.lower", false, "Whether letters are found in either case."),
    text(
        "memory.verify_text",
        Kind::Choice(&["off", "ascii", "all"]),
        "off",
        "Accepted; answers are exact always.",
    ),
    text("dump.dir", Kind::Path, "/var/lib/mygramdb/dumps", "Directory of dumps."),
    text("dump.default_filename", Kind::FileName, "mygramdb.dmp", "File of DUMP SAVE."),
    flag("dump.load_on_startup", false, "Whether an empty server loads the newest dump."),
    whole("dump.interval_sec", (0, DAY_S), 0, "Seconds between automatic dumps; 0 is none."),
    whole("dump.retain", (1, 100), 3, "Automatic dumps kept."),
    whole("dump.restore_memory_budget_mb", (1, 1_048_576), 4096, NO_EFFECT),
    whole("dump.restore_max_section_mb", (1, 1_048_576), 2048, NO_EFFECT),
    text("api.tcp.bind", Kind::Host, "127.0.0.1", "Address of the line protocol."),
    whole("api.tcp.port", (1, 65_535), 11_016, "Its port."),
    whole("api.tcp.max_connections", (1, 1_000_000), 10_000, "Most connections at a time."),
    whole(
        "api.tcp.worker_threads",
        (0, 16_384),
        0,
        "Threads that answer, 1,024 at most; 0 is one per processor.",
    ),
    whole(
        "api.tcp.recv_timeout_sec",
        (0, DAY_S),
        60,
        "Seconds to wait for the rest of a request; 0 is for ever.",
    ),
    whole(
        "api.tcp.idle_timeout_sec",
        (0, DAY_S),
        300,
        "Seconds that a connection may be silent; 0 is for ever.",
    ),
    whole("api.tcp.reaper_interval_sec", (1, 3600), 5, NO_EFFECT),
    whole("api.tcp.thread_pool_queue_size", (0, 1_000_000), 1000, NO_EFFECT),
    flag("api.tcp.keepalive.enabled", true, NO_EFFECT),
    whole("api.tcp.keepalive.idle_sec", (1, DAY_S), 60, NO_EFFECT),
    whole("api.tcp.keepalive.interval_sec", (1, 3600), 20, NO_EFFECT),
    whole("api.tcp.keepalive.probe_count", (1, 32), 3, NO_EFFECT),
    whole("api.tcp.max_write_queue_bytes", (4096, GIB), 16 << 20, "Bytes of one reply."),
    whole(
        "api.tcp.max_total_buffered_bytes",
        (1 << 20, 64 * GIB),
        256 << 20,
        "Bytes of all connections' buffers together.",
    ),
    whole(
        "api.tcp.max_pending_frames",
        (4, 1_000_000),
        1024,
        "Requests that wait on a connection.",
    ),
    whole("api.tcp.max_pending_frame_bytes", (4096, GIB), 4 << 20, "Their bytes."),
    text(
        "api.unix_socket.path",
        Kind::Path,
        "",
        "Unix socket of the line protocol, instead of TCP; empty is none.",
    ),
    flag("api.http.enable", false, "Whether HTTP is answered."),
    text("api.http.bind", Kind::Host, "127.0.0.1", "Its address."),
    whole("api.http.port", (1, 65_535), 8080, "Its port."),
    whole("api.http.max_connections", (1, 1_000_000), 10_000, "Most connections at a time."),
    key(
        "api.http.trusted_proxies",
        Kind::Addresses,
        Default::EmptyList,
        "Proxies whose X-Forwarded-For is believed.",
    ),
    flag("api.http.enable_cors", false, "Whether web pages of another origin may ask."),
    text("api.http.cors_allow_origin", Kind::Text, "", "Their origin."),
    whole("api.http.read_timeout_sec", (1, 3600), 5, "Seconds to wait for the rest of a request."),
    whole("api.http.write_timeout_sec", (1, 3600), 5, "Seconds to wait for a client that reads."),
    whole(
        "api.http.max_body_bytes",
        (0, GIB),
        16 << 20,
        "Bytes of a request's body; 0 is the most, 1 GiB.",
    ),
    whole("api.default_limit", (5, 1000), 100, "LIMIT where a request has none."),
    whole("api.max_query_length", (0, 4096), 128, "Bytes of a query; 0 is no limit."),
    text("api.admin_token", Kind::Text, "", "Token that administrative commands need."),
    flag("api.rate_limiting.enable", false, "Whether requests of an address are limited."),
    whole("api.rate_limiting.capacity", (1, 10_000), 100, "Requests that may come at once."),
    whole("api.rate_limiting.refill_rate", (1, 1000), 10, "Requests each second."),
    whole("api.rate_limiting.max_clients", (10, 100_000), 10_000, "Addresses remembered."),
    key("server.host", Kind::Host, Default::Absent, "Old name of api.tcp.bind."),
    key("server.port", Kind::Whole(1, 65_535), Default::Absent, "Old name of api.tcp.port."),
    key(
        "network.allow_cidrs",
        Kind::Networks,
        Default::EmptyList,
        "Networks that may connect; none of them is nobody.",
    ),
    text(
        "logging.level",
        Kind::Choice(&["debug", "info", "warn", "error"]),
        "info",
        "How much is logged.",
    ),
    text("logging.format", Kind::Choice(&["json", "text"]), "json", "How it is written."),
    text("logging.file", Kind::Path, "", "The file; empty is standard error."),
    flag("cache.enabled", true, "Whether replies are kept to be given again."),
    whole("cache.max_memory_mb", (1, 1_048_576), 32, "Megabytes of kept replies."),
    number(
        "cache.min_query_cost_ms",
        (0.0, f64::INFINITY),
        10.0,
        "Milliseconds a query must have taken for its reply to be kept.",
    ),
    whole("cache.ttl_seconds", (0, MOST), 3600, "Seconds a reply is kept; 0 is for ever."),
    text("cache.invalidation_strategy", Kind::Choice(&["ngram", "table"]), "ngram", NO_EFFECT),
    flag("cache.compression_enabled", true, NO_EFFECT),
    whole("cache.eviction_batch_size", (1, MOST), 10, NO_EFFECT),
    whole("cache.invalidation.batch_size", (1, MOST), 1000, NO_EFFECT),
    whole("cache.invalidation.max_delay_ms", (0, MOST), 100, NO_EFFECT),
    whole("cache.invalidation.max_queue_size", (1, MOST), 100_000, NO_EFFECT),
    flag("bm25.enable", false, "Whether SORT _score is answered."),
    number("bm25.k1", (0.0, f64::INFINITY), 1.2, "Term saturation."),
    number("bm25.b", (0.0, 1.0), 0.75, "Length normalisation."),
];

/// The descriptions of sections.
pub(super) const SECTIONS: [(&str, &str); 13] = [
    ("api", "How clients connect."),
    ("bm25", "Order by relevance."),
    ("build", "The first copy."),
    ("cache", "Replies that are kept to be given again."),
    ("dump", "Dumps."),
    ("index", "Old place of ngram_size."),
    ("logging", "The log."),
    ("memory", "Memory and the normalisation of texts."),
    ("mysql", "The server that is followed."),
    ("network", "Who may connect."),
    ("replication", "How it is followed."),
    ("server", "Old place of api.tcp."),
    ("tables", "The tables."),
];

/// The key of a path; `tables[3].name` is `tables[].name`.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The distinct names directly below a section's path; a list's name without its brackets.
pub(super) fn below(section: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let rest = match section {
            "" => Some(key.path),
            section => key.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')),
        };
        let name = rest.and_then(|rest| rest.split(['.', '[']).next());
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    names
}

/// Whether there are keys below a path.
pub(super) fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}
