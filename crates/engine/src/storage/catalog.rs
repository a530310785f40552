//! What the store contains besides rows: definitions, positions, and the log of changed keys.
//!
//! ```text
//! meta   "position"          -> u64                 the last batch
//!        "next-table"        -> u32                 the next table's number
//!        "table/" number:u32 -> the schema          see `encode_schema`
//!        "history/" number:u32 -> what the table was before, see `encode::layout`; absent if the
//!                                same
//!        "source/" name      -> the source's position, as text
//!        "staged" number:u32 -> u64                 the position of a large batch whose rows are
//!                                under this table number, see `staged`
//!        "batches"           -> u64                 how many batches the store took, see `store::disk`
//! log    position:u64 table:u32 part:u32 -> (length:u32 key)*   keys that the commit changed which
//!                                ended with the batch `position`, in parts of about 1 MB
//! ```
//! Integers are big endian in keys and little endian in values. The log says which rows may differ from the
//! manifest's segments. It has no rows: only the last state of a row matters, and the store has that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::store::{Keyspace, StoreBatch, StoreSnapshot};
use crate::{
    Error, Position, Result, SourcePositions,
    encode::{History, RowFormat, decode_schema, encode_schema},
};

const POSITION: &[u8] = b"position";
const NEXT_TABLE: &[u8] = b"next-table";
const TABLE: &[u8] = b"table/";
const HISTORY: &[u8] = b"history/";
const SOURCE: &[u8] = b"source/";
const STAGED: &[u8] = b"staged";
/// A key that an earlier version stored during a large batch.
const UNDO: &[u8] = b"undo";
/// The size at which a log entry ends, in bytes of keys; further keys go to the next entry.
const LOG_ENTRY_BYTES: usize = 1 << 20;

/// The position of the last committed batch.
pub(crate) fn read_position(store: &dyn StoreSnapshot) -> Result<Position> {
    let Some(value) = store.get(Keyspace::Meta, POSITION)? else { return Ok(Position(0)) };
    let bytes = value.first_chunk().filter(|_| value.len() == 8);
    let bytes = bytes.ok_or_else(|| Error::Corrupt("the stored position".to_owned()))?;
    Ok(Position(u64::from_le_bytes(*bytes)))
}

/// Stores the position of a commit's last batch.
pub(crate) fn put_position(batch: &mut StoreBatch, position: Position) {
    batch.put(Keyspace::Meta, POSITION, position.0.to_le_bytes());
}

/// The stored positions of all sources.
pub(crate) fn read_sources(store: &dyn StoreSnapshot) -> Result<SourcePositions> {
    let mut sources = Vec::new();
    store.scan(Keyspace::Meta, SOURCE, &mut |key, position| {
        let Some(name) = key.strip_prefix(SOURCE) else { return Ok(false) };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
        let (Ok(name), Ok(position)) = (text(name), text(position)) else {
            return Err(Error::Corrupt("a stored source position".to_owned()));
        };
        sources.push((name, position));
        Ok(true)
    })?;
    let sources = sources.iter().map(|(name, position)| (name, position));
    Ok(SourcePositions::default().with(sources))
}

/// Stores positions of sources; an empty one removes its name.
pub(crate) fn put_sources<'p>(
    batch: &mut StoreBatch,
    positions: impl Iterator<Item = (&'p String, &'p String)>,
) {
    for (name, position) in positions {
        let key = [SOURCE, name.as_bytes()].concat();
        match position.as_str() {
            "" => batch.delete(Keyspace::Meta, key),
            position => batch.put(Keyspace::Meta, key, position.as_bytes()),
        }
    }
}

