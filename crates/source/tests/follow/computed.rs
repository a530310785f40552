//! Hidden columns for keys over expressions, which somebody else knows how to compute: every row has them, whichever way
//! it came, and a table whose rows lack them is copied beside itself.

use std::sync::Arc;

use mysql::prelude::Queryable;
use remora_engine::{
    ColumnDef, ColumnType, ComputeRow, Computing, IndexColumn, Row, Schema, Value,
    register_computing,
};
use remora_peers::Kind;
use remora_source::mysql::{FollowerStatus, TableState};

use crate::pair::Pair;

const HIDDEN: &str = "#key.0.x";

/// A key `x`, or of a name that begins so, over any expression has a column for the length of the second column's text;
/// others are left out.
fn complete(schema: &mut Schema, previous: Option<&Schema>) -> Vec<String> {
    let keys: Vec<&String> = schema.declared.iter().flat_map(|declared| &declared.keys).collect();
    let others = keys.iter().filter(|key| key.starts_with("KEY `y` (("));
    let left_out = others.map(|_| "key y is not used: nobody knows it".to_owned()).collect();
    if !keys.iter().any(|key| key.starts_with("KEY `x") && key.contains("((")) {
        return left_out;
    }
    let number = |schema: &Schema| {
        let mut columns = schema.columns.iter();
        columns.find(|column| column.name == HIDDEN).map(|column| column.id)
    };
    let next = schema.columns.iter().map(|column| column.id).max().unwrap_or(0) + 1;
    let Some(id) = previous.map_or(Some(next), number) else { return left_out };
    schema.columns.push(ColumnDef {
        id,
        name: HIDDEN.to_owned(),
        kind: ColumnType::Int(64),
        nullable: true,
        indexed: true,
        declared: None,
    });
    let column = schema.columns.len() - 1;
    schema.add_index([IndexColumn { column, descending: false, order: None, prefix: None }]);
    left_out
}

fn computation(_schema: &Arc<Schema>) -> Option<ComputeRow> {
    Some(Arc::new(|row: &mut Row| {
        let length = match row.get(1) {
            Some(Value::Text(text)) if text.starts_with("never") => {
                return Err("key x is over a text that has no length".to_owned());
            }
            Some(Value::Text(text)) => Value::Int(text.len() as i64),
            _ => Value::Null,
        };
        row.push(length);
        Ok(())
    }))
}

/// How often a table was copied since the start, and what is told of its keys.
fn copies(pair: &Pair, name: &str) -> (u64, Option<String>) {
    let full = format!("shop.{name}");
    // Who only asks what is followed does not pay for it.
    assert!(pair.status().tables.iter().all(|table| table.keys_missing.is_none()));
    let status = pair.follower().full_status();
    let table = status.tables.into_iter().find(|table| table.table == full).unwrap();
    (table.copied.map_or(0, |copied| copied.times), table.keys_missing)
}

/// Whether the table here has the hidden column.
fn has_column(pair: &Pair, name: &str) -> bool {
    let schema = pair.database().schema(&format!("shop.{name}")).unwrap();
    schema.columns.iter().any(|column| column.name == HIDDEN)
}

/// The rows are the source's, each with the length of its text.
fn check(pair: &mut Pair, name: &str) {
    pair.catch_up();
    assert!(has_column(pair, name), "{name}");
    let sql = format!("SELECT id, name, LENGTH(name) FROM {name} ORDER BY 1, 2, 3");
    let rows: Vec<(i64, Option<String>, Option<i64>)> = pair.conn.query(sql).unwrap();
    let null = || "NULL".to_owned();
    let text = |(id, name, length): (i64, Option<String>, Option<i64>)| {
        let length = length.map_or_else(null, |length| length.to_string());
        vec![id.to_string(), name.unwrap_or_else(null), length]
    };
    let mut theirs: Vec<Vec<String>> = rows.into_iter().map(text).collect();
    theirs.sort();
    let mut ours: Vec<Vec<String>> = pair.rows(name);
    for row in &mut ours {
        row.drain(2..row.len() - 1);
    }
    ours.sort();
    assert_eq!(ours, theirs, "{name}");
}

