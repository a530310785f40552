//! The write path over a store with injected failures.

mod computed;
pub(crate) mod fixture;
mod full_disk;
mod prebuilt;
mod unique;
mod watching;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::tests::fixture::{batch, copy, count, put, rows, schema};
use crate::{
    Change, ChangeBatch, Database, Definition, Durability, Error, Options, Position, Selection,
    Value,
    shared::{Definitions, Job, Waiter},
    snapshot::SegmentView,
    storage::store::{
        Store,
        testing::{Faults, FaultyStore},
    },
};

fn start(directory: &std::path::Path, store: Arc<dyn Store>, durability: Durability) -> Database {
    let options = Options { durability, ..Options::default() };
    Database::start(directory, options, store, None).unwrap()
}

/// Applies batches until one fails; returns how many succeeded.
fn apply_until_error(database: &Database) -> (u64, Error) {
    let failed = (0..1_000)
        .find_map(|id| database.apply(put(id, "text")).err().map(|error| (id as u64, error)));
    failed.expect("a batch fails")
}

#[test]
fn a_failed_commit_refuses_all_later_writes_and_no_reads() {
    let faults = [
        Faults { fail_commit: Some(6), ..Faults::default() },
        Faults { fail_sync: Some(6), ..Faults::default() },
    ];
    for faults in faults {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultyStore::new(faults));
        let database = start(directory.path(), Arc::clone(&store) as _, Durability::Always);
        database.create_table(schema()).unwrap();
        let (applied, error) = apply_until_error(&database);
        assert!(matches!(error, Error::Poisoned(_)), "{error:?}");
        assert!(applied > 0);
        assert!(matches!(database.apply(put(-1, "x")), Err(Error::Poisoned(_))));
        assert!(matches!(database.create_table(schema()), Err(Error::Poisoned(_))));
        assert_eq!((count(&database), rows(&database).len() as u64), (applied, applied));
        assert_eq!(database.position(), Position(applied));
        database.close().unwrap();
        assert!(matches!(database.apply(put(-1, "x")), Err(Error::Closed)));

        let survived = Arc::new(store.after_power_loss());
        let database = start(directory.path(), survived, Durability::Always);
        assert_eq!((count(&database), rows(&database).len() as u64), (applied, applied));
        database.apply(put(-1, "x")).unwrap();
    }
}

#[test]
fn a_sync_in_the_background_that_fails_refuses_later_writes() {
    let directory = tempfile::tempdir().unwrap();
    // One sync for the first manifest, one for the definition.
    let faults = Faults { fail_sync: Some(2), ..Faults::default() };
    let store = Arc::new(FaultyStore::new(faults));
    let interval = Durability::Interval(Duration::from_millis(1));
    let database = start(directory.path(), store, interval);
    database.create_table(schema()).unwrap();
    let error = loop {
        if let Err(error) = database.apply(put(1, "text")) {
            break error;
        }
    };
    assert!(matches!(error, Error::Poisoned(_)), "{error:?}");
}

#[test]
fn batches_of_a_pipeline_are_visible_before_they_are_synced() {
    let directory = tempfile::tempdir().unwrap();
    // One sync for the first manifest, one for the definition.
    let faults = Faults { fail_sync: Some(2), ..Faults::default() };
    let database = start(directory.path(), Arc::new(FaultyStore::new(faults)), Durability::Always);
    database.create_table(schema()).unwrap();
    let pipeline = database.pipeline();
    pipeline.submit(put(1, "text")).unwrap().wait().unwrap();
    assert_eq!(count(&database), 1);
    // The sync runs in the background, and its failure is noticed.
    let error = loop {
        if let Err(error) = pipeline.submit(put(2, "text")).and_then(crate::Pending::wait) {
            break error;
        }
    };
    assert!(matches!(error, Error::Poisoned(_) | Error::Conflict(_)), "{error:?}");
    assert!(matches!(database.apply(put(3, "text")), Err(Error::Poisoned(_))));
    assert_eq!(count(&database), 2);
}

