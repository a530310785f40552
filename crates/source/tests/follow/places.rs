//! Definitions hold at their places in the stream, wherever the source is meanwhile.

use remora_peers::Kind;
use remora_source::mysql::{State, TableState};

use crate::pair::Pair;

const GOODS: [&str; 3] = [
    "CREATE TABLE goods (id INT PRIMARY KEY, note VARCHAR(20), a INT, b INT)",
    "INSERT INTO goods VALUES (1, 'a note', 1, 10), (2, 'another note', 2, 20)",
    "CREATE TABLE others (id INT PRIMARY KEY, a INT)",
];

/// What a source does while nobody follows: from the two ends alone no change can be seen that
/// explains the rows.
const MEANWHILE: [&[&str]; 8] = [
    &[
        "ALTER TABLE goods ADD COLUMN c INT NOT NULL DEFAULT 1",
        "INSERT INTO goods (id, note, a, b) VALUES (3, 'third', 3, 30)",
        "ALTER TABLE goods ALTER COLUMN c SET DEFAULT 2",
    ],
    &["ALTER TABLE goods MODIFY note VARCHAR(3)", "ALTER TABLE goods MODIFY note VARCHAR(20)"],
    &[
        "ALTER TABLE goods CHANGE a b INT, CHANGE b a INT",
        "INSERT INTO goods (id, note, a, b) VALUES (4, 'swapped', 4, 40)",
        "UPDATE goods SET a = 7 WHERE id = 1",
        "ALTER TABLE goods CHANGE a x INT",
        "ALTER TABLE goods CHANGE x a INT",
    ],
    &[
        "ALTER TABLE goods ADD COLUMN first_of_all INT FIRST",
        "UPDATE goods SET first_of_all = id",
        "ALTER TABLE goods ADD INDEX (a)",
        "ALTER TABLE goods MODIFY first_of_all VARCHAR(9)",
        "UPDATE goods SET first_of_all = 'x' WHERE id = 2",
    ],
    &[
        "ALTER TABLE goods DROP COLUMN first_of_all",
        "ALTER TABLE goods ADD COLUMN first_of_all INT DEFAULT 9",
    ],
    &[
        "RENAME TABLE goods TO old_goods",
        "CREATE TABLE goods LIKE old_goods",
        "INSERT INTO goods SELECT * FROM old_goods WHERE id > 1",
        "ALTER TABLE goods ADD COLUMN late INT DEFAULT 5",
        "UPDATE goods SET late = 6 WHERE id = 2",
        "DROP TABLE old_goods",
    ],
    &[
        "TRUNCATE TABLE goods",
        "ALTER TABLE goods DROP COLUMN late",
        "INSERT INTO goods (id, note) VALUES (9, 'after')",
        "RENAME TABLE others TO x, goods TO others, x TO goods",
        "ALTER TABLE goods ADD COLUMN y INT",
        "INSERT INTO goods VALUES (1, 2, 3)",
    ],
    &[
        "DROP TABLE goods",
        "CREATE TABLE goods (id INT PRIMARY KEY, b INT, a INT)",
        "INSERT INTO goods VALUES (1, 2, 3)",
        "DROP TABLE goods",
        "CREATE TABLE goods (id INT PRIMARY KEY, a INT, b INT)",
        "INSERT INTO goods VALUES (1, 4, 5)",
    ],
];

/// With `stopped` the follower stays as it is, else it begins anew with what is stored.
fn changes_made_while_stopped_are_followed(kind: Kind, stopped: bool) {
    let mut pair = Pair::start(kind, &GOODS);
    pair.run("SET sql_mode = ''");
    pair.compare();
    for statements in MEANWHILE {
        println!("{statements:?}");
        if stopped {
            pair.follower().stop().unwrap();
            pair.wait("a stop", |status| status.state == State::Stopped);
        } else {
            pair.close();
        }
        statements.iter().for_each(|statement| pair.run(statement));
        if stopped {
            pair.follower().resume().unwrap();
        } else {
            pair.open();
        }
        pair.compare();
    }
}

