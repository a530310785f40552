//! The configured time zone in every protocol, and two-digit years.

use std::{fs, thread::sleep, time::Duration};

use mysql::prelude::Queryable;
use remora_peers::{Kind, Server as Peer};
use remora_server::settings::Settings;

use crate::{
    mysql::{client::Answer, connect},
    support::{Client, TestServer},
};

/// A server with these settings that replicates from the configured source.
fn following(toml: &str) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("remora.toml");
    fs::write(&path, toml).unwrap();
    let settings = Settings::read(&path).unwrap();
    let server = TestServer::start_beside_source(&path, directory);
    let followed = remora_server::follow(&server.database, &settings.sources).unwrap();
    server.server().follow(followed);
    server
}

fn until(client: &mut Client, request: &str, expected: &str) {
    for _ in 0..3_000 {
        if client.ask(request) == expected {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("{request}: {}", client.ask(request));
}

/// The body of an HTTP response.
fn http(server: &TestServer, method: &str, path: &str, body: &str) -> String {
    let mut client = Client::connect(server.server().http_address().unwrap());
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: \
         application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    client.send(request.as_bytes());
    let answer = client.rest();
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or(answer)
}

/// The same moments whatever zone their session is in; 3 and 4 are an hour apart and look the same
/// in Berlin.
const EVENTS: [&str; 6] = [
    "SET time_zone = '+09:00'",
    "INSERT INTO shop.events VALUES \
     (1, '2024-07-01 21:00:00.5', '2024-07-01 12:00:00', '2024-07-01', 'summer')",
    "SET time_zone = '+00:00'",
    "INSERT INTO shop.events VALUES (2, '2024-01-15 00:00:00', NULL, NULL, 'winter'), \
     (3, '2024-10-27 00:30:00', '2024-10-27 02:30:00', '0000-00-00', 'first')",
    "SET time_zone = '-05:00'",
    "INSERT INTO shop.events VALUES (4, '2024-10-26 20:30:00', NULL, NULL, 'second')",
];

#[test]
fn a_followed_table_is_shown_in_the_configured_zone() {
    let source = Peer::start(Kind::MySql97, &["--default-time-zone=+03:00"]).unwrap();
    let mut writer = source.connect().unwrap();
    writer.query_drop("CREATE DATABASE shop").unwrap();
    let table = "CREATE TABLE shop.events \
                 (id INT PRIMARY KEY, at TIMESTAMP(3) NULL, dt DATETIME, d DATE, body TEXT)";
    writer.query_drop(table).unwrap();
    writer.query_drop("SET sql_mode = ''").unwrap();
    let write = |writer: &mut mysql::Conn, statements: &[&str]| {
        statements.iter().for_each(|statement| writer.query_drop(statement).unwrap());
    };
    // The copy reads the first, the stream brings the others.
    write(&mut writer, &EVENTS[..2]);
    let url = source.follower_url("shop");
    let server = following(&format!("[mysql]\nurl = '{url}'\ntime_zone = 'europe/berlin'\n"));
    let mut line = server.connect();
    until(&mut line, "COUNT shop.events summer", "OK COUNT 1\r\n");
    write(&mut writer, &EVENTS[2..]);
    until(&mut line, "COUNT shop.events second", "OK COUNT 1\r\n");
    by_line(&mut line);
    by_http(&server);
    by_sql(&server);
}

fn by_line(line: &mut Client) {
    for (request, reply) in [
        ("GET shop.events 1", "OK DOC 1 at=1719835200 dt=1719828000 d=1719784800\r\n"),
        (
            "GET shop.events 1 FIELDS at,dt,d",
            "OK RESULTS 1\r\n_key\tat\tdt\td\r\n\
             1\t2024-07-01 14:00:00.500000\t2024-07-01 12:00:00\t2024-07-01\r\n\r\n",
        ),
        (
            "SEARCH shop.events FILTER at < 2024-02-01 FIELDS at",
            "OK RESULTS 1\r\n_key\tat\r\n2\t2024-01-15 01:00:00\r\n\r\n",
        ),
        (
            "SEARCH shop.events FILTER id IN (3,4) FIELDS at",
            "OK RESULTS 2\r\n_key\tat\r\n4\t2024-10-27 02:30:00\r\n3\t2024-10-27 02:30:00\r\n\r\n",
        ),
    ] {
        assert_eq!(line.ask(request), reply, "{request}");
    }
    for (filter, count) in [
        ("at = \"2024-07-01 14:00:00.5\"", 1),
        ("at = \"2024-07-01T12:00:00.5Z\"", 1),
        ("at = 1719835200.5", 1),
        ("at IN (\"2024-01-15 01:00:00\",\"2024-03-31 02:30:00\")", 1),
        ("at BETWEEN \"2024-01-15 01:00:00\" AND \"2024-07-01 14:00:00\"", 1),
        ("(NOT at >= \"2024-10-27 02:30:00\")", 2),
        // Of two moments it is the earlier.
        ("at = \"2024-10-27 02:30:00\"", 1),
        ("at > \"2024-10-27 02:30:00\"", 1),
        ("at = \"2024-10-27 02:30:00+01:00\"", 1),
        // No clock shows it; it is the end of the gap.
        ("at = \"2024-03-31 02:30:00\"", 0),
        ("at != \"2024-03-31 02:30:00\"", 4),
        ("at >= \"2024-03-31 02:30:00\"", 3),
        ("dt = \"2024-07-01 12:00:00\"", 1),
        ("dt = 1719828000", 1),
        ("d = 1719784800", 1),
        ("d = 2024-07-01", 1),
    ] {
        let request = format!("COUNT shop.events FILTER {filter}");
        assert_eq!(line.ask(&request), format!("OK COUNT {count}\r\n"), "{filter}");
    }
    let facet = line.ask("FACET shop.events dt FILTER id = 1");
    assert_eq!(facet, "OK FACET 1 1\r\n1719828000\t1\r\n\r\n");
    let refused = line.ask("COUNT shop.events FILTER at > yesterday");
    assert!(refused.starts_with("ERROR 3006 'yesterday' is not a value of column"), "{refused}");
}

fn by_http(server: &TestServer) {
    let shown = http(server, "GET", "/tables/shop.events/1", "");
    let filters = r#"{"at":1719835200,"dt":1719828000,"d":1719784800}"#;
    assert_eq!(shown, format!(r#"{{"primary_key":"1","filters":{filters}}}"#));
    let shown = http(server, "GET", "/tables/shop.events/4?fields=at", "");
    assert_eq!(shown, r#"{"primary_key":"4","fields":{"at":"2024-10-27 02:30:00"}}"#);
    let body = r#"{"filters":{"at":{"op":">=","value":"2024-10-27 02:30:00"}}}"#;
    assert_eq!(http(server, "POST", "/tables/shop.events/count", body), r#"{"count":2}"#);
    let body = r#"{"filters":{"dt":1719828000},"fields":["at"]}"#;
    let found = http(server, "POST", "/tables/shop.events/search", body);
    assert!(found.contains(r#"{"at":"2024-07-01 14:00:00.500000"}"#), "{found}");
    let body = r#"{"column":"dt","filters":{"id":1}}"#;
    let found = http(server, "POST", "/tables/shop.events/facet", body);
    assert!(found.contains(r#"{"value":1719828000,"count":1}"#), "{found}");
}

fn by_sql(server: &TestServer) {
    let mut sql = connect(server);
    for (statement, value) in [
        ("SELECT @@GLOBAL.time_zone", "Europe/Berlin"),
        ("SELECT @@time_zone", "Europe/Berlin"),
        ("SELECT at FROM shop.events WHERE id = 1", "2024-07-01 14:00:00.500"),
        ("SELECT MAX(at) FROM shop.events", "2024-10-27 02:30:00.000"),
        ("SELECT dt FROM shop.events WHERE id = 1", "2024-07-01 12:00:00"),
        // Without an index MySQL compares what clocks show.
        ("SELECT COUNT(*) FROM shop.events WHERE at = '2024-10-27 02:30:00'", "2"),
        ("SELECT UNIX_TIMESTAMP('2024-03-31 02:00:00')", "1711846800"),
    ] {
        assert_eq!(sql.query(statement).value(), value, "{statement}");
    }
    sql.query("SET timestamp = 1");
    assert_eq!(sql.query("SELECT NOW()").value(), "1970-01-01 01:00:01");
    sql.query("SET time_zone = '+00:00'");
    let shown = sql.query("SELECT at FROM shop.events WHERE id = 1");
    assert_eq!(shown.value(), "2024-07-01 12:00:00.500");
    sql.query("SET time_zone = DEFAULT");
    assert_eq!(sql.query("SELECT @@time_zone").value(), "Europe/Berlin");
    // Nothing is configured: as before.
    let plain = TestServer::start_empty("");
    let mut sql = connect(&plain);
    assert_eq!(sql.query("SELECT @@GLOBAL.time_zone").value(), "SYSTEM");
}

/// Also for repeated local times and without a configured zone.
#[test]
fn printed_key_is_found() {
    for (zone, shown) in [
        ("", ["2024-10-27 00:30:00", "2024-10-27 01:30:00"]),
        (
            "[mysql]\ntime_zone = 'Europe/Berlin'\n",
            ["2024-10-27 02:30:00", "2024-10-27 02:30:00+01:00"],
        ),
    ] {
        let server = TestServer::start_empty(&format!(
            "{zone}[tables.ticks]\nprimary_key = ['at']\ncolumns = [{{ name = 'at', type = \
             'timestamp' }}, {{ name = 'n', type = 'int32' }}]\n"
        ));
        let mut line = server.connect();
        let rows =
            r#"[{"at":"2024-10-27T00:30:00Z","n":1},{"at":"2024-10-27T02:30:00+01:00","n":2}]"#;
        assert!(line.ask(&format!("PUT ticks {rows}")).starts_with("OK PUT 2"));
        let [first, second] = shown;
        let all = format!("OK RESULTS 2 \"{second}\" \"{first}\"\r\n");
        assert_eq!(line.ask("SEARCH ticks SORT DESC"), all);
        for (key, number) in [(first, 1), (second, 2)] {
            let row = format!("OK DOC \"{key}\" n={number}\r\n");
            assert_eq!(line.ask(&format!("GET ticks \"{key}\"")), row);
        }
        assert!(line.ask(&format!("DELETE ticks \"{second}\"")).starts_with("OK DELETE 1"));
        assert_eq!(line.ask("SEARCH ticks SORT DESC"), format!("OK RESULTS 1 \"{first}\"\r\n"));
    }
}

/// Old tables of a MySQL 5.6. It cannot create such tables, so a MariaDB creates their files.
fn with_short_years(kind: Kind) -> Peer {
    let make = |server: &Peer| {
        let mut conn = server.connect().unwrap();
        for statement in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.years (id INT PRIMARY KEY, y YEAR(2), body TEXT) ENGINE=MyISAM",
            "INSERT INTO shop.years VALUES (1, 1999, 'old'), (2, 2001, 'old'), (3, 2000, 'old'), \
             (4, 0, 'old'), (5, 1970, 'old'), (6, 2069, 'old'), (7, NULL, 'old')",
            "FLUSH TABLES",
        ] {
            conn.query_drop(statement).unwrap();
        }
    };
    let server = Peer::start(kind, &[]).unwrap();
    if kind.is_mariadb() {
        make(&server);
        return server;
    }
    let maker = Peer::start(Kind::MariaDb1011, &[]).unwrap();
    make(&maker);
    server.connect().unwrap().query_drop("CREATE DATABASE shop").unwrap();
    for file in ["years.frm", "years.MYD", "years.MYI"] {
        let place = |server: &Peer| server.data().join("shop").join(file);
        fs::copy(place(&maker), place(&server)).unwrap();
    }
    server
}

fn rows(answer: Answer) -> Vec<Vec<Option<String>>> {
    let Answer::Rows(rows) = answer else { panic!("{answer:?}") };
    rows
}

fn years_of_two_digits(kind: Kind) {
    let source = with_short_years(kind);
    let mut writer = source.connect().unwrap();
    let server = TestServer::following(&source.follower_url("shop"));
    let mut line = server.connect();
    until(&mut line, "COUNT shop.years old", "OK COUNT 7\r\n");
    for statement in [
        "INSERT INTO shop.years VALUES (8, 1998, 'new'), (9, 2007, 'new'), (10, 2000, 'new')",
        "UPDATE shop.years SET y = 1971 WHERE id = 1",
    ] {
        writer.query_drop(statement).unwrap();
    }
    until(&mut line, "COUNT shop.years new FILTER y = 98", "OK COUNT 1\r\n");
    until(&mut line, "COUNT shop.years old FILTER y = 71", "OK COUNT 1\r\n");
    let mut sql = connect(&server);
    for statement in [
        "SELECT id, y, y + 0, CONCAT(y), y = 7 FROM shop.years ORDER BY id",
        "SELECT id FROM shop.years WHERE y = 70 OR y > 97 ORDER BY id",
        "SELECT COLUMN_TYPE, DATA_TYPE FROM information_schema.COLUMNS \
         WHERE TABLE_NAME = 'years' AND COLUMN_NAME = 'y'",
    ] {
        let theirs: Vec<mysql::Row> = writer.query(statement).unwrap();
        let text = |value| match value {
            mysql::Value::NULL => None,
            mysql::Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
            other => panic!("{other:?}"),
        };
        let theirs: Vec<Vec<_>> =
            theirs.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect();
        assert_eq!(rows(sql.query(statement)), theirs, "{statement}");
    }
    let shown = line.ask("GET shop.years 9");
    assert_eq!(shown, "OK DOC 9 y=7\r\n");
}

#[test]
fn years_of_two_digits_of_mysql_5_6() {
    years_of_two_digits(Kind::MySql56);
}

#[test]
fn years_of_two_digits_of_mariadb() {
    years_of_two_digits(Kind::MariaDb118);
}

#[test]
fn two_digit_years_cannot_be_created() {
    let server = TestServer::start_empty("");
    let mut sql = connect(&server);
    sql.query("CREATE DATABASE shop");
    assert_eq!(sql.query("CREATE TABLE shop.y (id INT PRIMARY KEY, y YEAR(2))").error(), 1818);
    let made = sql.query("CREATE TABLE shop.y (id INT PRIMARY KEY, y YEAR(4))");
    assert_eq!(made, Answer::Ok { affected: 0 });
}
