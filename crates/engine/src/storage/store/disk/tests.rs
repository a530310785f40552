//! The store on disk is atomic, isolated, and unchanged after a restart.

use fjall::KeyspaceCreateOptions;

use super::*;
use crate::storage::store::{
    StoredBytes,
    testing::{Faults, FaultyStore},
};

mod history;
mod small_tables;

const ROWS: Keyspace = Keyspace::Rows(7);

/// Gives each table a keyspace of its own; [`small_tables`] tests the shared one.
fn open(directory: &Path) -> DiskStore {
    open_with(directory, 0)
}

fn open_with(directory: &Path, small_table_bytes: u64) -> DiskStore {
    let options = StoreOptions { small_table_bytes, ..StoreOptions::default() };
    DiskStore::open(directory, options).unwrap()
}

fn put(keyspace: Keyspace, entries: &[(&str, &str)]) -> StoreBatch {
    let mut batch = StoreBatch::new();
    entries.iter().for_each(|(key, value)| batch.put(keyspace, *key, *value));
    batch
}

fn entries(
    snapshot: &dyn StoreSnapshot,
    keyspace: Keyspace,
    from: &[u8],
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        Ok(true)
    };
    snapshot.scan(keyspace, from, &mut visit).unwrap();
    found
}

fn text(value: Option<StoredBytes>) -> Option<String> {
    value.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// The behaviour that every store must have.
fn behaves_as_a_store(store: &dyn Store) {
    let mut batch = put(ROWS, &[("b", "2"), ("a", "1"), ("c", "3")]);
    batch.put(Keyspace::Meta, "position", "1");
    store.commit(batch, true).unwrap();
    let before = store.snapshot();

    let mut batch = put(ROWS, &[("a", "new"), ("d", "4"), ("d", "5")]);
    batch.delete(ROWS, "b");
    batch.delete(ROWS, "missing");
    assert!(!batch.is_empty());
    store.commit(batch, false).unwrap();

    assert_eq!(text(before.get(ROWS, b"a").unwrap()).as_deref(), Some("1"));
    assert_eq!(entries(&*before, ROWS, b"").len(), 3);
    let after = store.snapshot();
    assert_eq!(after.get(ROWS, b"b").unwrap(), None);
    assert_eq!(text(after.get(Keyspace::Meta, b"position").unwrap()).as_deref(), Some("1"));
    assert_eq!(after.get(Keyspace::Rows(8), b"a").unwrap(), None);
    let scanned = entries(&*after, ROWS, b"b");
    assert_eq!(scanned, [(b"c".to_vec(), b"3".to_vec()), (b"d".to_vec(), b"5".to_vec())]);

    assert_eq!(store.row_tables(), [7]);
    store.drop_rows(7).unwrap();
    assert_eq!(store.row_tables(), Vec::<u32>::new());
    assert_eq!(store.snapshot().get(ROWS, b"a").unwrap(), None);
    assert_eq!(entries(&*after, ROWS, b"").len(), 3);
    assert_eq!(store.table_bytes(7), 0);
    assert!(store.disk_bytes() > 0);
}

#[test]
fn disk_and_memory_store_are_atomic_and_isolated() {
    let directory = tempfile::tempdir().unwrap();
    behaves_as_a_store(&open(directory.path()));
    for small_table_bytes in [5, 7, 9, 11, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        behaves_as_a_store(&open_with(directory.path(), small_table_bytes));
    }
    behaves_as_a_store(&FaultyStore::default());
}

#[test]
fn batches_survive_a_restart_and_dropped_tables_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = put(ROWS, &[("a", "1")]);
    batch.put(Keyspace::Rows(9), "z", "26");
    store.commit(batch, true).unwrap();
    store.drop_rows(9).unwrap();
    drop(store);
    let store = open(directory.path());
    assert_eq!(store.row_tables(), [7]);
    assert_eq!(text(store.snapshot().get(ROWS, b"a").unwrap()).as_deref(), Some("1"));
}