/// Without syncs a power loss may take the last batches, but the rest is a consistent earlier state.
#[test]
fn manifest_is_never_ahead_of_the_rows() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), Arc::clone(&store) as _, Durability::None);
    database.create_table(schema()).unwrap();
    (0..10).for_each(|id| _ = database.apply(put(id, "kept")).unwrap());
    database.checkpoint().unwrap();
    (10..20).for_each(|id| _ = database.apply(put(id, "lost")).unwrap());
    let survived = Arc::new(store.after_power_loss());
    let left = tempfile::tempdir().unwrap();
    copy(directory.path(), left.path());
    drop(database);
    let database = start(left.path(), survived, Durability::None);
    assert_eq!((count(&database), rows(&database).len()), (10, 10));
    assert_eq!(database.position(), Position(10));
}

/// The counts that the writer keeps from batch to batch equal a fresh count.
#[test]
fn live_lengths_are_those_of_the_live_documents() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), store, Durability::None);
    database.create_table(schema()).unwrap();
    for step in 0..200i64 {
        let text = "x".repeat((step % 13) as usize);
        database.apply(put(step * 7 % 40, &text)).unwrap();
        if step % 9 == 0 {
            database.apply(batch(vec![Change::Delete(vec![Value::Int(step % 40)])])).unwrap();
        }
        let view = database.view("t");
        for segment in &view.segments {
            let deleted = segment.deleted.as_deref().cloned();
            let anew = SegmentView::new(Arc::clone(&segment.segment), deleted, &view.schema);
            assert_eq!(anew.live_lengths, segment.live_lengths);
            assert_eq!(anew.deleted_count, segment.deleted_count);
        }
    }
}

/// The writer's thread has ended by then.
#[test]
fn batch_after_an_idle_time_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = Arc::new(start(directory.path(), store, Durability::Always));
    database.create_table(schema()).unwrap();
    for id in 0..2 {
        let (done, answer) = std::sync::mpsc::channel();
        let writing = Arc::clone(&database);
        std::thread::spawn(move || done.send(writing.apply(put(id, "x"))));
        let written = answer.recv_timeout(Duration::from_secs(60)).expect("it is written");
        assert_eq!(written.unwrap(), Position(id as u64 + 1));
        std::thread::sleep(super::writer::IDLE_TIME + Duration::from_millis(300));
    }
    assert_eq!(count(&database), 2);
    database.close().unwrap();
}

/// Each commit and each sync fails once; the state is that before or after the batch.
#[test]
fn large_batch_is_atomic_after_any_failure() {
    let commit_faults = (0..48).map(|at| Faults { fail_commit: Some(at), ..Faults::default() });
    let sync_faults = (0..8).map(|at| Faults { fail_sync: Some(at), ..Faults::default() });
    let mut outcomes = [0, 0];
    for faults in commit_faults.chain(sync_faults) {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultyStore::new(faults));
        let database = start(directory.path(), Arc::clone(&store) as _, Durability::Always);
        let done = write_a_large_batch(&database);
        drop(database);
        let survived = Arc::new(store.after_power_loss());
        let database = start(directory.path(), Arc::clone(&survived) as _, Durability::Always);
        if database.schema("t").is_err() {
            continue;
        }
        let all: Vec<(i64, bool)> = rows(&database).iter().map(id_and_new).collect();
        let before = [(0, false), (1, false)].starts_with(&all);
        let after = all == (1..10).map(|id| (id, true)).collect::<Vec<_>>();
        assert!(if done { after } else { before || after }, "{all:?}");
        assert_eq!(count(&database), all.len() as u64);
        let source = database.source_position("s").unwrap();
        assert_eq!(source.as_deref(), after.then_some("9"));
        outcomes[usize::from(after)] += 1;
        assert_eq!(survived.row_tables().len(), usize::from(!all.is_empty()));
    }
    assert!(outcomes.iter().all(|&seen| seen > 1), "{outcomes:?}");
}

fn id_and_new(row: &crate::Row) -> (i64, bool) {
    match (&row[0], &row[1]) {
        (Value::Int(id), Value::Text(text)) => (*id, &**text == "new"),
        other => panic!("{other:?}"),
    }
}

