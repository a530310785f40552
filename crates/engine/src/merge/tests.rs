//! What happens to a table while one of its merges runs.

use std::{sync::Arc, time::Instant};

use super::{QUIET, Quiet, Size, merge_claimed, plan::SEGMENTS_MAX};
use crate::{
    Change, Database, Durability, Options, Position, Value,
    store::testing::FaultyStore,
    write::fixture::{batch, count, put, rows, schema},
};

fn start(directory: &std::path::Path) -> Database {
    let options = Options { durability: Durability::None, ..Options::default() };
    let store = Arc::new(FaultyStore::default());
    let database = Database::start(directory, options, store, None).unwrap();
    database.create_table(schema()).unwrap();
    database
}

fn delete(id: i64) -> Change {
    Change::Delete(vec![Value::Int(id)])
}

/// Ids whose documents are live in the index, ascending.
fn live(database: &Database) -> Vec<i64> {
    let view = database.view("t");
    let mut ids: Vec<i64> = rows(database)
        .iter()
        .filter_map(|row| match row[0] {
            Value::Int(id) => Some(id),
            _ => None,
        })
        .filter(|&id| {
            let key = crate::encode::encode_key(&view.schema, &[Value::Int(id)]).unwrap();
            view.segments.iter().filter(|segment| segment.has_live(&key)).count() == 1
        })
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn deletions_and_replacements_during_a_merge_are_carried_over() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    for first in [0, 10, 20] {
        let ids = first..first + 10;
        database
            .apply(batch(ids.flat_map(|id| put(id, "old").tables.remove(0).changes).collect()))
            .unwrap();
    }
    database.apply(batch(vec![delete(3)])).unwrap();
    let shared = database.shared();
    let claim = shared.published.claim_all("t").unwrap().unwrap();
    // One segment loses some documents, one all of them, and then the writer drops it.
    database.apply(batch(vec![delete(4), delete(21)])).unwrap();
    database.apply(put(5, "new")).unwrap();
    database.apply(batch((10..20).map(delete).collect())).unwrap();
    merge_claimed(shared, &claim).unwrap();
    drop(claim);
    let expected: Vec<i64> =
        (0..30).filter(|id| ![3, 4, 21].contains(id) && !(10..20).contains(id)).collect();
    assert_eq!(live(&database), expected);
    assert_eq!(count(&database), expected.len() as u64);
    assert_eq!(database.view("t").segments.len(), 2);
}

#[test]
fn a_merge_of_a_dropped_table_is_thrown_away() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    database.apply(put(1, "old")).unwrap();
    database.apply(put(2, "old")).unwrap();
    let claim = database.shared().published.claim_all("t").unwrap().unwrap();
    database.drop_table("t").unwrap();
    database.create_table(schema()).unwrap();
    database.apply(put(3, "new")).unwrap();
    merge_claimed(database.shared(), &claim).unwrap();
    drop(claim);
    assert_eq!((live(&database), count(&database)), (vec![3], 1));
}

/// Nobody merges while a claim is held and another waits for all: the writer must stop at the
/// limit, and go on when the merges do.
#[test]
fn the_writer_waits_for_the_merges() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    database.apply(put(-1, "claimed")).unwrap();
    let shared = database.shared();
    let claim = shared.published.claim_all("t").unwrap().unwrap();
    let batches = SEGMENTS_MAX as i64 * 2;
    std::thread::scope(|scope| {
        scope.spawn(|| database.optimize(Some("t")).unwrap());
        while !shared.published.is_waiting_for_all() {
            std::thread::yield_now();
        }
        let writer =
            scope.spawn(|| (0..batches).for_each(|id| _ = database.apply(put(id, "x")).unwrap()));
        let segments = || database.view("t").segments.len();
        while segments() < SEGMENTS_MAX {
            std::thread::yield_now();
        }
        for _ in 0..1_000 {
            std::thread::yield_now();
            assert_eq!(segments(), SEGMENTS_MAX);
        }
        assert!(!writer.is_finished());
        drop(claim);
        writer.join().unwrap();
    });
    assert_eq!(count(&database), batches as u64 + 1);
}

#[test]
fn a_database_is_idle_some_time_after_its_last_batch() {
    let start = Instant::now();
    let mut quiet = Quiet { position: Position(1), since: start };
    assert_eq!(quiet.size(Position(1), start), Size::Large);
    assert_eq!(quiet.size(Position(1), start + QUIET), Size::Idle);
    assert_eq!(quiet.size(Position(2), start + QUIET), Size::Large);
    assert_eq!(quiet.size(Position(2), start + QUIET + QUIET / 2), Size::Large);
    assert_eq!(quiet.size(Position(2), start + 2 * QUIET), Size::Idle);
}
