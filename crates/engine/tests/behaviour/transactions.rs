//! Transactions read one moment, and of two that write the same key the first one wins.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering},
};

use remora_engine::{
    Change, ChangeBatch, Comparison, Database, Definition, Error, Filter, KeyValues, Literal,
    Position, Row, Schema, Transaction, Value,
};

use crate::common::*;

fn insert(id: i64, score: i64) -> Change {
    Change::Insert(row(id, score, "inserted"))
}

fn commit(transaction: Transaction, changes: Vec<Change>) -> Result<Position, Error> {
    transaction.commit(batch(changes))
}

fn key(id: i64) -> KeyValues {
    KeyValues::from_iter([Value::Int(id)])
}

fn score(database: &Database, id: i64) -> Option<i64> {
    let row = database.get(TABLE, &key(id)).unwrap()?;
    match row[1] {
        Value::Int(score) => Some(score),
        _ => panic!("a score is a number"),
    }
}

#[track_caller]
fn assert_conflict(outcome: Result<Position, Error>) {
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{outcome:?}");
}

#[test]
fn first_committer_wins_for_every_write_path() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, (0..10).map(|id| put(id, 0, "first")).collect()).unwrap();
    let writes: [&dyn Fn(); 4] = [
        &|| _ = apply(&database, vec![put(3, 1, "applied")]).unwrap(),
        &|| _ = database.pipeline().submit(batch(vec![delete(3)])).unwrap().wait().unwrap(),
        &|| _ = commit(database.begin(), vec![put(3, 2, "transaction")]).unwrap(),
        &|| {
            let mut large = database.begin_large().unwrap();
            large.add(batch(vec![put(3, 3, "large")]).tables).unwrap();
            large.commit(Vec::new()).unwrap();
        },
    ];
    for write in writes {
        let (loser, mut protector) = (database.begin(), database.begin());
        protector.protect(TABLE, &key(3)).unwrap();
        write();
        let before = rows(&database);
        assert_conflict(commit(loser, vec![put(3, 9, "late"), put(4, 9, "late")]));
        assert_conflict(commit(protector, vec![put(5, 9, "late")]));
        assert_eq!(rows(&database), before, "a refused batch is not applied in part");
        commit(database.begin(), vec![put(3, 4, "again")]).unwrap();
    }
    // Whoever wrote other keys is not in the way, unless the writes were too many to be told.
    let other = database.begin();
    apply(&database, vec![put(7, 7, "other")]).unwrap();
    commit(other, vec![put(3, 5, "free")]).unwrap();
    assert_eq!((score(&database, 3), score(&database, 7)), (Some(5), Some(7)));
    check_is_clean(database);
}

#[test]
fn transaction_keeps_its_snapshot_and_an_empty_commit_is_free() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "first")]).unwrap();
    let transaction = database.begin();
    apply(&database, vec![put(1, 2, "second"), put(2, 2, "second")]).unwrap();
    let read = transaction.reader().get(TABLE, &key(1)).unwrap().unwrap();
    assert_eq!(read, row(1, 1, "first"));
    assert_eq!(transaction.reader().row_count(TABLE).unwrap(), 1);
    let position = database.position();
    assert_eq!(commit(transaction, Vec::new()).unwrap().0, position.0 - 1);
    assert_eq!(database.position(), position);
    // One that only protects is still told of a collision.
    for writes in [false, true] {
        let mut transaction = database.begin();
        transaction.protect(TABLE, &key(2)).unwrap();
        if writes {
            apply(&database, vec![delete(2)]).unwrap();
        }
        assert_eq!(commit(transaction, Vec::new()).is_err(), writes);
    }
}

#[test]
fn one_of_two_conflicting_transactions_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let (mut first, mut second) = (database.begin(), database.begin());
    first.protect(TABLE, &key(1)).unwrap();
    second.protect(TABLE, &key(1)).unwrap();
    commit(first, vec![put(2, 1, "first")]).unwrap();
    assert_conflict(commit(second, vec![put(3, 1, "second")]));
}

#[test]
fn a_table_that_was_altered_is_a_collision() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let renamed = || {
        let rename = |from: &str, to: &str| Definition::Rename { from: from.into(), to: to.into() };
        vec![rename(TABLE, "other"), Definition::Create(schema())]
    };
    let mut altered = schema();
    altered.columns[1].name = "points".to_owned();
    let alter = vec![Definition::Alter { schema: altered, fills: Vec::new() }];
    let truncate = || vec![Definition::Drop(TABLE.to_owned()), Definition::Create(schema())];
    for definitions in [alter, truncate(), renamed()] {
        let (writer, mut protector) = (database.begin(), database.begin());
        protector.protect(TABLE, &key(1)).unwrap();
        database.define(definitions, Vec::new()).unwrap();
        assert_conflict(commit(writer, vec![put(1, 1, "late")]));
        assert_conflict(protector.commit(ChangeBatch::default()));
    }
    let transaction = database.begin();
    database.drop_table(TABLE).unwrap();
    let outcome = commit(transaction, vec![put(1, 1, "late")]);
    assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}");
}

