//! Every column type of every server, with values at its edges and random ones: what the row events
//! give must be what SELECT gives, over the text and the binary protocol.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod charsets;
mod follow;
mod json;
mod random;

use std::collections::BTreeMap;

use follow::{Followed, select};
use mysql::{Conn, prelude::Queryable};
use remora_engine::Row;
use remora_peers::{Kind, Server};
use remora_source::mysql::{
    binlog::RowChange,
    schema::{Selection, SourceTable, read_table, read_tables},
};

fn execute(connection: &mut Conn, statement: &str) {
    if let Err(error) = connection.query_drop(statement) {
        let shown: String = statement.chars().take(300).collect();
        panic!("{shown}: {error}");
    }
}

/// A database for the test, and a session that takes any value.
fn prepared(server: &Server) -> Conn {
    let mut connection = server.connect().unwrap();
    for statement in [
        "SET NAMES utf8mb4",
        "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'",
        "CREATE DATABASE types CHARACTER SET utf8mb4",
        "USE types",
    ] {
        execute(&mut connection, statement);
    }
    connection
}

fn table(connection: &mut Conn, name: &str) -> SourceTable {
    let table = read_table(connection, "types", name).unwrap();
    table.unwrap_or_else(|| panic!("there is no table {name}"))
}

/// Applies changes as the engine would, by key.
fn apply(rows: &mut BTreeMap<String, Row>, table: &SourceTable, change: RowChange) {
    let key = |row: &Row| format!("{:?}", table.key.iter().map(|&at| &row[at]).collect::<Vec<_>>());
    match change {
        RowChange::Insert(row) => drop(rows.insert(key(&row), row)),
        RowChange::Update { before, after } => {
            assert!(rows.remove(&key(&before)).is_some_and(|row| row == before), "{before:?}");
            rows.insert(key(&after), after);
        }
        RowChange::Delete(row) => {
            assert!(rows.remove(&key(&row)).is_some_and(|old| old == row), "{row:?}");
        }
    }
}

/// Compares what was followed with what each protocol's SELECT gives.
fn check(connection: &mut Conn, followed: &Followed, what: &str) {
    for (table, rows) in followed.tables() {
        for text_protocol in [true, false] {
            let mut selected = BTreeMap::new();
            for row in select(connection, table, text_protocol) {
                apply(&mut selected, table, RowChange::Insert(row));
            }
            assert_eq!(rows.len(), selected.len(), "{what}: rows of {}", table.name);
            for (key, row) in rows {
                let expected = &selected[key];
                for ((column, value), wanted) in table.columns.iter().zip(row).zip(expected) {
                    assert_eq!(
                        value, wanted,
                        "{what}: {}.{} of row {key}, text protocol: {text_protocol}",
                        table.name, column.name
                    );
                }
            }
        }
    }
}

/// One table for each type, with its cases, changed and partly deleted.
fn every_type(kind: Kind, options: &[&str]) {
    let server = Server::start(kind, options).unwrap();
    let mut connection = prepared(&server);
    let mut followed = Followed::start(&server);
    let cases = cases::of(kind);
    for (number, (column, values)) in cases.iter().enumerate() {
        let name = format!("t{number}");
        execute(&mut connection, &format!("CREATE TABLE {name} (id INT PRIMARY KEY, v {column})"));
        for (id, value) in values.iter().enumerate() {
            execute(&mut connection, &format!("INSERT INTO {name} (id, v) VALUES ({id}, {value})"));
        }
        execute(&mut connection, &format!("INSERT INTO {name} (id, v) VALUES (9000, NULL)"));
        let (first, last) = (&values[0], &values[values.len() - 1]);
        execute(&mut connection, &format!("UPDATE {name} SET v = {first} WHERE id = 9000"));
        execute(&mut connection, &format!("UPDATE {name} SET id = 9001, v = {last} WHERE id = 0"));
        execute(
            &mut connection,
            &format!("INSERT INTO {name} (id, v) VALUES (9002, {first}), (9003, NULL)"),
        );
        execute(&mut connection, &format!("DELETE FROM {name} WHERE id = 9002"));
        followed.add(table(&mut connection, &name));
    }
    random::fill(&mut connection, &cases, &mut followed);
    unusual_columns(kind, &mut connection, &mut followed);
    followed.until_end(&mut connection);
    check(&mut connection, &followed, kind.name());
    for (table, rows) in followed.tables() {
        assert!(!rows.is_empty(), "{}", table.name);
        table.to_schema().validate().unwrap();
    }
    let (tables, refused) =
        read_tables(&mut connection, &Selection::new(Some("types"), &[])).unwrap();
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(tables.len(), followed.tables().count());
    charsets::check(&server, &mut connection, kind);
    json::check(&server, &mut connection, kind);
}

