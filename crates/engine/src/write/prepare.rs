//! The part of `apply` that runs in the caller's thread: everything that does not depend on the commit order.
//!
//! Rows are checked against the schema and encoded, and only the last change of each key is kept. A large batch goes
//! to the indexing threads. So all cores work while the single writer only commits and publishes.

use std::sync::Arc;

use super::{
    computed::{RowColumns, computed},
    unique::wait_for_unique_paths,
};
use crate::{
    Change, ChangeBatch, Error, KeyValues, Options, RequestPart, Result, Row, Schema, Value,
    encode::{RowFormat, decode_key, encode_key, fit_row},
    error::no_table,
    indexing::{Indexers, RequiredRows, indexed_bytes},
    shared::{DatabaseState, PreparedBatch, PreparedChange, PreparedTable},
    snapshot::Snapshot,
};

/// A table's changes get a segment of their own if there are at least this many of them, or if their
/// rows have at least [`LARGE_BYTES`].
const LARGE_CHANGES: usize = 1_024;
/// See [`LARGE_CHANGES`].
const LARGE_BYTES: usize = 1 << 20;

/// The most bytes of a value that segments hold.
const MAX_INDEXED_BYTES: usize = remora_index::column::MAX_VALUE_BYTES;

/// The memory that a batch takes besides its changes, in bytes.
const BATCH_BYTES: usize = 256;

/// Checks and encodes a batch against the tables of `snapshot`. `row_columns` says which columns its rows contain.
pub(crate) fn prepare(
    batch: ChangeBatch,
    row_columns: RowColumns,
    snapshot: &Snapshot,
    shared: &DatabaseState,
) -> Result<PreparedBatch> {
    let options = &shared.options;
    let changes: usize = batch.tables.iter().map(|table| table.changes.len()).sum();
    if changes > options.max_batch_changes {
        let message = format!(
            "a batch of {changes} changes: the limit is {}; cut it into smaller batches",
            options.max_batch_changes
        );
        return Err(Error::request(RequestPart::Batch, message));
    }
    let mut tables: Vec<PreparedTable> = Vec::with_capacity(batch.tables.len());
    for table in batch.tables {
        let view = snapshot.tables.get(&table.table).ok_or_else(|| no_table(&table.table))?;
        if view.schema.is_distributed() {
            return Err(distributed(&view.schema));
        }
        let earlier = tables.iter_mut().find(|prepared| prepared.number == view.number);
        let changes = computed(&view.schema, table.changes, row_columns)?.into_iter();
        let changes = changes.map(|change| prepare_change(change, &view.format, options));
        let changes = changes.collect::<Result<Vec<_>>>()?;
        match earlier {
            Some(earlier) => earlier.changes.extend(changes),
            None => tables.push(PreparedTable {
                number: view.number,
                schema: Arc::clone(&view.schema),
                defined: view.defined,
                changes,
                segment: None,
                indexing: None,
                text_bytes: 0,
                unique: Vec::new(),
            }),
        }
    }
    tables.iter_mut().try_for_each(PreparedTable::normalize_changes)?;
    tables.iter().try_for_each(|table| table.check_text(options))?;
    tables.iter_mut().try_for_each(PreparedTable::find_unique)?;
    // Waiting here blocks one caller; in the writer thread it would block all.
    let unique = tables.iter().filter(|table| !table.unique.is_empty());
    unique
        .map(|table| table.number)
        .try_for_each(|number| wait_for_unique_paths(shared, number))?;
    // All checks of the rows are done, so indexing them is worthwhile.
    tables.iter_mut().for_each(|table| table.index_if_large(&shared.indexers));
    let bytes: usize = tables.iter().map(PreparedTable::bytes).sum();
    let positions = batch.positions;
    let bytes = positions.iter().fold(bytes + BATCH_BYTES, |bytes, (source, position)| {
        bytes + source.len() + position.len()
    });
    let (broken, precondition, must_exist) = (None, None, false);
    Ok(PreparedBatch { tables, positions, bytes, broken, precondition, must_exist })
}

/// Checks and encodes one change.
pub(crate) fn prepare_change(
    change: Change,
    format: &RowFormat,
    options: &Options,
) -> Result<PreparedChange> {
    let schema = format.schema();
    let (row, must_be_absent) = match change {
        Change::Delete(parts) => {
            let key = encode_key(schema, &parts)?;
            return Ok(PreparedChange { key, stored: None, row: None, must_be_absent: false });
        }
        Change::Put(row) => (row, false),
        Change::Insert(row) => (row, true),
    };
    let fitted = fit_row(schema, row)?;
    let row = &fitted.row;
    let parts: KeyValues =
        schema.primary_key.iter().filter_map(|&part| row.get(part).cloned()).collect();
    let key = encode_key(schema, &parts)?;
    let stored = format.encode(row)?;
    if stored.len() > options.max_row_bytes {
        return Err(row_too_large(schema, &parts, stored.len(), options));
    }
    if stored.len() > MAX_INDEXED_BYTES {
        check_indexed(schema, row, &parts)?;
    }
    Ok(PreparedChange { key, stored: Some(stored.into()), row: Some(fitted), must_be_absent })
}

/// The error for changes to a distributed table, which has no rows of its own.
pub(crate) fn distributed(schema: &Schema) -> Error {
    let (name, parts) = (&schema.name, [schema.parts(), schema.agents()].concat().join(", "));
    let message = format!("table {name:?} is distributed over {parts}: write to one of these");
    Error::request(RequestPart::Other, message)
}

