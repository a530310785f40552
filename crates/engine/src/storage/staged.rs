//! The rows of a large batch, staged beside their tables until they are moved there.
//!
//! ```text
//! rows of a number of its own       table:u32 (big endian) key -> 0        the row is deleted
//!                                                              -> 1 row    the new row
//! meta     "staged" number:u32 -> position:u64   the batch was committed at this position: the rows
//!                                staged under the number replace those of their tables
//! ```
//! The caller stages a batch while other writes continue. Without the mark in `meta` readers ignore staged rows, and
//! the next start drops them. The commit sets the mark: from then on readers look among the staged rows first
//! (`rows::OverlaidRows`), a writer that changes a key removes its staged row, and the writer thread moves staged
//! rows to their tables between other batches. A moved row stays staged until all are moved, so moving some again is
//! harmless.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    catalog::{ChangedKeys, KEY_BYTES, delete_staged, put_log, read_staged, read_tables},
    store::{Keyspace, Store, StoreBatch, StoreSnapshot},
};
use crate::{Error, Position, Result};

/// Bytes moved by one commit; another batch waits that long. Small in tests, so that much happens between two
/// commits.
const MOVED_BYTES: usize = if cfg!(test) { 64 } else { 128 << 10 };

const GONE: u8 = 0;
const ROW: u8 = 1;

/// The key under which a row is staged.
pub(crate) fn staged_key(table: u32, key: &[u8]) -> Vec<u8> {
    [&table.to_be_bytes(), key].concat()
}

/// The value that is staged: a row, or its deletion.
pub(crate) fn staged_value(row: Option<&[u8]>) -> Vec<u8> {
    match row {
        None => vec![GONE],
        Some(row) => [&[ROW], row].concat(),
    }
}

/// The table and the key of a staged row.
pub(crate) fn parse_staged_key(staged: &[u8]) -> Result<(u32, &[u8])> {
    let parts = staged.split_first_chunk::<4>();
    let (table, key) = parts.ok_or_else(|| Error::Corrupt("the key of a staged row".to_owned()))?;
    Ok((u32::from_be_bytes(*table), key))
}

/// The staged row; `None` if it is deleted.
pub(crate) fn parse_staged_value(staged: &[u8]) -> Result<Option<&[u8]>> {
    match staged.split_first() {
        Some((&GONE, [])) => Ok(None),
        Some((&ROW, row)) => Ok(Some(row)),
        _ => Err(Error::Corrupt("a staged row".to_owned())),
    }
}

/// The move of a committed batch's rows to their tables.
#[derive(Clone)]
pub(crate) struct StagedMove {
    /// The number under which they are staged.
    pub number: u32,
    /// The position of the batch.
    position: Position,
    /// The staged key to continue at.
    from: Vec<u8>,
    /// For each table, the number of the batch's next log entry.
    log_parts: BTreeMap<u32, u32>,
}

impl StagedMove {
    /// The start of the move.
    pub fn new(number: u32, position: Position) -> Self {
        Self { number, position, from: Vec::new(), log_parts: BTreeMap::new() }
    }

    /// A commit that moves some of the rows; `None` if all are moved. Rows of dropped tables are not moved.
    pub fn next(
        &mut self,
        store: &dyn StoreSnapshot,
        is_there: &dyn Fn(u32) -> bool,
    ) -> Result<Option<StoreBatch>> {
        let mut commit = StoreBatch::new();
        let mut moved: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
        let (mut bytes, mut last) = (0, None);
        store.scan(Keyspace::Rows(self.number), &self.from, &mut |staged, value| {
            let (table, key) = parse_staged_key(staged)?;
            bytes += staged.len() + value.len();
            last = Some(staged.to_vec());
            if is_there(table) {
                match parse_staged_value(value)? {
                    Some(row) => commit.put(Keyspace::Rows(table), key, row),
                    None => commit.delete(Keyspace::Rows(table), key),
                }
                moved.entry(table).or_default().push(key.to_vec());
            }
            Ok(bytes < MOVED_BYTES)
        })?;
        let Some(mut next) = last else { return Ok(None) };
        next.push(0);
        self.from = next;
        for (table, keys) in moved {
            let part = self.log_parts.entry(table).or_default();
            let keys = keys.iter().map(Vec::as_slice);
            *part = put_log(&mut commit, self.position, table, *part, keys);
        }
        Ok(Some(commit))
    }

    /// A commit that removes the mark: all rows are moved, and what is still staged is garbage.
    pub fn end(&self) -> StoreBatch {
        let mut commit = StoreBatch::new();
        delete_staged(&mut commit, self.number);
        commit
    }
}

/// Calls `visit` with the staged keys, in pages of about `page_bytes`.
pub(crate) fn staged_keys(
    store: &dyn StoreSnapshot,
    number: u32,
    page_bytes: usize,
    visit: &mut dyn FnMut(ChangedKeys) -> Result<()>,
) -> Result<()> {
    let (mut page, mut bytes) = (ChangedKeys::new(), 0);
    store.scan(Keyspace::Rows(number), &[], &mut |staged, _| {
        let (table, key) = parse_staged_key(staged)?;
        page.entry(table).or_default().insert(key.to_vec());
        bytes += staged.len() + KEY_BYTES;
        if bytes >= page_bytes {
            bytes = 0;
            visit(std::mem::take(&mut page))?;
        }
        Ok(true)
    })?;
    visit(page)
}

/// Moves the staged rows of a committed batch, at a start. Cost: its rows are written once.
pub(crate) fn move_staged(store: &dyn Store) -> Result<()> {
    let moment = store.snapshot();
    let Some((number, position)) = read_staged(&*moment)? else { return Ok(()) };
    tracing::info!("the rows of a large batch are moved to their tables");
    let tables = read_tables(&*moment)?;
    let tables: BTreeSet<u32> = tables.into_iter().map(|(number, _)| number).collect();
    let mut staged_move = StagedMove::new(number, position);
    while let Some(commit) = staged_move.next(&*moment, &|table| tables.contains(&table))? {
        store.commit(commit, false)?;
    }
    store.commit(staged_move.end(), true)
}