/// Columns that the server computes, hides or makes for itself.
fn unusual_columns(kind: Kind, connection: &mut Conn, followed: &mut Followed) {
    let (tables, statements): (&[&str], &[&str]) = match kind {
        Kind::MySql56 => return,
        Kind::MySql97 => (
            &["computed", "keyless", "functional"],
            &[
                "SET SESSION sql_generate_invisible_primary_key = 1",
                "CREATE TABLE keyless (v VARCHAR(9), w INT INVISIBLE DEFAULT 3)",
                "INSERT INTO keyless VALUES ('a'), ('b')",
                "UPDATE keyless SET v = 'c', w = 4 WHERE v = 'b'",
                "CREATE TABLE functional (id INT PRIMARY KEY, v VARCHAR(9), KEY ((UPPER(v))), w INT)",
                "INSERT INTO functional VALUES (1, 'a', 2)",
            ],
        ),
        _ => (
            &["computed", "hashed"],
            &[
                "CREATE TABLE hashed (id INT PRIMARY KEY, v TEXT, UNIQUE (v), w INT INVISIBLE DEFAULT 3)",
                "INSERT INTO hashed VALUES (1, 'a'), (2, NULL)",
                "UPDATE hashed SET v = 'b', w = 4 WHERE id = 2",
            ],
        ),
    };
    for statement in [
        "CREATE TABLE computed (id INT PRIMARY KEY, g INT AS (n + 1) VIRTUAL, n INT, \
         t VARCHAR(40) AS (CONCAT(n, '-', id)) STORED, u INT AS (n * 2) VIRTUAL, KEY (u))",
        "INSERT INTO computed (id, n) VALUES (1, 10), (2, NULL), (3, 30)",
        "UPDATE computed SET n = 31 WHERE id = 3",
        "DELETE FROM computed WHERE id = 2",
    ]
    .iter()
    .chain(statements)
    {
        execute(connection, statement);
    }
    tables.iter().for_each(|name| followed.add(table(connection, name)));
}

#[test]
fn every_type_of_mariadb_10_11() {
    every_type(Kind::MariaDb1011, &[]);
}

#[test]
fn every_type_of_mariadb_10_11_with_full_metadata_and_compressed_events() {
    every_type(Kind::MariaDb1011, &["--binlog-row-metadata=FULL", "--log-bin-compress=1"]);
}

#[test]
fn every_type_of_mariadb_10_11_with_the_old_temporal_formats() {
    every_type(Kind::MariaDb1011, &["--mysql56-temporal-format=0"]);
}

#[test]
fn every_type_of_mariadb_11_8() {
    every_type(Kind::MariaDb118, &[]);
}

#[test]
fn every_type_of_mysql_9_7() {
    every_type(Kind::MySql97, &[]);
}

#[test]
fn every_type_of_mysql_9_7_with_full_metadata_and_partial_json() {
    let options = [
        "--binlog-row-metadata=FULL",
        "--binlog-row-value-options=PARTIAL_JSON",
        "--binlog-transaction-compression=ON",
    ];
    every_type(Kind::MySql97, &options);
}

#[test]
fn every_type_of_mysql_5_6() {
    every_type(Kind::MySql56, &[]);
}

#[test]
fn rows_are_identified_by_key_or_by_all_columns() {
    let server = Server::start(Kind::MariaDb1011, &[]).unwrap();
    let mut connection = prepared(&server);
    let wide: Vec<_> = (0..17).map(|at| format!("c{at} TINYINT NOT NULL")).collect();
    let parts: Vec<_> = (0..17).map(|at| format!("c{at}")).collect();
    let wide = format!("CREATE TABLE wide ({}, UNIQUE ({}))", wide.join(", "), parts.join(", "));
    for statement in [
        "CREATE TABLE none (a INT)",
        "CREATE TABLE nullable (a INT, UNIQUE u (a))",
        "CREATE TABLE prefix (a VARCHAR(50) NOT NULL, UNIQUE u (a(5)))",
        "CREATE TABLE hash (a BLOB NOT NULL, UNIQUE u (a))",
        "CREATE TABLE serves (a INT, b INT NOT NULL, c CHAR(3) NOT NULL, UNIQUE u (c, b))",
        "CREATE TABLE composite (a INT, b VARCHAR(9), PRIMARY KEY (b, a), UNIQUE u (a))",
        "CREATE TABLE versioned (a INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE TABLE period (a INT PRIMARY KEY, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, \
         e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) \
         WITH SYSTEM VERSIONING",
        "CREATE TABLE strange (`#row` INT)",
        "CREATE TABLE keyed (a INT PRIMARY KEY, `#other` INT)",
        "CREATE VIEW seen AS SELECT a FROM none",
        "CREATE SEQUENCE counted",
        &wide,
    ] {
        execute(&mut connection, statement);
    }
    let (tables, refused) =
        read_tables(&mut connection, &Selection::new(Some("types"), &[])).unwrap();
    let keys: Vec<_> = tables
        .iter()
        .map(|table| (table.name.as_str(), &table.key[..], table.image_columns, table.period_end))
        .collect();
    let all: Vec<usize> = (0..17).collect();
    let expected: [(&str, &[usize], usize, Option<usize>); 10] = [
        ("composite", &[1, 0], 2, None),
        ("hash", &[], 2, None),
        ("keyed", &[0], 2, None),
        ("none", &[], 1, None),
        ("nullable", &[], 1, None),
        ("period", &[0], 3, Some(2)),
        ("prefix", &[], 1, None),
        ("serves", &[2, 1], 3, None),
        ("versioned", &[0], 3, Some(2)),
        ("wide", &all, 17, None),
    ];
    assert_eq!(keys, expected);
    let reasons: Vec<_> =
        refused.iter().map(|refused| format!("{}: {}", refused.table, refused.reason)).collect();
    let reason = "strange: it has no key, and a column named \"#row\": give it a primary key";
    assert_eq!(reasons, [reason]);
    assert!(read_table(&mut connection, "types", "absent").unwrap().is_none());
    assert!(read_table(&mut connection, "types", "strange").is_err());
}
