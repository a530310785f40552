//! Rows of a table with keys over expressions: the values are computed, or the row is refused.

use std::sync::{Arc, atomic::AtomicBool};

use super::{
    fixture::{batch, rows, schema},
    start,
};
use crate::{
    Change, ColumnDef, ColumnType, ComputeRow, Computing, DeclaredTable, Durability, Error,
    HIDDEN_PREFIX, IndexColumn, RequestPart, Row, Schema, Value, register_computing,
    storage::store::testing::FaultyStore,
};

/// The table "t" with an indexed hidden column for the length of its text.
fn table(key: &str) -> Schema {
    let mut schema = schema();
    schema.columns.push(ColumnDef {
        id: 3,
        name: format!("{HIDDEN_PREFIX}0.{key}"),
        kind: ColumnType::Int(64),
        nullable: true,
        indexed: true,
        declared: None,
    });
    schema.add_index([IndexColumn { column: 2, descending: false, order: None, prefix: None }]);
    schema
}

#[test]
fn rows_without_key_expression_columns_are_refused_by_every_write_path() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), Arc::new(FaultyStore::default()), Durability::Always);
    database.create_table(table("by.length")).unwrap();
    let whole = |id: i64, text: &str, length: Value| -> Vec<Value> {
        vec![Value::Int(id), Value::Text(text.into()), length]
    };
    // NULL is what writers give for columns they do not know.
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
    // A delete needs no computed values.
    database.apply(batch(vec![Change::Delete(vec![Value::Int(2)])])).unwrap();
    assert_eq!(rows(&database), std::slice::from_ref(&first));
    // A dump contains hidden columns.
    let dump = directory.path().join("dump");
    database.dump(&[], &dump, &mut |_| (), &AtomicBool::new(false)).unwrap();
    let other = tempfile::tempdir().unwrap();
    let restored = start(other.path(), Arc::new(FaultyStore::default()), Durability::Always);
    restored.restore(&dump).unwrap();
    assert_eq!(rows(&restored), [first]);
}

#[test]
fn names_are_known_in_any_case() {
    let schema = table("k");
    assert_eq!([0, 1, 2, 3].map(|place| schema.is_computed(place)), [false, false, true, false]);
    for (name, expected) in
        [("#KEY.0.x", true), ("#key.", true), ("#key", false), ("#row", false), ("é#key.", false)]
    {
        assert_eq!(crate::is_computed_name(name), expected, "{name}");
    }
}

#[test]
fn keys_that_fail_on_a_row_are_dropped() {
    register_computing(Computing { complete: |_, _| Vec::new(), computation });
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), Arc::new(FaultyStore::default()), Durability::Always);
    let declared = |keys: &[&str]| {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        Some(DeclaredTable {
            keys,
            options: "ENGINE=InnoDB".to_owned(),
            ..DeclaredTable::default()
        })
    };
    let mut known = table("known");
    known.declared = declared(&["PRIMARY KEY (`id`)", "KEY `known` ((length(`text`)))"]);
    database.create_table(known.clone()).unwrap();
    let put = |text: &str| {
        let row = vec![Value::Int(1), Value::Text(text.into())];
        database.apply(batch(vec![Change::Put(row)])).map(drop)
    };
    put("abc").unwrap();
    assert_eq!(known.computing_failure(), None);
    assert!(put("abcd").is_err());
    // Another table that declares the same keys, without hidden columns yet.
    let mut anew = Schema { name: "other".to_owned(), ..known.clone() };
    anew.columns.truncate(2);
    anew.indexes.clear();
    let left_out = anew.complete(None).unwrap();
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].contains("key known is over four"), "{left_out:?}");
    assert_eq!(anew.columns.len(), 2);
    assert!(known.keys_left_out()[0].contains("key known is over four"));
    // Other keys are possible.
    anew.declared = declared(&["PRIMARY KEY (`id`)", "KEY `other` ((length(`text`)))"]);
    assert_eq!(anew.complete(None).unwrap(), Vec::<String>::new());
    assert_eq!(anew.computing_failure(), None);
}

