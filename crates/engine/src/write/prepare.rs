//! The part of `apply` that runs in the caller's thread: everything that needs no order.
//!
//! Rows are checked against the schema and encoded, keys are made distinct (the last change of a
//! key stands), and a large batch is indexed here, so that an import uses as many cores as it has
//! threads while the one writer only commits and publishes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use remora_index::segment::Segment;

use crate::{
    Change, ChangeBatch, Error, Missing, Options, Position, RequestPart, Result, Row, Schema,
    document::{RowIndexer, text_bytes},
    encode::{RowFormat, encode_key, fit_row},
    snapshot::Snapshot,
    store::{Keyspace, StoreBatch},
    write::required::RequiredRows,
};

/// From this many changes of a table on, the caller indexes them.
const LARGE_CHANGES: usize = 1_024;
/// From this many bytes of rows of a table on, the caller indexes them.
const LARGE_BYTES: usize = 1 << 20;

/// What a batch takes of memory besides its changes.
const BATCH_BYTES: usize = 256;

/// A batch, checked and encoded.
#[derive(Default)]
pub(crate) struct PreparedBatch {
    /// The changes, each table once.
    pub tables: Vec<PreparedTable>,
    /// As in [`ChangeBatch::positions`].
    pub positions: Vec<(String, String)>,
    /// Bytes of memory it holds, about.
    pub bytes: usize,
    /// Set when one of its pipeline has failed.
    pub broken: Option<Arc<AtomicBool>>,
}

/// The changes to one table.
pub(crate) struct PreparedTable {
    /// The table as it was found; the writer checks that it is still there.
    pub number: u32,
    /// Its definition.
    pub schema: Arc<Schema>,
    /// Which one that is: see `TableView::defined`.
    pub defined: Position,
    /// The changes in ascending key order, each key once.
    pub changes: Vec<PreparedChange>,
    /// For a large batch its indexed rows; the changes then carry no [`PreparedChange::row`].
    pub segment: Option<Arc<Segment>>,
    /// Bytes of text that are indexed.
    pub text_bytes: usize,
}

/// What becomes of one key.
pub(crate) struct PreparedChange {
    /// The encoded key.
    pub key: Vec<u8>,
    /// The encoded row; `None` if the row is gone.
    pub stored: Option<Vec<u8>>,
    /// The row, if it is to be indexed by the writer.
    pub row: Option<Row>,
}

/// Checks and encodes a batch against the tables of `snapshot`.
pub(crate) fn prepare(
    batch: ChangeBatch,
    snapshot: &Snapshot,
    options: &Options,
) -> Result<PreparedBatch> {
    let changes: usize = batch.tables.iter().map(|table| table.changes.len()).sum();
    if changes > options.max_batch_changes {
        let message = format!(
            "a batch of {changes} changes: the limit is {}; cut it into smaller batches",
            options.max_batch_changes
        );
        return Err(Error::request(RequestPart::Row, message));
    }
    let mut tables: Vec<PreparedTable> = Vec::with_capacity(batch.tables.len());
    for table in batch.tables {
        let view = snapshot.tables.get(&table.table).ok_or_else(|| no_table(&table.table))?;
        let earlier = tables.iter_mut().find(|prepared| prepared.number == view.number);
        let changes = table.changes.into_iter();
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
                text_bytes: 0,
            }),
        }
    }
    tables.iter_mut().try_for_each(PreparedTable::finish)?;
    let bytes: usize = tables.iter().map(PreparedTable::bytes).sum();
    let positions = batch.positions;
    let bytes = positions.iter().fold(bytes + BATCH_BYTES, |bytes, (source, position)| {
        bytes + source.len() + position.len()
    });
    Ok(PreparedBatch { tables, positions, bytes, broken: None })
}

impl PreparedBatch {
    /// Notes that it is not applied, so that those behind it in its pipeline are not either.
    pub fn break_pipeline(&self) {
        if let Some(broken) = &self.broken {
            broken.store(true, Ordering::Release);
        }
    }

