//! Read your writes: reading rows here that were just written at the source.

use std::{thread, time::Duration};

use mysql::prelude::Queryable;
use remora_peers::{Kind, Server as Peer};

use crate::{
    mysql::{client::Answer, connect},
    support::TestServer,
};

/// Writes to a source and waits for it here, by a function of its flavor and by the session's
/// position.
fn writes_are_read(kind: Kind, position: &str, wait: &str, late: &str) {
    let source = Peer::start(kind, &[]).unwrap();
    let mut writer = source.connect().unwrap();
    writer.query_drop("CREATE DATABASE shop").unwrap();
    writer.query_drop("CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)").unwrap();
    writer.query_drop("INSERT INTO shop.t VALUES (0, 0)").unwrap();
    let server = TestServer::following(&source.follower_url("shop"));
    let mut reader = connect(&server);
    let applied = |writer: &mut mysql::Conn| -> String {
        writer.query_first::<String, _>(format!("SELECT {position}")).unwrap().unwrap()
    };
    let set = applied(&mut writer);
    assert_eq!(reader.query(&format!("SELECT {wait}('{set}', 60)")).value(), "0");
    // What is copied first is shown a moment later.
    for _ in 0..3_000 {
        if !matches!(reader.query("SELECT n FROM shop.t"), Answer::Error(_)) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    for number in 1..20 {
        writer.query_drop(format!("INSERT INTO shop.t VALUES ({number}, {number})")).unwrap();
        let set = applied(&mut writer);
        if number % 2 == 0 {
            assert_eq!(reader.query(&format!("SELECT {wait}('{set}', 60)")).value(), "0");
            let seen = reader.query("SELECT @@gtid_executed");
            let text = seen.value().replace('\n', "");
            assert_eq!(text, set.replace('\n', ""));
        } else {
            let set =
                format!("SET sql_wait_for_position = '{set}', sql_wait_for_position_ms = 60000");
            assert_eq!(reader.query(&set), Answer::Ok { affected: 0 });
        }
        let count = reader.query("SELECT COUNT(*) + 0 FROM shop.t");
        assert_eq!(count.value(), (number + 1).to_string());
        let row = reader.query(&format!("SELECT n FROM shop.t WHERE id = {number}"));
        assert_eq!(row.value(), number.to_string());
    }
    let never = set.rsplit_once(['-', ':']).map(|(before, _)| before).unwrap_or_default();
    let separator = if kind.is_mariadb() { "-" } else { ":1-" };
    let never = format!("{}{separator}90000", never.split(':').next().unwrap_or_default());
    assert_eq!(reader.query(&format!("SELECT {wait}('{never}', 0.2)")).value(), late);
    reader.query(&format!("SET sql_wait_for_position = '{never}', sql_wait_for_position_ms = 200"));
    assert_eq!(reader.query("SELECT * FROM shop.t").error(), 3024);
    assert_eq!(reader.query("SET sql_wait_for_position = 'x'").error(), 1772);
    reader.query("SET sql_wait_for_position = ''");
    let refused = reader.query("UPDATE shop.t SET n = 0");
    assert_eq!(refused.error(), 1290);
}

#[test]
fn writes_on_a_mysql_are_read_after_a_gtid_wait() {
    let wait = "WAIT_FOR_EXECUTED_GTID_SET";
    writes_are_read(Kind::MySql97, "@@GLOBAL.gtid_executed", wait, "1");
}

#[test]
fn writes_on_a_mariadb_are_read_after_a_gtid_wait() {
    let position = "@@GLOBAL.gtid_binlog_pos";
    writes_are_read(Kind::MariaDb118, position, "MASTER_GTID_WAIT", "-1");
}

/// The local hidden key of a replicated table without a key is not visible.
#[test]
fn table_without_key_is_read_like_at_the_source() {
    let source = Peer::start(Kind::MySql97, &[]).unwrap();
    let mut writer = source.connect().unwrap();
    writer.query_drop("CREATE DATABASE shop").unwrap();
    writer.query_drop("CREATE TABLE shop.t (a INT, b VARCHAR(200))").unwrap();
    let rows = "INSERT INTO shop.t VALUES (1, 'coral reef'), (1, 'coral reef'), (2, 'a wreck')";
    writer.query_drop(rows).unwrap();
    let server = TestServer::following(&source.follower_url("shop"));
    let mut reader = connect(&server);
    for _ in 0..3_000 {
        if !matches!(reader.query("SELECT a FROM shop.t"), Answer::Error(_)) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let cells = |answer: Answer| -> Vec<Vec<String>> {
        let Answer::Rows(rows) = answer else { panic!("{answer:?}") };
        let text = |cell: Option<String>| cell.unwrap_or_else(|| "NULL".to_owned());
        rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
    };
    let reefs = vec![["1", "coral reef"]; 2];
    assert_eq!(cells(reader.query("SELECT * FROM shop.t WHERE b LIKE '%ral re%'")), reefs);
    assert_eq!(
        cells(reader.query("SELECT * FROM shop.t ORDER BY a DESC LIMIT 1")),
        [["2", "a wreck"]]
    );
    assert_eq!(reader.query("SELECT COUNT(*) FROM shop.t WHERE a = 1").value(), "2");
    let columns = cells(reader.query("SHOW COLUMNS FROM shop.t"));
    let names: Vec<_> = columns.iter().map(|column| column[0].as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let told = "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 't'";
    assert_eq!(reader.query(told).value(), "2");
}

/// Ranked search is declared locally by SQL and finds the rows of the source.
#[test]
fn ranked_search_of_a_followed_table_is_declared_locally() {
    let source = Peer::start(Kind::MariaDb118, &[]).unwrap();
    let mut writer = source.connect().unwrap();
    writer.query_drop("CREATE DATABASE shop").unwrap();
    writer
        .query_drop("CREATE TABLE shop.t (id INT PRIMARY KEY, title VARCHAR(90), n INT)")
        .unwrap();
    writer
        .query_drop("INSERT INTO shop.t VALUES (1, 'Coral reefs', 1), (2, 'A wreck', 2)")
        .unwrap();
    let server = TestServer::following(&source.follower_url("shop"));
    let mut reader = connect(&server);
    let until = |reader: &mut crate::mysql::client::Client, query: &str, wanted: &str| {
        for _ in 0..3_000 {
            match reader.query(query) {
                Answer::Error(_) => {}
                answer if answer.value() == wanted => return,
                _ => {}
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("{query} never gave {wanted}");
    };
    until(&mut reader, "SELECT COUNT(*) FROM shop.t", "2");
    let by_words = "SELECT COUNT(*) FROM shop.t WHERE MATCH('@title reef')";
    assert!(matches!(reader.query(by_words), Answer::Error(_)));
    let declare = "ALTER TABLE shop.t words='title' morphology='stem_en'";
    assert_eq!(reader.query(declare), Answer::Ok { affected: 0 });
    assert_eq!(reader.query(by_words).value(), "1");
    writer.query_drop("INSERT INTO shop.t VALUES (3, 'many a reef', 3)").unwrap();
    until(&mut reader, by_words, "2");
    writer.query_drop("ALTER TABLE shop.t CHANGE title headline VARCHAR(90)").unwrap();
    writer.query_drop("DELETE FROM shop.t WHERE id = 1").unwrap();
    until(&mut reader, "SELECT COUNT(*) FROM shop.t WHERE MATCH('@headline reefs')", "1");
    let Answer::Rows(rows) = reader.query("SHOW CREATE TABLE shop.t") else { panic!() };
    let made = rows[0][1].clone().unwrap();
    assert!(made.ends_with("words='headline' morphology='stem_en'"), "{made}");
    assert_eq!(reader.query("ALTER TABLE shop.t words='n'").error(), 1072);
    assert_eq!(reader.query("ALTER TABLE shop.t words='headline', DROP COLUMN n").error(), 1290);
    assert_eq!(reader.query("ALTER TABLE shop.t words=''"), Answer::Ok { affected: 0 });
    assert!(matches!(reader.query(by_words), Answer::Error(_)));
}

#[test]
fn server_without_a_source_has_no_position() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5";
    for statement in [
        format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{set}')"),
        format!("SET sql_wait_for_position = '{set}'"),
    ] {
        assert_eq!(client.query(&statement).error(), 1290, "{statement}");
    }
    assert_eq!(client.query("SELECT @@gtid_executed").value(), "");
}
