//! Validates files like MygramDB: every key at and beyond its bounds, every key with a wrong type, and rules over
//! several keys. The facts are from MygramDB 1.10's published schema.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Result, settings::Settings};

/// A valid file with every section.
fn right() -> Value {
    json!({
        "mysql": {"user": "reader", "database": "shop"},
        "tables": [{
            "name": "items",
            "text_source": {"column": "body"},
            "filters": [{"name": "kind", "type": "string"}],
            "required_filters": [{"name": "enabled", "type": "tinyint", "op": "=", "value": 1}],
        }],
        "replication": {"server_id": 7},
        "network": {"allow_cidrs": ["127.0.0.0/8"]},
    })
}

fn validated(file: &Value) -> Result<Settings> {
    Settings::parse(Path::new("/etc/mygram.json"), &file.to_string())?.finish()
}

/// The file with a value at a path; `tables.` means the first table, `filters.` and `required_filters.` its first.
fn with(path: &str, value: Value) -> Value {
    let mut file = right();
    let mut place = &mut file;
    for key in path.split('.') {
        if place.is_array() {
            place = place.get_mut(0).unwrap();
        }
        let map = place.as_object_mut().unwrap();
        place = map.entry(key).or_insert_with(|| json!({}));
    }
    *place = value;
    file
}

fn taken(path: &str, value: impl Into<Value>) {
    let value = value.into();
    if let Err(error) = validated(&with(path, value.clone())) {
        panic!("{path}: {value} is refused: {error}");
    }
}

fn refused(path: &str, value: impl Into<Value>) -> String {
    let value = value.into();
    match validated(&with(path, value.clone())) {
        Ok(_) => panic!("{path}: {value} is taken"),
        Err(error) => error.to_string(),
    }
}

/// Integers with their minimum and maximum.
const RANGES: &[(&str, u64, Option<u64>)] = &[
    ("mysql.port", 1, Some(65_535)),
    ("mysql.connect_timeout_ms", 100, Some(60_000)),
    ("mysql.read_timeout_ms", 1000, Some(86_400_000)),
    ("mysql.write_timeout_ms", 1000, Some(86_400_000)),
    ("mysql.session_timeout_sec", 60, Some(86_400)),
    ("tables.ngram_size", 1, Some(10)),
    ("tables.kanji_ngram_size", 0, Some(10)),
    ("tables.posting.block_size", 8, Some(1024)),
    ("index.ngram_size", 1, Some(10)),
    ("build.batch_size", 100, Some(100_000)),
    ("build.parallelism", 1, Some(64)),
    ("build.throttle_ms", 0, Some(10_000)),
    ("replication.server_id", 1, Some(4_294_967_295)),
    ("replication.queue_size", 100, Some(1_000_000)),
    ("replication.reconnect_backoff_min_ms", 100, Some(60_000)),
    ("replication.reconnect_backoff_max_ms", 1000, Some(600_000)),
    ("memory.hard_limit_mb", 256, None),
    ("memory.soft_target_mb", 128, None),
    ("memory.arena_chunk_mb", 1, Some(1024)),
    ("dump.interval_sec", 0, Some(86_400)),
    ("dump.retain", 1, Some(100)),
    ("dump.restore_memory_budget_mb", 1, Some(1_048_576)),
    ("dump.restore_max_section_mb", 1, Some(1_048_576)),
    ("api.tcp.port", 1, Some(65_535)),
    ("api.tcp.max_connections", 1, Some(1_000_000)),
    ("api.tcp.worker_threads", 0, Some(16_384)),
    ("api.tcp.recv_timeout_sec", 0, Some(86_400)),
    ("api.tcp.idle_timeout_sec", 0, Some(86_400)),
    ("api.tcp.reaper_interval_sec", 1, Some(3600)),
    ("api.tcp.thread_pool_queue_size", 0, Some(1_000_000)),
    ("api.tcp.keepalive.idle_sec", 1, Some(86_400)),
    ("api.tcp.keepalive.interval_sec", 1, Some(3600)),
    ("api.tcp.keepalive.probe_count", 1, Some(32)),
    ("api.tcp.max_write_queue_bytes", 4096, Some(1_073_741_824)),
    ("api.tcp.max_total_buffered_bytes", 1_048_576, Some(68_719_476_736)),
    ("api.tcp.max_pending_frames", 4, Some(1_000_000)),
    ("api.tcp.max_pending_frame_bytes", 4096, Some(1_073_741_824)),
    ("api.http.port", 1, Some(65_535)),
    ("api.http.max_connections", 1, Some(1_000_000)),
    ("api.http.read_timeout_sec", 1, Some(3600)),
    ("api.http.write_timeout_sec", 1, Some(3600)),
    ("api.http.max_body_bytes", 0, Some(1_073_741_824)),
    ("api.default_limit", 5, Some(1000)),
    ("api.max_query_length", 0, Some(4096)),
    ("api.rate_limiting.capacity", 1, Some(10_000)),
    ("api.rate_limiting.refill_rate", 1, Some(1000)),
    ("api.rate_limiting.max_clients", 10, Some(100_000)),
    ("server.port", 1, Some(65_535)),
    ("cache.ttl_seconds", 0, None),
    ("cache.eviction_batch_size", 1, None),
    ("cache.invalidation.batch_size", 1, None),
    ("cache.invalidation.max_delay_ms", 0, None),
    ("cache.invalidation.max_queue_size", 1, None),
];

