//! What was applied is there: read by key, scanned, searched, and all of it again after reopening.

use crate::common::*;
use remora_engine::{Database, Error, Position, Value};

#[test]
fn rows_are_readable_and_survive_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let first = apply(&database, vec![put(2, 20, "second"), put(1, 10, "first")]).unwrap();
    let next = apply(&database, vec![put(3, 30, "Third"), delete(2), put(1, 11, "the first")]);
    assert_eq!((first, next.unwrap()), (Position(1), Position(2)));
    let expected = vec![row(1, 11, "the first"), row(3, 30, "Third")];
    let check = |database: &Database| {
        assert_eq!(rows(database), expected);
        assert_eq!(database.get(TABLE, &[Value::Int(1)]).unwrap().as_ref(), expected.first());
        assert_eq!(database.get(TABLE, &[Value::Int(2)]).unwrap(), None);
        assert_eq!(find(database, "FIRST"), [1]);
        assert_eq!(find(database, "ir"), [1, 3]);
        assert!(find(database, "second").is_empty());
        assert_eq!((count(database), database.position()), (2, Position(2)));
        assert_eq!(database.tables(), [TABLE]);
    };
    check(&database);
    database.checkpoint().unwrap();
    check(&database);
    database.close().unwrap();
    check(&Database::open(directory.path(), quick()).unwrap());
}

#[test]
fn the_position_of_a_source_is_kept_with_its_batch() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    assert_eq!(database.source_position("mysql").unwrap(), None);
    let mut changes = batch(vec![put(1, 1, "x")]);
    changes.positions.push(("mysql".to_owned(), "uuid:1-7".to_owned()));
    database.apply(changes).unwrap();
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!(database.source_position("mysql").unwrap().as_deref(), Some("uuid:1-7"));
    assert_eq!(database.source_position("other").unwrap(), None);
}

#[test]
fn closed_database_reports_it_and_unlocks_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let second = Database::open(directory.path(), quick()).err().unwrap();
    assert!(second.to_string().contains("in use by process"), "{second}");
    database.close().unwrap();
    assert!(matches!(apply(&database, vec![put(1, 1, "x")]), Err(Error::Closed)));
    assert!(matches!(database.get(TABLE, &[Value::Int(1)]), Err(Error::Closed)));
    open(directory.path(), quick()).close().unwrap();
    database.close().unwrap();
}

#[test]
fn a_batch_with_an_invalid_row_is_refused_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = quick();
    options.max_batch_changes = 2;
    options.max_row_bytes = 1_000;
    let database = open(directory.path(), options);
    let long = "x".repeat(2_000);
    for changes in [
        vec![put(1, 1, "a"), put(2, 2, "b"), put(3, 3, "c")],
        vec![put(1, 1, "a"), put(2, 2, &long)],
        vec![put(1, 1, "a"), remora_engine::Change::Put(vec![Value::Int(1)])],
    ] {
        assert!(matches!(apply(&database, changes), Err(Error::Request { .. })));
    }
    let mut elsewhere = batch(vec![put(1, 1, "a")]);
    elsewhere.tables[0].table = "nowhere".into();
    assert!(matches!(database.apply(elsewhere), Err(Error::NotFound { .. })));
    assert_eq!((rows(&database).len(), database.position()), (0, Position(0)));
}

/// A reader that is held does not keep the directory from being opened again.
#[test]
fn a_held_reader_does_not_keep_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "x")]).unwrap();
    let (reader, transaction) = (database.reader(), database.begin());
    database.close().unwrap();
    let again = open(directory.path(), quick());
    assert_eq!(count(&again), 1);
    assert!(matches!(reader.get(TABLE, &[Value::Int(1)]), Err(Error::Closed)));
    assert!(matches!(transaction.reader().row_count(TABLE), Err(Error::Closed)));
}
