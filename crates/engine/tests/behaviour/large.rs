//! Batches larger than memory are whole: visible at once, durable at once, or gone.

use std::collections::BTreeMap;

use remora_engine::{Change, Database, Error, Options, TableChanges, Value};

use crate::common::*;

fn part(changes: Vec<Change>) -> Vec<TableChanges> {
    batch(changes).tables
}

fn positions(at: i64) -> Vec<(String, String)> {
    vec![("s".to_owned(), at.to_string())]
}

#[test]
fn transaction_is_visible_only_after_commit() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, (0..50).map(|id| put(id, 0, "old")).collect()).unwrap();
    let before = rows(&database);
    let mut large = database.begin_large().unwrap();
    for first in (0..100).step_by(10) {
        let changes = (first..first + 10).map(|id| put(id, 1, "new"));
        large.add(part(changes.collect())).unwrap();
        large.add(part(vec![delete(first)])).unwrap();
        // A checkpoint and a merge must not write half of it.
        database.checkpoint().unwrap();
        database.optimize(Some(TABLE)).unwrap();
        assert_eq!((rows(&database), find(&database, "new").len()), (before.clone(), 0));
    }
    assert_eq!(database.source_position("s").unwrap(), None);
    let position = large.commit(positions(7)).unwrap();
    assert_eq!(database.position(), position);
    assert_eq!((count(&database), find(&database, "new").len()), (90, 90));
    assert!(find(&database, "old").is_empty());
    assert_eq!(database.source_position("s").unwrap().as_deref(), Some("7"));
    apply(&database, vec![put(0, 2, "after")]).unwrap();
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!((count(&database), rows(&database).len()), (91, 91));
    check_is_clean(database);
}

#[test]
fn dropped_large_batch_leaves_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "kept"), put(2, 2, "kept")]).unwrap();
    let mut large = database.begin_large().unwrap();
    large.add(part((0..2_000).map(|id| put(id, 9, "lost")).collect())).unwrap();
    large.add(part(vec![delete(1), put(2, 8, "lost")])).unwrap();
    let misfit = large.add(part(vec![Change::Put(Vec::new())]));
    assert!(matches!(misfit, Err(Error::Request { .. })));
    drop(large);
    apply(&database, vec![put(3, 3, "behind")]).unwrap();
    let expected = vec![row(1, 1, "kept"), row(2, 2, "kept"), row(3, 3, "behind")];
    assert_eq!(rows(&database), expected);
    assert_eq!((find(&database, "kept"), find(&database, "lost")), (vec![1, 2], vec![]));
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!(rows(&database), expected);
    check_is_clean(database);
}

#[test]
fn open_large_batch_is_rolled_back_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "kept")]).unwrap();
    let mut large = database.begin_large().unwrap();
    large.add(part((0..500).map(|id| put(id, 9, "lost")).collect())).unwrap();
    std::thread::scope(|scope| {
        let behind = scope.spawn(|| apply(&database, vec![put(1, 1, "kept")]));
        assert!(behind.join().unwrap().is_ok());
        database.close().unwrap();
    });
    assert!(matches!(large.add(part(vec![put(5, 5, "x")])), Err(Error::Closed)));
    assert!(matches!(large.commit(Vec::new()), Err(Error::Closed)));
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!(rows(&database), [row(1, 1, "kept")]);
    assert_eq!((find(&database, "lost"), count(&database)), (vec![], 1));
    check_is_clean(database);
}

#[test]
fn other_writes_continue_during_a_large_batch() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "one"), put(2, 1, "two")]).unwrap();
    let (mut large, mut second) =
        (database.begin_large().unwrap(), database.begin_large().unwrap());
    // More than is moved at once, and segments that are large enough for files.
    let body = "many words of a text ".repeat(20);
    for first in (0..40_000).step_by(4_000) {
        let changes = (first..first + 4_000).map(|id| put(id, 7, &body));
        large.add(part(changes.collect())).unwrap();
        second.add(part(vec![put(first, 8, "second"), put(-1 - first, 8, "second")])).unwrap();
        apply(&database, vec![put(first, 9, "beside"), put(-100_000, first, "last")]).unwrap();
        database.checkpoint().unwrap();
        assert_eq!(find(&database, "words").len(), 0);
    }
    let own = large.reader().unwrap();
    assert_eq!(own.row_count(TABLE).unwrap(), 40_001);
    assert_eq!(own.get(TABLE, &[Value::Int(4_000)]).unwrap(), Some(row(4_000, 7, &body)));
    assert_eq!(own.get(TABLE, &[Value::Int(-100_000)]).unwrap().unwrap()[1], Value::Int(36_000));
    drop(own);
    large.commit(positions(1)).unwrap();
    apply(&database, vec![put(39_999, 3, "after"), delete(39_998)]).unwrap();
    assert_eq!((find(&database, "words").len(), count(&database)), (39_998, 40_000));
    second.commit(positions(2)).unwrap();
    assert_eq!((find(&database, "words").len(), count(&database)), (39_988, 40_010));
    let before = rows(&database);
    assert_eq!(before.len(), 40_010);
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!(rows(&database), before);
    check_is_clean(database);
}

#[test]
fn large_batches_during_merges_and_checkpoints_equal_a_map() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let options = Options { checkpoint_bytes: 20_000, ..quick() };
    let mut database = open(directory.path(), options.clone());
    let mut model: BTreeMap<i64, (i64, String)> = BTreeMap::new();
    for round in 0..6i64 {
        for _ in 0..random.below(30) {
            let changes = random_changes(&mut random, &mut model, round);
            apply(&database, changes).unwrap();
        }
        let kept = model.clone();
        let mut large = database.begin_large().unwrap();
        for _ in 0..random.below(120) {
            large.add(part(random_changes(&mut random, &mut model, round))).unwrap();
        }
        if random.below(3) == 0 {
            drop(large);
            model = kept;
        } else {
            large.commit(positions(round)).unwrap();
        }
        compare(&database, &model);
        if random.below(2) == 0 {
            drop(database);
            database = open(directory.path(), options.clone());
            compare(&database, &model);
        }
    }
    check_is_clean(database);
}

fn random_changes(
    random: &mut Random,
    model: &mut BTreeMap<i64, (i64, String)>,
    score: i64,
) -> Vec<Change> {
    let changes = (0..random.below(20)).map(|_| {
        let id = random.below(400) as i64;
        if random.below(4) == 0 {
            model.remove(&id);
            return delete(id);
        }
        let text = random.text();
        let change = put(id, score, &text);
        model.insert(id, (score, text));
        change
    });
    changes.collect()
}

fn compare(database: &Database, model: &BTreeMap<i64, (i64, String)>) {
    let expected: Vec<_> = model.iter().map(|(id, (score, text))| row(*id, *score, text)).collect();
    assert_eq!(rows(database), expected);
    assert_eq!(count(database), model.len() as u64);
    let has_ship = model.iter().filter(|(_, (_, text))| text.contains("ship"));
    assert_eq!(find(database, "ship"), has_ship.map(|(id, _)| *id).collect::<Vec<_>>());
}