/// The numbers and formats of all tables.
pub(crate) fn read_tables(store: &dyn StoreSnapshot) -> Result<Vec<(u32, Arc<RowFormat>)>> {
    let mut tables = Vec::new();
    store.scan(Keyspace::Meta, TABLE, &mut |key, value| {
        let Some(number) = key.strip_prefix(TABLE) else { return Ok(false) };
        let number: [u8; 4] =
            number.try_into().map_err(|_| Error::Corrupt("a table's number".to_owned()))?;
        let number = u32::from_be_bytes(number);
        let history = read_history(store, number)?;
        let format = RowFormat::with_history(Arc::new(decode_schema(value)?), history);
        tables.push((number, Arc::new(format)));
        Ok(true)
    })?;
    Ok(tables)
}

fn read_history(store: &dyn StoreSnapshot, number: u32) -> Result<History> {
    match store.get(Keyspace::Meta, &history_key(number))? {
        None => Ok(History::default()),
        Some(stored) => serde_json::from_slice(&stored)
            .map_err(|error| Error::Corrupt(format!("the history of table {number}: {error}"))),
    }
}

/// The number for the next table.
pub(crate) fn next_table(store: &dyn StoreSnapshot) -> Result<u32> {
    match store.get(Keyspace::Meta, NEXT_TABLE)?.as_deref() {
        None => Ok(1),
        Some(value) => Ok(u32::from_le_bytes(
            value.try_into().map_err(|_| Error::Corrupt("the next table's number".to_owned()))?,
        )),
    }
}

/// The number after this one.
pub(crate) fn number_after(number: u32) -> Result<u32> {
    number.checked_add(1).ok_or_else(|| Error::Busy("all table numbers are used up".to_owned()))
}

/// Stores the number for the next table.
pub(crate) fn put_next_table(batch: &mut StoreBatch, number: u32) {
    batch.put(Keyspace::Meta, NEXT_TABLE, number.to_le_bytes());
}

/// Stores a table's definition.
pub(crate) fn put_table(batch: &mut StoreBatch, number: u32, format: &RowFormat) -> Result<()> {
    batch.put(Keyspace::Meta, table_key(number), encode_schema(format.schema())?);
    if *format.history() != History::default() {
        let history = serde_json::to_vec(format.history());
        let history = history.map_err(|error| Error::Corrupt(error.to_string()))?;
        batch.put(Keyspace::Meta, history_key(number), history);
    }
    Ok(())
}

/// Removes a table's definition.
pub(crate) fn delete_table(batch: &mut StoreBatch, number: u32) {
    batch.delete(Keyspace::Meta, table_key(number));
    batch.delete(Keyspace::Meta, history_key(number));
}

fn table_key(number: u32) -> Vec<u8> {
    [TABLE, &number.to_be_bytes()].concat()
}

fn history_key(number: u32) -> Vec<u8> {
    [HISTORY, &number.to_be_bytes()].concat()
}

/// The number under which a committed large batch is staged, if its rows are not all moved to their tables, and its
/// position.
pub(crate) fn read_staged(store: &dyn StoreSnapshot) -> Result<Option<(u32, Position)>> {
    if store.get(Keyspace::Meta, UNDO)?.is_some() {
        let message = "a large batch of an earlier version was not ended: open the directory with that version first";
        return Err(Error::Corrupt(message.to_owned()));
    }
    let mut found = None;
    store.scan(Keyspace::Meta, STAGED, &mut |key, value| {
        let Some(number) = key.strip_prefix(STAGED) else { return Ok(false) };
        let corrupt = |_| Error::Corrupt("the mark of staged rows".to_owned());
        let number = u32::from_be_bytes(number.try_into().map_err(corrupt)?);
        let position = u64::from_le_bytes(value.try_into().map_err(corrupt)?);
        found = Some((number, Position(position)));
        Ok(false)
    })?;
    Ok(found)
}

/// Marks the rows that are staged under a number as committed.
pub(crate) fn put_staged(batch: &mut StoreBatch, number: u32, position: Position) {
    batch.put(Keyspace::Meta, staged_mark(number), position.0.to_le_bytes());
}

/// Removes the mark of [`put_staged`]: nothing is staged under the number any more.
pub(crate) fn delete_staged(batch: &mut StoreBatch, number: u32) {
    batch.delete(Keyspace::Meta, staged_mark(number));
}

