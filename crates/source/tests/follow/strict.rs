//! Tables as a MygramDB file defines them: some columns, and no change of those.

use std::time::Instant;

use remora_engine::{Database, Options, Schema};
use remora_peers::{Kind, Server};
use remora_source::{
    mysql::{Follower, MysqlSettings, State, TableState},
    schema_file::SchemaFile,
};

use crate::pair::{PATIENCE, Pair};

/// `goods` by `id`, with its text and the filter `kind`, of a type that the file does not know.
fn definition() -> Schema {
    let text = r#"{"name": "shop.goods", "primary_key": ["id"], "columns": [
        {"name": "id", "type": "int64"}, {"name": "kind", "type": "int32"},
        {"name": "body", "type": "text"}], "texts": [{"columns": ["body"]}]}"#;
    SchemaFile::parse(text).unwrap().to_schema().unwrap()
}

fn strictly(settings: &mut MysqlSettings) {
    settings.tables = vec!["shop.goods".to_owned()];
    settings.definitions = vec![definition()];
    (settings.strict_schema, settings.source_types_keys) = (true, true);
}

fn start(kind: Kind, table: &str) -> Pair {
    let insert = "INSERT INTO goods (id, kind, body) VALUES ('1', 2, 'one'), ('3', 4, 'three')";
    Pair::start_with(kind, &[], &[table, insert], strictly)
}

const TABLE: &str = "CREATE TABLE goods (front INT, id VARCHAR(36) PRIMARY KEY, kind INT, \
                     extra INT, body TEXT)";

fn other_columns_come_and_go(kind: Kind) {
    let mut pair = start(kind, TABLE);
    pair.compare();
    for (number, statement) in [
        "ALTER TABLE goods ADD COLUMN added INT DEFAULT 5",
        "ALTER TABLE goods ADD COLUMN first INT FIRST",
        "ALTER TABLE goods DROP COLUMN extra",
        "ALTER TABLE goods DROP COLUMN front, ADD COLUMN other VARCHAR(10) NOT NULL DEFAULT 'x'",
        "ALTER TABLE goods MODIFY added BIGINT",
        "ALTER TABLE goods ADD INDEX (kind), COMMENT = 'indexed'",
        "ALTER TABLE goods CHANGE added renamed BIGINT",
    ]
    .into_iter()
    .enumerate()
    {
        println!("{statement}");
        pair.run(statement);
        pair.run(&format!("INSERT INTO goods (id, kind, body) VALUES ('n{number}', 7, 'new')"));
        pair.run(&format!("UPDATE goods SET kind = {number}, body = 'changed' WHERE id = '1'"));
        pair.compare();
    }
    let copied = pair.status().tables[0].copied.clone().unwrap();
    assert_eq!(copied.times, 1, "no rows had to be copied");
}

