//! Rows of a table whose keys are over expressions come with what those give, or not at all.

use std::sync::{Arc, atomic::AtomicBool};

use super::{
    fixture::{batch, rows, schema},
    start,
};
use crate::{
    Change, ColumnDef, ColumnType, Durability, Error, HIDDEN_PREFIX, IndexColumn, RequestPart,
    Schema, Value, storage::store::testing::FaultyStore,
};

/// The table "t" with a hidden column for the length of its text, by which it is indexed.
fn table() -> Schema {
    let mut schema = schema();
    schema.columns.push(ColumnDef {
        id: 3,
        name: format!("{HIDDEN_PREFIX}0.by.length"),
        kind: ColumnType::Int(64),
        nullable: true,
        indexed: true,
        declared: None,
    });
    schema.add_index([IndexColumn { column: 2, descending: false, order: None }]);
    schema
}

#[test]
fn rows_without_what_keys_are_over_are_refused_by_every_door() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), Arc::new(FaultyStore::default()), Durability::Always);
    database.create_table(table()).unwrap();
    let whole = |id: i64, text: &str, length: Value| -> Vec<Value> {
        vec![Value::Int(id), Value::Text(text.into()), length]
    };
    // NULL is what writers give for columns that they do not know.
    let unknown = || batch(vec![Change::Put(whole(1, "abc", Value::Null))]);
    let refused = |result: Result<(), Error>| match result {
        Err(Error::Request { part: RequestPart::Row, message }) => {
            assert!(message.contains("(by.length)") && message.contains("by SQL"), "{message}");
        }
        other => panic!("{other:?}"),
    };
    refused(database.apply(unknown()).map(drop));
    refused(database.apply(batch(vec![Change::Insert(whole(1, "a", Value::Int(1)))])).map(drop));
    refused(database.begin().commit(unknown()).map(drop));
    refused(database.pipeline().submit(unknown()).map(drop));
    refused(database.begin_large().unwrap().add(unknown().tables));
    assert!(rows(&database).is_empty());
    let first = whole(1, "abc", Value::Int(3));
    database.apply_computed(batch(vec![Change::Put(first.clone())])).unwrap();
    let second = whole(2, "", Value::Int(0));
    database.begin().commit_computed(batch(vec![Change::Insert(second.clone())])).unwrap();
    assert_eq!(rows(&database), [first.clone(), second]);
    // Who only deletes computes nothing.
    database.apply(batch(vec![Change::Delete(vec![Value::Int(2)])])).unwrap();
    assert_eq!(rows(&database), std::slice::from_ref(&first));
    // A dump has the rows whole.
    let dump = directory.path().join("dump");
    database.dump(&[], &dump, &mut |_| (), &AtomicBool::new(false)).unwrap();
    let other = tempfile::tempdir().unwrap();
    let restored = start(other.path(), Arc::new(FaultyStore::default()), Durability::Always);
    restored.restore(&dump).unwrap();
    assert_eq!(rows(&restored), [first]);
}

#[test]
fn names_are_known_in_any_case() {
    let schema = table();
    assert_eq!([0, 1, 2, 3].map(|place| schema.is_computed(place)), [false, false, true, false]);
    for (name, expected) in
        [("#KEY.0.x", true), ("#key.", true), ("#key", false), ("#row", false), ("é#key.", false)]
    {
        assert_eq!(crate::is_computed_name(name), expected, "{name}");
    }
}