/// Whether it was committed: old rows 0 and 1 become new rows 1 to 9.
fn write_a_large_batch(database: &Database) -> bool {
    let write = || {
        database.create_table(schema())?;
        database.apply(put(0, "old"))?;
        database.apply(put(1, "old"))?;
        let mut large = database.begin_large()?;
        for id in 1..10 {
            large.add(put(id, "new").tables)?;
        }
        large.add(batch(vec![Change::Delete(vec![Value::Int(0)])]).tables)?;
        large.commit(vec![("s".to_owned(), "9".to_owned())])
    };
    write().is_ok()
}

/// Large batches with other writes in between and restarts in the middle, compared with a map.
#[test]
fn rows_written_beside_a_large_batch_are_kept() {
    for seed in 0..12 {
        write_beside_large_batches(&mut Random(seed));
    }
}

type Model = BTreeMap<i64, String>;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (self.0 >> 33) % end
    }

    /// Random changes of a few keys, also applied to the model.
    fn changes(&mut self, model: &mut Model) -> Vec<Change> {
        let changes = (0..1 + self.below(6)).map(|_| {
            let id = self.below(60) as i64;
            if self.below(3) == 0 {
                model.remove(&id);
                return Change::Delete(vec![Value::Int(id)]);
            }
            let text = format!("text {}", self.below(1_000));
            let row = vec![Value::Int(id), Value::Text(text.as_str().into())];
            model.insert(id, text);
            Change::Put(row)
        });
        changes.collect()
    }
}

/// The model after the changes of a large batch.
fn with_changes(model: &Model, changes: &[Change]) -> Model {
    let mut model = model.clone();
    for change in changes {
        match change {
            Change::Put(row) | Change::Insert(row) => {
                let (Value::Int(id), Value::Text(text)) = (&row[0], &row[1]) else { continue };
                model.insert(*id, text.to_string());
            }
            Change::Delete(key) => {
                let Value::Int(id) = key[0] else { continue };
                model.remove(&id);
            }
        }
    }
    model
}

#[track_caller]
fn compare(reader: &crate::Reader, model: &Model) {
    let mut rows = Vec::new();
    let scanned = reader.table("t").unwrap().rows.scan(&[], &mut |_, row| {
        rows.push(row);
        Ok(true)
    });
    scanned.unwrap();
    let row =
        |(id, text): (&i64, &String)| vec![Value::Int(*id), Value::Text(text.as_str().into())];
    assert_eq!(rows, model.iter().map(row).collect::<Vec<_>>());
    let selection = Selection { table: "t".to_owned(), ..Selection::default() };
    assert_eq!(reader.count(&selection).unwrap().count, model.len() as u64);
    for id in 0..60 {
        let found = reader.get("t", &[Value::Int(id)]).unwrap();
        assert_eq!(found, model.get_key_value(&id).map(row));
    }
}

fn write_beside_large_batches(random: &mut Random) {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Arc::new(FaultyStore::default());
    let mut database = start(directory.path(), Arc::clone(&store) as _, Durability::Always);
    database.create_table(schema()).unwrap();
    let mut model = Model::new();
    for _ in 0..12 {
        let (mut large, mut changes) = (database.begin_large().unwrap(), Vec::new());
        for _ in 0..random.below(8) {
            let part = random.changes(&mut Model::new());
            changes.extend(part.clone());
            large.add(batch(part).tables).unwrap();
            if random.below(2) == 0 {
                database.apply(batch(random.changes(&mut model))).unwrap();
            }
            match random.below(6) {
                0 => compare(&large.reader().unwrap(), &with_changes(&model, &changes)),
                1 => database.optimize(None).unwrap(),
                2 => database.checkpoint().unwrap(),
                _ => compare(&database.reader(), &model),
            }
        }
        match random.below(4) {
            0 => drop(large),
            _ => {
                large.commit(Vec::new()).unwrap();
                model = with_changes(&model, &changes);
            }
        }
        compare(&database.reader(), &model);
        for _ in 0..random.below(6) {
            database.apply(batch(random.changes(&mut model))).unwrap();
            compare(&database.reader(), &model);
        }
        if random.below(3) == 0 {
            drop(database);
            store = Arc::new(store.after_power_loss());
            database = start(directory.path(), Arc::clone(&store) as _, Durability::Always);
            compare(&database.reader(), &model);
            assert!(store.row_tables().len() <= 1, "{:?}", store.row_tables());
        }
    }
}

