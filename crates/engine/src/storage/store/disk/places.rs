//! Where the rows of a table are: with those of other small tables, or in a keyspace of their own.
//!
//! fjall keeps its list of keyspaces in an LSM tree and writes it anew whenever one is made or dropped. It never lets
//! go of what that replaces, on disk or in memory, until the next opening: it compacts this tree with watermark 0, at
//! which lsm-tree keeps every version. With 900 keyspaces each costs a megabyte and 36 ms. So a small table has none.
//!
//! ```text
//! keyspace "small"       table number (u32, big endian), key -> row
//! keyspace "rows-N"      key -> row, of a table that has grown
//! "meta" "small/" N      (u32, big endian) the rows of table N are in "small"; without it in "rows-N"
//! ```
//! The batch at which a table has grown moves its rows: it is one record of the journal, so they are in one of the two
//! places after a crash. The keyspace was made before: one that no batch came to fill is empty, and the next one does.
//! Dropping rows of "small" is one batch too; its rows are few.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use fjall::{Database, OwnedWriteBatch, Readable};
use parking_lot::Mutex;

use super::{error::store_error, original_key, store_key};
use crate::{
    Error, Result,
    storage::store::{Keyspace, StoreBatch, StoredBytes},
};

/// The keyspace of small tables.
pub(super) const SMALL: &str = "small";
/// In "meta", before the number of a table whose rows are in [`SMALL`].
const MARK: &[u8] = b"small/";
/// Rows of small tables up to so many bytes get keyspaces of their own by one batch; the next batch of a table goes on.
pub(super) const MOST_MOVED_BYTES: u64 = 8 << 20;
/// Bytes of a table's number before its keys in [`SMALL`].
const NUMBER_BYTES: usize = size_of::<u32>();

/// The trees of the keyspaces that there are.
#[derive(Clone)]
pub(super) struct Keyspaces {
    /// Those that hold one keyspace of the store each.
    pub own: BTreeMap<Keyspace, fjall::Keyspace>,
    /// That of all tables that have none; made with the first row of such a table.
    pub small: Option<fjall::Keyspace>,
}

impl Keyspaces {
    /// Where a keyspace's entries are; `None` if it cannot have any.
    pub fn place(&self, keyspace: Keyspace) -> Option<Place<'_>> {
        match (self.own.get(&keyspace), keyspace) {
            (Some(tree), _) => Some(Place { tree, small: None }),
            (None, Keyspace::Rows(table)) => {
                Some(Place { tree: self.small.as_ref()?, small: Some(table) })
            }
            (None, Keyspace::Meta | Keyspace::Log) => None,
        }
    }

    /// All trees.
    pub fn trees(&self) -> impl Iterator<Item = &fjall::Keyspace> {
        self.own.values().chain(self.small.as_ref())
    }
}

/// Where a keyspace's entries are.
pub(super) struct Place<'k> {
    pub tree: &'k fjall::Keyspace,
    /// The table, in the tree of small ones.
    small: Option<u32>,
}

impl Place<'_> {
    /// A key as it is stored there.
    pub fn key<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match self.small {
            None => store_key(key),
            Some(table) => Cow::Owned([table.to_be_bytes().as_slice(), key].concat()),
        }
    }

    /// The keys from this one on, as they are stored.
    pub fn keys_from(&self, from: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let next = self.small.and_then(|table| table.checked_add(1));
        let end = next.map_or(Bound::Unbounded, |next| Bound::Excluded(next.to_be_bytes().into()));
        (Bound::Included(self.key(from).into_owned()), end)
    }

    /// Whether the table's number is before the keys.
    pub fn is_small(&self) -> bool {
        self.small.is_some()
    }
}

/// The key that is stored so, among those of small tables or not.
pub(super) fn key_of(stored: &[u8], is_small: bool) -> &[u8] {
    if is_small { stored.get(NUMBER_BYTES..).unwrap_or_default() } else { original_key(stored) }
}

/// The tables whose rows are in [`SMALL`], each with the bytes that it had and that were written to it since;
/// `None` before anybody asked.
pub(super) struct SmallTables(Mutex<BTreeMap<u32, Option<u64>>>);

/// What a batch changes of where rows are.
#[derive(Default)]
pub(super) struct Moves {
    /// Tables that are new among the small ones.
    new: Vec<u32>,
    /// Bytes of the small tables that it writes, with it.
    stay: BTreeMap<u32, u64>,
    /// Tables that have grown.
    pub grown: Vec<Grown>,
}

/// A table that gets a keyspace of its own.
pub(super) struct Grown {
    pub table: u32,
    /// Its rows, as they are stored among those of small tables.
    rows: Vec<(StoredBytes, StoredBytes)>,
    was_small: bool,
}