/// The error for inserting a row that exists.
pub(super) fn exists(schema: &Schema, key: &[u8]) -> Error {
    match decode_key(schema, key) {
        Ok(key) => Error::Exists { table: schema.name.clone(), key },
        Err(error) => error,
    }
}

/// Refuses long values in indexed columns: segments hold short values only. Columns that are not indexed may hold
/// longer ones.
fn check_indexed(schema: &Schema, row: &Row, key: &[Value]) -> Result<()> {
    let mut cells = schema.columns.iter().zip(row).filter(|(column, _)| column.indexed);
    let bytes = |value: &Value| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    let Some((column, value)) = cells.find(|(_, value)| bytes(value) > MAX_INDEXED_BYTES) else {
        return Ok(());
    };
    let message = format!(
        "column {:?} of the row {key:?} of table {:?} takes {} bytes: the limit of a column that \
         is filtered and sorted by the index is {MAX_INDEXED_BYTES}; make one that is not indexed",
        column.name,
        schema.name,
        bytes(value)
    );
    Err(Error::request(RequestPart::Row, message))
}

fn row_too_large(schema: &Schema, key: &[Value], bytes: usize, options: &Options) -> Error {
    let message = format!(
        "the row {key:?} of table {:?} takes {bytes} bytes: the limit is {}",
        schema.name, options.max_row_bytes
    );
    Error::request(RequestPart::Row, message)
}

impl PreparedTable {
    /// Sorts the changes by key, keeps the last one of each key, and does not index rows that fail the table's
    /// condition.
    fn normalize_changes(&mut self) -> Result<()> {
        if let Some(key) = keep_last_of_each_key(&mut self.changes) {
            return Err(exists(&self.schema, &key));
        }
        let required = RequiredRows::of(&self.schema)?;
        for change in &mut self.changes {
            change.row = change.row.take().filter(|it| required.accept(&it.row));
            let row = change.row.as_ref();
            self.text_bytes += row.map_or(0, |it| indexed_bytes(&self.schema, &it.row, &it.paths));
        }
        Ok(())
    }

    /// Refuses too much text: a batch becomes one segment, whose size is limited.
    fn check_text(&self, options: &Options) -> Result<()> {
        if self.text_bytes as u64 <= options.max_batch_text_bytes {
            return Ok(());
        }
        let message = format!(
            "a batch with {} bytes of indexed texts and paths for table {:?}: the limit is {}; cut it into \
             smaller batches",
            self.text_bytes, self.schema.name, options.max_batch_text_bytes
        );
        Err(Error::request(RequestPart::Batch, message))
    }

    /// Sends the rows to the indexing threads if there are many.
    fn index_if_large(&mut self, indexers: &Indexers) {
        let rows = self.changes.iter().filter(|change| change.row.is_some()).count();
        if rows < LARGE_CHANGES && self.bytes() < LARGE_BYTES {
            return;
        }
        let rows = self.changes.iter_mut();
        let rows = rows.filter_map(|change| Some((change.key.clone(), change.row.take()?)));
        self.indexing = Some(indexers.index(&self.schema, rows.collect(), self.text_bytes));
    }
}

/// Sorts the changes and keeps the last one of each key. It must find no row if the first one had to. Returns a key
/// that is inserted although an earlier change put its row.
fn keep_last_of_each_key(changes: &mut Vec<PreparedChange>) -> Option<Vec<u8>> {
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    let mut twice = None;
    changes.dedup_by(|later, kept| {
        if later.key != kept.key {
            return false;
        }
        if later.must_be_absent && kept.stored.is_some() {
            twice.get_or_insert_with(|| kept.key.clone());
        }
        later.must_be_absent = kept.must_be_absent;
        std::mem::swap(later, kept);
        true
    });
    twice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::store::StoredBytes;

    fn change(key: u8, row: u8) -> PreparedChange {
        let stored = (row > 0).then(|| vec![row].into());
        PreparedChange { key: vec![key], stored, row: None, must_be_absent: false }
    }

    fn insert(key: u8, row: u8) -> PreparedChange {
        PreparedChange { must_be_absent: true, ..change(key, row) }
    }

    #[test]
    fn last_change_of_a_key_wins() {
        let mut changes =
            vec![change(2, 1), change(1, 2), change(2, 3), change(1, 4), change(3, 5)];
        assert_eq!(keep_last_of_each_key(&mut changes), None);
        let kept: Vec<_> = changes
            .iter()
            .map(|change| (change.key[0], change.stored.as_ref().unwrap()[0]))
            .collect();
        assert_eq!(kept, [(1, 4), (2, 3), (3, 5)]);
    }

    #[test]
    fn insert_sees_earlier_changes_of_its_batch() {
        let normalized = |mut changes: Vec<PreparedChange>| {
            let twice = keep_last_of_each_key(&mut changes);
            let [change] = &changes[..] else { panic!("one key") };
            (twice.is_some(), change.must_be_absent, change.stored.clone())
        };
        let (gone, two) = (None, Some(StoredBytes::from([2])));
        assert_eq!(normalized(vec![insert(1, 1), change(1, 2)]), (false, true, two.clone()));
        assert_eq!(normalized(vec![insert(1, 1), change(1, 0)]), (false, true, gone));
        assert_eq!(normalized(vec![change(1, 0), insert(1, 2)]), (false, false, two.clone()));
        assert_eq!(normalized(vec![change(1, 1), insert(1, 2)]), (true, false, two.clone()));
        let again = vec![insert(1, 1), change(1, 0), insert(1, 2)];
        assert_eq!(normalized(again), (false, true, two));
        assert!(normalized(vec![insert(1, 1), insert(1, 2)]).0);
    }
}