#[test]
fn mariadb_10_11_changes_other_columns() {
    other_columns_come_and_go(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_changes_other_columns() {
    other_columns_come_and_go(Kind::MySql97);
}

#[test]
fn mysql_5_6_changes_other_columns() {
    other_columns_come_and_go(Kind::MySql56);
}

/// Waits until following failed with these words, under the code of incompatible schemas.
fn fails(pair: &Pair, words: &str) {
    pair.wait(words, |status| match &status.state {
        State::Failed(reason) => reason.contains(words),
        _ => false,
    });
    let (code, error) = pair.status().last_error.unwrap();
    assert!(code == 2012 && error.contains(words), "{code} {error}");
}

/// Orders a copy and waits until it is done: following goes on, and nothing is wrong any more.
fn syncs(pair: &mut Pair) {
    let times = |pair: &Pair| match pair.status().tables.as_slice() {
        [table, ..] => table.copied.as_ref().map_or(0, |copied| copied.times),
        [] => 0,
    };
    let before = times(pair);
    pair.follower().sync("shop.goods").unwrap();
    let start = Instant::now();
    while times(pair) == before {
        assert!(start.elapsed() < PATIENCE, "{:#?}", pair.status());
    }
    pair.compare();
    assert_eq!(pair.status().last_error, None);
    pair.run("REPLACE INTO goods (id, kind, body) VALUES (8, 9, 'behind a copy')");
    pair.compare();
}

fn sync_repairs_an_incompatible_table(kind: Kind) {
    let mut pair = start(kind, TABLE);
    pair.compare();
    pair.run("ALTER TABLE goods MODIFY kind BIGINT");
    pair.run("INSERT INTO goods (id, kind, body) VALUES (5, 6, 'five')");
    fails(&pair, "Configured column 'kind' changed");
    assert!(matches!(pair.state("goods"), Some(TableState::Paused { copying: false, .. })));
    assert_eq!(pair.rows("goods").len(), 2);
    pair.follower().resume().unwrap();
    fails(&pair, "Configured column 'kind' changed");
    syncs(&mut pair);
    // Each column has the other's values.
    pair.run("ALTER TABLE goods ADD COLUMN first TEXT");
    pair.run("ALTER TABLE goods CHANGE body first TEXT, CHANGE first body TEXT");
    fails(&pair, "Configured column 'body' changed");
    syncs(&mut pair);
    pair.run("ALTER TABLE goods DROP COLUMN body");
    fails(&pair, "\"body\", which it lacks");
    // After a restart too.
    pair.close();
    pair.open();
    fails(&pair, "\"body\", which it lacks");
    pair.run("ALTER TABLE goods ADD COLUMN body TEXT");
    pair.run("UPDATE goods SET body = 'again'");
    syncs(&mut pair);
    pair.run("DROP TABLE goods");
    fails(&pair, "was dropped");
    pair.run("CREATE TABLE goods (body TEXT, kind INT, id BIGINT UNSIGNED PRIMARY KEY)");
    pair.run("INSERT INTO goods VALUES ('other', 2, 18446744073709551615)");
    pair.follower().sync("shop.goods").unwrap();
    pair.wait("the new table", |status| {
        let is_there = pair.database().schema("shop.goods").is_ok();
        status.state == State::Running && is_there && pair.rows("goods").len() == 1
    });
    pair.compare();
    assert_eq!(pair.status().last_error, None);
    pair.follower().stop().unwrap();
    pair.run("UPDATE goods SET body = 'while stopped'");
    syncs(&mut pair);
    pair.run("RENAME TABLE goods TO gone");
    fails(&pair, "was renamed");
    pair.follower().sync("shop.goods").unwrap();
    pair.wait("the end of the table", |status| {
        status.state == State::Running && status.tables.is_empty()
    });
}

#[test]
fn mariadb_10_11_resumes_after_sync_of_an_incompatible_table() {
    sync_repairs_an_incompatible_table(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_resumes_after_sync_of_an_incompatible_table() {
    sync_repairs_an_incompatible_table(Kind::MySql97);
}

/// The file does not name the type of the key.
fn keys_are_of_the_types_of_the_source(kind: Kind) {
    let types = [
        "VARCHAR(36)",
        "CHAR(10)",
        "TINYINT",
        "INT UNSIGNED",
        "BIGINT UNSIGNED",
        "DECIMAL(20,0)",
        "DOUBLE",
        "YEAR",
        "BINARY(4)",
        "ENUM('1', '3', '5')",
    ];
    for kind_of_key in types {
        let table =
            format!("CREATE TABLE goods (body TEXT, kind INT, id {kind_of_key} PRIMARY KEY)");
        println!("{table}");
        let mut pair = start(kind, &table);
        pair.catch_up();
        pair.run("INSERT INTO goods (id, kind, body) VALUES ('5', 6, 'five')");
        pair.run("DELETE FROM goods WHERE body = 'one'");
        pair.run("UPDATE goods SET kind = 44 WHERE body = 'three'");
        pair.catch_up();
        let rows = pair.rows("goods");
        let behind_key: Vec<_> = rows.iter().map(|row| row[1..].join(" ")).collect();
        assert_eq!(behind_key, ["44 three", "6 five"], "{rows:?}");
        let schema = pair.database().schema("shop.goods").unwrap();
        println!("{:?}", schema.columns[0].kind);
    }
}

#[test]
fn mariadb_10_11_has_keys_of_all_types() {
    keys_are_of_the_types_of_the_source(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_has_keys_of_all_types() {
    keys_are_of_the_types_of_the_source(Kind::MySql97);
}

/// Rows that a key does not tell apart would become one.
#[test]
fn a_key_that_is_not_unique_is_refused_at_the_start() {
    let server = Server::start(Kind::MariaDb1011, &[]).unwrap();
    let mut conn = server.connect().unwrap();
    let mut run = |statement: &str| mysql::prelude::Queryable::query_drop(&mut conn, statement);
    run("CREATE DATABASE shop CHARACTER SET utf8mb4").unwrap();
    run("CREATE TABLE shop.goods (a INT PRIMARY KEY, id INT, kind INT, body TEXT)").unwrap();
    let mut settings = MysqlSettings::from_url(&server.follower_url("shop")).unwrap();
    strictly(&mut settings);
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    let start = || Follower::start(database.clone(), settings.clone());
    let refusal = start().err().unwrap().to_string();
    assert!(refusal.contains("primary_key id is not unique at the source"), "{refusal}");
    assert!(refusal.contains("write one of: a"), "{refusal}");
    run("ALTER TABLE shop.goods ADD UNIQUE (id)").unwrap();
    assert!(start().is_err(), "a unique key may have NULLs");
    run("ALTER TABLE shop.goods MODIFY id INT NOT NULL").unwrap();
    start().unwrap().close();
}
