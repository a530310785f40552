//! Small tables in a shared keyspace, and their growth, compared with a model, wherever the journal ends.

use std::{collections::BTreeMap, fs};

use super::{super::placement::MOST_MOVED_BYTES, *};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// Tables written to since they were dropped.
type Model = BTreeMap<u32, Rows>;

const LIMIT: u64 = 300;
const TABLES: u32 = 6;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }

    fn bytes(&mut self, most: u64, of: &[u8]) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| of[self.below(of.len() as u64) as usize]).collect()
    }

    /// Random changes of the tables from `first` on, also applied to the model.
    fn batch(&mut self, model: &mut Model, first: u32) -> StoreBatch {
        let mut batch = StoreBatch::new();
        for _ in 0..=self.below(6) {
            let table = first + self.below(TABLES.into()) as u32;
            let (rows, key) = (model.entry(table).or_default(), self.bytes(3, &[0, 1, 255]));
            if self.below(3) == 0 {
                rows.remove(&key);
                batch.delete(Keyspace::Rows(table), key);
            } else {
                let row = self.bytes(60, b"abc");
                rows.insert(key.clone(), row.clone());
                batch.put(Keyspace::Rows(table), key, row);
            }
        }
        batch
    }
}

fn compare_table(moment: &dyn StoreSnapshot, table: u32, rows: &Rows) {
    let rows_of = Keyspace::Rows(table);
    let expected: Vec<_> = rows.iter().map(|(key, row)| (key.clone(), row.clone())).collect();
    assert_eq!(entries(moment, rows_of, b""), expected, "table {table}");
    for from in [[0].as_slice(), &[0, 0], &[1], &[255, 255, 255]] {
        let behind = rows.range(from.to_vec()..).map(|(key, row)| (key.clone(), row.clone()));
        assert!(entries(moment, rows_of, from).into_iter().eq(behind), "{table} from {from:?}");
        let found = moment.get(rows_of, from).unwrap();
        assert_eq!(found.as_deref(), rows.get(from).map(Vec::as_slice), "{table} at {from:?}");
    }
}

fn compare(moment: &dyn StoreSnapshot, model: &Model, first: u32) {
    let none = Rows::new();
    (0..first + TABLES + 1)
        .for_each(|table| compare_table(moment, table, model.get(&table).unwrap_or(&none)));
}

fn small_tables(store: &DiskStore) -> BTreeSet<u32> {
    let own = store.with(|opened| opened.keyspaces().own.clone()).unwrap();
    let is_small = |table: &u32| !own.contains_key(&Keyspace::Rows(*table));
    store.row_tables().into_iter().filter(is_small).collect()
}

/// Tables are written, dropped, written again under the same number, and reopened with the same limit and another
/// one; readers keep their snapshots.
#[test]
fn created_grown_and_dropped_small_tables_equal_a_model() {
    let (mut random, mut seen) = (Random(7), [0_usize; 2]);
    for _ in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        let mut store = open_with(directory.path(), LIMIT);
        let mut model = Model::new();
        let mut held = Vec::new();
        for _ in 0..120 {
            match random.below(12) {
                0 => {
                    held.clear();
                    drop(store);
                    store = open_with(
                        directory.path(),
                        [0, LIMIT, LIMIT, 900][random.below(4) as usize],
                    );
                }
                1 | 2 => {
                    let table = random.below(TABLES.into()) as u32;
                    store.drop_rows(table).unwrap();
                    model.remove(&table);
                }
                3 => held.push((store.snapshot(), model.clone())),
                4 => store.flush(Instant::now()).unwrap(),
                _ => store.commit(random.batch(&mut model, 0), random.below(4) == 0).unwrap(),
            }
            assert!(store.row_tables().iter().eq(model.keys()));
            compare(&*store.snapshot(), &model, 0);
            let small = small_tables(&store).len();
            seen = [seen[0] + small, seen[1] + model.len() - small];
        }
        held.iter().for_each(|(moment, model)| compare(&**moment, model, 0));
    }
    assert!(seen.iter().all(|&times| times > 300), "{seen:?} small and grown");
}

/// The states after each batch of a series.
struct Series {
    states: Vec<Model>,
    /// Dropped tables, each with the number of the last batch before.
    dropped: BTreeMap<u32, usize>,
    first: u32,
}

fn run_series(store: &DiskStore, random: &mut Random) -> Series {
    let mut series = Series { states: vec![Model::new()], dropped: BTreeMap::new(), first: 0 };
    let mut model = Model::new();
    for _ in 0..60 {
        store.commit(random.batch(&mut model, series.first), true).unwrap();
        series.states.push(model.clone());
        if random.below(12) == 0 {
            // No table gets this number again.
            if model.remove(&series.first).is_some() {
                store.drop_rows(series.first).unwrap();
                series.dropped.insert(series.first, series.states.len() - 1);
            }
            series.first += 1;
        }
    }
    series
}