#[test]
fn a_torn_last_batch_is_absent_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.commit(put(ROWS, &[("a", "1"), ("b", "1")]), true).unwrap();
    let mut batch = put(ROWS, &[("a", "2"), ("b", "2")]);
    batch.put(Keyspace::Meta, "position", "2");
    store.commit(batch, true).unwrap();
    drop(store);
    let journal = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&journal).unwrap();
    let written = std::fs::read(&journal).unwrap();
    let end = written.iter().rposition(|&byte| byte != 0).unwrap();
    file.set_len(end as u64 - 2).unwrap();
    let store = open(directory.path());
    let snapshot = store.snapshot();
    assert_eq!(text(snapshot.get(ROWS, b"a").unwrap()).as_deref(), Some("1"));
    assert_eq!(text(snapshot.get(ROWS, b"b").unwrap()).as_deref(), Some("1"));
    assert_eq!(snapshot.get(Keyspace::Meta, b"position").unwrap(), None);
}

#[test]
fn empty_and_zero_keys_keep_their_order() {
    [0, 1_000].into_iter().for_each(zero_keys_keep_their_order);
}

fn zero_keys_keep_their_order(small_table_bytes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), small_table_bytes);
    let keys: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"\0\0a", b"\0a", b"a", b"a\0"];
    let mut batch = StoreBatch::new();
    keys.iter().rev().for_each(|key| batch.put(ROWS, *key, *key));
    store.commit(batch, false).unwrap();
    let snapshot = store.snapshot();
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(snapshot.get(ROWS, key).unwrap().as_deref(), Some(*key));
        let found: Vec<_> =
            entries(&*snapshot, ROWS, key).into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, keys[index..]);
    }
}

#[test]
fn foreign_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("letter.txt"), "x").unwrap();
    let error = DiskStore::open(directory.path(), StoreOptions::default()).err().unwrap();
    assert!(error.to_string().contains("is not a Remora row store"), "{error}");
    assert!(directory.path().join("letter.txt").is_file());

    let directory = tempfile::tempdir().unwrap();
    let stranger = fjall::Database::builder(directory.path()).open().unwrap();
    stranger.keyspace("theirs", KeyspaceCreateOptions::default).unwrap();
    drop(stranger);
    let error = DiskStore::open(directory.path(), StoreOptions::default()).err().unwrap();
    assert!(error.to_string().contains("is not a Remora row store"), "{error}");
}

#[test]
fn an_oversized_key_is_refused_and_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = put(ROWS, &[("a", "1")]);
    batch.put(ROWS, vec![1; 70_000], "x");
    assert!(matches!(store.commit(batch, true), Err(Error::Request { .. })));
    assert_eq!(store.snapshot().get(ROWS, b"a").unwrap(), None);
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
}

#[test]
fn failed_write_stops_writes_and_reads_continue() {
    let faults = [
        Faults { fail_commit: Some(1), ..Faults::default() },
        Faults { fail_sync: Some(1), ..Faults::default() },
    ];
    for faults in faults {
        let store = FaultyStore::new(faults);
        store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
        let failed = store.commit(put(ROWS, &[("b", "2")]), true).unwrap_err();
        assert!(matches!(failed, Error::Io(_)), "{failed}");
        let refused = store.commit(put(ROWS, &[("c", "3")]), false).unwrap_err();
        assert!(matches!(refused, Error::Poisoned(_)), "{refused}");
        assert!(matches!(store.sync(), Err(Error::Poisoned(_))));
        assert!(matches!(store.drop_rows(7), Err(Error::Poisoned(_))));
        let expected = [(b"a".to_vec(), b"1".to_vec())];
        assert_eq!(entries(&*store.snapshot(), ROWS, b""), expected);
        let reopened = store.after_power_loss();
        assert_eq!(entries(&*reopened.snapshot(), ROWS, b""), expected);
        reopened.commit(put(ROWS, &[("c", "3")]), true).unwrap();
    }
}

