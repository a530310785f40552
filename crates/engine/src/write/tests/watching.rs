//! Watchers over a disk that fills up, and after a power loss.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use super::fixture::{batch, put, rows, schema};
use crate::{
    Change, Database, Durability, Error, Options, Row, Value, WatchRequest, Watched,
    storage::store::testing::{Faults, FaultyStore},
};

fn start(directory: &std::path::Path, store: &Arc<FaultyStore>) -> Database {
    // Several generations, none of which is dropped.
    let options =
        Options { durability: Durability::Always, max_watch_bytes: 40_000, ..Options::default() };
    Database::start(directory, options, Arc::clone(store) as _, None).unwrap()
}

fn id_of(row: &Row) -> i64 {
    let Value::Int(id) = row[0] else { panic!("{row:?}") };
    id
}

/// The rows that result from replaying all changes of the watcher; each change must fit.
fn replayed(database: &Database) -> Vec<Row> {
    let name = Some("w".to_owned());
    let mut watch = database.watch(WatchRequest { name, ..WatchRequest::default() }).unwrap();
    let (mut rows, mut open) = (BTreeMap::new(), None);
    loop {
        let change = match watch.next_change(Some(Instant::now())) {
            Ok(Some(change)) => change,
            Ok(None) => break,
            // Another thread reopened the store: the writer publishes a new snapshot.
            Err(Error::Conflict(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        assert!(open.is_none_or(|open| open == change.batch), "{change:?}");
        open = (!change.is_last).then_some(change.batch);
        match change.what {
            Watched::Insert { new, .. } => assert_eq!(rows.insert(id_of(&new), new), None),
            Watched::Update { old, new, .. } => {
                assert_eq!(rows.insert(id_of(&new), new), Some(old));
            }
            Watched::Delete { old, .. } => assert_eq!(rows.remove(&id_of(&old)), Some(old)),
            Watched::Created => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(open, None, "a batch is told in part");
    rows.into_values().collect()
}

/// Whatever write meets the full disk: the changes reported are those that were committed.
#[test]
fn changes_refused_by_a_full_disk_are_not_watched() {
    let mut outcomes = [0, 0];
    for capacity in (2_000..26_000).step_by(600) {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultyStore::new(Faults::default()));
        let database = start(directory.path(), &store);
        let name = Some("w".to_owned());
        drop(database.watch(WatchRequest { name, ..WatchRequest::default() }).unwrap());
        database.create_table(schema()).unwrap();
        store.limit(capacity);
        let write = || {
            for id in 0..20 {
                database.apply(put(id % 7, "a text of a small batch"))?;
            }
            let mut large = database.begin_large()?;
            for id in 0..60 {
                large.add(put(id, "a text of a large batch").tables)?;
            }
            large.add(batch(vec![Change::Delete(vec![Value::Int(3)])]).tables)?;
            large.commit(Vec::new())
        };
        let outcome = write();
        assert!(matches!(outcome, Ok(_) | Err(Error::Full(_))), "{capacity}: {outcome:?}");
        outcomes[usize::from(outcome.is_ok())] += 1;
        store.free_room();
        // Entries of refused batches are removed by the next commit.
        database.apply(put(1, "behind")).unwrap();
        database.apply(batch(vec![Change::Delete(vec![Value::Int(5)])])).unwrap();
        let all = rows(&database);
        assert_eq!(replayed(&database), all, "{capacity}");
        drop(database);
        let database = start(directory.path(), &Arc::new(store.after_power_loss()));
        assert_eq!(rows(&database), all, "{capacity}");
        assert_eq!(replayed(&database), all, "{capacity}");
    }
    assert!(outcomes[0] > 3 && outcomes[1] > 3, "{outcomes:?}");
}

/// A power loss removes unsynced batches from the rows and from the feed alike.
#[test]
fn a_power_loss_takes_the_same_batches_from_rows_and_feed() {
    for fault in 4..40 {
        let directory = tempfile::tempdir().unwrap();
        let faults = Faults { fail_commit: Some(fault), ..Faults::default() };
        let store = Arc::new(FaultyStore::new(faults));
        let database = start(directory.path(), &store);
        let write = || {
            let name = Some("w".to_owned());
            drop(database.watch(WatchRequest { name, ..WatchRequest::default() })?);
            database.create_table(schema())?;
            for id in 0..10 {
                database.apply(put(id % 4, "text"))?;
            }
            let mut large = database.begin_large()?;
            for id in 0..30 {
                large.add(put(id, "a text of a large batch").tables)?;
            }
            large.commit(Vec::new())?;
            database.apply(put(2, "behind"))
        };
        let outcome = write();
        drop(database);
        let database = start(directory.path(), &Arc::new(store.after_power_loss()));
        if database.schema("t").is_err() {
            assert!(outcome.is_err(), "{fault}");
            continue;
        }
        database.apply(put(3, "again")).unwrap();
        assert_eq!(replayed(&database), rows(&database), "{fault}: {outcome:?}");
    }
}
