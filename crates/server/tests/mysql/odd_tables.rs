//! What few tables have, followed from a real server and read by SQL: the answers must be those of
//! the source.

use std::{thread, time::Duration};

use mysql::prelude::Queryable;
use remora_peers::{Kind, Server as Peer};

use crate::{
    client::{Answer, Client},
    connect,
    support::TestServer,
};

/// Columns of every odd name, and a table of one.
const NAMES: [&str; 2] = [
    "CREATE TABLE shop.` odd``table.x` (id INT PRIMARY KEY, ` x` VARCHAR(40), `a.b` VARCHAR(40), \
     `a``b` VARCHAR(40), `a\"b` VARCHAR(40), `it's` VARCHAR(40), `new\nline` VARCHAR(40), \
     `tab\there` VARCHAR(40), `e` VARCHAR(40), `é` VARCHAR(40), `_score` VARCHAR(40), \
     `#score` VARCHAR(40), `#row` VARCHAR(40), `*` VARCHAR(40), `?` VARCHAR(40), \
     `select` VARCHAR(40), FULLTEXT (` x`))",
    "INSERT INTO shop.` odd``table.x` VALUES (1, 'a fish', 'b', 'c', 'd', 'e', 'f', 'g', 'h', \
     'i', 'j', 'k', 'l', 'm', 'n', 'o'), (2, 'two fish', '2b', '2c', '2d', '2e', '2f', '2g', \
     '2h', '2i', '2j', '2k', '2l', '2m', '2n', '2o')",
];

const OF_NAMES: [&str; 13] = [
    "SELECT * FROM shop.` odd``table.x` ORDER BY id",
    "SELECT ` x`, `a.b`, `a``b` FROM shop.` odd``table.x` WHERE ` x` = 'a fish'",
    "SELECT `new\nline`, `tab\there` FROM shop.` odd``table.x` WHERE `new\nline` = '2f'",
    "SELECT t.`a\"b`, t.`it's`, ` odd``table.x`.`*` FROM shop.` odd``table.x` t \
     JOIN shop.` odd``table.x` ON t.`e` = ` odd``table.x`.`e` ORDER BY t.id",
    "SELECT COUNT(*) + 0 FROM shop.` odd``table.x` WHERE `é` = 'i' OR `e` = '2h'",
    "SELECT MAX(`_score`), MIN(`#score`), MAX(`#row`) FROM shop.` odd``table.x`",
    "SELECT `a.b`, COUNT(*) + 0 FROM shop.` odd``table.x` GROUP BY `a.b` ORDER BY `a.b`",
    "SELECT `?`, `select` FROM shop.` odd``table.x` WHERE `select` LIKE '%o' ORDER BY `?` DESC",
    "SELECT id FROM shop.` odd``table.x` WHERE MATCH (` x`) AGAINST ('fish' IN BOOLEAN MODE) \
     ORDER BY id",
    "SELECT ` x` FROM shop.` odd``table.x` WHERE id = 2",
    "SELECT `a.b` FROM shop.` odd``table.x` WHERE id IN (1, 2) ORDER BY id",
    "SELECT id AS ` y` FROM shop.` odd``table.x` HAVING ` y` > 1",
    "SELECT CONCAT(`a``b`, `it's`) AS `a``b` FROM shop.` odd``table.x` ORDER BY `a``b`",
];

/// ENUM and SET of bytes.
const LABELS: [&str; 2] = [
    "CREATE TABLE shop.labels (id INT PRIMARY KEY, e ENUM('b', 'a', 'A', 'é') CHARACTER SET \
     binary, s SET('x', 'y', 'é') CHARACTER SET binary NOT NULL)",
    "INSERT INTO shop.labels VALUES (1, 'a', 'x,y'), (2, 'é', 'é'), (3, NULL, ''), (4, 'A', 'y')",
];

const OF_LABELS: [&str; 12] = [
    "SELECT id, e, s FROM shop.labels ORDER BY id",
    "SELECT e, s FROM shop.labels WHERE id = 1",
    "SELECT id FROM shop.labels WHERE e = 'a'",
    "SELECT id FROM shop.labels WHERE e = 'A' OR s = 'x,y' ORDER BY id",
    "SELECT id FROM shop.labels WHERE e IN ('é', 'a') ORDER BY id",
    "SELECT e, COUNT(*) + 0 FROM shop.labels WHERE e IS NOT NULL GROUP BY e ORDER BY MIN(id)",
    "SELECT id FROM shop.labels ORDER BY e, id",
    "SELECT id, FIND_IN_SET('y', s) + 0 FROM shop.labels ORDER BY id",
    "SELECT CONCAT(e, '!'), UPPER(CONVERT(e USING utf8mb4)) FROM shop.labels WHERE id = 2",
    "SELECT e + 0, s + 0 FROM shop.labels ORDER BY id",
    "SELECT a.id FROM shop.labels a JOIN shop.labels b ON a.e = b.e ORDER BY a.id",
    "SELECT MAX(LENGTH(e)), MAX(LENGTH(s)) FROM shop.labels",
];