/// Copies a store with a cut journal, as a power loss leaves it, including keyspaces created for lost batches.
fn cut(from: &Path, to: &Path, journal: &[u8]) {
    let mut below = vec![from.to_owned()];
    while let Some(place) = below.pop() {
        let target = to.join(place.strip_prefix(from).unwrap());
        fs::create_dir_all(&target).unwrap();
        for entry in fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                below.push(entry);
            } else if entry.file_name().unwrap() != "0.jnl" {
                fs::copy(&entry, target.join(entry.file_name().unwrap())).unwrap();
            }
        }
    }
    fs::write(to.join("0.jnl"), journal).unwrap();
}

#[test]
fn rows_exist_once_for_every_journal_end() {
    let mut random = Random(11);
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), LIMIT);
    let series = run_series(&store, &mut random);
    assert!(!small_tables(&store).is_empty());
    drop(store);
    let journal = fs::read(directory.path().join("0.jnl")).unwrap();
    let end = journal.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let (mut unfilled, mut reached) = (0, BTreeSet::new());
    for part in 1..=80 {
        let copy = tempfile::tempdir().unwrap();
        cut(directory.path(), copy.path(), &journal[..end * part / 80]);
        let store = open_with(copy.path(), LIMIT);
        let batches = store.writing.lock().batches as usize;
        reached.insert(batches);
        let (moment, tables) = (store.snapshot(), store.row_tables());
        for table in 0..series.first + TABLES {
            let expected = series.states[batches].get(&table);
            if series.dropped.get(&table).is_none_or(|&last| last < batches) {
                compare_table(&*moment, table, expected.unwrap_or(&Rows::new()));
            }
            if series.dropped.get(&table).is_some_and(|&last| last < batches) {
                assert!(!tables.contains(&table), "{table} after {batches}");
            }
        }
        unfilled +=
            small_tables(&store).iter().filter(|table| has_keyspace(&store, **table)).count();
        drop(moment);
        go_on(store, copy.path());
    }
    assert_eq!(reached.last(), Some(&60));
    assert!(reached.len() > 30, "{reached:?}");
    assert!(unfilled > 5, "{unfilled} keyspaces that were made for batches that were lost");
}

fn has_keyspace(store: &DiskStore, table: u32) -> bool {
    store.with(|opened| opened.database.keyspace_exists(&format!("rows-{table}"))).unwrap()
}

/// Each table grows or is dropped, and leaves nothing behind.
fn go_on(store: DiskStore, directory: &Path) {
    let moment = store.snapshot();
    for (index, table) in store.row_tables().into_iter().enumerate() {
        let mut rows: Rows = entries(&*moment, Keyspace::Rows(table), b"").into_iter().collect();
        if index % 2 == 0 {
            let (key, row) = (vec![9], vec![b'x'; 400]);
            let mut batch = StoreBatch::new();
            batch.put(Keyspace::Rows(table), key.clone(), row.clone());
            rows.insert(key, row);
            store.commit(batch, false).unwrap();
            assert!(!small_tables(&store).contains(&table));
        }
        compare_table(&*store.snapshot(), table, &rows);
    }
    store.row_tables().into_iter().for_each(|table| store.drop_rows(table).unwrap());
    drop((moment, store));
    let store = open_with(directory, LIMIT);
    assert!(store.row_tables().is_empty());
    let names = store.with(|opened| opened.database.keyspace_count()).unwrap();
    // Keyspaces without marks or rows are tables without rows.
    assert_eq!(names, 3, "{names}");
}

/// With a keyspace each, fjall would rewrite its list of keyspaces at each first row and each drop, and keep the old
/// ones.
#[test]
fn many_small_tables_cost_no_keyspaces() {
    const MANY: u32 = 900;
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), StoreOptions::default().small_table_bytes);
    for first in [0, MANY] {
        let started = Instant::now();
        for table in first..first + MANY {
            store.commit(put(Keyspace::Rows(table), &[("a", "1")]), false).unwrap();
        }
        println!("{:?} a table", started.elapsed() / MANY);
        (first..first + MANY / 2).for_each(|table| store.drop_rows(table).unwrap());
        assert_eq!(store.row_tables().len() as u32, MANY / 2 + first / 2);
    }
    let places = fs::read_dir(directory.path().join("keyspaces")).unwrap();
    assert_eq!(places.count(), 4, "fjall's own, meta, log, small");
    let list = fs::read_dir(directory.path().join("keyspaces/0/tables")).unwrap();
    let bytes: u64 = list.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 100_000, "{bytes}");
    drop(store);
    let store = open_with(directory.path(), 0);
    let moment = store.snapshot();
    assert_eq!(store.row_tables().len() as u32, MANY);
    let has_row = |table: u32| moment.get(Keyspace::Rows(table), b"a").unwrap().is_some();
    assert!((0..2 * MANY).filter(|table| has_row(*table)).eq(store.row_tables()));
}