#[test]
fn whole_numbers_have_bounds() {
    for &(path, least, most) in RANGES {
        taken(path, least);
        match most {
            Some(most) => {
                taken(path, most);
                let error = refused(path, most + 1);
                let range = format!("between {least} and {most}");
                assert!(error.contains(&range) && error.contains("line 1"), "{error}");
                let key = path.rsplit('.').next().unwrap();
                assert!(error.contains(key), "{path}: {error}");
            }
            None => taken(path, 9_000_000_000_u64),
        }
        match least.checked_sub(1) {
            Some(below) => refused(path, below),
            None => refused(path, -1),
        };
        for wrong in [json!("5"), json!(null), json!(true), json!([5]), json!({"a": 5}), json!(5.5)]
        {
            refused(path, wrong);
        }
    }
    // The maximum is half of the machine's memory.
    taken("cache.max_memory_mb", 1);
    refused("cache.max_memory_mb", 0);
    refused("cache.max_memory_mb", 1_048_577);
    assert!(refused("cache.max_memory_mb", 1_048_576).contains("memory"));
}

#[test]
fn numbers_and_flags_are_of_their_type() {
    for (path, least, most) in [
        ("memory.roaring_threshold", 0.0, Some(1.0)),
        ("bm25.b", 0.0, Some(1.0)),
        ("bm25.k1", 0.0, None),
        ("cache.min_query_cost_ms", 0.0, None),
    ] {
        taken(path, least);
        taken(path, most.unwrap_or(1e6));
        refused(path, least - 0.1);
        refused(path, "0.5");
        if let Some(most) = most {
            refused(path, most + 0.1);
        }
    }
    for path in [
        "mysql.ssl_enable",
        "mysql.ssl_verify_server_cert",
        "tables.cross_boundary_ngrams",
        "tables.filters.dict_compress",
        "tables.filters.bitmap_index",
        "tables.required_filters.bitmap_index",
        "replication.enable",
        "replication.auto_initial_snapshot",
        "memory.minute_epoch",
        "memory.normalize.nfkc",
        "memory.normalize.lower",
        "dump.load_on_startup",
        "api.tcp.keepalive.enabled",
        "api.http.enable",
        "api.http.enable_cors",
        "api.rate_limiting.enable",
        "cache.enabled",
        "cache.compression_enabled",
        "bm25.enable",
    ] {
        taken(path, false);
        if path != "mysql.ssl_enable" {
            taken(path, true);
        }
        for wrong in [json!("true"), json!(1), json!(null), json!([])] {
            refused(path, wrong);
        }
    }
    taken("mysql.use_gtid", true);
    assert!(refused("mysql.use_gtid", false).contains("always true"));
}

