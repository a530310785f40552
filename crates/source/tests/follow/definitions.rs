//! Schema changes.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use mysql::prelude::Queryable;
use remora_peers::Kind;
use remora_source::mysql::State;

use crate::pair::{PATIENCE, Pair};

const GOODS: [&str; 2] = [
    "CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(20), price INT NOT NULL)",
    "INSERT INTO goods VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30)",
];

/// Schema changes and rows before and after each.
const CHANGES: [&str; 42] = [
    "ALTER TABLE goods ADD COLUMN note TEXT",
    "UPDATE goods SET note = 'noted' WHERE id = 2",
    "ALTER TABLE goods ADD COLUMN stock INT NOT NULL DEFAULT 7",
    "INSERT INTO goods (id, name, price) VALUES (4, 'four', 40)",
    "ALTER TABLE goods MODIFY name VARCHAR(200)",
    "UPDATE goods SET name = 'a name that is longer than twenty characters' WHERE id = 4",
    "ALTER TABLE goods CHANGE COLUMN price cost BIGINT NOT NULL",
    "UPDATE goods SET cost = 12345678901 WHERE id = 1",
    "ALTER TABLE goods ADD INDEX (name), COMMENT = 'indexed'",
    "DELETE FROM goods WHERE id = 3",
    "ALTER TABLE goods DROP COLUMN note",
    "INSERT INTO goods VALUES (5, 'five', 50, 5)",
    "ALTER TABLE goods ADD COLUMN front INT FIRST",
    "UPDATE goods SET front = id * 2",
    "ALTER TABLE goods MODIFY cost VARCHAR(30)",
    "UPDATE goods SET cost = 'dear' WHERE id = 2",
    "ALTER TABLE goods ADD COLUMN kind ENUM('a', 'b') DEFAULT 'b'",
    "UPDATE goods SET kind = 'a' WHERE id = 1",
    "ALTER TABLE goods MODIFY kind ENUM('c', 'b', 'a')",
    "UPDATE goods SET kind = 'c' WHERE id = 2",
    "CREATE TABLE more LIKE goods",
    "INSERT INTO more SELECT * FROM goods",
    "RENAME TABLE more TO others",
    "UPDATE others SET name = 'other' WHERE id = 1",
    "TRUNCATE TABLE others",
    "INSERT INTO others SELECT * FROM goods WHERE id > 2",
    "ALTER TABLE others RENAME TO last",
    "DELETE FROM last WHERE id = 4",
    "ALTER TABLE last DROP PRIMARY KEY, ADD PRIMARY KEY (id, name)",
    "INSERT INTO last (id, name, cost, stock) VALUES (5, 'five again', '1', 2)",
    "CREATE TABLE _goods_gho LIKE goods",
    "ALTER TABLE _goods_gho ADD COLUMN ghost INT DEFAULT 3",
    "INSERT INTO _goods_gho (id, name, cost, stock) SELECT id, name, cost, stock FROM goods",
    "RENAME TABLE goods TO _goods_del, _goods_gho TO goods",
    "UPDATE goods SET ghost = 4 WHERE id = 1",
    "DROP TABLE _goods_del",
    "CREATE TABLE short (id INT PRIMARY KEY)",
    "INSERT INTO short VALUES (1)",
    "DROP TABLE short",
    "CREATE TABLE short (id VARCHAR(5) PRIMARY KEY, a INT)",
    "INSERT INTO short VALUES ('x', 1), ('y', 2)",
    "UPDATE short SET a = 3",
];

fn changes_are_followed(kind: Kind) {
    let mut pair = Pair::start(kind, &GOODS);
    pair.compare();
    for change in CHANGES {
        println!("{change}");
        pair.run(change);
        if !change.starts_with("ALTER TABLE _goods_gho") {
            pair.compare();
        }
    }
    assert_eq!(pair.database().tables(), ["shop.goods", "shop.last", "shop.short"]);
    // All at once: what is read of the source is further than the stream.
    for table in ["goods", "last", "short"] {
        pair.run(&format!("DROP TABLE {table}"));
    }
    pair.compare();
    pair.follower().stop().unwrap();
    pair.wait("a stop", |status| status.state == State::Stopped);
    GOODS.iter().chain(&CHANGES).for_each(|change| pair.run(change));
    pair.follower().resume().unwrap();
    pair.compare();
    // And while nothing was open.
    pair.close();
    pair.run("ALTER TABLE goods ADD COLUMN back INT");
    pair.run("UPDATE goods SET back = id");
    pair.run("RENAME TABLE last TO first");
    pair.run("DROP TABLE short");
    pair.open();
    pair.compare();
}

