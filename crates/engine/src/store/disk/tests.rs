//! The store on disk: atomic, isolated, and as it was after a restart.

use super::*;
use crate::store::testing::{Faults, FaultyStore};

const ROWS: Keyspace = Keyspace::Rows(7);

fn open(directory: &Path) -> DiskStore {
    DiskStore::open(directory, StoreOptions::default()).unwrap()
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

/// What every store must do.
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
fn both_stores_are_atomic_and_isolated() {
    let directory = tempfile::tempdir().unwrap();
    behaves_as_a_store(&open(directory.path()));
    behaves_as_a_store(&FaultyStore::default());
}

#[test]
fn batches_are_there_after_a_restart_and_dropped_tables_are_not() {
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
    let snapshot = open(directory.path()).snapshot();
    assert_eq!(text(snapshot.get(ROWS, b"a").unwrap()).as_deref(), Some("1"));
    assert_eq!(text(snapshot.get(ROWS, b"b").unwrap()).as_deref(), Some("1"));
    assert_eq!(snapshot.get(Keyspace::Meta, b"position").unwrap(), None);
}

#[test]
fn empty_and_zero_keys_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
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
fn a_directory_of_someone_else_is_refused() {
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
fn a_failed_write_poisons_the_store_and_reads_go_on() {
    let faults = [
        Faults { fail_commit: Some(1), ..Faults::default() },
        Faults { fail_sync: Some(1), ..Faults::default() },
        Faults { capacity_bytes: Some(3), ..Faults::default() },
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
fn what_was_not_synced_is_lost_with_the_power() {
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
