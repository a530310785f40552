//! Where the rows of a table are stored: in a keyspace of their own, or together with those of
//! other small tables.
//!
//! fjall keeps its list of keyspaces in an LSM tree, which it rewrites whenever one is created or dropped. It keeps the
//! replaced versions, on disk and in memory, until the next opening: it compacts this tree with watermark 0, at which
//! lsm-tree keeps every version. With 900 keyspaces each more costs a megabyte and 36 ms. So a small table has none.
//!
//! ```text
//! keyspace "small"       table number (u32, big endian), key -> row
//! keyspace "rows-N"      key -> row, of a table that has grown
//! "meta" "small/" N      (u32, big endian) the rows of table N are in "small"; without it in "rows-N"
//! ```
//! The batch by which a table grows too large moves its rows. It is one record of the journal, so after a crash they
//! are in one of the two places. The keyspace is created before: if the batch does not come, it stays empty, and the
//! next batch uses it. Dropping a small table is one batch too; its rows are few.

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
/// Prefix of the marks in "meta": before the number of a table whose rows are in [`SMALL`].
const MARK: &[u8] = b"small/";
/// Approximate bytes of rows that one batch moves to keyspaces of their own. Tables beyond that wait for their next
/// batch.
pub(super) const MOST_MOVED_BYTES: u64 = 8 << 20;
/// Bytes of the table's number before a key in [`SMALL`].
const NUMBER_BYTES: usize = size_of::<u32>();

/// The open LSM trees.
#[derive(Clone)]
pub(super) struct Keyspaces {
    /// Trees that hold one keyspace of the store each.
    pub own: BTreeMap<Keyspace, fjall::Keyspace>,
    /// The tree of all small tables; created with the first row of one.
    pub small: Option<fjall::Keyspace>,
}

impl Keyspaces {
    /// Where a keyspace's entries are; `None` if it cannot have any.
    pub fn place(&self, keyspace: Keyspace) -> Option<KeyspaceLocation<'_>> {
        match (self.own.get(&keyspace), keyspace) {
            (Some(tree), _) => Some(KeyspaceLocation { tree, small: None }),
            (None, Keyspace::Rows(table)) => {
                Some(KeyspaceLocation { tree: self.small.as_ref()?, small: Some(table) })
            }
            (None, Keyspace::Meta | Keyspace::Log) => None,
        }
    }

    /// All trees.
    pub fn trees(&self) -> impl Iterator<Item = &fjall::Keyspace> {
        self.own.values().chain(self.small.as_ref())
    }

    /// Whether the tree of a keyspace, or that of small tables for `None`, is the same in others.
    pub fn shares(&self, keyspace: Option<Keyspace>, other: &Self) -> bool {
        let tree = |all: &Self| match keyspace {
            Some(keyspace) => all.own.get(&keyspace).cloned(),
            None => all.small.clone(),
        };
        tree(self) == tree(other)
    }
}

/// Where a keyspace's entries are.
pub(super) struct KeyspaceLocation<'k> {
    pub tree: &'k fjall::Keyspace,
    /// The table's number, if the tree is that of small tables.
    small: Option<u32>,
}

impl KeyspaceLocation<'_> {
    /// The stored form of a key.
    pub fn key<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match self.small {
            None => store_key(key),
            Some(table) => Cow::Owned([table.to_be_bytes().as_slice(), key].concat()),
        }
    }

    /// The range of stored keys from this one to the end of the keyspace.
    pub fn keys_from(&self, from: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let next = self.small.and_then(|table| table.checked_add(1));
        let end = next.map_or(Bound::Unbounded, |next| Bound::Excluded(next.to_be_bytes().into()));
        (Bound::Included(self.key(from).into_owned()), end)
    }

    /// Whether stored keys begin with the table's number.
    pub fn is_small(&self) -> bool {
        self.small.is_some()
    }
}

/// The original of a stored key.
pub(super) fn key_of(stored: &[u8], is_small: bool) -> &[u8] {
    if is_small { stored.get(NUMBER_BYTES..).unwrap_or_default() } else { original_key(stored) }
}