/// Computes text lengths for tables whose key is named "known"; a text of four bytes fails.
fn computation(schema: &Arc<Schema>) -> Option<ComputeRow> {
    let is_known = schema.columns.last()?.name.ends_with(".known");
    is_known.then(|| -> ComputeRow {
        Arc::new(|row: &mut Row| match row.get(1) {
            Some(Value::Text(text)) if text.len() == 4 => Err("key known is over four".to_owned()),
            Some(Value::Text(text)) => {
                let length = Value::Int(text.len() as i64);
                row.push(length);
                Ok(())
            }
            _ => Err("no text".to_owned()),
        })
    })
}

#[test]
fn computed_columns_are_added_to_incomplete_rows() {
    register_computing(Computing { complete: |_, _| Vec::new(), computation });
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), Arc::new(FaultyStore::default()), Durability::Always);
    database.create_table(table("known")).unwrap();
    let row = |id: i64, text: &str| vec![Value::Int(id), Value::Text(text.into())];
    let whole = |id: i64, text: &str, length: i64| -> Row {
        [row(id, text), vec![Value::Int(length)]].concat()
    };
    database.apply(batch(vec![Change::Put(row(1, "abc")), Change::Insert(row(2, ""))])).unwrap();
    // Given values are computed again, because queries expect those computed here.
    database.apply(batch(vec![Change::Put(whole(3, "ab", 7))])).unwrap();
    database.apply_computed(batch(vec![Change::Put(whole(4, "ab", 7))])).unwrap();
    database.begin().commit_computed(batch(vec![Change::Put(whole(5, "ab", 7))])).unwrap();
    database.begin().commit_computed(batch(vec![Change::Delete(vec![Value::Int(5)])])).unwrap();
    database.begin().commit_computed(batch(vec![Change::Insert(whole(5, "a", 7))])).unwrap();
    database
        .apply(batch(vec![Change::Put(row(1, "abcde")), Change::Delete(vec![Value::Int(9)])]))
        .unwrap();
    let expected = [whole(1, "abcde", 5), whole(2, "", 0), whole(3, "ab", 2), whole(4, "ab", 2)];
    let expected = [&expected[..], &[whole(5, "a", 1)]].concat();
    assert_eq!(rows(&database), expected);
    // Too few or too many values, and values that cannot be computed.
    for wrong in [
        vec![Value::Int(5)],
        [whole(5, "a", 1), vec![Value::Null]].concat(),
        row(5, "abcd"),
        whole(5, "abcd", 4),
    ] {
        let refused = database.apply(batch(vec![Change::Put(wrong)]));
        assert!(matches!(refused, Err(Error::Request { .. })), "{refused:?}");
    }
    // Rows of sources have exactly the visible columns: a longer one is refused, not cut.
    let told = database.pipeline().submit(batch(vec![Change::Put(whole(6, "a", 1))]));
    let told = told.map(drop).unwrap_err().to_string();
    assert!(told.contains("3 values") && told.contains("give 2 values"), "{told}");
    let put = |row: Row| batch(vec![Change::Put(row)]).tables;
    let mut large = database.begin_large().unwrap();
    assert!(matches!(large.add(put(whole(6, "a", 1))), Err(Error::Request { .. })));
    large.add(put(row(6, "a"))).unwrap();
    large.commit(Vec::new()).unwrap();
    database.pipeline().submit(batch(vec![Change::Put(row(7, "ab"))])).unwrap().wait().unwrap();
    assert_eq!(rows(&database)[5..], [whole(6, "a", 1), whole(7, "ab", 2)]);
    let told = database.apply(batch(vec![Change::Put(row(8, "abcd"))])).unwrap_err().to_string();
    assert!(told.contains("key known is over four") && told.contains("Int(8)"), "{told}");
    assert_eq!(rows(&database).len(), 7);
}
