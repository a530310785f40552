//! The golden scripts of whole servers: `tests/scripts/server/<behaviour>`.
//!
//! Settings of a script: `mygramdb` starts the server with a MygramDB file, any other is a line of
//! a remora.toml. What differs from run to run is shown as `*`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use crate::support::TestServer;

/// Keys of reports whose values differ from run to run.
const VOLATILE: [&str; 41] = [
    "uptime_seconds",
    "used_memory_bytes",
    "used_memory_human",
    "used_memory_peak_bytes",
    "used_memory_peak_human",
    "used_memory_index",
    "used_memory_documents",
    "memory_fragmentation_ratio",
    "total_system_memory",
    "available_system_memory",
    "system_memory_usage_ratio",
    "process_rss",
    "process_rss_peak",
    "memory_health",
    "query_time",
    "index_time",
    "filter_time",
    "timestamp",
    "file_size",
    "elapsed_seconds",
    "cache_cost_ms",
    "# query_time_ms",
    "optimization_status",
    "total_time_saved_ms",
    "avg_cache_hit_time_ms",
    "avg_cache_miss_time_ms",
    "accounted_memory_bytes",
    "cache_avg_hit_latency_ms",
    "cache_avg_miss_latency_ms",
    "cache_total_time_saved_ms",
    "cache_memory_bytes",
    "cache_memory_human",
    "cache_accounted_memory_bytes",
    "cache_accounted_memory_human",
    "remora_version",
    "current_memory_bytes",
    "total_terms",
    "total_postings",
    "avg_postings_per_term",
    "delta_encoded_lists",
    "roaring_bitmap_lists",
];

const MYGRAMDB: &str = "
mysql: {database: shop, user: reader, password: hidden}
tables:
  - name: items
    text_source: {column: body}
    filters:
      - {name: kind, type: string}
      - {name: year, type: int}
replication: {server_id: 7}
network: {allow_cidrs: [127.0.0.0/8]}
";

const ITEMS: [(i64, &str, &str, i64); 4] = [
    (1, "The highest mountain", "mountain", 1953),
    (2, "the capital of Japan 日本", "city", 1868),
    (3, "日本で最も高い山", "mountain", 1707),
    (4, "A city on the Rhine", "city", 1880),
];

#[test]
fn servers_answer_as_recorded() {
    for script in crate::scripts::scripts("server") {
        let server = start(&script.settings);
        let mut client = server.connect();
        let folder = server.directory.path().display().to_string();
        script.run(|request| {
            client.send(request);
            client.send(b"\r\n");
            stable(&client.reply(), &folder)
        });
    }
}

fn start(settings: &[String]) -> TestServer {
    if settings.iter().any(|setting| setting == "mygramdb") {
        return start_mygramdb();
    }
    TestServer::start(&settings.join("\n"))
}

fn start_mygramdb() -> TestServer {
    use remora_engine::{Change, ChangeBatch, TableChanges, Value};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mygram.yaml");
    std::fs::write(&path, MYGRAMDB).unwrap();
    let server = TestServer::start_with(&path, directory);
    let text = |text: &str| Value::Text(text.into());
    let row = |(id, body, kind, year): (i64, &str, &str, i64)| {
        Change::Put(vec![Value::Int(id), text(kind), Value::Int(year), text(body)])
    };
    let changes = ITEMS.into_iter().map(row).collect();
    let tables = vec![TableChanges { table: "shop.items".into(), changes }];
    server.database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
    server
}

/// The reply without its last CRLF, with `*` for what differs from run to run.
fn stable(reply: &[u8], folder: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(reply).replace(folder, "DIR");
    let body = text.strip_suffix("\r\n").unwrap_or(&text);
    let lines = body.split("\r\n").map(|line| match line.split_once(": ") {
        Some((key, _)) if VOLATILE.contains(&key) => format!("{key}: *"),
        None if line.starts_with("OK OPTIMIZED ") => {
            format!("{} *", line.split(" terms=").next().unwrap_or(line))
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\r\n").into_bytes()
}