/// The tables whose rows are in [`SMALL`], each with its bytes: those at the first look plus those
/// written since. `None` before the first look.
pub(super) struct SmallTables(Mutex<BTreeMap<u32, Option<u64>>>);

/// How a batch changes where rows are stored.
#[derive(Default)]
pub(super) struct Moves {
    /// New small tables.
    new: Vec<u32>,
    /// Small tables that the batch writes to, with their bytes after it.
    stay: BTreeMap<u32, u64>,
    /// Tables that the batch moves to a keyspace of their own.
    pub grown: Vec<Grown>,
}

/// A table that gets a keyspace of its own.
pub(super) struct Grown {
    pub table: u32,
    /// Its rows as stored in [`SMALL`].
    rows: Vec<(StoredBytes, StoredBytes)>,
    was_small: bool,
}

impl SmallTables {
    /// Reads the marks of small tables.
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

    /// Whether there is no small table.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The numbers of the small tables.
    pub fn numbers(&self) -> BTreeSet<u32> {
        self.0.lock().keys().copied().collect()
    }

    /// Whether this is a small table.
    pub fn contains(&self, table: u32) -> bool {
        self.0.lock().contains_key(&table)
    }

    /// The bytes of a small table, see [`SmallTables`]. The first call reads its rows.
    pub fn bytes(&self, database: &Database, keyspaces: &Keyspaces, table: u32) -> u64 {
        match self.0.lock().get(&table) {
            None => return 0,
            Some(Some(bytes)) => return *bytes,
            Some(None) => {}
        }
        // Damage is reported to those who read the rows later.
        let (rows, _) = rows_of(database, keyspaces, table);
        let bytes = rows.iter().map(|(key, row)| bytes_of(key, row)).sum();
        match self.0.lock().get_mut(&table) {
            None => 0,
            Some(known) => *known.get_or_insert(bytes),
        }
    }

    /// How a batch changes the places of rows; tables are small up to `small_table_bytes`. Cost: a table's rows are
    /// read at its first batch and when it grows too large.
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
                    // The move is tried again once the table has grown by the same number of bytes.
                    Some(error) => {
                        tracing::warn!(table, %error, "the rows of a grown table stay with those of small tables");
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

    /// Records the changes of a written batch.
    pub fn moved(&self, moves: Moves) {
        let mut tables = self.0.lock();
        tables.extend(moves.stay.into_iter().map(|(table, bytes)| (table, Some(bytes))));
        for grown in &moves.grown {
            tables.remove(&grown.table);
        }
    }

    /// Adds the deletion of a small table's rows and of its mark to a batch.
    pub fn drop_rows(
        &self,
        database: &Database,
        keyspaces: &Keyspaces,
        table: u32,
        writes: &mut OwnedWriteBatch,
    ) {
        let (rows, damage) = rows_of(database, keyspaces, table);
        if let Some(error) = damage {
            // Harmless, because no other table gets this number.
            tracing::warn!(table, %error, "rows of a dropped table stay: they cannot be read");
        }
        if let Some(small) = &keyspaces.small {
            rows.into_iter().for_each(|(key, _)| writes.remove(small, key));
        }
        unmark(writes, keyspaces, table);
    }

    /// Records that the rows of a table were dropped.
    pub fn dropped(&self, table: u32) {
        self.0.lock().remove(&table);
    }
}

impl Moves {
    /// Whether the batch writes to small tables.
    pub fn has_small(&self) -> bool {
        !self.stay.is_empty()
    }

    /// Writes marks and moved rows, before the other changes of the batch.
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

/// The bytes that a batch writes to each table without a keyspace of its own.
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

/// The stored rows of a small table, up to the first that cannot be read, and that error.
fn rows_of(
    database: &Database,
    keyspaces: &Keyspaces,
    table: u32,
) -> (Vec<(StoredBytes, StoredBytes)>, Option<fjall::Error>) {
    let mut rows = Vec::new();
    let Some(tree) = &keyspaces.small else { return (rows, None) };
    let place = KeyspaceLocation { tree, small: Some(table) };
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