#[test]
fn unsynced_batches_are_lost_with_the_power() {
    let store = FaultyStore::default();
    store.commit(put(ROWS, &[("a", "1")]), false).unwrap();
    store.sync().unwrap();
    store.commit(put(ROWS, &[("b", "2")]), false).unwrap();
    assert_eq!(entries(&*store.snapshot(), ROWS, b"").len(), 2);
    assert_eq!(entries(&*store.after_power_loss().snapshot(), ROWS, b"").len(), 1);
}

#[test]
fn a_flush_moves_rows_from_the_journal_to_files() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let in_a_minute = || Instant::now() + Duration::from_secs(60);
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
    store.flush(in_a_minute()).unwrap();
    assert_eq!(store.table_bytes(7), 0, "a little is left to the journal");

    // Bytes that do not compress.
    let noise = |row: u32| {
        let mut state = u64::from(row) + 1;
        let byte = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..100_000).map(byte).collect::<Vec<u8>>()
    };
    let mut batch = StoreBatch::new();
    (0..20u32).for_each(|row| batch.put(ROWS, row.to_be_bytes(), noise(row)));
    store.commit(batch, true).unwrap();
    store.flush(Instant::now()).unwrap();
    store.flush(in_a_minute()).unwrap();
    assert!(store.table_bytes(7) > FLUSHED_BYTES, "{}", store.table_bytes(7));
    drop(store);
    let store = open(directory.path());
    assert!(store.table_bytes(7) > FLUSHED_BYTES);
    let found = entries(&*store.snapshot(), ROWS, b"");
    assert_eq!(found.len(), 21);
    let expected = (0..20u32).map(|row| (row.to_be_bytes().to_vec(), noise(row)));
    assert!(found.into_iter().filter(|(key, _)| key != b"a").eq(expected));
}

#[test]
fn a_held_snapshot_does_not_keep_the_directory_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.commit(put(ROWS, &[("a", "1"), ("b", "2")]), true).unwrap();
    let held = store.snapshot();
    drop(store);
    assert!(matches!(held.get(ROWS, b"a"), Err(Error::Closed)));
    assert!(matches!(held.scan(ROWS, b"", &mut |_, _| Ok(true)), Err(Error::Closed)));
    assert_eq!(entries(&*open(directory.path()).snapshot(), ROWS, b"").len(), 2);
}

/// A reopened store has everything that was committed and continues. Readers keep their snapshot if no row has
/// changed since.
#[test]
fn readers_continue_while_a_store_is_reopened() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
    let before = store.snapshot();
    store.commit(put(ROWS, &[("b", "2")]), true).unwrap();
    let last = store.snapshot();
    // A change that is not of rows outdates no snapshot.
    store.commit(put(Keyspace::Log, &[("x", "y")]), false).unwrap();
    for opening in 0..3u64 {
        assert_eq!(store.reopen_count(), opening);
        let _writing = store.writing.lock();
        store.reopen(None).unwrap();
    }
    assert!(matches!(before.get(ROWS, b"a"), Err(Error::Conflict(_))));
    assert_eq!(entries(&*last, ROWS, b"").len(), 2);
    assert_eq!(text(last.get(ROWS, b"b").unwrap()).as_deref(), Some("2"));
    let others = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (0..200u32).for_each(|key| {
                let mut batch = StoreBatch::new();
                batch.put(ROWS, key.to_be_bytes(), vec![7; 2_000]);
                store.commit(batch, key % 9 == 0).unwrap();
            });
        });
        let mut others = 0;
        while !writer.is_finished() {
            let _writing = store.writing.lock();
            store.reopen(None).unwrap();
            others += 1;
        }
        writer.join().unwrap();
        others
    });
    assert!(others > 0);
    assert_eq!(entries(&*store.snapshot(), ROWS, b"").len(), 202);
    drop((store, last, before));
    assert_eq!(entries(&*open(directory.path()).snapshot(), ROWS, b"").len(), 202);
}

