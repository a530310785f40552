//! Rows that come without their hidden columns get them, once.

use std::sync::Arc;

use super::{
    fixture::{batch, rows, schema},
    start,
};
use crate::{
    Change, ColumnDef, ColumnType, Computing, Durability, Error, HIDDEN_PREFIX, IndexColumn, Row,
    Schema, Value, register_computing, storage::store::testing::FaultyStore,
};

/// The table "t" with a hidden column for the length of its text, by which it is indexed.
fn table() -> Schema {
    let mut schema = schema();
    schema.columns.push(ColumnDef {
        id: 3,
        name: format!("{HIDDEN_PREFIX}0.length"),
        kind: ColumnType::Int(64),
        nullable: true,
        indexed: true,
        declared: None,
    });
    schema.add_index([IndexColumn { column: 2, descending: false, order: None }]);
    schema
}

fn length(row: &mut Row) {
    let length = match row.get(1) {
        Some(Value::Text(text)) => Value::Int(text.len() as i64),
        _ => Value::Null,
    };
    row.push(length);
}

#[test]
fn rows_are_completed_where_they_come_without_what_is_computed() {
    register_computing(Computing { complete: |_, _| {}, computation: |_| Arc::new(length) });
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), store, Durability::Always);
    database.create_table(table()).unwrap();
    let row = |id: i64, text: &str| vec![Value::Int(id), Value::Text(text.into())];
    let whole = |id: i64, text: &str, length: i64| {
        let mut row = row(id, text);
        row.push(Value::Int(length));
        row
    };
    database.apply(batch(vec![Change::Put(row(1, "abc")), Change::Insert(row(2, ""))])).unwrap();
    // What comes whole stays as it is.
    database.apply(batch(vec![Change::Put(whole(3, "abc", 7))])).unwrap();
    database
        .apply(batch(vec![Change::Put(row(1, "abcd")), Change::Delete(vec![Value::Int(9)])]))
        .unwrap();
    assert_eq!(rows(&database), [whole(1, "abcd", 4), whole(2, "", 0), whole(3, "abc", 7)]);
    for wrong in [vec![Value::Int(4)], [whole(4, "a", 1), vec![Value::Null]].concat()] {
        let refused = database.apply(batch(vec![Change::Put(wrong)]));
        assert!(matches!(refused, Err(Error::Request { .. })), "{refused:?}");
    }
    assert_eq!(rows(&database).len(), 3);
}
