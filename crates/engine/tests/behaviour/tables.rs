//! Tables are made, found again, dropped, and made anew without anything of the old one.

use crate::common::*;
use remora_engine::{Comparison, Database, Error, Filter, Literal, Value};

#[test]
fn a_table_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    database.create_table(schema()).unwrap();
    let mut other = schema();
    other.columns[1].nullable = false;
    assert!(matches!(database.create_table(other), Err(Error::Conflict(_))));
    assert_eq!(*database.schema(TABLE).unwrap(), schema());
}

#[test]
fn a_dropped_table_is_gone_and_a_new_one_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "old")]).unwrap();
    database.checkpoint().unwrap();
    database.drop_table(TABLE).unwrap();
    assert!(matches!(database.drop_table(TABLE), Err(Error::NotFound { .. })));
    assert!(matches!(apply(&database, vec![put(1, 1, "x")]), Err(Error::NotFound { .. })));
    database.create_table(schema()).unwrap();
    assert_eq!((count(&database), rows(&database).len()), (0, 0));
    apply(&database, vec![put(2, 2, "new")]).unwrap();
    drop(database);
    let database = Database::open(directory.path(), quick()).unwrap();
    assert_eq!((find(&database, "new"), find(&database, "old")), (vec![2], vec![]));
    assert_eq!(rows(&database), [row(2, 2, "new")]);
}

#[test]
fn rows_outside_the_required_filter_are_invisible() {
    let directory = tempfile::tempdir().unwrap();
    let mut definition = schema();
    definition.required = Some(Filter::Compare {
        column: "score".to_owned(),
        comparison: Comparison::GreaterOrEqual,
        literal: Literal::Text("5".to_owned()),
    });
    let database = Database::open(directory.path(), quick()).unwrap();
    database.create_table(definition).unwrap();
    apply(&database, vec![put(1, 4, "low"), put(2, 5, "high"), put(3, 9, "high")]).unwrap();
    let check = |database: &Database| {
        assert_eq!((count(database), rows(database).len()), (1, 1));
        assert_eq!(find(database, "high"), [3]);
        assert_eq!(database.get(TABLE, &[Value::Int(1)]).unwrap(), None);
    };
    apply(&database, vec![put(2, 1, "high")]).unwrap();
    check(&database);
    drop(database);
    check(&Database::open(directory.path(), quick()).unwrap());
    for name in ["MANIFEST", "MANIFEST.tmp"] {
        let _ = std::fs::remove_file(directory.path().join(name));
    }
    check(&Database::open(directory.path(), quick()).unwrap());
}