impl SmallTables {
    /// Reads which there are.
    pub fn read(database: &Database, meta: &fjall::Keyspace) -> Result<Self> {
        let mut tables = BTreeMap::new();
        for entry in database.snapshot().prefix(meta, MARK) {
            let (key, _) = entry.into_inner().map_err(store_error)?;
            let number = key.strip_prefix(MARK).and_then(|number| number.try_into().ok());
            let number = number.map(u32::from_be_bytes).ok_or_else(|| {
                Error::Corrupt(format!("the row store's mark of a small table, {:02x?}", &*key))
            })?;
            tables.insert(number, None);
        }
        Ok(Self(Mutex::new(tables)))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Their numbers.
    pub fn numbers(&self) -> BTreeSet<u32> {
        self.0.lock().keys().copied().collect()
    }

    /// Whether the table's rows are there.
    pub fn contains(&self, table: u32) -> bool {
        self.0.lock().contains_key(&table)
    }

    /// The bytes that a table had and that were written to it since.
    pub fn bytes(&self, database: &Database, keyspaces: &Keyspaces, table: u32) -> u64 {
        match self.0.lock().get(&table) {
            None => return 0,
            Some(Some(bytes)) => return *bytes,
            Some(None) => {}
        }
        // What cannot be read is told to who reads it.
        let (rows, _) = rows_of(database, keyspaces, table);
        let bytes = rows.iter().map(|(key, row)| bytes_of(key, row)).sum();
        match self.0.lock().get_mut(&table) {
            None => 0,
            Some(known) => *known.get_or_insert(bytes),
        }
    }

    /// What a batch changes of where rows are, if tables are small up to so many bytes. Cost: the rows of a
    /// table are read when it grows, and at the first batch for it.
    pub fn moves(
        &self,
        database: &Database,
        keyspaces: &Keyspaces,
        batch: &StoreBatch,
        small_table_bytes: u64,
    ) -> Moves {
        let (mut moves, mut moved_bytes) = (Moves::default(), 0);
        for (table, written_bytes) in written(keyspaces, batch) {
            let was_small = self.contains(table);
            let bytes = self.bytes(database, keyspaces, table).saturating_add(written_bytes);
            let has_room = !was_small || moved_bytes < MOST_MOVED_BYTES;
            if bytes > small_table_bytes && has_room {
                let (rows, damage) = match was_small {
                    true => rows_of(database, keyspaces, table),
                    false => (Vec::new(), None),
                };
                match damage {
                    None => {
                        moved_bytes +=
                            rows.iter().map(|(key, row)| bytes_of(key, row)).sum::<u64>();
                        moves.grown.push(Grown { table, rows, was_small });
                        continue;
                    }
                    // It is tried again when it has grown as much again.
                    Some(error) => {
                        tracing::warn!(table, %error, "rows stay among those of small tables");
                        moves.stay.insert(table, 0);
                    }
                }
            }
            if !was_small {
                moves.new.push(table);
            }
            moves.stay.entry(table).or_insert(bytes);
        }
        moves
    }

    /// What a batch has changed.
    pub fn moved(&self, moves: Moves) {
        let mut tables = self.0.lock();
        tables.extend(moves.stay.into_iter().map(|(table, bytes)| (table, Some(bytes))));
        for grown in &moves.grown {
            tables.remove(&grown.table);
        }
    }

    /// What drops the rows of a small table.
    pub fn drop_rows(
        &self,
        database: &Database,
        keyspaces: &Keyspaces,
        table: u32,
        writes: &mut OwnedWriteBatch,
    ) {
        let (rows, damage) = rows_of(database, keyspaces, table);
        if let Some(error) = damage {
            // No table gets this number again.
            tracing::warn!(table, %error, "rows of a dropped table stay: they cannot be read");
        }
        if let Some(small) = &keyspaces.small {
            rows.into_iter().for_each(|(key, _)| writes.remove(small, key));
        }
        unmark(writes, keyspaces, table);
    }

    /// The rows of a table were dropped.
    pub fn dropped(&self, table: u32) {
        self.0.lock().remove(&table);
    }
}

impl Moves {
    /// Whether it writes rows of small tables.
    pub fn has_small(&self) -> bool {
        !self.stay.is_empty()
    }

    /// Writes them, before what else is in the batch: marks, and rows to the keyspaces that they get.
    pub fn write(&self, writes: &mut OwnedWriteBatch, before: &Keyspaces, after: &Keyspaces) {
        for table in &self.new {
            if let Some(meta) = before.own.get(&Keyspace::Meta) {
                writes.insert(meta, mark(*table), Vec::new());
            }
        }
        for grown in self.grown.iter().filter(|grown| grown.was_small) {
            let Some(own) = after.own.get(&Keyspace::Rows(grown.table)) else { continue };
            for (stored, row) in &grown.rows {
                writes.insert(own, store_key(key_of(stored, true)).into_owned(), row.clone());
                if let Some(small) = &before.small {
                    writes.remove(small, stored.clone());
                }
            }
            unmark(writes, before, grown.table);
        }
    }
}

/// The bytes that a batch writes to each table that has no keyspace of its own.
fn written(keyspaces: &Keyspaces, batch: &StoreBatch) -> BTreeMap<u32, u64> {
    let mut tables: BTreeMap<u32, u64> = BTreeMap::new();
    for change in &batch.changes {
        let Keyspace::Rows(table) = change.keyspace else { continue };
        if keyspaces.own.contains_key(&change.keyspace) {
            continue;
        }
        let bytes = tables.entry(table).or_default();
        let row = change.value.as_deref().unwrap_or_default();
        *bytes = bytes.saturating_add(bytes_of(&change.key, row));
    }
    tables
}

fn bytes_of(key: &[u8], row: &[u8]) -> u64 {
    (key.len() + row.len()) as u64
}

/// The rows of a small table as they are stored, up to what cannot be read.
fn rows_of(
    database: &Database,
    keyspaces: &Keyspaces,
    table: u32,
) -> (Vec<(StoredBytes, StoredBytes)>, Option<fjall::Error>) {
    let mut rows = Vec::new();
    let Some(tree) = &keyspaces.small else { return (rows, None) };
    let place = Place { tree, small: Some(table) };
    for entry in database.snapshot().range(place.tree, place.keys_from(&[])) {
        match entry.into_inner() {
            Ok(row) => rows.push(row),
            Err(error) => return (rows, Some(error)),
        }
    }
    (rows, None)
}

fn mark(table: u32) -> Vec<u8> {
    [MARK, table.to_be_bytes().as_slice()].concat()
}

fn unmark(writes: &mut OwnedWriteBatch, keyspaces: &Keyspaces, table: u32) {
    if let Some(meta) = keyspaces.own.get(&Keyspace::Meta) {
        writes.remove(meta, mark(table));
    }
}
