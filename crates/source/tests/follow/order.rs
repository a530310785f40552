//! The order of columns.

use remora_engine::{Definition, Schema};
use remora_peers::Kind;
use remora_source::mysql::TableState;
use serde_json::{Value, json};

use crate::pair::Pair;

const THINGS: [&str; 2] = [
    "CREATE TABLE things (id INT PRIMARY KEY, a INT, b INT, v VARCHAR(100))",
    "INSERT INTO things VALUES (1, 2, 3, 'four'), (5, 6, 7, 'eight'), (9, 10, 11, 'twelve')",
];

/// Each changes the order, or rows in it. All columns but one are of the same type, so that a value
/// in the wrong place is a wrong value.
const CHANGES: [&str; 14] = [
    "ALTER TABLE things MODIFY b INT FIRST",
    "UPDATE things SET a = a + 100 WHERE id = 1",
    "ALTER TABLE things ADD c INT DEFAULT 7 FIRST",
    "INSERT INTO things VALUES (13, 14, 15, 16, 'seventeen')",
    "ALTER TABLE things ADD d INT AFTER id",
    "UPDATE things SET d = id + a",
    "ALTER TABLE things CHANGE a e INT AFTER c",
    "DELETE FROM things WHERE id = 5",
    "ALTER TABLE things MODIFY v VARCHAR(100) FIRST, MODIFY id INT AFTER d",
    "UPDATE things SET v = 'moved' WHERE c = 7",
    "ALTER TABLE things DROP c, MODIFY e INT AFTER id",
    "INSERT INTO things (id, b) VALUES (20, 21)",
    "ALTER TABLE things CHANGE b e2 INT, CHANGE e b INT FIRST, ADD last INT NOT NULL DEFAULT 3 AFTER b",
    "UPDATE things SET last = COALESCE(b, 0) + COALESCE(e2, 0)",
];

/// The numbers of the columns in their order: those of a fresh copy count up from 1.
fn numbers(pair: &Pair) -> Vec<u32> {
    let schema = pair.database().schema("shop.things").unwrap();
    schema.columns.iter().map(|column| column.id).collect()
}

fn the_order_is_the_sources(kind: Kind) {
    let mut pair = Pair::start(kind, &THINGS);
    pair.compare();
    for change in CHANGES {
        println!("{change}");
        pair.run(change);
        pair.compare();
        assert!(!numbers(&pair).is_sorted(), "copied by {change}");
    }
    pair.database().optimize(Some("shop.things")).unwrap();
    pair.compare();
    pair.close();
    pair.run("ALTER TABLE things MODIFY id INT FIRST");
    pair.run("UPDATE things SET v = 'while it was down' WHERE id = 9");
    pair.open();
    pair.compare();
    // Rows of older orders are still on their way when the source is asked.
    pair.follower().stop().unwrap();
    for change in ["MODIFY v VARCHAR(100) FIRST", "MODIFY b INT FIRST", "MODIFY id INT AFTER v"] {
        pair.run("UPDATE things SET b = 1 + COALESCE(b, 0)");
        pair.run(&format!("ALTER TABLE things {change}"));
    }
    pair.follower().resume().unwrap();
    pair.compare();
}

#[test]
fn mariadb_sort_order_matches() {
    the_order_is_the_sources(Kind::MariaDb1011);
}

/// Columns are added at once there, wherever they stand.
#[test]
fn mysql_sort_order_matches() {
    the_order_is_the_sources(Kind::MySql97);
}

#[test]
fn mysql_5_6_sort_order_matches() {
    the_order_is_the_sources(Kind::MySql56);
}

/// The order changes while the table is copied, and again while the copy waits for a restart.
#[test]
fn resumed_copy_uses_the_new_column_order() {
    let mut pair = Pair::start_with(Kind::MariaDb1011, &[], &THINGS, |settings| {
        settings.chunk_rows = 50;
        settings.copy_rows_per_second = Some(1_000);
    });
    pair.run("INSERT INTO things SELECT seq, seq + 1, seq + 2, 'many' FROM seq_100_to_4000");
    pair.compare();
    let is_copying = |pair: &Pair, least: u64| {
        let state = pair.state("things");
        matches!(state, Some(TableState::Copying { rows, .. }) if rows >= least)
    };
    pair.follower().sync("shop.things").unwrap();
    pair.wait("the beginning of the copy", |_| is_copying(&pair, 500));
    pair.run("ALTER TABLE things MODIFY b INT FIRST");
    pair.run("UPDATE things SET a = -a WHERE id % 7 = 0");
    pair.wait("more of the copy", |_| is_copying(&pair, 1_000));
    pair.close();
    pair.run("ALTER TABLE things MODIFY a INT FIRST");
    pair.run("UPDATE things SET b = -b WHERE id % 5 = 0");
    pair.open();
    pair.compare();
    assert!(!numbers(&pair).is_sorted(), "the copy began anew");
}

/// A directory of a version that put new columns at the end, and its copies too.
#[test]
fn column_order_of_older_versions_is_corrected() {
    let mut pair = Pair::start(Kind::MariaDb1011, &THINGS);
    pair.compare();
    pair.run("ALTER TABLE things MODIFY b INT FIRST");
    pair.compare();
    let key = format!("{}/table/shop.things", pair.settings.name);
    pair.follower.take().unwrap().close();
    let database = pair.database();
    let mut stored: Value =
        serde_json::from_str(&database.source_position(&key).unwrap().unwrap()).unwrap();
    let columns = stored["columns"].as_array_mut().unwrap();
    let moved = columns.remove(0);
    columns.push(moved);
    stored["key"] = json!([0]);
    let mut schema = Schema::clone(&database.schema("shop.things").unwrap());
    let moved = schema.columns.remove(0);
    schema.columns.push(moved);
    schema.primary_key = vec![0];
    schema.texts[0].columns = vec![2];
    let alter = Definition::Alter { schema, fills: Vec::new() };
    database.define(vec![alter], vec![(key, stored.to_string())]).unwrap();
    pair.database.take().unwrap().close().unwrap();
    pair.run("UPDATE things SET a = 70, b = 80 WHERE id = 1");
    pair.open();
    pair.compare();
    assert_eq!(numbers(&pair), [3, 1, 2, 4], "copied");
    pair.follower().sync("shop.things").unwrap();
    pair.run("UPDATE things SET a = 71, b = 81 WHERE id = 1");
    pair.compare();
}