#[test]
fn an_insert_needs_an_absent_key() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![insert(1, 1), insert(2, 2)]).unwrap();
    match apply(&database, vec![put(9, 9, "not either"), insert(2, 3)]) {
        Err(Error::Exists { table, key }) => assert_eq!((table.as_str(), id_of(&key)), (TABLE, 2)),
        other => panic!("{other:?}"),
    }
    assert_eq!((score(&database, 2), score(&database, 9)), (Some(2), None));
    apply(&database, vec![delete(2), insert(2, 4)]).unwrap();
    assert!(apply(&database, vec![put(5, 5, ""), insert(5, 6)]).is_err());
    commit(database.begin(), vec![insert(6, 6)]).unwrap();
    let outcome = commit(database.begin(), vec![insert(6, 7)]);
    assert!(matches!(outcome, Err(Error::Exists { .. })), "{outcome:?}");
    let mut large = database.begin_large().unwrap();
    assert!(large.add(batch(vec![insert(7, 7)]).tables).is_err());
    drop(large);

    // A row that is not in the view is there all the same.
    let required = Filter::Compare {
        column: "score".to_owned(),
        comparison: Comparison::Greater,
        literal: Literal::Value(Value::Int(10)),
    };
    let schema = Schema { required: Some(required), ..schema() };
    let alter = vec![Definition::Alter { schema, fills: Vec::new() }];
    database.define(alter, Vec::new()).unwrap();
    assert_eq!(score(&database, 6), None);
    assert!(matches!(apply(&database, vec![insert(6, 20)]), Err(Error::Exists { .. })));
    apply(&database, vec![insert(60, 20)]).unwrap();
    check_is_clean(database);
}

#[test]
fn one_of_many_concurrent_inserts_of_a_key_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    for round in 0..40 {
        // The writer stands still, so they meet in one group.
        let held = database.hold_writer().unwrap();
        let changes = |thread| vec![put(1_000 + thread, round, "own"), insert(round, thread)];
        let pending: Vec<_> =
            (0..8).map(|thread| database.submit(batch(changes(thread))).unwrap()).collect();
        drop(held);
        let done: Vec<bool> = pending.into_iter().map(|pending| pending.wait().is_ok()).collect();
        assert_eq!(done.iter().filter(|done| **done).count(), 1);
        let winner = done.iter().position(|done| *done).unwrap() as i64;
        assert_eq!(score(&database, round), Some(winner));
        assert_eq!(score(&database, 1_000 + winner), Some(round));
    }
    check_is_clean(database);
}

/// What a transaction saw and did.
struct Done {
    began: Position,
    committed: Position,
    read: BTreeMap<i64, Option<Row>>,
    written: Vec<(i64, Option<Row>)>,
    protected: Vec<i64>,
}

const KEYS: i64 = 24;

fn one_transaction(database: &Database, random: &mut Random, stamp: i64) -> Option<Done> {
    let mut transaction = database.begin();
    let ids: Vec<i64> = (0..KEYS).collect();
    let keys: Vec<KeyValues> = ids.iter().map(|&id| key(id)).collect();
    let mut read: BTreeMap<i64, Option<Row>> = ids.iter().map(|&id| (id, None)).collect();
    let mut visit = |place: usize, values: &mut Row| {
        read.insert(ids[place], Some(values.to_vec()));
        Ok(())
    };
    transaction.reader().get_many(TABLE, &keys, &[0, 1, 2], &mut visit).unwrap();
    let mut written = BTreeMap::new();
    let mut changes = Vec::new();
    for _ in 0..random.below(4) {
        let id = random.below(KEYS as u64) as i64;
        let (row, change) = match random.below(4) {
            0 => (None, delete(id)),
            _ => (Some(row(id, stamp, "w")), put(id, stamp, "w")),
        };
        changes.push(change);
        written.insert(id, row);
    }
    let protected: Vec<i64> =
        (0..random.below(3)).map(|_| random.below(KEYS as u64) as i64).collect();
    protected.iter().for_each(|&id| transaction.protect(TABLE, &key(id)).unwrap());
    let began = transaction.reader().position();
    if written.is_empty() {
        return None;
    }
    match commit(transaction, changes) {
        Ok(committed) => {
            let written = written.into_iter().collect();
            Some(Done { began, committed, read, written, protected })
        }
        Err(Error::Conflict(_)) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn concurrent_histories_are_snapshot_isolated() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let stamp = AtomicI64::new(0);
    let seed = Random::seeded().0;
    let mut history: Vec<Done> = std::thread::scope(|scope| {
        let (database, stamp) = (&database, &stamp);
        let threads = (0..6).map(|thread| {
            let mut random = Random(seed.wrapping_add(thread));
            scope.spawn(move || {
                let once = |_| {
                    let stamp = stamp.fetch_add(1, Ordering::Relaxed);
                    one_transaction(database, &mut random, stamp)
                };
                (0..250).filter_map(once).collect::<Vec<Done>>()
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    history.sort_by_key(|done| done.committed);
    assert!(history.len() > 100, "{} were committed", history.len());
    check_history(&history);
    let last = rows(&database);
    let mut model = BTreeMap::new();
    history.iter().for_each(|done| model.extend(done.written.iter().cloned()));
    assert_eq!(last, model.into_values().flatten().collect::<Vec<Row>>());
    check_is_clean(database);
}

/// Every transaction read the state at its begin, and nobody wrote its keys until its commit.
fn check_history(history: &[Done]) {
    for (at, done) in history.iter().enumerate() {
        let mut state: BTreeMap<i64, Option<Row>> = (0..KEYS).map(|id| (id, None)).collect();
        for earlier in &history[..at] {
            if earlier.committed <= done.began {
                state.extend(earlier.written.iter().cloned());
                continue;
            }
            let taken = |id: &i64| {
                let (wrote, protected) = (&earlier.written, &earlier.protected);
                wrote.iter().any(|(other, _)| other == id) || protected.contains(id)
            };
            let mine = done.written.iter().map(|(id, _)| id).chain(&done.protected);
            assert_eq!(mine.filter(|id| taken(id)).count(), 0, "an update was lost");
        }
        assert_eq!(done.read, state, "reads at {:?}", done.began);
    }
}
