//! Logs of several pages, and stores that do not match their manifest.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use super::PAGE_BYTES;
use crate::{
    Change, Database, Durability, Error, Options, Position, Value,
    check::{check, repair},
    encode::{RowFormat, encode_key},
    storage::{
        catalog::{ChangedKeys, delete_table, put_position, read_log_after, read_staged},
        store::{
            Keyspace, Store, StoreBatch,
            testing::{Faults, FaultyStore},
        },
    },
    write::tests::fixture::{batch, copy, count, put, rows, schema},
};

fn start(directory: &Path, store: &Arc<FaultyStore>) -> crate::Result<Database> {
    let options = Options { durability: Durability::Always, ..Options::default() };
    Database::start(directory, options, Arc::clone(store) as _, None)
}

/// Rows that changed several times after the last checkpoint, in many pages of the log.
#[test]
fn a_log_of_many_pages_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), &store).unwrap();
    database.create_table(schema()).unwrap();
    (0..60).for_each(|id| _ = database.apply(put(id, "first")).unwrap());
    database.checkpoint().unwrap();
    let at = database.position();
    for step in 0..300 {
        let id = step * 7 % 90;
        let change = match step % 5 {
            0 => batch(vec![Change::Delete(vec![Value::Int(id)])]),
            _ => put(id, &format!("step {step}")),
        };
        database.apply(change).unwrap();
    }
    let expected = rows(&database);
    let survived = Arc::new(store.after_power_loss());
    drop(database);

    let mut pages: Vec<ChangedKeys> = Vec::new();
    let keep = &mut |page| {
        pages.push(page);
        Ok(())
    };
    read_log_after(&*survived.snapshot(), at, PAGE_BYTES, keep).unwrap();
    assert!(pages.len() > 10, "{}", pages.len());
    let keys = |page: &ChangedKeys| page.values().flatten().count();
    assert!(pages.iter().all(|page| keys(page) * 64 <= PAGE_BYTES + 100));
    let all: BTreeSet<_> = pages.iter().flat_map(ChangedKeys::values).flatten().collect();
    assert_eq!(all.len(), 90);

    // The manifest from before the changes, as a crash leaves it: the last close wrote a newer one.
    let older = tempfile::tempdir().unwrap();
    let replayed = start(older.path(), &survived).unwrap();
    assert_eq!((rows(&replayed), count(&replayed)), (expected.clone(), expected.len() as u64));
    drop(replayed);
    assert_eq!(check(older.path(), &*survived, &mut |_| {}).unwrap().problems, []);
}

/// The same log with the older manifest, so that its segments lose documents page by page.
#[test]
fn a_log_of_many_pages_deletes_from_segments() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), &store).unwrap();
    database.create_table(schema()).unwrap();
    (0..60).for_each(|id| _ = database.apply(put(id, "first")).unwrap());
    database.checkpoint().unwrap();
    let kept = tempfile::tempdir().unwrap();
    copy(directory.path(), kept.path());
    let tail = (0..400i64).map(|step| match step % 4 {
        0 => batch(vec![Change::Delete(vec![Value::Int(step * 11 % 80)])]),
        _ => put(step * 11 % 80, &format!("step {step}")),
    });
    tail.for_each(|change| _ = database.apply(change).unwrap());
    let expected = rows(&database);
    let survived = Arc::new(store.after_power_loss());
    drop(database);
    let report = check(kept.path(), &*survived, &mut |_| {}).unwrap();
    assert_eq!(report.problems, []);
    assert!(report.trusted[0].contains("the manifest confirms"), "{:?}", report.trusted);
    let database = start(kept.path(), &survived).unwrap();
    assert_eq!((rows(&database), count(&database)), (expected.clone(), expected.len() as u64));
}

