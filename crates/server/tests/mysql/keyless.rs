//! Reading tables whose source declares no key, and those with system versioning.

use std::{thread, time::Duration};

use mysql::prelude::Queryable;
use remora_peers::{Kind, Server as Peer};

use crate::{
    client::{Answer, Client},
    connect,
    support::TestServer,
};

/// A server that follows this source, once it shows the table.
fn following(source: &Peer, table: &str) -> (TestServer, Client) {
    let server = TestServer::following(&source.follower_url("shop"));
    let mut reader = connect(&server);
    for _ in 0..3_000 {
        if !matches!(reader.query(&format!("SELECT 1 FROM {table}")), Answer::Error(_)) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    (server, reader)
}

fn rows(client: &mut Client, statement: &str) -> Vec<Vec<String>> {
    match client.query(statement) {
        Answer::Rows(rows) => {
            let text = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
            rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
        }
        other => panic!("{statement}: {other:?}"),
    }
}

fn firsts(client: &mut Client, statement: &str) -> Vec<String> {
    rows(client, statement).into_iter().map(|mut row| row.swap_remove(0)).collect()
}

#[test]
fn a_table_without_a_key_is_read_as_any_other() {
    let source = Peer::start(Kind::MariaDb1011, &[]).unwrap();
    let mut writer = source.connect().unwrap();
    writer.query_drop("CREATE DATABASE shop").unwrap();
    writer.query_drop("CREATE TABLE shop.t (a INT, v VARCHAR(50), INDEX (a))").unwrap();
    let values = "(1, 'red fish'), (1, 'red fish'), (2, 'blue fish'), (NULL, NULL), (3, 'bird')";
    writer.query_drop(format!("INSERT INTO shop.t VALUES {values}")).unwrap();
    let (server, mut sql) = following(&source, "shop.t");
    sql.query("USE shop");
    let mut all = rows(&mut sql, "SELECT * FROM t");
    all.sort();
    assert_eq!(all.len(), 5);
    assert_eq!(all[0], ["1", "red fish"]);
    assert_eq!(all[0], all[1]);
    assert_eq!(sql.query("SELECT COUNT(*) FROM t").value(), "5");
    assert_eq!(sql.query("SELECT COUNT(*) FROM t WHERE a = 1").value(), "2");
    assert_eq!(sql.query("SELECT COUNT(*) FROM t WHERE v LIKE '%fish%'").value(), "3");
    assert_eq!(sql.query("SELECT COUNT(*) FROM t WHERE MATCH (v) AGAINST ('fish')").value(), "3");
    let ordered = firsts(&mut sql, "SELECT a FROM t ORDER BY a DESC, v LIMIT 3");
    assert_eq!(ordered, ["3", "2", "1"]);
    let joined = "SELECT COUNT(*) FROM t x JOIN t y ON x.a = y.a";
    assert_eq!(sql.query(joined).value(), "6");
    let grouped = rows(&mut sql, "SELECT v, COUNT(*) c FROM t GROUP BY v ORDER BY c DESC LIMIT 1");
    assert_eq!(grouped, [["red fish", "2"]]);
    assert_eq!(rows(&mut sql, "SELECT DISTINCT * FROM t").len(), 4);

    assert_eq!(firsts(&mut sql, "DESCRIBE t"), ["a", "v"]);
    assert_eq!(firsts(&mut sql, "SHOW COLUMNS FROM t"), ["a", "v"]);
    let listed = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'shop' \
                  ORDER BY ordinal_position";
    assert_eq!(firsts(&mut sql, listed), ["a", "v"]);
    let created = rows(&mut sql, "SHOW CREATE TABLE t").swap_remove(0).swap_remove(1);
    assert!(created.contains("`v` varchar(50)"), "{created}");
    assert!(!created.contains('#') && !created.contains("PRIMARY"), "{created}");
    let keys = rows(&mut sql, "SHOW INDEX FROM t");
    assert!(keys.iter().all(|key| key.iter().all(|value| !value.contains('#'))), "{keys:?}");
    let keyed = "SELECT COUNT(*) FROM information_schema.key_column_usage";
    assert_eq!(sql.query(keyed).value(), "0");
    assert_eq!(sql.query("DELETE FROM t").error(), 1290);

    let mut line = server.connect();
    let found = line.ask("SEARCH shop.t bird");
    let key = found.trim_end().strip_prefix("OK RESULTS 1 ").unwrap_or_else(|| panic!("{found}"));
    assert_eq!(key.len(), 2 + 40, "{key}");
    let got = line.ask(&format!("GET shop.t {key} FIELDS *"));
    assert!(got.contains("bird") && !got.contains("#row"), "{got}");
    let got = line.ask(&format!("GET shop.t {key}"));
    assert_eq!(got.trim_end(), format!("OK DOC {key} a=3 v=bird"));
    assert!(line.ask("COUNT shop.t fish").starts_with("OK COUNT 3"));
}

#[test]
fn a_versioned_table_shows_its_current_rows() {
    let source = Peer::start(Kind::MariaDb118, &[]).unwrap();
    let mut writer = source.connect().unwrap();
    writer.query_drop("CREATE DATABASE shop").unwrap();
    for table in [
        "CREATE TABLE shop.p (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT, \
         s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, \
         e TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, \
         PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
    ] {
        writer.query_drop(table).unwrap();
    }
    for name in ["p", "t"] {
        for statement in [
            format!("INSERT INTO shop.{name} (id, a) VALUES (1, 1), (2, 2)"),
            format!("UPDATE shop.{name} SET a = 3 WHERE id = 1"),
            format!("DELETE FROM shop.{name} WHERE id = 2"),
        ] {
            writer.query_drop(statement).unwrap();
        }
    }
    let (_server, mut sql) = following(&source, "shop.t");
    sql.query("SET time_zone = '+00:00'");
    writer.query_drop("SET time_zone = '+00:00'").unwrap();
    let start: String = writer.query_first("SELECT CAST(s AS CHAR) FROM shop.t").unwrap().unwrap();
    assert_eq!(rows(&mut sql, "SELECT * FROM shop.t"), [["1", "3", start.as_str()]]);
    let end: String = writer.query_first("SELECT CAST(e AS CHAR) FROM shop.t").unwrap().unwrap();
    assert_eq!(sql.query("SELECT e FROM shop.t").value(), end);
    assert_eq!(rows(&mut sql, "SELECT * FROM shop.p"), [["1", "3"]]);
    assert_eq!(firsts(&mut sql, "DESCRIBE shop.p"), ["id", "a"]);
    let created = rows(&mut sql, "SHOW CREATE TABLE shop.t").swap_remove(0).swap_remove(1);
    assert!(created.contains("GENERATED ALWAYS AS ROW START"), "{created}");
    assert!(created.contains("PERIOD FOR SYSTEM_TIME"), "{created}");
}