#[test]
fn followed_rows_have_key_expression_columns() {
    register_computing(Computing { complete, computation });
    let mut pair = Pair::start(
        Kind::MySql97,
        &[
            "CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(20), KEY x ((LOWER(name))))",
            "CREATE TABLE loose (id INT, name VARCHAR(20), KEY x ((LOWER(name))))",
            "CREATE TABLE kids (id INT PRIMARY KEY, name VARCHAR(20), good INT, KEY x ((LOWER(name))), \
             FOREIGN KEY (good) REFERENCES goods (id) ON DELETE CASCADE ON UPDATE CASCADE)",
            "INSERT INTO goods VALUES (1, 'one'), (2, 'two'), (3, NULL), (4, 'four')",
            "INSERT INTO loose VALUES (1, 'one'), (1, 'one'), (2, NULL)",
            "INSERT INTO kids VALUES (1, 'Ann', 1), (2, 'Bo', 2), (3, 'C', 4)",
        ],
    );
    ["goods", "loose", "kids"].iter().for_each(|name| check(&mut pair, name));
    for change in [
        "INSERT INTO goods VALUES (5, 'fifth')",
        "UPDATE goods SET name = CONCAT(name, '!') WHERE id < 3",
        "INSERT INTO loose SELECT * FROM loose",
        "UPDATE loose SET name = 'longer' WHERE id = 1 LIMIT 1",
        "DELETE FROM loose WHERE name IS NULL LIMIT 1",
        "UPDATE goods SET id = 20 WHERE id = 2",
        "DELETE FROM goods WHERE id = 1",
        "ALTER TABLE goods ADD COLUMN more INT DEFAULT 3",
        "INSERT INTO goods VALUES (6, 'sixth', 1)",
        "CREATE TABLE twin LIKE goods",
        "INSERT INTO twin SELECT * FROM goods",
    ] {
        pair.run(change);
        ["goods", "loose", "kids"].iter().for_each(|name| check(&mut pair, name));
    }
    check(&mut pair, "twin");
    pair.run("DROP INDEX x ON goods");
    pair.catch_up();
    assert!(!has_column(&pair, "goods"));
    pair.run("INSERT INTO goods VALUES (7, 'seventh', 2)");
    pair.run("CREATE INDEX x ON goods ((UPPER(name)))");
    pair.run("INSERT INTO goods VALUES (8, 'eighth', 2)");
    pair.catch_up();
    pair.wait("a copy with the column", |_| has_column(&pair, "goods"));
    check(&mut pair, "goods");
    // A key that comes while nothing is open.
    pair.run("DROP INDEX x ON loose");
    pair.catch_up();
    pair.close();
    pair.run("CREATE INDEX x ON loose ((UPPER(name)))");
    pair.run("INSERT INTO goods VALUES (9, 'ninth', 2)");
    pair.open();
    pair.catch_up();
    pair.wait("a copy with the column", |_| has_column(&pair, "loose"));
    ["goods", "loose", "kids", "twin"].iter().for_each(|name| check(&mut pair, name));
    // Another name of a key is no reason to copy, nor is a key that nobody knows, which is told.
    let before = copies(&pair, "goods");
    pair.run("ALTER TABLE goods RENAME INDEX x TO x2");
    pair.run("CREATE INDEX y ON goods ((REVERSE(name)))");
    pair.run("INSERT INTO goods VALUES (10, 'tenth', 2)");
    check(&mut pair, "goods");
    let told = Some("key y is not used: nobody knows it".to_owned());
    assert_eq!((copies(&pair, "goods"), before.1), ((before.0, told), None));
}

#[test]
fn interrupted_copy_of_a_table_without_key_restarts() {
    register_computing(Computing { complete, computation });
    let mut pair = Pair::start(
        Kind::MySql97,
        &[
            "CREATE TABLE loose (id INT, name VARCHAR(20))",
            "INSERT INTO loose VALUES (1, 'one'), (1, 'one'), (2, NULL), (3, 'three')",
        ],
    );
    for _ in 0..10 {
        pair.run("INSERT INTO loose SELECT * FROM loose");
    }
    pair.catch_up();
    pair.close();
    pair.settings.copy_rows_per_second = Some(200);
    pair.open();
    pair.catch_up();
    pair.run("CREATE INDEX x ON loose ((UPPER(name)))");
    pair.wait("a copy", |status| {
        status.tables.iter().any(|table| {
            table.table == "shop.loose" && matches!(table.state, TableState::Copying { .. })
        })
    });
    assert!(!has_column(&pair, "loose"), "the copy was too fast to be interrupted");
    pair.close();
    pair.settings.copy_rows_per_second = None;
    pair.open();
    pair.wait("a copy with the column", |_| has_column(&pair, "loose"));
    pair.run("INSERT INTO loose VALUES (4, 'last')");
    check(&mut pair, "loose");
}

#[test]
fn row_with_failing_key_expression_drops_only_the_key() {
    register_computing(Computing { complete, computation });
    let mut pair = Pair::start(
        Kind::MySql97,
        &[
            "CREATE TABLE odd (id INT PRIMARY KEY, name VARCHAR(20), KEY x_odd ((LOWER(name))))",
            "INSERT INTO odd VALUES (1, 'one')",
        ],
    );
    check(&mut pair, "odd");
    pair.run("INSERT INTO odd VALUES (2, 'never')");
    pair.wait("a copy without the column", |_| !has_column(&pair, "odd"));
    pair.run("INSERT INTO odd VALUES (3, 'three')");
    pair.run("UPDATE odd SET name = 'never again' WHERE id = 1");
    pair.catch_up();
    assert_eq!(pair.rows("odd").len(), 3);
    let told = copies(&pair, "odd").1.unwrap();
    assert!(told.contains("a text that has no length"), "{told}");
    let is_live = |status: &FollowerStatus| {
        status.tables.iter().all(|table| matches!(table.state, TableState::Live))
    };
    pair.wait("all tables live", is_live);
}
