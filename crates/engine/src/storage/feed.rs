//! The change feed: changes of rows and definitions, stored while there are watchers.
//!
//! ```text
//! meta   "feed/" number:u32 -> after:u64 last:u64 bytes:u64   a generation: the keyspace of this table number has the
//!                                changes after the batch `after`, up to the batch `last`
//!        "watch/" name      -> JSON { "tables": their names, or null for all, "since": u64 }
//! rows of the number of a generation
//!        0:u64 table:u32 definition:u64 -> length:u32 schema history      see `encode`
//!        batch:u64 part:u32 -> 0 table:u32 definition:u64 change*         in parts of about 256 KB
//!                            | 1 JSON                                     see [`Defined`]
//! change := flags:u8 (1: there is an old row, 2: a new one) (length:u32 old)? (length:u32 new)?
//! ```
//! Integers are big endian in keys and little endian in values. Rows are encoded as in their table's keyspace. Each
//! generation contains the definitions that its rows are read with, so the oldest generation can be dropped whole.
//! Entries after the database's last batch belong to a large batch that was not committed, and are removed before the
//! next commit. The position of a named watcher is the position of the source `#watch.NAME`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::store::{Keyspace, StoreBatch, StoreSnapshot};
use crate::{
    Error, Position, Result,
    encode::{History, RowFormat, decode_schema, encode_schema},
};

const FEED: &[u8] = b"feed/";
const WATCH: &[u8] = b"watch/";
/// Prefix of the source names under which watchers' positions are stored.
pub(crate) const WATCH_POSITION: &str = "#watch.";
/// Approximate bytes of a part.
const PART_BYTES: usize = if cfg!(test) { 256 } else { 256 << 10 };

const ROWS: u8 = 0;
const DEFINED: u8 = 1;
const OLD: u8 = 1;
const NEW: u8 = 2;

/// A part of the feed, dropped as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    /// The table number of its keyspace.
    pub number: u32,
    /// It has all changes after this batch, up to the next generation.
    pub after: Position,
    /// The last batch that it has changes of.
    pub last: Position,
    /// Bytes of its keys and values.
    pub bytes: u64,
}

/// A change of definitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Defined {
    /// A table was created.
    Created(String),
    /// A table was dropped.
    Dropped(String),
    /// All rows of a table were deleted.
    Truncated(String),
    /// The definition of a table changed.
    Altered(String),
    /// The table with the first name got the second name and replaced a table that had it.
    Renamed(String, String),
}

impl Defined {
    /// The tables that it names.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::Created(table)
            | Self::Dropped(table)
            | Self::Truncated(table)
            | Self::Altered(table) => (table, None),
            Self::Renamed(from, to) => (from, Some(to)),
        };
        std::iter::once(first).chain(second).map(String::as_str)
    }
}

/// A change of a row, as stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredChange<'r> {
    /// The row before, if there was one.
    pub old: Option<&'r [u8]>,
    /// The row after, if there is one.
    pub new: Option<&'r [u8]>,
}

/// A decoded feed entry.
pub(crate) enum FeedEntry<'e> {
    /// Changes of rows: table number, definition number, changes.
    Rows(u32, u64, Vec<StoredChange<'e>>),
    /// A change of definitions.
    Defined(Defined),
}

/// A named watcher as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registration {
    /// The tables it watches; `None` for all.
    pub tables: Option<Vec<String>>,
    /// The feed has its changes after this batch.
    pub since: u64,
}

impl Generation {
    /// Stores the generation's record.
    pub fn put(&self, commit: &mut StoreBatch) {
        let value = [self.after.0, self.last.0, self.bytes].map(u64::to_le_bytes).concat();
        commit.put(Keyspace::Meta, [FEED, &self.number.to_be_bytes()].concat(), value);
    }

    /// Removes the generation's record.
    pub fn delete(&self, commit: &mut StoreBatch) {
        commit.delete(Keyspace::Meta, [FEED, &self.number.to_be_bytes()].concat());
    }

    /// The keyspace of its entries.
    pub fn place(&self) -> Keyspace {
        Keyspace::Rows(self.number)
    }
}

/// All generations, oldest first.
pub(crate) fn read_generations(store: &dyn StoreSnapshot) -> Result<Vec<Generation>> {
    let mut generations = Vec::new();
    store.scan(Keyspace::Meta, FEED, &mut |key, value| {
        let Some(number) = key.strip_prefix(FEED) else { return Ok(false) };
        let parsed = || {
            let number = u32::from_be_bytes(number.try_into().ok()?);
            let (after, rest) = value.split_first_chunk::<8>()?;
            let (last, bytes) = rest.split_first_chunk::<8>()?;
            let [after, last] = [after, last].map(|at| Position(u64::from_le_bytes(*at)));
            let bytes = u64::from_le_bytes(bytes.try_into().ok()?);
            Some(Generation { number, after, last, bytes })
        };
        generations.push(parsed().ok_or_else(|| damaged("what is known of a generation"))?);
        Ok(true)
    })?;
    Ok(generations)
}