#[test]
fn a_large_batch_of_a_table_that_was_altered_meanwhile_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let database = start(directory.path(), Arc::clone(&store) as _, Durability::None);
    database.create_table(schema()).unwrap();
    let mut large = database.begin_large().unwrap();
    large.add(put(1, "lost").tables).unwrap();
    large.add(put(2, "lost").tables).unwrap();
    let again = vec![Definition::Drop("t".to_owned()), Definition::Create(schema())];
    database.define(again, Vec::new()).unwrap();
    assert!(matches!(large.commit(Vec::new()), Err(Error::NotFound { .. })));
    assert_eq!((rows(&database), count(&database)), (Vec::new(), 0));
    assert_eq!(store.row_tables(), Vec::<u32>::new());
}

#[test]
fn a_large_batch_has_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let options = Options { max_large_batch_bytes: 1_000, ..Options::default() };
    let database = Database::start(directory.path(), options, store, None).unwrap();
    database.create_table(schema()).unwrap();
    let mut large = database.begin_large().unwrap();
    let refused = (0..100).find_map(|id| large.add(put(id, "some text").tables).err());
    assert!(matches!(refused, Some(Error::Request { .. })), "{refused:?}");
    assert!(large.commit(Vec::new()).is_err());
    database.apply(put(1, "goes on")).unwrap();
    assert_eq!(count(&database), 1);
}

#[test]
fn nothing_is_applied_after_a_failed_batch_of_a_pipeline() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), Arc::new(FaultyStore::default()), Durability::None);
    database.create_table(schema()).unwrap();
    let at = |at: i64| ChangeBatch { positions: vec![("s".into(), at.to_string())], ..put(at, "") };
    let pipeline = database.pipeline();
    pipeline.submit(at(1)).unwrap().wait().unwrap();
    // The writer is held, so that all of these are prepared before the table is replaced.
    let held = database.hold_writer().unwrap();
    let definitions = vec![Definition::Drop("t".to_owned()), Definition::Create(schema())];
    let (waiter, _outcome) = Waiter::new();
    let again = Definitions { definitions, positions: Vec::new(), ahead: Vec::new() };
    database.shared().queue.push(Job::Define(again, waiter)).unwrap();
    let second = pipeline.submit(at(2)).unwrap();
    let third = pipeline.submit(ChangeBatch { tables: Vec::new(), ..at(3) }).unwrap();
    drop(held);
    assert!(matches!(second.wait(), Err(Error::NotFound { .. })));
    assert!(matches!(third.wait(), Err(Error::Conflict(_))));
    assert!(pipeline.is_broken() && pipeline.submit(at(4)).is_err());
    assert_eq!(database.source_position("s").unwrap().as_deref(), Some("1"));
    database.pipeline().submit(at(5)).unwrap().wait().unwrap();
    assert_eq!(database.source_position("s").unwrap().as_deref(), Some("5"));
}

/// If the writer's thread panics, its callers do not wait forever.
#[test]
fn a_panic_of_the_writer_is_an_error_of_its_callers() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), Arc::new(PanickingStore::default()), Durability::None);
    database.create_table(schema()).unwrap();
    let error = database.apply(put(1, "x")).unwrap_err();
    assert!(matches!(error, Error::Poisoned(_) | Error::Closed), "{error:?}");
    assert!(matches!(database.apply(put(1, "x")), Err(Error::Poisoned(_))));
    assert_eq!(count(&database), 0);
    database.close().unwrap();
}

/// A store whose second commit after the definition panics.
#[derive(Default)]
struct PanickingStore {
    inner: FaultyStore,
}