/// A check keeps rows without a definition, and staged rows with and without their mark. It reads committed staged
/// rows.
#[test]
fn a_check_changes_nothing() {
    let mut staged_moves = 0;
    for step in 0..60 {
        let directory = tempfile::tempdir().unwrap();
        let faults = Faults { fail_commit: Some(step), ..Faults::default() };
        let store = Arc::new(FaultyStore::new(faults));
        let database = start(directory.path(), &store).unwrap();
        let write = || -> crate::Result<()> {
            database.create_table(schema())?;
            database.apply(put(0, "before"))?;
            let mut large = database.begin_large()?;
            (0..20).try_for_each(|id| large.add(put(id, "a row of a large batch").tables))?;
            large.commit(Vec::new())?;
            // A checkpoint during the move: the manifest has documents whose rows are still staged.
            if step % 2 == 0 {
                database.checkpoint()?;
            }
            Ok(())
        };
        _ = write();
        drop(database);
        let store = store.after_power_loss();
        let (tables, staged) = (store.row_tables(), read_staged(&*store.snapshot()).unwrap());
        staged_moves += usize::from(staged.is_some());
        let bytes = store.disk_bytes();
        let report = check(directory.path(), &store, &mut |_| {}).unwrap();
        assert_eq!(report.problems, [], "{step}");
        assert_eq!(store.row_tables(), tables, "{step}");
        assert_eq!(read_staged(&*store.snapshot()).unwrap(), staged, "{step}");
        assert_eq!(store.disk_bytes(), bytes, "{step}");
    }
    assert!(staged_moves > 5, "{staged_moves}");
}

/// A store that lost its definitions keeps its rows in a check and in a repair.
#[test]
fn rows_without_a_definition_are_not_dropped_by_a_check() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), &store).unwrap();
    database.create_table(schema()).unwrap();
    (0..5).for_each(|id| _ = database.apply(put(id, "kept")).unwrap());
    database.close().unwrap();
    let (tables, lost) = (store.row_tables(), store.after_power_loss());
    assert_eq!(tables.len(), 1);
    let mut batch = StoreBatch::new();
    delete_table(&mut batch, tables[0]);
    put_position(&mut batch, Position(2));
    lost.commit(batch, true).unwrap();
    assert!(start(directory.path(), &Arc::new(lost.after_power_loss())).is_err());
    let report = check(directory.path(), &lost, &mut |_| {}).unwrap();
    assert!(report.problems.iter().any(|one| !one.can_be_rebuilt), "{:?}", report.problems);
    assert_eq!(lost.row_tables(), tables);
    repair(directory.path(), &lost, &mut |_| {}).unwrap();
    assert_eq!(lost.row_tables(), tables, "the definitions are lost, not the rows");
}

/// A store that lost its end is refused, and nothing of it is changed.
#[test]
fn a_manifest_ahead_of_the_rows_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), &store).unwrap();
    database.create_table(schema()).unwrap();
    (0..5).for_each(|id| _ = database.apply(put(id, "kept")).unwrap());
    let cut = Arc::new(store.after_power_loss());
    (5..9).for_each(|id| _ = database.apply(put(id, "lost")).unwrap());
    database.close().unwrap();
    let refused = start(directory.path(), &cut).err().unwrap();
    assert!(matches!(refused, Error::Corrupt(_)), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains("ends with batch 5, but batch 9 was durable"), "{said}");
    assert!(said.contains("store") && said.contains("remora check --repair"), "{said}");

    let report = check(directory.path(), &*cut, &mut |_| {}).unwrap();
    let lost = report.problems.iter().find(|problem| !problem.can_be_rebuilt).unwrap();
    assert!(lost.what.contains("batch 9"), "{lost}");
    assert!(report.trusted.iter().any(|what| what.contains("there is no manifest")));
    assert!(start(directory.path(), &cut).is_err(), "a check mends nothing");
    let repaired = repair(directory.path(), &*cut, &mut |_| {}).unwrap();
    assert_eq!(repaired.before.problems, report.problems);
    assert_eq!((repaired.after.problems, repaired.after.trusted), (Vec::new(), Vec::new()));
    let database = start(directory.path(), &cut).unwrap();
    assert_eq!((rows(&database).len(), count(&database)), (5, 5));
    assert_eq!(database.position(), Position(5));
}

