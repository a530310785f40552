//! Undoing a large batch that was not committed: by whom it was dropped, or at the next start.
//!
//! ```text
//! meta     "undo" -> number:u32     a large batch is under way, its old rows are under this number
//! rows of that number               table:u32 (big endian) key -> 0 if the key had no row
//!                                                              -> 1 row if it had this one
//! ```
//! A part of a large batch is written as other batches are, but the stored position does not move,
//! so that its log stands behind the position. Before a row is written the old one is noted here;
//! since that is the row as it was before the batch, it does not matter how often it is noted or
//! put back. The batch is committed by the commit that takes the mark away and moves the position.
//! What is left under the number then is garbage, which the next start drops if a crash came first.

use crate::{
    Error, Result,
    catalog::{delete_log_after, delete_undo, read_position, read_undo},
    store::{Keyspace, Store, StoreBatch},
};

/// Bytes of one commit of old rows.
pub(crate) const COMMIT_BYTES: usize = 4 << 20;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// Where the old row of a key is noted.
pub(crate) fn undo_key(table: u32, key: &[u8]) -> Vec<u8> {
    [&table.to_be_bytes(), key].concat()
}

/// The note of an old row.
pub(crate) fn undo_value(old: Option<&[u8]>) -> Vec<u8> {
    match old {
        None => vec![ABSENT],
        Some(row) => [&[PRESENT], row].concat(),
    }
}

/// A table and a key from where its old row is noted.
pub(crate) fn parse_undo_key(noted: &[u8]) -> Result<(u32, &[u8])> {
    let parts = noted.split_first_chunk::<4>();
    let (table, key) = parts.ok_or_else(|| Error::Corrupt("a key of an undo log".to_owned()))?;
    Ok((u32::from_be_bytes(*table), key))
}

/// Puts the rows back as they were before the large batch that is under way, if one is. Durable
/// on return; what it leaves under the batch's number is garbage. Cost: the batch's rows are
/// written once more, in commits of some megabytes.
pub(crate) fn roll_back(store: &dyn Store) -> Result<Option<u32>> {
    let moment = store.snapshot();
    let Some(number) = read_undo(&*moment)? else { return Ok(None) };
    tracing::warn!("a large batch that was not committed is rolled back");
    let mut commit = StoreBatch::new();
    let mut bytes = 0;
    moment.scan(Keyspace::Rows(number), &[], &mut |noted, old| {
        let (table, key) = parse_undo_key(noted)?;
        match old.split_first() {
            Some((&ABSENT, [])) => commit.delete(Keyspace::Rows(table), key),
            Some((&PRESENT, row)) => commit.put(Keyspace::Rows(table), key, row),
            _ => return Err(Error::Corrupt("a row of an undo log".to_owned())),
        }
        bytes += noted.len() + old.len();
        if bytes >= COMMIT_BYTES {
            store.commit(std::mem::take(&mut commit), false)?;
            bytes = 0;
        }
        Ok(true)
    })?;
    delete_log_after(&*moment, &mut commit, read_position(&*moment)?)?;
    delete_undo(&mut commit);
    store.commit(commit, true)?;
    Ok(Some(number))
}