#[test]
fn a_store_without_its_journal_or_its_definitions_is_refused() {
    for lost in ["0.jnl", "keyspaces/0/current"] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
        drop(store);
        let lost = directory.path().join(lost);
        std::fs::remove_file(&lost).unwrap();
        let error = DiskStore::open(directory.path(), StoreOptions::default()).err().unwrap();
        assert!(matches!(error, Error::Corrupt(_)), "{error:?}");
        assert!(error.to_string().contains("is missing"), "{error}");
        assert!(directory.path().join("keyspaces/3").exists(), "nothing was removed");
    }
}

/// A keyspace that fjall would take for a dropped one is refused, also if its rows are in the journal only. One that
/// really was dropped is not refused.
#[test]
fn a_keyspace_without_its_list_of_files_is_refused_unless_it_was_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
    store.commit(put(Keyspace::Rows(8), &[("b", "2")]), true).unwrap();
    drop(store);
    let list = directory.path().join("keyspaces/3/current");
    let bytes = std::fs::read(&list).unwrap();
    std::fs::remove_file(&list).unwrap();
    for _ in 0..2 {
        let error = DiskStore::open(directory.path(), StoreOptions::default()).err().unwrap();
        assert!(matches!(error, Error::Corrupt(_)), "{error:?}");
        assert!(error.to_string().contains("keyspaces/3/current is missing"), "{error}");
        assert!(directory.path().join("keyspaces/3").exists(), "nothing was removed");
    }
    std::fs::write(&list, bytes).unwrap();
    let store = open(directory.path());
    assert_eq!(text(store.snapshot().get(ROWS, b"a").unwrap()).as_deref(), Some("1"));
    store.drop_rows(7).unwrap();
    drop(store);
    // The state that a kill leaves while its files are being deleted.
    std::fs::create_dir_all(directory.path().join("keyspaces/3/tables")).unwrap();
    std::fs::write(directory.path().join("keyspaces/3/tables/1"), "left").unwrap();
    let store = open(directory.path());
    assert_eq!(store.row_tables(), [8]);
    assert!(!directory.path().join("keyspaces/3").exists());
}

/// Makes fjall stop as if a flush failed: the folder for the files of the table is missing.
fn stop(store: &DiskStore, directory: &Path) {
    let (place, aside) =
        (directory.join("keyspaces/3/tables"), directory.join("keyspaces/3/aside"));
    std::fs::rename(&place, &aside).unwrap();
    let rows = store.with(|opened| opened.keyspaces().own[&ROWS].clone()).unwrap();
    rows.rotate_memtable().unwrap();
    drop(rows);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !store.is_stopped() {
        assert!(Instant::now() < deadline, "fjall does not stop");
        std::thread::sleep(BACKLOG_POLL);
    }
    std::fs::rename(&aside, &place).unwrap();
}

/// Makes the test for room fail, for another reason than a full disk.
fn forbid_room(directory: &Path) {
    std::fs::create_dir(directory.join("room")).unwrap();
}

/// Files that come and go also advance fjall's own numbers, so these do not tell whether a batch
/// was written.
#[test]
fn failed_batch_exists_only_with_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    (0..5).for_each(|_| store.commit(put(ROWS, &[("a", "1")]), true).unwrap());
    let rows = store.with(|opened| opened.keyspaces().own[&ROWS].clone()).unwrap();
    rows.rotate_memtable_and_wait().unwrap();
    drop(rows);
    let held = store.snapshot();
    let last_rows = store.last_rows.load(Ordering::Acquire);
    let asked = |number| InDoubtBatch { number, has_rows: true, last_rows };
    assert_eq!(store.reopen(Some(&asked(6))).unwrap(), 5, "the sixth is not there");
    assert_eq!(entries(&*held, ROWS, b"").len(), 1, "nothing has changed for readers");
    assert_eq!(store.reopen(Some(&asked(5))).unwrap(), 5, "the fifth is");
    let gone = held.get(ROWS, b"a");
    assert!(matches!(gone, Err(Error::Conflict(_))), "readers of before must not see it: {gone:?}");
    store.commit(put(ROWS, &[("b", "2")]), true).unwrap();
    drop(store);
    assert_eq!(open(directory.path()).writing.lock().batches, 6);
}

