//! A disk that fills up and gets room again, while the database stays open.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::fixture::{batch, count, put, rows, schema};
use crate::{
    Change, Database, Durability, Error, Options, Row, Value,
    storage::store::{
        Store,
        testing::{Faults, FaultyStore},
    },
};

fn start(directory: &std::path::Path, store: &Arc<FaultyStore>) -> Database {
    let options = Options { durability: Durability::Always, ..Options::default() };
    Database::start(directory, options, Arc::clone(store) as _, None).unwrap()
}

fn full_at(capacity_bytes: usize) -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(Faults { capacity_bytes: Some(capacity_bytes), ..Faults::default() }))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The rows, once the writer has given readers a snapshot of the store that another thread reopened.
fn rows_soon(database: &Database) -> Vec<Row> {
    let is_readable = || !matches!(database.scan("t", &mut |_| Ok(())), Err(Error::Conflict(_)));
    wait_until("rows are read", is_readable);
    rows(database)
}

/// Writing resumes with the next write, or by itself.
#[test]
fn writes_resume_when_disk_space_returns() {
    for waits in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let store = full_at(1_500);
        let database = start(directory.path(), &store);
        database.create_table(schema()).unwrap();
        assert_eq!(database.write_refusal(), None);
        let refused = (0..).find_map(|id| Some((id, database.apply(put(id, "text")).err()?)));
        let (applied, error) = refused.unwrap();
        assert!(applied > 0 && matches!(error, Error::Full(_)), "{applied} {error:?}");
        for _ in 0..3 {
            assert!(matches!(database.apply(put(-1, "x")), Err(Error::Full(_))));
            assert!(database.write_refusal().unwrap().contains("no space"));
        }
        assert!(matches!(database.drop_table("t"), Err(Error::Full(_))));
        assert_eq!((count(&database), rows(&database).len()), (applied as u64, applied as usize));
        store.free_room();
        if waits {
            wait_until("writing goes on by itself", || database.write_refusal().is_none());
        }
        (applied..applied + 50).for_each(|id| _ = database.apply(put(id, "text")).unwrap());
        assert_eq!(database.write_refusal(), None);
        assert_eq!(database.position().0, applied as u64 + 50);
        let all = rows(&database);
        assert_eq!((count(&database), all.len()), (applied as u64 + 50, applied as usize + 50));
        drop(database);
        let database = start(directory.path(), &Arc::new(store.after_power_loss()));
        assert_eq!(rows(&database), all);
        assert_eq!(count(&database), all.len() as u64);
    }
}

fn row(id: i64, text: &str) -> Row {
    vec![Value::Int(id), Value::Text(text.into())]
}

/// Whatever part of a large batch meets the full disk, including the move of its rows: acknowledged batches are
/// there, and refused ones can be repeated.
#[test]
fn large_batch_continues_or_is_refused_as_a_whole() {
    let mut outcomes = [0, 0];
    for capacity in (400..9_000).step_by(150) {
        let directory = tempfile::tempdir().unwrap();
        let store = full_at(capacity);
        let database = start(directory.path(), &store);
        let write = || {
            database.create_table(schema())?;
            database.apply(put(0, "old"))?;
            let mut large = database.begin_large()?;
            for id in 1..40 {
                large.add(put(id, "a text of a large batch").tables)?;
            }
            large.add(batch(vec![Change::Delete(vec![Value::Int(0)])]).tables)?;
            large.commit(Vec::new())
        };
        let outcome = write();
        assert!(matches!(outcome, Ok(_) | Err(Error::Full(_))), "{capacity}: {outcome:?}");
        let done = outcome.is_ok();
        outcomes[usize::from(done)] += 1;
        store.free_room();
        let mut expected = Vec::new();
        if done {
            expected.extend((1..40).map(|id| row(id, "a text of a large batch")));
        } else if database.schema("t").is_ok() {
            expected = rows_soon(&database);
            assert!(expected.is_empty() || expected == [row(0, "old")], "{capacity}: {expected:?}");
        }
        database.create_table(schema()).unwrap();
        // Rows of an acknowledged batch are moved without another write.
        wait_until("rows are moved", || database.view("t").staged.is_none());
        database.apply(put(99, "behind it")).unwrap();
        expected.push(row(99, "behind it"));
        assert_eq!(rows(&database), expected, "{capacity}");
        assert_eq!(count(&database), expected.len() as u64, "{capacity}");
        database.close().unwrap();
        let database = start(directory.path(), &Arc::new(store.after_power_loss()));
        assert_eq!(rows(&database), expected, "{capacity}");
        assert_eq!(count(&database), expected.len() as u64, "{capacity}");
    }
    assert!(outcomes.iter().all(|&seen| seen > 3), "{outcomes:?}");
}