#[test]
fn mariadb_10_11_changes_are_followed() {
    changes_are_followed(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_changes_are_followed() {
    changes_are_followed(Kind::MySql97);
}

#[test]
fn a_swap_by_an_online_tool_replaces_a_selected_table() {
    let mut pair = Pair::start_with(Kind::MySql97, &[], &GOODS, |settings| {
        settings.tables = vec!["goods".to_owned()];
    });
    pair.catch_up();
    pair.run("CREATE TABLE _goods_gho LIKE goods");
    pair.run("ALTER TABLE _goods_gho ADD COLUMN extra INT DEFAULT 5");
    pair.run("INSERT INTO _goods_gho (id, name, price) SELECT * FROM goods");
    pair.run("RENAME TABLE goods TO _goods_del, _goods_gho TO goods");
    pair.run("UPDATE goods SET extra = 6 WHERE id = 1");
    pair.catch_up();
    assert_eq!(pair.database().tables(), ["shop.goods"]);
    pair.compare_table("goods");
    pair.run("DROP TABLE _goods_del");
    pair.run("DROP DATABASE shop");
    pair.catch_up();
    assert_eq!(pair.database().tables(), Vec::<String>::new());
}

#[test]
fn a_table_gets_a_key_and_loses_it() {
    let mut pair = Pair::start(Kind::MariaDb1011, &GOODS);
    pair.run("CREATE TABLE loose (a INT)");
    pair.run("INSERT INTO loose VALUES (1), (2)");
    pair.compare();
    assert!(pair.database().schema("shop.loose").unwrap().hidden_key().is_some());
    pair.run("ALTER TABLE loose ADD PRIMARY KEY (a)");
    pair.run("INSERT INTO goods VALUES (9, 'nine', 9)");
    pair.compare();
    assert!(pair.database().schema("shop.loose").unwrap().hidden_key().is_none());
    pair.run("ALTER TABLE loose DROP PRIMARY KEY");
    pair.run("INSERT INTO loose VALUES (3), (3)");
    pair.compare();
    assert_eq!(pair.rows("loose"), [["1"], ["2"], ["3"], ["3"]]);
}

#[test]
fn strict_settings_stop_at_a_change() {
    let mut pair = Pair::start_with(Kind::MariaDb1011, &[], &GOODS, |settings| {
        settings.strict_schema = true;
    });
    pair.compare();
    pair.run("ALTER TABLE goods ADD INDEX (price)");
    pair.run("DELETE FROM goods WHERE id = 1");
    pair.compare();
    pair.run("ALTER TABLE goods ADD COLUMN extra INT");
    pair.wait("a failure", |status| matches!(status.state, State::Failed(_)));
    let (code, message) = pair.status().last_error.unwrap();
    assert_eq!(code, 2012, "{message}");
    assert_eq!(pair.rows("goods").len(), 2);
}

#[test]
fn named_statements_change_nothing_under_strict_settings() {
    let mut pair = Pair::start_with(Kind::MariaDb1011, &[], &GOODS, |settings| {
        settings.strict_schema = true;
        settings.ignored_ddl_prefixes = vec!["alter table goods COMMENT".to_owned()];
        settings.ignored_ddl_prefixes.push("drop table goods".to_owned());
    });
    pair.compare();
    pair.run("ALTER TABLE goods comment = 'all of them'");
    pair.run("DELETE FROM goods WHERE id = 1");
    pair.compare();
    pair.run("DROP TABLE goods");
    pair.run("CREATE TABLE shop.other (id INT PRIMARY KEY)");
    pair.wait("the table behind", |status| status.tables.len() == 2);
    assert_eq!(pair.rows("goods").len(), 2);
}

#[test]
fn statement_based_row_changes_cause_a_copy() {
    let mut pair = Pair::start(Kind::MariaDb1011, &GOODS);
    pair.compare();
    pair.run("SET binlog_format = STATEMENT");
    pair.run("UPDATE goods SET price = price + 1");
    pair.run("SET binlog_format = ROW");
    pair.run("DELETE FROM goods WHERE id = 1");
    pair.compare();
    let moved: Option<i32> = pair.conn.query_first("SELECT price FROM goods WHERE id = 2").unwrap();
    assert_eq!(moved, Some(21));
}

fn texts_and_names_are_those_of_the_source(kind: Kind) {
    let tables = [
        "CREATE TABLE names (id INT PRIMARY KEY, `ä` INT, b INT)",
        "INSERT INTO names VALUES (1, 5, 6), (2, 7, 8)",
        "CREATE TABLE padded (id INT PRIMARY KEY, c CHAR(10))",
        "INSERT INTO padded VALUES (1, 'a'), (2, '')",
    ];
    let mut pair = Pair::start(kind, &tables);
    pair.run("CREATE DATABASE other");
    pair.compare();
    for statement in [
        // A new column, although its name differs only in case.
        "ALTER TABLE names DROP COLUMN `Ä`, ADD COLUMN `ä` INT",
        // The spaces become part of the values.
        "SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
        "ALTER TABLE padded MODIFY c VARCHAR(20)",
        "SET sql_mode = DEFAULT",
    ] {
        println!("{statement}");
        pair.run(statement);
        // With that mode this connection would read padded values of the former type too.
        if !statement.starts_with("SET sql_mode = 'PAD") {
            pair.compare();
        }
    }
    // Character sets without collations: MariaDB states which collations it chose.
    let copied = |pair: &Pair| {
        let tables = pair.status().tables.into_iter();
        tables.map(|table| table.copied.map_or(0, |it| it.times)).sum::<u64>()
    };
    let before = copied(&pair);
    pair.run("CREATE TABLE other.sets (a CHAR(3) CHARACTER SET latin1) CHARSET utf8mb4");
    pair.run("ALTER TABLE other.sets ADD b CHAR(3) CHARSET ascii");
    pair.run("ALTER TABLE names ADD c CHAR(3) CHARSET latin1, COMMENT 'more'");
    pair.compare();
    assert_eq!(copied(&pair), before, "{:#?}", pair.status());
}

#[test]
fn mariadb_11_8_texts_and_names() {
    texts_and_names_are_those_of_the_source(Kind::MariaDb118);
}

#[test]
fn mysql_9_7_texts_and_names() {
    texts_and_names_are_those_of_the_source(Kind::MySql97);
}

/// The foreign keys of a table as they are here and at the source.
fn foreign_keys(pair: &mut Pair, table: &str) -> (Vec<String>, Vec<String>) {
    let (_, statement): (String, String) =
        pair.conn.query_first(format!("SHOW CREATE TABLE {table}")).unwrap().unwrap();
    let lines = statement.lines().map(|line| line.trim().trim_end_matches(',').to_owned());
    let theirs = lines.filter(|line| line.contains("FOREIGN KEY")).collect();
    let declared = pair.database().schema(&format!("shop.{table}")).unwrap().declared.clone();
    let keys = declared.map(|declared| declared.keys).unwrap_or_default();
    let ours = keys.into_iter().filter(|line| line.contains("FOREIGN KEY")).collect();
    (ours, theirs)
}

/// Foreign keys name a renamed table, and its renamed columns, by their new names, with actions and without.
fn foreign_keys_name_what_was_renamed(kind: Kind) {
    let tables = [
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
        "CREATE TABLE d (id INT PRIMARY KEY, p INT,
         FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    ];
    let mut pair = Pair::start(kind, &tables);
    let rounds = [
        ("RENAME TABLE p TO q", ["c", "d"]),
        ("RENAME TABLE c TO c2, d TO d2, q TO r", ["c2", "d2"]),
        (
            "ALTER TABLE r RENAME TO s, ADD COLUMN z INT DEFAULT 1; ALTER TABLE s RENAME TO t; \
             INSERT INTO t VALUES (1, 1); INSERT INTO c2 VALUES (1, 1); INSERT INTO d2 VALUES (1, 1)",
            ["c2", "d2"],
        ),
        ("RENAME TABLE t TO u; RENAME TABLE c2 TO c3, d2 TO d3; RENAME TABLE u TO v", ["c3", "d3"]),
        ("ALTER TABLE v CHANGE id number INT NOT NULL", ["c3", "d3"]),
    ];
    for (statements, children) in rounds {
        pair.compare();
        let stalled = pair.database().begin_large().unwrap();
        // The first definition waits for the row.
        pair.run("REPLACE INTO other VALUES (1)");
        pair.run("CREATE TABLE first (id INT PRIMARY KEY)");
        statements.split("; ").for_each(|statement| pair.run(statement));
        stalled.commit(Vec::new()).unwrap();
        pair.run("DROP TABLE first");
        pair.run("DELETE FROM other");
        pair.compare();
        for table in children {
            let end = Instant::now() + PATIENCE;
            let (mut ours, mut theirs) = foreign_keys(&mut pair, table);
            while ours != theirs {
                assert!(Instant::now() < end, "{statements}: {ours:?} here, {theirs:?} there");
                sleep(Duration::from_millis(20));
                (ours, theirs) = foreign_keys(&mut pair, table);
            }
        }
    }
}

#[test]
fn mariadb_11_8_renames_what_foreign_keys_name() {
    foreign_keys_name_what_was_renamed(Kind::MariaDb118);
}

#[test]
fn mysql_9_7_renames_what_foreign_keys_name() {
    foreign_keys_name_what_was_renamed(Kind::MySql97);
}