/// All named watchers, by name.
pub(crate) fn read_registrations(store: &dyn StoreSnapshot) -> Result<Vec<(String, Registration)>> {
    let mut found = Vec::new();
    store.scan(Keyspace::Meta, WATCH, &mut |key, value| {
        let Some(name) = key.strip_prefix(WATCH) else { return Ok(false) };
        let name =
            String::from_utf8(name.to_vec()).map_err(|_| damaged("the name of a watcher"))?;
        let registration =
            serde_json::from_slice(value).map_err(|error| damaged(&error.to_string()))?;
        found.push((name, registration));
        Ok(true)
    })?;
    Ok(found)
}

/// Stores a named watcher.
pub(crate) fn put_registration(
    commit: &mut StoreBatch,
    name: &str,
    registration: &Registration,
) -> Result<()> {
    let value = serde_json::to_vec(registration).map_err(|error| damaged(&error.to_string()))?;
    commit.put(Keyspace::Meta, [WATCH, name.as_bytes()].concat(), value);
    Ok(())
}

/// Removes a named watcher.
pub(crate) fn delete_registration(commit: &mut StoreBatch, name: &str) {
    commit.delete(Keyspace::Meta, [WATCH, name.as_bytes()].concat());
}

/// The key of a batch's entry.
pub(crate) fn entry_key(position: Position, part: u32) -> Vec<u8> {
    let mut key = position.0.to_be_bytes().to_vec();
    key.extend(part.to_be_bytes());
    key
}

/// The batch and part of an entry's key.
pub(crate) fn parse_entry_key(key: &[u8]) -> Result<(Position, u32)> {
    let parts = key.split_first_chunk::<8>();
    let parts = parts.and_then(|(position, part)| Some((*position, part.try_into().ok()?)));
    let (position, part) = parts.ok_or_else(|| damaged("the key of an entry"))?;
    Ok((Position(u64::from_be_bytes(position)), u32::from_be_bytes(part)))
}

fn definition_key(table: u32, definition: u64) -> Vec<u8> {
    let mut key = vec![0; 8];
    key.extend(table.to_be_bytes());
    key.extend(definition.to_be_bytes());
    key
}

/// Stores a definition in a generation; returns its bytes.
pub(crate) fn put_definition(
    commit: &mut StoreBatch,
    place: Keyspace,
    table: u32,
    definition: u64,
    format: &RowFormat,
) -> Result<u64> {
    let schema = encode_schema(format.schema())?;
    let history = serde_json::to_vec(format.history());
    let history = history.map_err(|error| damaged(&error.to_string()))?;
    let mut value = (schema.len() as u32).to_le_bytes().to_vec();
    value.extend(schema);
    value.extend(history);
    let bytes = value.len() as u64;
    commit.put(place, definition_key(table, definition), value);
    Ok(bytes)
}

/// Reads a definition of a generation.
pub(crate) fn read_definition(
    store: &dyn StoreSnapshot,
    place: Keyspace,
    table: u32,
    definition: u64,
) -> Result<RowFormat> {
    let stored = store.get(place, &definition_key(table, definition))?;
    let stored = stored.ok_or_else(|| damaged("a definition is missing"))?;
    let parts = stored
        .split_first_chunk::<4>()
        .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
    let (schema, history) = parts.ok_or_else(|| damaged("a definition"))?;
    let history: History =
        serde_json::from_slice(history).map_err(|error| damaged(&error.to_string()))?;
    Ok(RowFormat::with_history(Arc::new(decode_schema(schema)?), history))
}

/// Writes the entries of one batch to commits, part by part.
pub(crate) struct FeedWriter {
    position: Position,
    part: u32,
    /// The part being built; if it has no changes yet, only its head.
    open: Vec<u8>,
    has_changes: bool,
    /// Bytes written.
    pub bytes: u64,
}

impl FeedWriter {
    /// No entry of the batch at this position is written yet.
    pub fn new(position: Position) -> Self {
        Self { position, part: 0, open: Vec::new(), has_changes: false, bytes: 0 }
    }

    /// Starts a part for this table and definition.
    pub fn begin_table(
        &mut self,
        commit: &mut StoreBatch,
        place: Keyspace,
        table: u32,
        definition: u64,
    ) {
        self.flush(commit, place);
        self.open = vec![ROWS];
        self.open.extend(table.to_le_bytes());
        self.open.extend(definition.to_le_bytes());
    }

    /// Adds a change of a row. Ignores a change with neither an old nor a new row.
    pub fn push(&mut self, commit: &mut StoreBatch, place: Keyspace, change: StoredChange<'_>) {
        let StoredChange { old, new } = change;
        let flags = old.map_or(0, |_| OLD) | new.map_or(0, |_| NEW);
        if flags == 0 {
            return;
        }
        self.open.push(flags);
        for row in [old, new].into_iter().flatten() {
            self.open.extend((row.len() as u32).to_le_bytes());
            self.open.extend(row);
        }
        self.has_changes = true;
        if self.open.len() >= PART_BYTES {
            let head = self.open.get(..HEAD_BYTES).unwrap_or_default().to_vec();
            self.flush(commit, place);
            self.open = head;
        }
    }

