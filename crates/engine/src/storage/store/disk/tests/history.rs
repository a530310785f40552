//! Snapshots keep reading what they showed at first, and keep no more memtables in memory than they
//! read.

use std::collections::BTreeMap;

use fjall::AbstractTree;
use proptest::{collection::vec, prelude::*};

use super::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const MEMTABLE_BYTES: u64 = 16 << 10;

fn open_small_memtables(directory: &Path) -> DiskStore {
    let options = StoreOptions {
        small_table_bytes: 0,
        rows_memtable_bytes: MEMTABLE_BYTES,
        ..StoreOptions::default()
    };
    DiskStore::open(directory, options).unwrap()
}

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Writes a kilobyte to each of these keys.
fn write(store: &DiskStore, model: &mut Model, keys: impl Iterator<Item = u32>, letter: u8) {
    let mut batch = StoreBatch::new();
    for number in keys {
        batch.put(ROWS, key(number), [letter; 1_000]);
        model.insert(key(number), vec![letter; 1_000]);
    }
    store.commit(batch, false).unwrap();
}

fn shows(snapshot: &dyn StoreSnapshot, model: &Model) {
    let found: Model = entries(snapshot, ROWS, b"").into_iter().collect();
    assert!(found == *model, "a scan of a snapshot shows other rows");
    for number in 0..64 {
        let found = snapshot.get(ROWS, &key(number)).unwrap();
        assert_eq!(found.as_deref(), model.get(&key(number)).map(Vec::as_slice), "key {number}");
    }
}

/// The size of a table's memtables, and the number of its versions.
fn history(store: &DiskStore, keyspace: Keyspace) -> (u64, usize) {
    let opened = store.opened.read();
    let keyspaces = opened.as_ref().unwrap().keyspaces();
    let tree = &keyspaces.own[&keyspace].tree;
    let versions = tree.get_version_history_lock().len();
    (tree.version_memtable_size_sum(), versions)
}

#[test]
fn a_held_snapshot_keeps_only_what_it_reads() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_small_memtables(directory.path());
    let mut model = Model::new();
    write(&store, &mut model, 0..8, b'a');
    let (held, held_model) = (store.snapshot(), model.clone());
    for round in 0..400_u32 {
        write(
            &store,
            &mut model,
            (0..8).map(|it| (round * 8 + it) % 64),
            b'b' + (round % 20) as u8,
        );
    }
    // Three sealed memtables, the active one, and as many of the snapshot. 3.3 MB were written. The last ones are
    // written in the background, which makes versions that only a later commit would forget.
    for waited in 0.. {
        store.forget_versions();
        let (bytes, versions) = history(&store, ROWS);
        if bytes <= 10 * MEMTABLE_BYTES {
            break;
        }
        assert!(waited < 2_000, "{bytes} bytes of memtables in {versions} versions");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    shows(&*held, &held_model);
    shows(&*store.snapshot(), &model);
    drop((held, store));
    shows(&*open_small_memtables(directory.path()).snapshot(), &model);
}

#[test]
fn a_held_snapshot_keeps_nothing_of_a_table_that_is_created_later() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_small_memtables(directory.path());
    let mut model = Model::new();
    write(&store, &mut model, 0..8, b'a');
    let held = store.snapshot();
    let later = Keyspace::Rows(8);
    for round in 0..50_u32 {
        let mut batch = StoreBatch::new();
        (0..8).for_each(|it| batch.put(later, key(round * 8 + it), [b'b'; 1_000]));
        store.commit(batch, false).unwrap();
    }
    // A flush or a compaction that still runs makes another version.
    let has_one = |_| {
        assert!(store.forget_versions());
        std::thread::sleep(Duration::from_millis(10));
        history(&store, later).1 == 1
    };
    assert!((0..1_000).any(has_one), "{:?}", history(&store, later));
    assert_eq!(held.get(later, &key(1)).unwrap(), None);
    shows(&*held, &model);
}

#[derive(Clone, Debug)]
enum Step {
    Write { first: u32, keys: u32, letter: u8 },
    Delete { first: u32, keys: u32 },
    Open,
    Close(usize),
    Flush,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = (0..64_u32, 1..12_u32);
    prop_oneof![
        12 => (keys.clone(), b'a'..=b'z').prop_map(|((first, keys), letter)| Step::Write { first, keys, letter }),
        2 => keys.prop_map(|(first, keys)| Step::Delete { first, keys }),
        3 => Just(Step::Open),
        2 => any::<usize>().prop_map(Step::Close),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn snapshots_show_their_rows_for_ever(steps in vec(step(), 1..200)) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = open_small_memtables(directory.path());
        let mut model = Model::new();
        let mut held: Vec<(Arc<dyn StoreSnapshot>, Model)> = Vec::new();
        for step in steps {
            match step {
                Step::Write { first, keys, letter } => {
                    write(&store, &mut model, (first..first + keys).map(|it| it % 64), letter);
                }
                Step::Delete { first, keys } => {
                    let mut batch = StoreBatch::new();
                    for number in (first..first + keys).map(|it| it % 64) {
                        batch.delete(ROWS, key(number));
                        model.remove(&key(number));
                    }
                    store.commit(batch, false).unwrap();
                }
                Step::Open => held.push((store.snapshot(), model.clone())),
                Step::Close(at) if !held.is_empty() => drop(held.swap_remove(at % held.len())),
                Step::Close(_) => {}
                Step::Flush => {
                    let keyspaces = store.with(Opened::keyspaces).unwrap();
                    for tree in keyspaces.trees() {
                        tree.rotate_memtable_and_wait().unwrap();
                    }
                }
                Step::Reopen => {
                    held.clear();
                    drop(store);
                    store = open_small_memtables(directory.path());
                }
            }
            for (snapshot, model) in &held {
                shows(&**snapshot, model);
            }
        }
        shows(&*store.snapshot(), &model);
    }
}
