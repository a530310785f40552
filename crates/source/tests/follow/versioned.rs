//! MariaDB's tables with system versioning: here are the current rows.

use remora_peers::Kind;

use crate::pair::Pair;

const TABLES: [&str; 6] = [
    "CREATE TABLE plain (id INT PRIMARY KEY, a INT, v VARCHAR(20)) WITH SYSTEM VERSIONING",
    "CREATE TABLE keyless (id INT, a INT, v VARCHAR(20)) WITH SYSTEM VERSIONING",
    "CREATE TABLE declared (id INT PRIMARY KEY, a INT, v VARCHAR(20), \
     s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, \
     e TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, \
     PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
    "CREATE TABLE hashed (id INT, a INT, v VARCHAR(20), t TEXT UNIQUE, \
     w INT AS (a + 1) VIRTUAL, p INT AS (a + 2) STORED) WITH SYSTEM VERSIONING",
    "CREATE TABLE parted (id INT PRIMARY KEY, a INT, v VARCHAR(20)) WITH SYSTEM VERSIONING \
     PARTITION BY SYSTEM_TIME LIMIT 5 PARTITIONS 4",
    "CREATE TABLE half (id INT PRIMARY KEY, a INT WITHOUT SYSTEM VERSIONING, v VARCHAR(20)) \
     WITH SYSTEM VERSIONING",
];
const NAMES: [&str; 6] = ["plain", "keyless", "declared", "hashed", "parted", "half"];

/// Rows come, change and go, each change with a piece of history.
fn change(pair: &mut Pair) {
    for name in NAMES {
        for statement in [
            "INSERT INTO t (id, a, v) VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, NULL), (4, NULL, 'd')",
            "UPDATE t SET a = a + 1 WHERE id < 3",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t (id, a, v) VALUES (2, 20, 'again')",
            "UPDATE t SET id = 9 WHERE id = 4",
            "UPDATE t SET v = 'z'",
        ] {
            pair.run(&statement.replace(" t ", &format!(" {name} ")));
        }
        if name != "keyless" && name != "hashed" {
            pair.run(&format!("REPLACE INTO {name} (id, a, v) VALUES (1, 5, 'replaced')"));
            pair.run(&format!(
                "INSERT INTO {name} (id, a) VALUES (1, 9) ON DUPLICATE KEY UPDATE a = a + 7"
            ));
        }
    }
}

fn current_rows_are_followed(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLES);
    change(&mut pair);
    assert_eq!(pair.compare().len(), NAMES.len());
    for name in NAMES {
        pair.run(&format!("DELETE FROM {name}"));
    }
    pair.compare();
    change(&mut pair);
    pair.run("DELETE HISTORY FROM plain");
    pair.run("DELETE HISTORY FROM declared BEFORE SYSTEM_TIME NOW()");
    pair.run("SET system_versioning_insert_history = 1");
    pair.run(
        "INSERT INTO declared (id, a, v, s, e) VALUES (77, 7, 'old', '2020-01-01', '2021-01-01')",
    );
    pair.compare();
    // By copies, while the stream goes on.
    pair.close();
    pair.move_to(tempfile::tempdir().unwrap());
    pair.open();
    for name in NAMES {
        pair.run(&format!("UPDATE {name} SET a = 100 WHERE id = 3"));
        pair.run(&format!("DELETE FROM {name} WHERE id = 9"));
    }
    pair.compare();
    for name in NAMES {
        pair.run(&format!("UPDATE {name} SET a = a + 1"));
    }
    pair.compare();
}

#[test]
fn mariadb_10_11_follows_only_current_rows_of_versioned_tables() {
    current_rows_are_followed(Kind::MariaDb1011);
}

#[test]
fn mariadb_11_8_follows_only_current_rows_of_versioned_tables() {
    current_rows_are_followed(Kind::MariaDb118);
}

fn versioning_comes_and_goes(kind: Kind) {
    let mut pair = Pair::start(
        kind,
        &["CREATE TABLE t (id INT PRIMARY KEY, a INT)", "CREATE TABLE k (id INT, a INT)"],
    );
    pair.run("SET system_versioning_alter_history = KEEP");
    for statement in [
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        "ALTER TABLE t ADD SYSTEM VERSIONING",
        "UPDATE t SET a = a + 1 WHERE id < 3",
        "DELETE FROM t WHERE id = 3",
        "ALTER TABLE t ADD COLUMN z INT DEFAULT 7 AFTER id",
        "UPDATE t SET a = a + 1, z = 8 WHERE id = 1",
        "ALTER TABLE t DROP COLUMN z",
        "DELETE FROM t WHERE id = 2",
        "ALTER TABLE t DROP SYSTEM VERSIONING",
        "INSERT INTO t VALUES (2, 9)",
        "UPDATE t SET a = a + 1",
        "ALTER TABLE t ADD COLUMN s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, \
         ADD COLUMN e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, \
         ADD PERIOD FOR SYSTEM_TIME (s, e), ADD SYSTEM VERSIONING",
        "UPDATE t SET a = a + 1",
        "DELETE FROM t WHERE id = 1",
        "ALTER TABLE t DROP COLUMN s, DROP COLUMN e, DROP PERIOD FOR SYSTEM_TIME, \
         DROP SYSTEM VERSIONING",
        "UPDATE t SET a = a + 1",
    ] {
        pair.run(statement);
        pair.run(
            &statement
                .replace("TABLE t ", "TABLE k ")
                .replace("INTO t ", "INTO k ")
                .replace("UPDATE t ", "UPDATE k ")
                .replace("FROM t ", "FROM k "),
        );
        pair.compare();
    }
}

#[test]
fn mariadb_10_11_versioning_comes_and_goes() {
    versioning_comes_and_goes(Kind::MariaDb1011);
}

#[test]
fn mariadb_11_8_versioning_comes_and_goes() {
    versioning_comes_and_goes(Kind::MariaDb118);
}

/// Numbers of transactions are logged by statements alone.
#[test]
fn periods_of_transactions() {
    let mut pair = Pair::start(
        Kind::MariaDb1011,
        &["CREATE TABLE t (id INT PRIMARY KEY, a INT, \
           s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, \
           e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, \
           PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING"],
    );
    for statement in [
        "INSERT INTO t (id, a) VALUES (1, 1), (2, 2), (3, 3)",
        "UPDATE t SET a = a + 1 WHERE id < 3",
        "DELETE FROM t WHERE id = 2",
        "INSERT INTO t (id, a) VALUES (2, 5)",
        "DELETE HISTORY FROM t",
    ] {
        pair.run(statement);
        pair.compare();
    }
}