    /// Adds a change of definitions, in a part of its own.
    pub fn push_defined(
        &mut self,
        commit: &mut StoreBatch,
        place: Keyspace,
        defined: &Defined,
    ) -> Result<()> {
        self.flush(commit, place);
        let value = serde_json::to_vec(defined).map_err(|error| damaged(&error.to_string()))?;
        self.open = [&[DEFINED], value.as_slice()].concat();
        self.has_changes = true;
        self.flush(commit, place);
        Ok(())
    }

    /// Writes the part being built, if it has changes.
    pub fn flush(&mut self, commit: &mut StoreBatch, place: Keyspace) {
        let entry = std::mem::take(&mut self.open);
        if std::mem::take(&mut self.has_changes) {
            self.bytes += (ENTRY_KEY_BYTES + entry.len()) as u64;
            commit.put(place, entry_key(self.position, self.part), entry);
            self.part += 1;
        }
    }
}

/// Bytes before the changes of a part.
const HEAD_BYTES: usize = 13;
/// Bytes of the key of a part.
const ENTRY_KEY_BYTES: usize = 12;

/// Decodes an entry.
pub(crate) fn parse_entry(bytes: &[u8]) -> Result<FeedEntry<'_>> {
    let parsed = match bytes.split_first() {
        Some((&ROWS, rest)) => parse_rows(rest),
        Some((&DEFINED, json)) => serde_json::from_slice(json).ok().map(FeedEntry::Defined),
        _ => None,
    };
    parsed.ok_or_else(|| damaged("an entry"))
}

fn parse_rows(bytes: &[u8]) -> Option<FeedEntry<'_>> {
    let (table, rest) = bytes.split_first_chunk::<4>()?;
    let (definition, mut rest) = rest.split_first_chunk::<8>()?;
    let mut changes = Vec::new();
    while let Some((&flags, behind)) = rest.split_first() {
        rest = behind;
        let mut row = |flag: u8| -> Option<Option<&[u8]>> {
            if flags & flag == 0 {
                return Some(None);
            }
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let (row, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = behind;
            Some(Some(row))
        };
        if flags == 0 || flags > OLD | NEW {
            return None;
        }
        changes.push(StoredChange { old: row(OLD)?, new: row(NEW)? });
    }
    Some(FeedEntry::Rows(u32::from_le_bytes(*table), u64::from_le_bytes(*definition), changes))
}

fn damaged(what: &str) -> Error {
    Error::Corrupt(format!("the feed of changes: {what}; forget the watchers to begin a new one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::store::{Store, testing::FaultyStore};

    #[test]
    fn entries_round_trip_and_truncated_ones_are_refused() {
        let store = FaultyStore::default();
        let (mut commit, place) = (StoreBatch::new(), Keyspace::Rows(3));
        let mut entries = FeedWriter::new(Position(7));
        let long = vec![5; PART_BYTES];
        let recorded = [
            (None, Some(b"new".as_slice())),
            (Some(b"old".as_slice()), Some(long.as_slice())),
            (Some(b"".as_slice()), None),
            (None, None),
        ];
        entries.begin_table(&mut commit, place, 9, 4);
        for (old, new) in recorded {
            entries.push(&mut commit, place, StoredChange { old, new });
        }
        let renamed = Defined::Renamed("a".to_owned(), "b".to_owned());
        entries.push_defined(&mut commit, place, &renamed).unwrap();
        store.commit(commit, false).unwrap();
        let (mut changes, mut defined, mut bytes) = (Vec::new(), Vec::new(), 0);
        let visit = &mut |key: &[u8], value: &[u8]| {
            assert_eq!(parse_entry_key(key)?.0, Position(7));
            bytes += (key.len() + value.len()) as u64;
            match parse_entry(value)? {
                FeedEntry::Rows(9, 4, more) => {
                    let owned = |row: Option<&[u8]>| row.map(<[u8]>::to_vec);
                    changes.extend(more.iter().map(|it| (owned(it.old), owned(it.new))));
                }
                FeedEntry::Rows(..) => panic!("another table"),
                FeedEntry::Defined(one) => defined.push(one),
            }
            // A cut between two changes leaves a valid entry.
            let whole = |length: usize| parse_entry(&value[..length]).is_ok();
            assert!((0..value.len()).filter(|&length| whole(length)).count() <= 2);
            Ok(true)
        };
        store.snapshot().scan(place, &[], visit).unwrap();
        let recorded = recorded.iter().filter(|it| **it != (None, None));
        let recorded: Vec<_> =
            recorded.map(|(old, new)| (old.map(<[u8]>::to_vec), new.map(<[u8]>::to_vec))).collect();
        assert_eq!((changes, defined, bytes), (recorded, vec![renamed], entries.bytes));
    }
}