/// A visitor of a scan may be slow and may read elsewhere. The store can be reopened meanwhile; the scan then
/// continues in the same snapshot or returns an error.
#[test]
fn a_store_is_reopened_during_a_scan() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = StoreBatch::new();
    (0..5_000u32).for_each(|key| batch.put(ROWS, key.to_be_bytes(), key.to_be_bytes()));
    store.commit(batch, true).unwrap();
    let (moment, other) = (store.snapshot(), store.snapshot());
    let mut found = Vec::new();
    let scanned = moment.scan(ROWS, b"", &mut |key, _| {
        if found.len() % 1_000 == 10 {
            let nested = &mut |_: &[u8], _: &[u8]| store.reopen(None).map(|_| false);
            other.scan(ROWS, key, nested)?;
        }
        found.push(key.to_vec());
        Ok(true)
    });
    scanned.unwrap();
    assert_eq!(store.reopen_count(), 5);
    assert!(found.into_iter().eq((0..5_000u32).map(|key| key.to_be_bytes().to_vec())));

    let mut visited = 0;
    let ended = moment.scan(ROWS, b"", &mut |_, _| {
        visited += 1;
        if visited == 1 {
            store.commit(put(ROWS, &[("later", "x")]), true)?;
            store.reopen(None)?;
        }
        Ok(true)
    });
    assert!(matches!(ended, Err(Error::Conflict(_))), "{ended:?}");
    assert!(visited < 5_000, "{visited}");
}

/// A failed compaction leaves files that only a reopening removes, which makes room.
#[test]
fn a_stopped_store_is_reopened_without_room_too() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
    let held = store.snapshot();
    stop(&store, directory.path());
    let left = directory.path().join("keyspaces/3/tables/999");
    std::fs::write(&left, "what a compaction had written").unwrap();
    forbid_room(directory.path());
    store.refuse("a test");
    assert!(matches!(store.resume(), Err(Error::Full(_))));
    assert_eq!(store.reopen_count(), 1);
    assert!(!left.exists());
    assert_eq!(entries(&*held, ROWS, b"").len(), 1);
    assert!(matches!(store.commit(put(ROWS, &[("b", "2")]), true), Err(Error::Full(_))));
    // The next reopening waits for a pause, because readers wait during each.
    stop(&store, directory.path());
    assert!(matches!(store.sync(), Err(Error::Full(_))), "that it has stopped is no news");
    assert!(matches!(store.resume(), Err(Error::Full(_))));
    assert_eq!(store.reopen_count(), 1);
    std::fs::remove_dir(directory.path().join("room")).unwrap();
    store.resume().unwrap();
    assert_eq!((store.reopen_count(), store.refusal()), (2, None));
    store.commit(put(ROWS, &[("b", "2")]), true).unwrap();
    assert_eq!(entries(&*store.snapshot(), ROWS, b"").len(), 2);
}

/// fjall stops in the same way when a flush meets a full disk and when a sync fails. After a failed sync the store
/// must not continue.
#[test]
fn a_store_that_has_stopped_on_a_disk_with_room_takes_no_write_any_more() {
    for forbidden in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
        stop(&store, directory.path());
        if forbidden {
            forbid_room(directory.path());
        }
        let failed = store.commit(put(ROWS, &[("b", "2")]), true).unwrap_err();
        assert!(matches!(failed, Error::Poisoned(_)), "{failed:?}");
        assert!(matches!(store.sync(), Err(Error::Poisoned(_))));
        assert!(matches!(store.resume(), Err(Error::Poisoned(_))));
        assert_eq!((store.reopen_count(), store.refusal()), (0, None));
        assert_eq!(entries(&*store.snapshot(), ROWS, b"").len(), 1);
    }
}