#[test]
fn words_are_those_that_are_known() {
    let types = [
        "tinyint",
        "tinyint_unsigned",
        "smallint",
        "smallint_unsigned",
        "mediumint",
        "mediumint_unsigned",
        "int",
        "int_unsigned",
        "bigint",
        "bigint_unsigned",
        "float",
        "double",
        "string",
        "varchar",
        "text",
        "datetime",
        "date",
        "timestamp",
        "time",
        "boolean",
    ];
    let choices: &[(&str, &[&str])] = &[
        ("mysql.binlog_format", &["ROW"]),
        ("mysql.binlog_row_image", &["FULL"]),
        ("tables.filters.type", &types),
        ("tables.filters.bucket", &["minute", "hour", "day"]),
        ("tables.required_filters.op", &["=", "!=", "<", ">", "<=", ">="]),
        ("tables.posting.use_roaring", &["auto", "always", "never"]),
        ("build.mode", &["select_snapshot"]),
        ("replication.start_from", &["snapshot", "latest", "gtid=u:1"]),
        ("memory.normalize.width", &["keep", "narrow", "wide"]),
        ("memory.verify_text", &["off", "ascii", "all"]),
        ("logging.level", &["debug", "info", "warn", "error"]),
        ("logging.format", &["json", "text"]),
        ("cache.invalidation_strategy", &["ngram", "table"]),
    ];
    for (path, known) in choices {
        known.iter().for_each(|word| taken(path, *word));
        for wrong in
            [json!("bogus"), json!(""), json!(1), json!(null), json!(known[0].to_owned() + " ")]
        {
            refused(path, wrong);
        }
    }
    for bits in [0, 4, 8] {
        taken("tables.posting.freq_bits", bits);
    }
    assert!(refused("tables.posting.freq_bits", 2).contains("0, 4, 8"));
}

#[test]
fn texts_have_a_form() {
    for path in
        ["mysql.user", "mysql.database", "tables.name", "tables.database", "tables.primary_key"]
    {
        taken(path, "kind_of");
        refused(path, "");
        refused(path, "a\0b");
        refused(path, 5);
    }
    for path in ["mysql.host", "mysql.password", "api.admin_token", "tables.text_source.delimiter"]
    {
        taken(path, "");
        taken(path, "any text");
        assert!(refused(path, 12_345).contains("in quotes"));
    }
    for zone in ["+00:00", "-23:59", "+09:30"] {
        taken("mysql.datetime_timezone", zone);
    }
    for zone in ["Asia/Tokyo", "+9:00", "+24:00", "09:00", "+09:60", "+0900", ""] {
        refused("mysql.datetime_timezone", zone);
    }
    for path in ["dump.dir", "logging.file", "mysql.ssl_ca", "mysql.ssl_cert", "mysql.ssl_key"] {
        taken(path, "/var/lib/x");
        for wrong in ["..", "/a/../b", "../a", "a\0"] {
            refused(path, wrong);
        }
    }
    taken("dump.default_filename", "a..b.dmp");
    for wrong in ["", "a/b", "a\\b", ".."] {
        refused("dump.default_filename", wrong);
    }
    for path in ["api.tcp.bind", "api.http.bind", "server.host"] {
        ["127.0.0.1", "::1", "localhost"].iter().for_each(|host| taken(path, *host));
        for wrong in ["", "a b", "a/b", "..", "256.0.0.1", "-a", "a..b"] {
            refused(path, wrong);
        }
    }
    let both = |list: &str, right: Value, wrong: Value| {
        taken(list, json!([]));
        taken(list, json!([right]));
        refused(list, json!([wrong]));
        refused(list, json!([5]));
        refused(list, right);
    };
    both("network.allow_cidrs", json!("10.0.0.0/8"), json!("10.0.0.0/33"));
    both("api.http.trusted_proxies", json!("::1"), json!("proxy.example"));
    both("mysql.ignored_ddl_prefixes", json!("alter table x"), json!("INSERT"));
    refused("mysql.ignored_ddl_prefixes", json!(["ALTER; DROP"]));
    refused("mysql.ignored_ddl_prefixes", json!([" "]));
    refused("replication.start_from", "gtid=1");
}