/// Two segments of a table, a range of `damaged` rows that cannot be read, and a row after them that differs from its
/// segment.
fn doubly_damaged(directory: &Path, damaged: std::ops::Range<i64>) -> Arc<FaultyStore> {
    let store = Arc::new(FaultyStore::default());
    let database = start(directory, &store).unwrap();
    database.create_table(schema()).unwrap();
    for ids in [0..40, 100..120] {
        let changes = ids.map(|id| put(id, "as it was").tables.remove(0).changes.remove(0));
        database.apply(batch(changes.collect())).unwrap();
    }
    database.close().unwrap();
    let store = Arc::new(store.after_power_loss());
    let place = Keyspace::Rows(store.row_tables()[0]);
    let key = |id: i64| encode_key(&schema(), &[Value::Int(id)]).unwrap();
    let mut commit = StoreBatch::new();
    damaged.for_each(|id| commit.put(place, key(id), "no row at all"));
    let other = store.snapshot().get(place, &key(0)).unwrap().unwrap();
    let format = RowFormat::new(Arc::new(schema()));
    let mut row = format.decode(&other).unwrap();
    (row[0], row[1]) = (Value::Int(110), Value::Text("otherwise".into()));
    commit.put(place, key(110), format.encode(&row).unwrap());
    store.commit(commit, true).unwrap();
    store
}

/// A table with wrong segments and unreadable rows: the keys of the segments lead past the damage, though nothing
/// else of them is used.
#[test]
fn repair_finds_rows_after_damage_by_the_replaced_segments() {
    let directory = tempfile::tempdir().unwrap();
    let store = doubly_damaged(directory.path(), 10..12);
    let repaired = repair(directory.path(), &*store, &mut |_| {}).unwrap();
    assert!(repaired.before.problems.iter().any(|one| one.can_be_rebuilt));
    let left = repaired.after.problems;
    assert!(left.iter().all(|one| !one.can_be_rebuilt), "{left:?}");
    let database = start(directory.path(), &store).unwrap();
    assert_eq!(count(&database), 58);
}

/// The same table with more damage than is listed.
#[test]
fn problems_that_are_not_listed_are_rebuilt_too() {
    let directory = tempfile::tempdir().unwrap();
    let store = doubly_damaged(directory.path(), 5..35);
    let repaired = repair(directory.path(), &*store, &mut |_| {}).unwrap();
    assert!(repaired.before.problems.len() > 20, "{:?}", repaired.before.problems);
    let database = start(directory.path(), &store).unwrap();
    let page = database.scan("t", &mut |_| Ok(()));
    assert!(matches!(page, Err(Error::Corrupt(_))));
    let word = crate::TextQuery::Term("otherwise".to_owned());
    let found = crate::Selection { table: "t".to_owned(), text: Some(word), ..Default::default() };
    assert_eq!(database.count(&found).unwrap().count, 1);
}

/// On a full disk, dropping rows without a table makes room for moving staged ones.
#[test]
fn rows_without_a_table_are_deleted_before_staged_rows_are_moved() {
    let left_staged = |step: u64| {
        let directory = tempfile::tempdir().unwrap();
        let faults = Faults { fail_commit: Some(step), ..Faults::default() };
        let store = Arc::new(FaultyStore::new(faults));
        let database = start(directory.path(), &store).unwrap();
        _ = database.create_table(schema());
        if let Ok(mut large) = database.begin_large() {
            _ = (0..20).try_for_each(|id| large.add(put(id, "a row of a large batch").tables));
            _ = large.commit(Vec::new());
        }
        drop(database);
        let store = Arc::new(store.after_power_loss());
        let is_staged = read_staged(&*store.snapshot()).unwrap().is_some();
        is_staged.then_some((directory, store))
    };
    let (directory, store) = (0..60).find_map(left_staged).unwrap();
    let mut orphan = StoreBatch::new();
    orphan.put(Keyspace::Rows(99), "x", vec![0; 10_000]);
    store.commit(orphan, true).unwrap();
    store.limit(store.disk_bytes() as usize - 5_000);
    let database = start(directory.path(), &store).unwrap();
    assert_eq!((rows(&database).len(), count(&database)), (20, 20));
    assert_eq!(store.row_tables().len(), 1);
}