/// Another thread than the writer meets the full disk. Reads continue, and the rows staged by the batch are gone.
#[test]
fn reads_continue_when_a_large_batch_fills_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = full_at(4_000);
    let database = start(directory.path(), &store);
    database.create_table(schema()).unwrap();
    database.apply(put(0, "there before")).unwrap();
    let mut large = database.begin_large().unwrap();
    large.add(put(1, "staged").tables).unwrap();
    // The snapshot of readers contains some staged rows; more are staged after it.
    database.apply(put(2, "there before")).unwrap();
    let refused = (3..).find_map(|id| large.add(put(id, "a text of a large batch").tables).err());
    assert!(matches!(refused, Some(Error::Full(_))), "{refused:?}");
    drop(large);
    assert!(database.write_refusal().is_some());
    let expected = [row(0, "there before"), row(2, "there before")];
    assert_eq!(rows_soon(&database), expected);
    assert_eq!(count(&database), 2);
    assert_eq!(store.row_tables(), [1]);
    assert!(database.write_refusal().is_some());
    store.free_room();
    database.apply(put(3, "there is room")).unwrap();
    assert_eq!(rows(&database).len(), 3);
}

/// A checkpoint that failed on a full disk is reported until one succeeds, which happens by itself. Also if only the
/// log could not be trimmed.
#[test]
fn failed_checkpoint_is_retried() {
    let directory = tempfile::tempdir().unwrap();
    let store = full_at(usize::MAX);
    let database = start(directory.path(), &store);
    database.create_table(schema()).unwrap();
    database.apply(put(0, "text")).unwrap();
    store.limit(0);
    assert!(matches!(database.checkpoint(), Err(Error::Full(_))));
    assert!(database.checkpoint_failure().unwrap().contains("no space"));
    store.free_room();
    wait_until("a checkpoint succeeds", || database.checkpoint_failure().is_none());
    assert_eq!(rows(&database), [row(0, "text")]);
}

/// On a full disk the rows of another batch are not moved: a commit does not wait for that.
#[test]
fn a_large_batch_does_not_wait_for_room() {
    let directory = tempfile::tempdir().unwrap();
    let store = full_at(usize::MAX);
    let database = start(directory.path(), &store);
    database.create_table(schema()).unwrap();
    let many = |ids: std::ops::Range<i64>| {
        let mut large = database.begin_large().unwrap();
        let changes = ids.map(|id| Change::Put(row(id, "a text of a large batch")));
        large.add(batch(changes.collect()).tables).unwrap();
        _ = large.reader().unwrap();
        large
    };
    let (first, second) = (many(0..2_000), many(2_000..2_010));
    first.commit(Vec::new()).unwrap();
    store.limit(0);
    wait_until("the disk is full", || database.write_refusal().is_some());
    assert!(database.view("t").staged.is_some());
    let (sender, answer) = crossbeam_channel::bounded(1);
    let waiter = std::thread::spawn(move || _ = sender.send(second.commit(Vec::new())));
    let answer = answer.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(answer, Err(Error::Full(_))), "{answer:?}");
    waiter.join().unwrap();
    assert_eq!(count(&database), 2_000);
    store.free_room();
    wait_until("rows are moved", || database.view("t").staged.is_none());
    assert_eq!(rows(&database).len(), 2_000);
}

/// Another thread reopens the store after any read: the writer reads again. A read for a caller may return a
/// conflict.
#[test]
fn a_revoked_snapshot_does_not_end_writing() {
    let mut committed = 0;
    for read in 0..150 {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultyStore::default());
        let database = start(directory.path(), &store);
        store.open_at_read(read);
        let write = || {
            database.create_table(schema())?;
            (0..10).try_for_each(|id| database.apply(put(id, "old")).map(|_| ()))?;
            let mut large = database.begin_large()?;
            (5..15).try_for_each(|id| large.add(put(id, "new").tables))?;
            // Segments new to the batch are searched by the writer.
            database.apply(put(20, "old"))?;
            let hold = database.hold_writer()?;
            std::thread::scope(|scope| {
                let large = scope.spawn(|| large.commit(Vec::new()));
                std::thread::sleep(Duration::from_millis(2));
                drop(hold);
                large.join().unwrap()
            })
        };
        let outcome = write();
        assert!(matches!(outcome, Ok(_) | Err(Error::Conflict(_))), "{read}: {outcome:?}");
        committed += usize::from(outcome.is_ok());
        store.open_at_read(u64::MAX);
        database.create_table(schema()).unwrap();
        wait_until("rows are moved", || database.view("t").staged.is_none());
        database.apply(put(99, "behind it")).unwrap();
        assert_eq!(rows_soon(&database).len() as u64, count(&database), "{read}");
    }
    assert!(committed > 100, "{committed}");
}

/// A batch that meets a full disk but is in the journal: readers see it with its index or not at all.
#[test]
fn batch_that_survives_reopening_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults { open_at_commits: true, ..Faults::default() };
    let database = start(directory.path(), &Arc::new(FaultyStore::new(faults)));
    database.create_table(schema()).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (0..400).for_each(|id| _ = database.apply(put(id, "text")).unwrap());
        });
        while !writer.is_finished() {
            let view = database.view("t");
            let mut found = 0;
            let scanned = view.rows.scan(&[], &mut |_, _| {
                found += 1;
                Ok(true)
            });
            assert!(matches!(scanned, Ok(()) | Err(Error::Conflict(_))), "{scanned:?}");
            assert!(scanned.is_err() || found == view.live_count(), "{found} rows");
        }
    });
    assert_eq!((rows(&database).len(), count(&database)), (400, 400));
}
