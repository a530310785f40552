//! Statements that are not understood, and those that are known to change no table.

use remora_peers::Kind;
use remora_source::mysql::{State, TableState};

use crate::pair::Pair;

const TABLES: [&str; 2] = [
    "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(20))",
];

/// A statement of a form that no list has: every table is copied, and ends equal.
#[test]
fn unknown_statement_only_causes_copies() {
    let mut pair = Pair::start(Kind::MariaDb1011, &TABLES);
    pair.run("INSERT INTO a VALUES (1, 'one')");
    pair.compare();
    assert_eq!(pair.status().unknown_statements, 0);
    // A directory of a server of before 5.1 is a database whose name can be mended.
    let data = pair.server.data();
    std::fs::create_dir(data.join("old-name")).unwrap();
    pair.run("ALTER DATABASE `#mysql50#old-name` UPGRADE DATA DIRECTORY NAME");
    pair.run("INSERT INTO b VALUES (2, 'two')");
    pair.compare();
    assert_eq!(pair.status().unknown_statements, 1);
    pair.run("UPDATE a SET v = 'uno'");
    pair.compare();
}

/// What is known to be harmless is counted and makes no table wait.
#[test]
fn harmless_statements_leave_tables_live() {
    let mut pair = Pair::start(Kind::MariaDb1011, &TABLES);
    pair.run("INSERT INTO a VALUES (1, 'one')");
    pair.compare();
    let statements = [
        "CREATE VIEW w AS SELECT * FROM a",
        "CREATE TRIGGER r BEFORE INSERT ON a FOR EACH ROW SET NEW.v = UPPER(NEW.v)",
        "ANALYZE TABLE a",
        "GRANT SELECT ON shop.a TO someone@localhost IDENTIFIED BY 'x'",
        "DROP VIEW w",
        "CREATE SEQUENCE s",
    ];
    for (before, statement) in (0..).zip(statements) {
        pair.run(statement);
        let executed = pair.executed();
        pair.follower().wait_for(&executed, crate::pair::PATIENCE).unwrap();
        let status = pair.status();
        assert_eq!(status.harmless_statements, before + 1, "{statement}");
        assert!(status.tables.iter().all(|table| table.state == TableState::Live), "{statement}");
        assert_eq!(status.state, State::Running);
    }
    pair.run("INSERT INTO a VALUES (2, 'two')");
    pair.run("DROP SEQUENCE s");
    pair.compare();
    assert_eq!((pair.status().row_statements, pair.status().unknown_statements), (0, 0));
}

/// What sessions log as statements may have reached any table, and is copied.
#[test]
fn rows_changed_by_a_trigger_from_another_database_are_copied() {
    let mut pair = Pair::start(Kind::MariaDb1011, &TABLES);
    pair.run("CREATE DATABASE other");
    pair.run("CREATE TABLE other.o (id INT PRIMARY KEY)");
    pair.run("CREATE TRIGGER other.r AFTER INSERT ON other.o FOR EACH ROW INSERT INTO shop.b VALUES (NEW.id, 'r')");
    pair.compare();
    pair.run("SET SESSION binlog_format = 'STATEMENT'");
    pair.run("INSERT INTO other.o VALUES (7)");
    pair.compare();
    assert_eq!(pair.rows("b").len(), 1);
    assert_eq!(pair.status().row_statements, 1);
}