fn staged_mark(number: u32) -> Vec<u8> {
    [STAGED, &number.to_be_bytes()].concat()
}

/// Adds the keys that a commit changes in a table to the log, as entries from `part` on; returns the number of the
/// next entry. `position` is the commit's last batch.
pub(crate) fn put_log<'k>(
    batch: &mut StoreBatch,
    position: Position,
    table: u32,
    mut part: u32,
    keys: impl Iterator<Item = &'k [u8]>,
) -> u32 {
    let mut entry = Vec::new();
    let mut put = |entry: &mut Vec<u8>, part: &mut u32| {
        batch.put(Keyspace::Log, log_key(position, table, *part), std::mem::take(entry));
        *part += 1;
    };
    for key in keys {
        entry.extend((key.len() as u32).to_le_bytes());
        entry.extend(key);
        if entry.len() >= LOG_ENTRY_BYTES {
            put(&mut entry, &mut part);
        }
    }
    if !entry.is_empty() {
        put(&mut entry, &mut part);
    }
    part
}

/// Changed keys by table, sorted and distinct.
pub(crate) type ChangedKeys = BTreeMap<u32, BTreeSet<Vec<u8>>>;

/// Approximate memory of a key besides its bytes.
pub(crate) const KEY_BYTES: usize = 64;

/// Calls `visit` with the keys that changed after `position`, in pages of about `page_bytes`. A key that changed
/// often may be in several pages.
pub(crate) fn read_log_after(
    store: &dyn StoreSnapshot,
    position: Position,
    page_bytes: usize,
    visit: &mut dyn FnMut(ChangedKeys) -> Result<()>,
) -> Result<()> {
    let mut page = ChangedKeys::new();
    let mut bytes = 0;
    let from = position.0.saturating_add(1).to_be_bytes();
    store.scan(Keyspace::Log, &from, &mut |key, entry| {
        let (_, table) = parse_log_key(key)?;
        bytes += read_entry(entry, page.entry(table).or_default())?;
        if bytes >= page_bytes {
            bytes = 0;
            visit(std::mem::take(&mut page))?;
        }
        Ok(true)
    })?;
    visit(page)
}

/// A commit that removes the log up to `position`.
pub(crate) fn trim_log(store: &dyn StoreSnapshot, position: Position) -> Result<StoreBatch> {
    let mut batch = StoreBatch::new();
    store.scan(Keyspace::Log, &[], &mut |key, _| {
        let (at, _) = parse_log_key(key)?;
        if at <= position {
            batch.delete(Keyspace::Log, key);
        }
        Ok(at <= position)
    })?;
    Ok(batch)
}

fn log_key(position: Position, table: u32, part: u32) -> Vec<u8> {
    let mut key = position.0.to_be_bytes().to_vec();
    key.extend(table.to_be_bytes());
    key.extend(part.to_be_bytes());
    key
}

fn parse_log_key(key: &[u8]) -> Result<(Position, u32)> {
    let parts = key.split_first_chunk::<8>();
    let parts = parts.and_then(|(position, rest)| Some((position, rest.first_chunk::<4>()?)));
    let (position, table) = parts.ok_or_else(|| Error::Corrupt("a key of the log".to_owned()))?;
    Ok((Position(u64::from_be_bytes(*position)), u32::from_be_bytes(*table)))
}

/// Adds the keys of an entry to `keys`; returns about how much memory they take, in bytes.
fn read_entry(mut entry: &[u8], keys: &mut BTreeSet<Vec<u8>>) -> Result<usize> {
    let mut bytes = 0;
    while !entry.is_empty() {
        let parts = entry
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (key, rest) = parts.ok_or_else(|| Error::Corrupt("an entry of the log".to_owned()))?;
        bytes += key.len() + KEY_BYTES;
        keys.insert(key.to_vec());
        entry = rest;
    }
    Ok(bytes)
}