#[test]
fn sections_are_known_and_whole() {
    for path in [
        "nonsense",
        "mysql.hosts",
        "tables.where_clause",
        "tables.text_source.columns",
        "tables.filters.operator",
        "tables.required_filters.operator",
        "tables.posting.x",
        "tables.synonyms.x",
        "index.x",
        "build.x",
        "replication.x",
        "memory.x",
        "memory.normalize.x",
        "dump.x",
        "api.x",
        "api.tcp.x",
        "api.tcp.keepalive.x",
        "api.http.x",
        "api.unix_socket.x",
        "api.rate_limiting.x",
        "server.x",
        "network.x",
        "logging.json",
        "cache.x",
        "cache.invalidation.x",
        "bm25.x",
    ] {
        assert!(refused(path, 1).contains("unknown key"), "{path}");
    }
    let error = refused("api.default_limits", 7);
    assert!(error.contains("did you mean 'default_limit'?") && error.contains("in api"), "{error}");
    for path in
        ["mysql", "tables", "api", "api.tcp", "cache", "tables.text_source", "tables.filters"]
    {
        for wrong in [json!(null), json!(5), json!("x")] {
            refused(path, wrong);
        }
    }
    refused("tables", json!([]));
    refused("tables", json!({}));
    refused("api", json!([]));
}

#[test]
fn missing_keys_are_named() {
    for (path, missing) in [
        ("", "mysql"),
        ("", "tables"),
        ("mysql", "user"),
        ("mysql", "database"),
        ("tables", "name"),
        ("tables", "text_source"),
        ("filters", "name"),
        ("filters", "type"),
        ("required_filters", "name"),
        ("required_filters", "type"),
        ("required_filters", "op"),
        ("required_filters", "value"),
        ("replication", "server_id"),
    ] {
        let mut file = right();
        let place = match path {
            "" => &mut file,
            "tables" => &mut file["tables"][0],
            "filters" | "required_filters" => &mut file["tables"][0][path][0],
            section => &mut file[section],
        };
        assert!(place.as_object_mut().unwrap().remove(missing).is_some(), "{path}.{missing}");
        let error = validated(&file).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(missing), "{path}.{missing}: {error:?}");
    }
}

#[test]
fn keys_are_validated_together() {
    taken("replication", json!({"enable": false}));
    taken("replication", json!({"server_id": 1, "auto_initial_snapshot": true}));
    refused(
        "replication",
        json!({"server_id": 1, "auto_initial_snapshot": true, "start_from": "latest"}),
    );
    refused("mysql.ssl_enable", true);
    let tls = |more: Value| {
        let mut mysql = json!({"user": "u", "database": "d", "ssl_enable": true});
        mysql.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mysql
    };
    taken("mysql", tls(json!({"ssl_ca": "/ca.pem"})));
    taken("mysql", tls(json!({"ssl_verify_server_cert": false})));
    taken("api.http", json!({"enable_cors": true}));
    refused("api.http", json!({"enable": true, "enable_cors": true}));
    taken(
        "api.http",
        json!({"enable": true, "enable_cors": true, "cors_allow_origin": "https://a"}),
    );
    refused("api", json!({"max_query_length": 0, "tcp": {"max_pending_frame_bytes": 4096}}));
    taken("api", json!({"max_query_length": 4096, "tcp": {"max_pending_frame_bytes": 4096}}));
    taken("tables.text_source", json!({"concat": ["a", "b"]}));
    for wrong in [
        json!({}),
        json!({"concat": ["a"]}),
        json!({"concat": ["a", ""]}),
        json!({"column": "a", "concat": ["a", "b"]}),
        json!({"column": ["a"]}),
    ] {
        refused("tables.text_source", wrong);
    }
    refused("tables.synonyms", json!({"enable": true}));
    refused("tables.synonyms", json!({"file": ""}));
    taken("tables.synonyms", json!({"enable": false, "file": "words.tsv"}));
    refused("tables.filters", json!([{"name": "enabled", "type": "int"}]));
    taken("tables.filters", json!([{"name": "enabled", "type": "tinyint"}]));
    let required = |kind: &str, op: &str, value: Value| {
        let mut filter = json!({"name": "x", "type": kind, "op": op});
        if !value.is_null() {
            filter["value"] = value;
        }
        json!([filter])
    };
    let path = "tables.required_filters";
    taken(path, required("int", "IS NULL", Value::Null));
    taken(path, required("boolean", "=", json!(true)));
    taken(path, required("string", "=", json!("")));
    refused(path, required("int", "IS NOT NULL", json!(1)));
    refused(path, required("int", "=", json!("")));
    refused(path, required("boolean", "<", json!(true)));
    refused(path, required("int", "=", json!([1])));
    let table = &right()["tables"][0];
    let error = refused("tables", json!([table, table]));
    assert!(error.contains("'items' is there twice"), "{error}");
}

