//! A server that replicates from a real source: copies, stops, states and dumps as clients see them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::support::{Client, TestServer};
use mysql::{Conn, prelude::Queryable};
use remora_peers::{FOLLOWER_PASSWORD, FOLLOWER_USER, HOST, Kind, Server as Peer};
use remora_server::settings::Settings;

const PATIENCE: Duration = Duration::from_secs(60);

/// A source with `shop.goods`.
fn source(kind: Kind) -> (Peer, Conn) {
    let source = Peer::start(kind, &[]).unwrap();
    let mut conn = source.connect().unwrap();
    for statement in [
        "CREATE DATABASE shop CHARACTER SET utf8mb4",
        "CREATE TABLE shop.goods (id VARCHAR(36) PRIMARY KEY, kind INT, body TEXT)",
        "INSERT INTO shop.goods VALUES ('a', 1, 'first words'), ('b', 2, 'other words')",
    ] {
        conn.query_drop(statement).unwrap();
    }
    (source, conn)
}

/// Repeats a request until it has the expected answer.
fn until(client: &mut Client, request: &str, done: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    loop {
        let reply = client.ask(request);
        if done(&reply) {
            return reply;
        }
        assert!(start.elapsed() < PATIENCE, "{request}: {reply}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn until_count(client: &mut Client, count: u64) {
    let wanted = format!("OK COUNT {count}\r\n");
    until(client, "COUNT shop.goods words", |reply| reply == wanted);
}

/// The number of the last copy.
fn copies(client: &mut Client) -> u64 {
    let status = client.ask("SYNC STATUS");
    let number = status.split_once(" copies=").map(|(_, behind)| behind);
    number.map_or(0, |text| text.split_whitespace().next().unwrap().parse().unwrap())
}

/// Copies the table and waits until that copy, not an older one, is done.
fn sync(client: &mut Client) {
    let before = copies(client);
    assert_eq!(client.ask("SYNC goods"), "OK SYNC STARTED table=shop.goods\r\n");
    let start = Instant::now();
    while copies(client) <= before {
        assert!(start.elapsed() < PATIENCE, "{}", client.ask("REPLICATION STATUS"));
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = client.ask("SYNC STATUS");
    assert!(status.contains("table=shop.goods status=COMPLETED "), "{status}");
    assert!(status.contains(" finished=1"), "{status}");
}

/// The status and the body of an HTTP response.
fn get(server: &TestServer, path: &str) -> String {
    let mut client = Client::connect(server.server().http_address().unwrap());
    client.send(
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
    );
    client.rest()
}

#[test]
fn a_copy_is_made_while_following_is_stopped_too() {
    let (source, mut conn) = source(Kind::MariaDb1011);
    let server = TestServer::following(&source.follower_url("shop"));
    let mut client = server.connect();
    until_count(&mut client, 2);
    // Rows of a copy are there a moment before it is counted.
    let start = Instant::now();
    while copies(&mut client) == 0 {
        assert!(start.elapsed() < PATIENCE, "{}", client.ask("REPLICATION STATUS"));
        std::thread::sleep(Duration::from_millis(10));
    }
    let first = copies(&mut client);
    sync(&mut client);
    assert_eq!(copies(&mut client), first + 1);
    // In one write, as clients may send it: STOP has stopped when START is read.
    for _ in 0..20 {
        client.send(b"REPLICATION STOP\r\nREPLICATION START\r\n");
        let replies = client.read("OK REPLICATION_STOPPED\r\nOK REPLICATION_STARTED\r\n".len());
        let replies = String::from_utf8(replies).unwrap();
        assert_eq!(replies, "OK REPLICATION_STOPPED\r\nOK REPLICATION_STARTED\r\n");
    }
    until(&mut client, "REPLICATION STATUS", |status| status.contains(" state=running "));
    assert!(get(&server, "/health/ready").starts_with("HTTP/1.1 200"));
    assert_eq!(client.ask("REPLICATION STOP"), "OK REPLICATION_STOPPED\r\n");
    let status = client.ask("REPLICATION STATUS");
    let paused = "table shop.goods: paused: following is stopped\r\n";
    assert!(status.contains("status: stopped\r\n") && status.contains(paused), "{status}");
    assert!(get(&server, "/health/ready").starts_with("HTTP/1.1 503"));
    let live = "remora_source_table_live{source=\"mysql\",table=\"shop.goods\"}";
    assert!(get(&server, "/metrics").contains(&format!("{live} 0")));
    conn.query_drop("INSERT INTO shop.goods VALUES ('c', 3, 'words again')").unwrap();
    assert_eq!(client.ask("COUNT shop.goods words"), "OK COUNT 2\r\n");
    sync(&mut client);
    until_count(&mut client, 3);
    until(&mut client, "REPLICATION STATUS", |status| status.contains("table shop.goods: live"));
    assert!(get(&server, "/health/ready").starts_with("HTTP/1.1 200"));
    assert!(get(&server, "/metrics").contains(&format!("{live} 1")));
    // While the source is away nothing is live either.
    drop(source);
    let status = until(&mut client, "REPLICATION STATUS", |status| {
        status.contains("table shop.goods: paused: the source is not connected")
    });
    assert!(!status.contains("live"), "{status}");
}

/// A table without a key: SEARCH returns values of the hidden key, and GET accepts them.
#[test]
fn rows_without_key_are_fetched_by_search_results() {
    for kind in [Kind::MariaDb1011, Kind::MySql97] {
        let source = Peer::start(kind, &[]).unwrap();
        let mut conn = source.connect().unwrap();
        for statement in [
            "CREATE DATABASE shop CHARACTER SET utf8mb4",
            "CREATE TABLE shop.loose (kind INT, body TEXT)",
            "INSERT INTO shop.loose VALUES (1, 'equal words'), (1, 'equal words'), (2, 'other words')",
        ] {
            conn.query_drop(statement).unwrap();
        }
        let server = TestServer::following(&source.follower_url("shop"));
        let mut client = server.connect();
        let counted = |client: &mut Client, word: &str, count: u32| {
            let wanted = format!("OK COUNT {count}\r\n");
            until(client, &format!("COUNT shop.loose {word}"), |reply| reply == wanted);
        };
        counted(&mut client, "words", 3);
        let found = client.ask("SEARCH shop.loose words");
        let keys: Vec<&str> =
            found.strip_prefix("OK RESULTS 3 ").unwrap().split_whitespace().collect();
        assert_eq!(keys.len(), 3, "{found}");
        let mut rows: Vec<String> = Vec::new();
        for key in &keys {
            let row = client.ask(&format!("GET shop.loose {key} FIELDS kind,body"));
            let head = format!("OK RESULTS 1\r\n_key\tkind\tbody\r\n{key}\t");
            rows.push(row.strip_prefix(&head).unwrap_or(&row).trim_end().to_owned());
        }
        rows.sort();
        assert_eq!(rows, ["1\tequal words", "1\tequal words", "2\tother words"]);
        conn.query_drop("DELETE FROM shop.loose WHERE kind = 1 LIMIT 1").unwrap();
        counted(&mut client, "equal", 1);
        let there = |client: &mut Client, key: &&str| {
            client.ask(&format!("GET shop.loose {key}")).starts_with("OK DOC ")
        };
        assert_eq!(keys.iter().filter(|key| there(&mut client, key)).count(), 2);
        // Whatever the line protocol writes would differ from the source for ever.
        for write in [r#"PUT shop.loose {"kind":1}"#, &format!("DELETE shop.loose {}", keys[0])] {
            let reply = client.ask(write);
            assert!(reply.starts_with("ERROR 7 ") && reply.contains("the source"), "{reply}");
        }
        for wrong in ["1", "zz", "''"] {
            let reply = client.ask(&format!("GET shop.loose {wrong}"));
            assert!(reply.starts_with("ERROR"), "{reply}");
        }
    }
}

/// A server with a MygramDB file that follows the source.
fn with_mygramdb_file(source: &Peer) -> (TestServer, Client) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mygram.yaml");
    let port = source.port();
    let text = format!(
        "mysql:\n  host: {HOST}\n  port: {port}\n  user: {FOLLOWER_USER}\n  password: \
         {FOLLOWER_PASSWORD}\n  database: shop\ntables:\n  - name: goods\n    primary_key: id\n    \
         text_source:\n      column: body\n    filters:\n      - name: kind\n        type: int\n\
         replication:\n  server_id: 4711\nnetwork:\n  allow_cidrs: [\"127.0.0.0/8\"]\n\
         api:\n  http:\n    enable: true\n"
    );
    std::fs::write(&path, text).unwrap();
    let settings = Settings::read(&path).unwrap();
    let server = TestServer::start_beside_source(&path, directory);
    let followed = remora_server::follow(&server.database, &settings.sources).unwrap();
    server.server().follow(followed);
    let client = server.connect();
    (server, client)
}

#[test]
fn a_mygramdb_server_recovers_by_a_copy() {
    let (source, mut conn) = source(Kind::MySql97);
    let (server, mut client) = with_mygramdb_file(&source);
    until_count(&mut client, 2);
    conn.query_drop("ALTER TABLE shop.goods ADD COLUMN more INT").unwrap();
    conn.query_drop("INSERT INTO shop.goods VALUES ('c', 3, 'words again', 4)").unwrap();
    until_count(&mut client, 3);
    conn.query_drop("ALTER TABLE shop.goods MODIFY kind BIGINT").unwrap();
    let failed = until(&mut client, "REPLICATION STATUS", |status| status.contains("failed"));
    assert!(failed.contains("last_error_code: 2012\r\n"), "{failed}");
    assert!(failed.contains("Configured column 'kind' changed after DDL"), "{failed}");
    assert!(failed.contains("schema_incompatible: true\r\n"), "{failed}");
    assert!(get(&server, "/health/ready").starts_with("HTTP/1.1 503"));
    conn.query_drop("INSERT INTO shop.goods VALUES ('d', 4, 'four words', 4)").unwrap();
    sync(&mut client);
    until_count(&mut client, 4);
    let status = client.ask("REPLICATION STATUS");
    for line in
        ["status: running\r\n", "last_error_code: 0\r\n", "last_error: \r\n", "incompatible: false"]
    {
        assert!(status.contains(line), "{line} in {status}");
    }
    assert!(get(&server, "/health/ready").starts_with("HTTP/1.1 200"));
}

/// Correct rows would be replaced by rows of another server, and nothing would correct them.
#[test]
fn a_dump_of_another_server_is_refused() {
    let (first, _conn) = source(Kind::MySql97);
    let (second, mut conn) = source(Kind::MySql97);
    conn.query_drop("INSERT INTO shop.goods VALUES ('c', 3, 'words of the second')").unwrap();
    let theirs = TestServer::following(&first.follower_url("shop"));
    let mut client = theirs.connect();
    until_count(&mut client, 2);
    let save = |client: &mut Client, file: &str| {
        assert!(client.ask(&format!("DUMP SAVE {file}")).starts_with("OK DUMP_STARTED"));
        until(client, "DUMP STATUS", |status| status.contains("status: COMPLETED"));
    };
    save(&mut client, "theirs.dmp");
    let ours = TestServer::following(&second.follower_url("shop"));
    let mut client = ours.connect();
    until_count(&mut client, 3);
    save(&mut client, "ours.dmp");
    let local = TestServer::start("");
    let mut local_client = local.connect();
    save(&mut local_client, "local.dmp");
    let dumps = |server: &TestServer| server.directory.path().join("dumps");
    for (from, file) in [(&theirs, "theirs.dmp"), (&local, "local.dmp")] {
        std::fs::copy(dumps(from).join(file), dumps(&ours).join(file)).unwrap();
    }
    let refused = client.ask("DUMP LOAD theirs.dmp");
    assert!(refused.starts_with("ERROR 2 The dump cannot be loaded: its rows are of"), "{refused}");
    let refused = client.ask("DUMP LOAD local.dmp");
    assert!(refused.contains("it was not saved by a server that follows"), "{refused}");
    until_count(&mut client, 3);
    // A table that was made behind its own dump is made again by the stream.
    conn.query_drop("CREATE TABLE shop.later (id INT PRIMARY KEY, body TEXT)").unwrap();
    conn.query_drop("INSERT INTO shop.later VALUES (1, 'later words')").unwrap();
    conn.query_drop("DELETE FROM shop.goods WHERE id = 'a'").unwrap();
    until(&mut client, "COUNT shop.later words", |reply| reply == "OK COUNT 1\r\n");
    assert!(client.ask("DUMP LOAD ours.dmp").starts_with("OK LOADED"));
    until_count(&mut client, 2);
    until(&mut client, "COUNT shop.later words", |reply| reply == "OK COUNT 1\r\n");
    until(&mut client, "REPLICATION STATUS", |status| status.contains("table shop.later: live"));
}

#[test]
fn a_dump_of_another_definition_is_refused() {
    let (source, _conn) = source(Kind::MariaDb1011);
    let (server, mut client) = with_mygramdb_file(&source);
    until_count(&mut client, 2);
    let all = TestServer::following(&source.follower_url("shop"));
    let mut other = all.connect();
    until_count(&mut other, 2);
    assert!(other.ask("DUMP SAVE all.dmp").starts_with("OK DUMP_STARTED"));
    until(&mut other, "DUMP STATUS", |status| status.contains("status: COMPLETED"));
    let dumps = |server: &TestServer| server.directory.path().join("dumps");
    std::fs::create_dir_all(dumps(&server)).unwrap();
    std::fs::copy(dumps(&all).join("all.dmp"), dumps(&server).join("all.dmp")).unwrap();
    let refused = client.ask("DUMP LOAD all.dmp");
    assert!(refused.contains("its table 'shop.goods' has another definition"), "{refused}");
    until_count(&mut client, 2);
}

/// Simulates a full disk for checkpoints: their directory is not writable.
#[test]
fn a_checkpoint_that_fails_is_shown() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let healthy = client.ask("INFO");
    assert!(!healthy.contains("storage_error"), "{healthy}");
    let segments = Path::new(&server.database.path()).join("segments");
    let aside = segments.with_extension("aside");
    std::fs::rename(&segments, &aside).unwrap();
    std::fs::write(&segments, "no directory").unwrap();
    let put = r#"PUT articles {"id":90,"title":"new","body":"words","kind":"x"}"#;
    assert!(client.ask(put).starts_with("OK PUT 1 "));
    assert!(server.database.checkpoint().is_err());
    let info = client.ask("INFO");
    assert!(info.contains("storage_error: checkpoint failed, and is tried again: "), "{info}");
    let detail = get(&server, "/health/detail");
    assert!(detail.contains("\"status\":\"failing\"") && detail.contains("degraded"), "{detail}");
    // It answers, so it is ready.
    let ready = get(&server, "/health/ready");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    assert!(
        ready.contains("\"storage_error\":\"checkpoint failed, and is tried again: "),
        "{ready}"
    );
    assert!(get(&server, "/metrics").contains("\nremora_storage_failing 1\n"));
    std::fs::remove_file(&segments).unwrap();
    std::fs::rename(&aside, &segments).unwrap();
    server.database.checkpoint().unwrap();
    assert!(!client.ask("INFO").contains("storage_error"));
    assert!(!get(&server, "/health/ready").contains("storage_error"));
    assert!(get(&server, "/metrics").contains("\nremora_storage_failing 0\n"));
}