/// Rows are dropped while the disk is full, or as soon as possible.
#[test]
fn rows_are_dropped_while_the_disk_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = put(ROWS, &[("a", "1")]);
    batch.put(Keyspace::Rows(8), "b", "2");
    batch.put(Keyspace::Rows(9), "c", "3");
    store.commit(batch, true).unwrap();
    let held = store.snapshot();
    store.refuse("a test");
    store.drop_rows(7).unwrap();
    assert_eq!(store.row_tables(), [8, 9]);
    assert_eq!(store.reopen_count(), 1, "publishers learn that they must release this snapshot");
    assert!(directory.path().join("keyspaces/3").exists());
    assert_eq!(entries(&*held, ROWS, b"").len(), 1);
    drop(held);
    assert!(!directory.path().join("keyspaces/3").exists());
    // A table whose rows could not be dropped earlier.
    store.undropped.lock().insert(8);
    store.resume().unwrap();
    assert_eq!(store.row_tables(), [9]);
}

/// A creation was interrupted or met a full disk: there never was a row, so the next opening starts over. Nothing is
/// removed if there may have been one.
#[test]
fn a_partly_created_store_is_created_again() {
    type Left = (&'static str, Option<u64>);
    let journal: Left = ("0.jnl", Some(64 << 20));
    let place: Left = ("keyspaces", None);
    let states: [&[Left]; 7] = [
        &[("lock", Some(0))],
        &[("lock", Some(0)), place],
        &[("lock", Some(0)), place, ("0.jnl", Some(0))],
        &[("lock", Some(0)), place, journal],
        &[("lock", Some(0)), place, journal, ("version", Some(0))],
        &[place, journal, ("version", Some(0)), ("keyspaces/0/tables", None)],
        &[
            place,
            journal,
            ("version", Some(4)),
            ("keyspaces/0/tables", None),
            ("keyspaces/0/v0", Some(9)),
        ],
    ];
    for (number, state) in states.iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in *state {
            let path = directory.path().join(name);
            match bytes {
                None => std::fs::create_dir_all(path).unwrap(),
                Some(bytes) => std::fs::File::create(path).unwrap().set_len(*bytes).unwrap(),
            }
        }
        for _ in 0..2 {
            let store = DiskStore::open(directory.path(), StoreOptions::default());
            let store = store.unwrap_or_else(|error| panic!("{number}: {error}"));
            store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
        }
        let written = directory.path().join("0.jnl");
        for lost in ["version", "keyspaces/0/current"] {
            let kept = std::fs::read(&written).unwrap();
            let (lost, aside) = (directory.path().join(lost), directory.path().join("aside"));
            std::fs::rename(&lost, &aside).unwrap();
            assert!(DiskStore::open(directory.path(), StoreOptions::default()).is_err());
            std::fs::rename(&aside, &lost).unwrap();
            assert!(std::fs::read(&written).unwrap() == kept, "{number}");
            let store = open(directory.path());
            assert_eq!(entries(&*store.snapshot(), ROWS, b"").len(), 1);
        }
    }
}

#[test]
fn a_store_that_may_have_rows_is_not_created_again() {
    // A definition file that no list names; a batch without a definition; a file of the user.
    for left in ["keyspaces/0/tables/1", "0.jnl", "notes.txt"] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("keyspaces/0/tables")).unwrap();
        std::fs::write(directory.path().join("0.jnl"), [0; 100]).unwrap();
        std::fs::write(directory.path().join("version"), b"FJL\x03").unwrap();
        std::fs::write(directory.path().join(left), "something").unwrap();
        let error = DiskStore::open(directory.path(), StoreOptions::default()).err().unwrap();
        assert!(matches!(error, Error::Corrupt(_)), "{left}: {error:?}");
        assert_eq!(std::fs::read(directory.path().join(left)).unwrap(), b"something");
    }
}

/// It is unknown whether the batch is there, so the error must not invite a retry.
#[test]
fn failed_reopening_during_a_write_ends_writing() {
    for error in [Error::Full("full".to_owned()), Error::Busy("busy".to_owned())] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        assert!(matches!(store.end(error), Error::Poisoned(_)));
        assert!(matches!(store.commit(put(ROWS, &[("a", "1")]), true), Err(Error::Poisoned(_))));
    }
}