/// A snapshot from before a drop must not be renewed without the dropped rows.
#[test]
fn a_snapshot_with_dropped_rows_is_revoked_by_a_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), LIMIT);
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
    store.commit(put(Keyspace::Rows(8), &[("b", "2")]), true).unwrap();
    let before = store.snapshot();
    store.drop_rows(7).unwrap();
    let after = store.snapshot();
    assert_eq!(entries(&*before, ROWS, b"").len(), 1);
    {
        let _writing = store.writing.lock();
        store.reopen(None).unwrap();
    }
    assert!(matches!(before.get(ROWS, b"a"), Err(Error::Conflict(_))));
    assert_eq!(entries(&*after, ROWS, b"").len(), 0);
    assert_eq!(entries(&*after, Keyspace::Rows(8), b"").len(), 1);
}

/// The longest key leaves room for the table's number, in small tables and others.
#[test]
fn small_tables_have_the_same_key_length_limit() {
    let directory = tempfile::tempdir().unwrap();
    for limit in [0, 1 << 20] {
        let store = open_with(&directory.path().join(limit.to_string()), limit);
        for bytes in [MAX_KEY_BYTES, MAX_KEY_BYTES + 1] {
            let mut batch = StoreBatch::new();
            batch.put(ROWS, vec![7; bytes], "x");
            let committed = store.commit(batch, true);
            assert_eq!(committed.is_ok(), bytes == MAX_KEY_BYTES, "{committed:?}");
        }
        let longest = store.snapshot().get(ROWS, &[7; MAX_KEY_BYTES]).unwrap();
        assert_eq!(text(longest).as_deref(), Some("x"));
        assert_eq!(entries(&*store.snapshot(), ROWS, b"").len(), 1);
    }
}

#[test]
fn a_store_that_lost_the_keyspace_of_small_tables_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), LIMIT);
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
    drop(store);
    fs::remove_dir_all(directory.path().join("keyspaces/3")).unwrap();
    for _ in 0..2 {
        let error = DiskStore::open(directory.path(), StoreOptions::default()).err().unwrap();
        assert!(matches!(error, Error::Corrupt(_)), "{error:?}");
        assert!(error.to_string().contains("small tables are missing"), "{error}");
    }
}

/// Dropping a small table writes and frees nothing: it waits until there is room.
#[test]
fn a_small_table_is_not_dropped_while_the_disk_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), 1 << 20);
    store.commit(put(ROWS, &[("a", "1")]), true).unwrap();
    let held = store.snapshot();
    forbid_room(directory.path());
    store.refuse("a test");
    store.drop_rows(7).unwrap();
    assert_eq!(store.row_tables(), [7]);
    assert!(matches!(store.resume(), Err(Error::Full(_))));
    assert_eq!((store.row_tables(), store.reopen_count()), (vec![7], 0));
    assert_eq!(entries(&*held, ROWS, b"").len(), 1);
    fs::remove_dir(directory.path().join("room")).unwrap();
    store.resume().unwrap();
    assert!(store.row_tables().is_empty());
    assert_eq!(entries(&*store.snapshot(), ROWS, b"").len(), 0);
}

/// If many tables grow in one batch, it moves some of them; the others are moved by their next batch.
#[test]
fn some_of_many_growing_small_tables_are_moved() {
    let directory = tempfile::tempdir().unwrap();
    let limit = MOST_MOVED_BYTES / 4;
    let store = open_with(directory.path(), limit);
    let row = vec![b'x'; limit as usize * 3 / 4];
    let tables = 20..30;
    for key in ["a", "b"] {
        let mut batch = StoreBatch::new();
        tables.clone().for_each(|table| batch.put(Keyspace::Rows(table), key, row.clone()));
        store.commit(batch, true).unwrap();
    }
    // Each of the six tables had a row of three sixteenths of what a batch moves.
    assert_eq!(small_tables(&store).len(), 4);
    for (key, left) in [("c", 1), ("d", 0)] {
        let mut batch = StoreBatch::new();
        tables.clone().for_each(|table| batch.put(Keyspace::Rows(table), key, "1"));
        store.commit(batch, true).unwrap();
        assert_eq!(small_tables(&store).len(), left);
    }
    for table in tables {
        assert_eq!(entries(&*store.snapshot(), Keyspace::Rows(table), b"").len(), 4, "{table}");
    }
}
