//! What the store keeps beside rows: definitions, positions, the change log.
//!
//! ```text
//! meta   "position"          -> u64                 the last batch
//!        "next-table"        -> u32                 the next table's number
//!        "table/" number:u32 -> the schema          see `encode_schema`
//!        "source/" name      -> the source's position, as text
//! log    position:u64 table:u32 part:u32 -> (length:u32 key)*   keys that the commit changed which
//!                                ended with the batch `position`, in parts of about 1 MB
//! ```
//! Integers are big endian in keys and little endian in values. The log says which rows may differ
//! from the segments of the manifest; the rows themselves are read from the store, where the last
//! state is all that matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    Error, Position, Result, Schema,
    encode::{decode_schema, encode_schema},
    store::{Keyspace, StoreBatch, StoreSnapshot},
};

const POSITION: &[u8] = b"position";
const NEXT_TABLE: &[u8] = b"next-table";
const TABLE: &[u8] = b"table/";
const SOURCE: &[u8] = b"source/";
/// Keys of one log entry, in bytes: longer lists are cut.
const LOG_ENTRY_BYTES: usize = 1 << 20;

/// The position of the last committed batch.
pub(crate) fn read_position(store: &dyn StoreSnapshot) -> Result<Position> {
    let Some(value) = store.get(Keyspace::Meta, POSITION)? else { return Ok(Position(0)) };
    let bytes = value.first_chunk().filter(|_| value.len() == 8);
    let bytes = bytes.ok_or_else(|| Error::Corrupt("the stored position".to_owned()))?;
    Ok(Position(u64::from_le_bytes(*bytes)))
}

/// Puts the position of the last batch of a commit into it.
pub(crate) fn put_position(batch: &mut StoreBatch, position: Position) {
    batch.put(Keyspace::Meta, POSITION, position.0.to_le_bytes());
}

/// The stored position of a source.
pub(crate) fn read_source(store: &dyn StoreSnapshot, name: &str) -> Result<Option<String>> {
    let Some(value) = store.get(Keyspace::Meta, &[SOURCE, name.as_bytes()].concat())? else {
        return Ok(None);
    };
    let text = String::from_utf8(value.to_vec());
    let text = text.map_err(|_| Error::Corrupt(format!("the position of source {name:?}")))?;
    Ok(Some(text))
}

/// Puts the position of a source into a commit.
pub(crate) fn put_source(batch: &mut StoreBatch, name: &str, position: &str) {
    batch.put(Keyspace::Meta, [SOURCE, name.as_bytes()].concat(), position.as_bytes());
}

/// All tables with their numbers.
pub(crate) fn read_tables(store: &dyn StoreSnapshot) -> Result<Vec<(u32, Arc<Schema>)>> {
    let mut tables = Vec::new();
    store.scan(Keyspace::Meta, TABLE, &mut |key, value| {
        let Some(number) = key.strip_prefix(TABLE) else { return Ok(false) };
        let number: [u8; 4] =
            number.try_into().map_err(|_| Error::Corrupt("a table's number".to_owned()))?;
        tables.push((u32::from_be_bytes(number), Arc::new(decode_schema(value)?)));
        Ok(true)
    })?;
    Ok(tables)
}

/// Puts a new table into a commit; the answer is its number.
pub(crate) fn put_table(
    store: &dyn StoreSnapshot,
    batch: &mut StoreBatch,
    schema: &Schema,
) -> Result<u32> {
    let stored = store.get(Keyspace::Meta, NEXT_TABLE)?;
    let number = match stored.as_deref() {
        None => 1,
        Some(value) => u32::from_le_bytes(
            value.try_into().map_err(|_| Error::Corrupt("the next table's number".to_owned()))?,
        ),
    };
    let next = number.checked_add(1);
    let next = next.ok_or_else(|| Error::Busy("all table numbers are used up".to_owned()))?;
    batch.put(Keyspace::Meta, NEXT_TABLE, next.to_le_bytes());
    batch.put(Keyspace::Meta, table_key(number), encode_schema(schema)?);
    Ok(number)
}

/// Takes a table's definition away in a commit.
pub(crate) fn delete_table(batch: &mut StoreBatch, number: u32) {
    batch.delete(Keyspace::Meta, table_key(number));
}

fn table_key(number: u32) -> Vec<u8> {
    [TABLE, &number.to_be_bytes()].concat()
}

/// Puts the keys that a commit changes in a table into its log. `position` is the
/// commit's last.
pub(crate) fn put_log<'k>(
    batch: &mut StoreBatch,
    position: Position,
    table: u32,
    keys: impl Iterator<Item = &'k [u8]>,
) {
    let (mut entry, mut part) = (Vec::new(), 0u32);
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
}

/// The keys that changed after `position`, by table.
pub(crate) fn read_log_after(
    store: &dyn StoreSnapshot,
    position: Position,
) -> Result<BTreeMap<u32, BTreeSet<Vec<u8>>>> {
    let mut changed: BTreeMap<u32, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let from = position.0.saturating_add(1).to_be_bytes();
    store.scan(Keyspace::Log, &from, &mut |key, entry| {
        let (_, table) = parse_log_key(key)?;
        read_entry(entry, changed.entry(table).or_default())?;
        Ok(true)
    })?;
    Ok(changed)
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

fn read_entry(mut entry: &[u8], keys: &mut BTreeSet<Vec<u8>>) -> Result<()> {
    while !entry.is_empty() {
        let parts = entry
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (key, rest) = parts.ok_or_else(|| Error::Corrupt("an entry of the log".to_owned()))?;
        keys.insert(key.to_vec());
        entry = rest;
    }
    Ok(())
}