/// Decimals that MariaDB alone has, and a key of 32 columns.
fn of_mariadb() -> (Vec<String>, Vec<String>) {
    let columns: String = (0..32).map(|part| format!("k{part} SMALLINT, ")).collect();
    let key = (0..32).map(|part| format!("k{part}")).collect::<Vec<_>>().join(", ");
    let all = |value: &str| vec![value; 32].join(", ");
    let statements = vec![
        "CREATE TABLE shop.decimals (k DECIMAL(40,31) PRIMARY KEY, v DECIMAL(65,38) DEFAULT 1.5, \
         w DECIMAL(38,38))"
            .to_owned(),
        "INSERT INTO shop.decimals VALUES (1.5, 3.25, 0.125), (-0.0000000000000000000000000000001, \
         123456789012345678901234567.12345678901234567890123456789012345678, NULL), \
         (7, -0.00000000000000000000000000000000000001, 0.99999999999999999999999999999999999999)"
            .to_owned(),
        format!("CREATE TABLE shop.parts ({columns} v INT, PRIMARY KEY ({key}))"),
        format!("INSERT INTO shop.parts VALUES ({}, 1), ({}, 2)", all("5"), all("-6")),
    ];
    let questions = [
        "SELECT k, v, w FROM shop.decimals ORDER BY k",
        "SELECT k FROM shop.decimals WHERE k = -0.0000000000000000000000000000001",
        "SELECT v FROM shop.decimals WHERE k = 1.5",
        "SELECT v FROM shop.decimals WHERE v = 3.25 OR w > 0.9 ORDER BY v",
        "SELECT MIN(k), MAX(v), MAX(w) FROM shop.decimals",
        "SELECT SUM(k) FROM shop.decimals",
        "SELECT v + w FROM shop.decimals WHERE k = 7",
        "SELECT -v, ABS(v) FROM shop.decimals ORDER BY k",
        "SELECT ROUND(k, 2), FLOOR(v), CAST(w AS DECIMAL(10,4)) FROM shop.decimals ORDER BY k",
        "SELECT CAST(k AS CHAR) FROM shop.decimals ORDER BY k",
        "SELECT COALESCE(w, k) FROM shop.decimals ORDER BY k",
        "SELECT k FROM shop.decimals WHERE v > k ORDER BY k",
        "SELECT v FROM shop.parts WHERE k0 = 5",
        "SELECT k0, k31, v FROM shop.parts ORDER BY v",
    ];
    (statements, questions.map(str::to_owned).to_vec())
}

fn both(source: &mut mysql::Conn, client: &mut Client, question: &str) {
    let theirs: Vec<mysql::Row> =
        source.query(question).unwrap_or_else(|error| panic!("{question}: {error}"));
    let text = |value: mysql::Value| match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
        other => panic!("{other:?}"),
    };
    let theirs: Vec<Vec<_>> =
        theirs.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect();
    assert_eq!(client.query(question), Answer::Rows(theirs), "{question}");
}

fn reads_as_the_source(kind: Kind) {
    let source = Peer::start(kind, &[]).unwrap();
    let mut writer = source.connect().unwrap();
    writer.query_drop("SET NAMES utf8mb4").unwrap();
    writer.query_drop("CREATE DATABASE shop CHARACTER SET utf8mb4").unwrap();
    let (mut statements, mut questions) = match kind.is_mariadb() {
        true => of_mariadb(),
        false => (Vec::new(), Vec::new()),
    };
    statements.extend(NAMES.iter().chain(&LABELS).map(|statement| (*statement).to_owned()));
    questions.extend(OF_NAMES.iter().chain(&OF_LABELS).map(|question| (*question).to_owned()));
    for statement in &statements {
        writer.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let tables: u64 = statements.len() as u64 / 2;
    let server = TestServer::following(&source.follower_url("shop"));
    let mut client = connect(&server);
    client.query("SET NAMES utf8mb4");
    let count = "SELECT COUNT(*) + 0 FROM information_schema.tables WHERE table_schema = 'shop'";
    for _ in 0..3_000 {
        if client.query(count).value() == tables.to_string() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.query(count).value(), tables.to_string());
    for question in &questions {
        both(&mut writer, &mut client, question);
    }
    let shown = client.query("SHOW CREATE TABLE shop.labels");
    let Answer::Rows(rows) = shown else { panic!("{shown:?}") };
    assert!(rows[0][1].as_ref().unwrap().contains("CHARACTER SET binary"), "{rows:?}");
}

#[test]
fn what_a_mariadb_has_reads_as_there() {
    reads_as_the_source(Kind::MariaDb1011);
}

#[test]
fn what_a_mysql_has_reads_as_there() {
    reads_as_the_source(Kind::MySql97);
}