    /// Whether one before it in its pipeline was not applied.
    pub fn is_behind_failure(&self) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.load(Ordering::Acquire))
    }
}

/// The error for a table that is not there.
pub(crate) fn no_table(name: &str) -> Error {
    Error::missing(Missing::Table, format!("there is no table {name:?}"))
}

fn prepare_change(change: Change, format: &RowFormat, options: &Options) -> Result<PreparedChange> {
    let schema = format.schema();
    match change {
        Change::Delete(parts) => {
            let key = encode_key(schema, &parts)?;
            Ok(PreparedChange { key, stored: None, row: None })
        }
        Change::Put(mut row) => {
            fit_row(schema, &mut row)?;
            let parts: Vec<_> =
                schema.primary_key.iter().filter_map(|&part| row.get(part).cloned()).collect();
            let key = encode_key(schema, &parts)?;
            let stored = format.encode(&row)?;
            if stored.len() > options.max_row_bytes {
                return Err(row_too_large(schema, &parts, stored.len(), options));
            }
            Ok(PreparedChange { key, stored: Some(stored), row: Some(row) })
        }
    }
}

fn row_too_large(schema: &Schema, key: &[crate::Value], bytes: usize, options: &Options) -> Error {
    let message = format!(
        "the row {key:?} of table {:?} takes {bytes} bytes: the limit is {}",
        schema.name, options.max_row_bytes
    );
    Error::request(RequestPart::Row, message)
}

impl PreparedTable {
    /// Orders the changes, keeps the last of each key, drops the rows that are not to be indexed,
    /// and indexes what is large.
    fn finish(&mut self) -> Result<()> {
        keep_last_of_each_key(&mut self.changes);
        let required = RequiredRows::of(&self.schema)?;
        for change in &mut self.changes {
            change.row = change.row.take().filter(|row| required.accept(row));
            let row = change.row.as_ref();
            self.text_bytes += row.map_or(0, |row| text_bytes(&self.schema, row));
        }
        let rows = self.changes.iter().filter(|change| change.row.is_some()).count();
        let large = rows >= LARGE_CHANGES || self.bytes() >= LARGE_BYTES;
        if large { self.index_rows() } else { Ok(()) }
    }

    /// Puts the rows into a commit.
    pub fn put_rows(&self, commit: &mut StoreBatch) {
        let rows = Keyspace::Rows(self.number);
        self.changes.iter().for_each(|change| match &change.stored {
            Some(row) => commit.put(rows, change.key.as_slice(), row.as_slice()),
            None => commit.delete(rows, change.key.as_slice()),
        });
    }

    fn index_rows(&mut self) -> Result<()> {
        let mut indexer = RowIndexer::new(&self.schema);
        for change in &mut self.changes {
            if let Some(row) = change.row.take() {
                indexer.add(&change.key, &row)?;
            }
        }
        self.segment = indexer.finish()?.map(Arc::new);
        Ok(())
    }

    fn bytes(&self) -> usize {
        let changes = self.changes.iter();
        let stored: usize = changes
            .map(|change| change.key.len() + change.stored.as_ref().map_or(0, Vec::len))
            .sum();
        // Values in memory take about as much again as their encoded bytes.
        2 * stored + 96 * self.changes.len()
    }
}

fn keep_last_of_each_key(changes: &mut Vec<PreparedChange>) {
    // The sort is stable and `dedup_by` keeps the first: so the last must stand first.
    changes.reverse();
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    changes.dedup_by(|later, kept| later.key == kept.key);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: u8, row: u8) -> PreparedChange {
        PreparedChange { key: vec![key], stored: Some(vec![row]), row: None }
    }

    #[test]
    fn the_last_change_of_a_key_stands() {
        let mut changes =
            vec![change(2, 1), change(1, 2), change(2, 3), change(1, 4), change(3, 5)];
        keep_last_of_each_key(&mut changes);
        let kept: Vec<_> = changes
            .iter()
            .map(|change| (change.key[0], change.stored.as_ref().unwrap()[0]))
            .collect();
        assert_eq!(kept, [(1, 4), (2, 3), (3, 5)]);
    }
}