#[test]
fn old_key_positions_are_accepted() {
    let settings = validated(&with("server", json!({"host": "::1", "port": 4000}))).unwrap();
    assert_eq!(settings.listen.line, "[::1]:4000");
    let mut file = with("server", json!({"host": "::1", "port": 4000}));
    file["api"] = json!({"tcp": {"port": 5000}});
    assert_eq!(validated(&file).unwrap().listen.line, "[::1]:5000");
    let settings = validated(&with("index", json!({"ngram_size": 1}))).unwrap();
    let file = settings.mygramdb.unwrap();
    let shown = file.show(Some("tables")).unwrap();
    assert!(shown.contains("ngram_size: 1") && shown.contains("kanji_ngram_size: 1"), "{shown}");
}

#[test]
fn zero_means_no_limit_like_in_mygramdb() {
    let settings = validated(&with("api.tcp.recv_timeout_sec", json!(0))).unwrap();
    assert_eq!(settings.request_timeout(), settings.idle_timeout());
    let settings = validated(&with("api.http.max_body_bytes", json!(0))).unwrap();
    assert_eq!(settings.http.max_body_bytes, 1 << 30);
}

#[test]
fn unix_socket_replaces_tcp() {
    let mut file = with("api.unix_socket.path", json!("/run/mygram.sock"));
    file["api"]["tcp"] = json!({"bind": "0.0.0.0"});
    let listen = validated(&file).unwrap().listen;
    assert_eq!((listen.line.as_str(), listen.line_socket.is_some()), ("", true));
    assert!(refused("api.tcp.bind", "0.0.0.0").contains("api.admin_token"));
}

#[test]
fn a_file_is_shown_as_yaml_with_its_defaults() {
    let mut settings = validated(&with("mysql.password", json!("hidden"))).unwrap();
    let file = settings.mygramdb.as_ref().unwrap();
    let all = file.show(None).unwrap();
    let sections: Vec<&str> = all.lines().filter(|line| !line.starts_with(' ')).collect();
    let expected = [
        "api:",
        "bm25:",
        "build:",
        "cache:",
        "dump:",
        "logging:",
        "memory:",
        "mysql:",
        "network:",
        "replication:",
        "tables:",
    ];
    assert_eq!(sections, expected);
    assert!(all.contains("  password: \"***\"\n") && !all.contains("hidden"), "{all}");
    assert!(all.contains("  allow_cidrs:\n    - \"127.0.0.0/8\"\n"), "{all}");
    // The output is a valid file again.
    let again = Settings::parse(Path::new("/etc/again.yaml"), &all).unwrap();
    assert_eq!(again.mygramdb.unwrap().show(Some("api")), file.show(Some("api")));
    assert_eq!(file.show(Some("api.default_limit")).as_deref(), Some("100\n"));
    assert_eq!(file.show(Some("tables.name")).as_deref(), Some("\"items\"\n"));
    assert_eq!(file.show(Some("no.such.path")), None);
    let limit = crate::settings::find_variable("api.default_limit").unwrap();
    limit.set(&mut settings, "7").unwrap();
    assert!(limit.set(&mut settings, "2").unwrap_err().contains("between 5 and 1000"));
    let file = settings.mygramdb.unwrap();
    assert_eq!(file.show(Some("api.default_limit")).as_deref(), Some("7\n"));
    let variables = file.variables();
    assert!(variables.contains(&("api.default_limit".to_owned(), "7".to_owned())));
    assert!(variables.contains(&("tables[0].name".to_owned(), "items".to_owned())));
}

#[test]
fn every_key_has_its_help() {
    use super::{help, key_table::KEYS};
    for key in KEYS {
        let path = key.path.replace("[]", "");
        let text = help(Some(&path)).unwrap();
        assert!(text.contains("Type: ") && text.contains("Description: "), "{text}");
    }
    let text = help(Some("api.default_limit")).unwrap();
    assert!(text.contains("Type: integer\nDefault: 100\nRange: 5 - 1000\n"), "{text}");
    assert!(help(None).unwrap().contains("  mysql        - "));
    assert!(help(Some("api.tcp")).unwrap().contains("max_connections"));
    assert_eq!(help(Some("no.such.path")), None);
}