impl Store for PanickingStore {
    fn commit(&self, batch: crate::storage::store::StoreBatch, sync: bool) -> crate::Result<()> {
        // Only a definition is synced here.
        assert!(sync || batch.is_empty(), "made to panic");
        self.inner.commit(batch, sync)
    }
    fn sync(&self) -> crate::Result<()> {
        self.inner.sync()
    }
    fn snapshot(&self) -> Arc<dyn crate::storage::store::StoreSnapshot> {
        self.inner.snapshot()
    }
    fn row_tables(&self) -> Vec<u32> {
        self.inner.row_tables()
    }
    fn drop_rows(&self, table: u32) -> crate::Result<()> {
        self.inner.drop_rows(table)
    }
    fn flush(&self, deadline: std::time::Instant) -> crate::Result<()> {
        self.inner.flush(deadline)
    }
    fn disk_bytes(&self) -> u64 {
        self.inner.disk_bytes()
    }
    fn table_bytes(&self, table: u32) -> u64 {
        self.inner.table_bytes(table)
    }
}

/// A value too long for the index is refused by name; other rows are written.
#[test]
fn a_value_too_long_for_the_index_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..Options::default() };
    let database = Database::open(directory.path(), options).unwrap();
    let mut indexed = schema();
    indexed.columns[1].indexed = true;
    database.create_table(indexed).unwrap();
    let longest = "x".repeat(1 << 20);
    database.apply(put(1, &longest)).unwrap();
    let refused = |error: Error| match error {
        Error::Request { message, .. } => message,
        other => panic!("{other}"),
    };
    let message = refused(database.apply(put(2, &format!("{longest}x"))).unwrap_err());
    assert!(message.contains("column \"body\"") && message.contains("Int(2)"), "{message}");
    let mut large = database.begin_large().unwrap();
    assert!(matches!(large.add(put(3, &format!("{longest}x")).tables), Err(Error::Request { .. })));
    large.add(put(4, "short").tables).unwrap();
    large.commit(Vec::new()).unwrap();
    assert_eq!(count(&database), 2);
}

/// A batch for existing rows is applied as a whole or, if one of them is gone by its place in the order of commits, not
/// at all.
#[test]
fn a_batch_for_existing_rows_needs_each_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path(), Arc::new(FaultyStore::default()), Durability::None);
    database.create_table(schema()).unwrap();
    let row = |id: i64, text: &str| vec![Value::Int(id), Value::Text(text.into())];
    (1..=3).for_each(|id| _ = database.apply(put(id, "first")).unwrap());
    let reader = database.reader();
    let both = vec![Change::Put(row(1, "second")), Change::Delete(vec![Value::Int(2)])];
    database.apply_to_existing(&reader, batch(both)).unwrap();
    assert_eq!(rows(&database), [row(1, "second"), row(3, "first")]);
    // The reader still sees the row that is gone.
    for changes in [
        vec![Change::Put(row(2, "third"))],
        vec![Change::Delete(vec![Value::Int(2)])],
        vec![Change::Put(row(1, "third")), Change::Put(row(2, "third"))],
    ] {
        let refused = database.apply_to_existing(&reader, batch(changes)).unwrap_err();
        assert!(matches!(&refused, Error::Conflict(why) if why.contains("key (2)")), "{refused}");
    }
    assert_eq!(rows(&database), [row(1, "second"), row(3, "first")]);
    // Both are in the queue before either is committed.
    let held = database.hold_writer().unwrap();
    let deletion = database.submit(batch(vec![Change::Delete(vec![Value::Int(3)])])).unwrap();
    std::thread::scope(|scope| {
        let late = || database.apply_to_existing(&reader, put(3, "third"));
        let late = scope.spawn(late);
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
        assert!(matches!(late.join().unwrap(), Err(Error::Conflict(_))));
    });
    deletion.wait().unwrap();
    assert_eq!((rows(&database), count(&database)), (vec![row(1, "second")], 1));
    let again = vec![Definition::Drop("t".to_owned()), Definition::Create(schema())];
    database.define(again, Vec::new()).unwrap();
    database.apply(put(1, "first")).unwrap();
    let refused = database.apply_to_existing(&reader, put(1, "other"));
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
}