#[test]
fn mariadb_10_11_follows_changes_made_while_stopped() {
    changes_made_while_stopped_are_followed(Kind::MariaDb1011, true);
    changes_made_while_stopped_are_followed(Kind::MariaDb1011, false);
}

#[test]
fn mysql_9_7_follows_changes_made_while_stopped() {
    changes_made_while_stopped_are_followed(Kind::MySql97, true);
    changes_made_while_stopped_are_followed(Kind::MySql97, false);
}

#[test]
fn mysql_5_6_follows_changes_made_while_stopped() {
    changes_made_while_stopped_are_followed(Kind::MySql56, true);
}

/// A column that stands elsewhere here than at the source is no other definition.
/// What was dropped while nobody looked is no reason not to look.
#[test]
fn database_dropped_while_stopped_is_dropped_here() {
    let mut pair = Pair::start(Kind::MariaDb1011, &["CREATE TABLE t (id INT PRIMARY KEY)"]);
    pair.run("INSERT INTO t VALUES (1)");
    pair.compare();
    pair.close();
    pair.run("DROP DATABASE shop");
    pair.open();
    pair.catch_up();
    assert_eq!(pair.database().tables(), Vec::<String>::new());
    pair.run("CREATE DATABASE shop");
    pair.reconnect();
    pair.run("CREATE TABLE u (id INT PRIMARY KEY)");
    pair.run("INSERT INTO u VALUES (2)");
    assert_eq!(pair.compare(), ["u"]);
}

#[test]
fn restart_copies_no_table_again() {
    let mut pair = Pair::start(Kind::MySql97, &GOODS);
    pair.compare();
    pair.run("ALTER TABLE goods ADD COLUMN front INT FIRST");
    pair.run("INSERT INTO goods (id, front) VALUES (5, 5)");
    pair.compare();
    let number = |pair: &Pair| pair.database().table_version("shop.goods").unwrap().table;
    let before = number(&pair);
    pair.close();
    pair.open();
    pair.compare();
    assert_eq!(number(&pair), before);
}

/// What `sql_log_bin = 0` hides is noticed when rows do not fit, and at the next start.
fn changes_that_are_not_logged_lead_to_copies(kind: Kind) {
    let mut pair = Pair::start(kind, &GOODS);
    pair.compare();
    pair.run("SET sql_log_bin = 0");
    pair.run("ALTER TABLE goods ADD COLUMN silent INT DEFAULT 4");
    pair.run("SET sql_log_bin = 1");
    pair.run("INSERT INTO goods (id) VALUES (7)");
    pair.wait("a copy with the column", |_| {
        pair.database().schema("shop.goods").is_ok_and(|schema| schema.columns.len() == 5)
    });
    pair.compare();
    pair.close();
    pair.run("SET sql_log_bin = 0");
    pair.run("ALTER TABLE goods DROP COLUMN silent");
    pair.run("DROP TABLE others");
    pair.run("SET sql_log_bin = 1");
    pair.open();
    pair.wait("the end of a table", |_| {
        matches!(pair.state("others"), Some(TableState::Stopped(_)))
    });
    pair.wait("a copy without the column", |_| {
        pair.database().schema("shop.goods").is_ok_and(|schema| schema.columns.len() == 4)
    });
    pair.compare_table("goods");
}

#[test]
fn mariadb_10_11_copies_tables_after_unlogged_changes() {
    changes_that_are_not_logged_lead_to_copies(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_copies_tables_after_unlogged_changes() {
    changes_that_are_not_logged_lead_to_copies(Kind::MySql97);
}

/// Where the source folds names they may be written in any case.
#[test]
fn names_are_followed_in_any_case() {
    let options = ["--lower-case-table-names=1"];
    let mut pair = Pair::start_with(Kind::MariaDb1011, &options, &GOODS, |_| {});
    pair.compare();
    pair.run("ALTER TABLE GOODS CHANGE a b INT, CHANGE b a INT");
    pair.run("TRUNCATE TABLE Others");
    pair.run("INSERT INTO Others VALUES (5, 5)");
    pair.compare();
    pair.run("RENAME TABLE Others TO MORE");
    pair.run("DROP TABLE shop.`Goods`");
    assert_eq!(pair.compare(), ["more"]);
}
