//! Reads the rows of one table from a store snapshot.

use std::{collections::VecDeque, sync::Arc};

use super::{
    staged::{parse_staged_key, parse_staged_value, staged_key},
    store::{Keyspace, RowVersion, StoreSnapshot, StoredBytes},
};
use crate::{Error, Result, Row, Value, encode::RowFormat};

/// Advice in errors about rows that cannot be read.
pub(crate) const DAMAGED_ROWS: &str = "; stop the server, have `remora check` list what else is damaged, \
                                       then restore a backup, or copy or import the table again";

/// The number of staged rows that a scan reads at once.
const AHEAD_ROWS: usize = 1_024;
/// The size, in bytes of staged rows, at which such a read ends early.
const AHEAD_BYTES: usize = 1 << 20;

/// Reads the rows of one table at one position.
pub(crate) trait RowReader: Send + Sync {
    /// The row with this encoded key. Only the columns at the wanted places are decoded. `version` is the document
    /// that has the row, if the caller knows it: recently read versions are cached.
    fn get(
        &self,
        key: &[u8],
        version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>>;
    /// Calls `visit` with the JSON document in a column of the row of a document, or with `None` if the value is NULL or of
    /// another type. Returns whether there is such a row.
    fn visit_json(
        &self,
        key: &[u8],
        version: RowVersion,
        place: usize,
        visit: &mut JsonVisitor<'_>,
    ) -> Result<bool> {
        let row = self.get(key, Some(version), &|at| at == place)?;
        row.iter().for_each(|row| visit(json_of(row, place)));
        Ok(row.is_some())
    }
    /// The encoded row with this encoded key.
    fn stored(&self, key: &[u8]) -> Result<Option<StoredBytes>>;
    /// Calls `visit(encoded key, row)` in key order, starting at `from` (included), until it returns false. Values of
    /// columns at unwanted places may be NULL.
    fn scan_columns(
        &self,
        from: &[u8],
        wanted: &dyn Fn(usize) -> bool,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()>;
    /// As [`Self::scan_columns`], with all columns.
    fn scan(&self, from: &[u8], visit: &mut RowVisitor<'_>) -> Result<()> {
        self.scan_columns(from, &|_| true, visit)
    }
}

/// Called with an encoded key and its row; returns whether to continue.
pub(crate) type RowVisitor<'v> = dyn FnMut(&[u8], Row) -> Result<bool> + 'v;

/// Called with a JSON document, or with `None` for another value.
pub(crate) type JsonVisitor<'v> = dyn FnMut(Option<&str>) + 'v;

/// The JSON document in a column; `None` if the value is NULL or of another type.
pub(crate) fn json_of(row: &Row, place: usize) -> Option<&str> {
    match row.get(place) {
        Some(Value::Json(text)) => Some(text),
        _ => None,
    }
}

/// The rows of one table in a store snapshot.
pub(crate) struct StoredRows {
    snapshot: Arc<dyn StoreSnapshot>,
    keyspace: Keyspace,
    format: Arc<RowFormat>,
}

impl StoredRows {
    /// The rows of the table with this number, decoded with `format`.
    pub fn new(snapshot: Arc<dyn StoreSnapshot>, table: u32, format: Arc<RowFormat>) -> Self {
        Self { snapshot, keyspace: Keyspace::Rows(table), format }
    }
}

impl RowReader for StoredRows {
    fn get(
        &self,
        key: &[u8],
        version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        let stored = match version {
            Some(version) => self.snapshot.get_version(self.keyspace, key, version),
            None => self.snapshot.get(self.keyspace, key),
        };
        let stored = stored.map_err(|error| self.damaged(error))?;
        let row = stored.map(|bytes| self.format.decode_columns(&bytes, wanted)).transpose();
        row.map_err(|error| self.damaged_row(error, key))
    }

    fn visit_json(
        &self,
        key: &[u8],
        version: RowVersion,
        place: usize,
        visit: &mut JsonVisitor<'_>,
    ) -> Result<bool> {
        let stored = self.snapshot.get_version(self.keyspace, key, version);
        let Some(bytes) = stored.map_err(|error| self.damaged(error))? else { return Ok(false) };
        if let Some(text) = self.format.json_in(&bytes, place) {
            visit(Some(text));
            return Ok(true);
        }
        let row = self.format.decode_columns(&bytes, &|at| at == place);
        visit(json_of(&row.map_err(|error| self.damaged_row(error, key))?, place));
        Ok(true)
    }

    fn stored(&self, key: &[u8]) -> Result<Option<StoredBytes>> {
        self.snapshot.get(self.keyspace, key).map_err(|error| self.damaged(error))
    }

    fn scan_columns(
        &self,
        from: &[u8],
        wanted: &dyn Fn(usize) -> bool,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let mut ended_by = None;
        let scanned = self.snapshot.scan(self.keyspace, from, &mut |key, bytes| {
            let row = self.format.decode_columns(bytes, wanted);
            let row = row.map_err(|error| self.damaged_row(error, key));
            row.and_then(|row| visit(key, row)).or_else(|error| {
                ended_by = Some(error);
                Ok(false)
            })
        });
        match ended_by {
            Some(error) => Err(error),
            None => scanned.map_err(|error| self.damaged(error)),
        }
    }
}

impl StoredRows {
    /// Adds the table's name and advice to an error of damage.
    fn damaged(&self, error: Error) -> Error {
        let Error::Corrupt(what) = error else { return error };
        Error::Corrupt(format!("{what}, of table {:?}{DAMAGED_ROWS}", self.format.schema().name))
    }

    /// As [`Self::damaged`], with the key of the row.
    fn damaged_row(&self, error: Error, key: &[u8]) -> Error {
        match error {
            Error::Corrupt(what) => self.damaged(Error::Corrupt(format!("{what}, key {key:02x?}"))),
            other => other,
        }
    }
}

/// The rows of one table, overlaid by the staged rows of a large batch.
pub(crate) struct OverlaidRows {
    /// The rows without the batch.
    pub below: Arc<dyn RowReader>,
    /// The store snapshot to read staged rows from.
    pub snapshot: Arc<dyn StoreSnapshot>,
    /// The number under which they are staged.
    pub number: u32,
    /// The number of the table.
    pub table: u32,
    /// The encoding of its rows.
    pub format: Arc<RowFormat>,
}

impl RowReader for OverlaidRows {
    fn get(
        &self,
        key: &[u8],
        version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        match self.staged(key, wanted)? {
            None => self.below.get(key, version, wanted),
            Some(row) => Ok(row),
        }
    }

    fn stored(&self, key: &[u8]) -> Result<Option<StoredBytes>> {
        let place = staged_key(self.table, key);
        match self.snapshot.get(Keyspace::Rows(self.number), &place)? {
            None => self.below.stored(key),
            Some(staged) => Ok(parse_staged_value(&staged)?.map(StoredBytes::from)),
        }
    }

    fn scan_columns(
        &self,
        from: &[u8],
        wanted: &dyn Fn(usize) -> bool,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let mut staged = StagedScan::new(self, from);
        let mut continues = true;
        self.below.scan_columns(from, wanted, &mut |key, row| {
            continues = staged.pass(Some(key), visit)?;
            if continues {
                continues = match staged.is_first(key)? {
                    true => staged.visit_first(visit)?,
                    false => visit(key, row)?,
                };
            }
            Ok(continues)
        })?;
        if continues {
            staged.pass(None, visit)?;
        }
        Ok(())
    }
}

impl OverlaidRows {
    /// The staged state of a key: a row, or `Some(None)` if it is deleted; `None` if the batch does not change it.
    fn staged(&self, key: &[u8], wanted: &dyn Fn(usize) -> bool) -> Result<Option<Option<Row>>> {
        let place = staged_key(self.table, key);
        let Some(staged) = self.snapshot.get(Keyspace::Rows(self.number), &place)? else {
            return Ok(None);
        };
        let row = parse_staged_value(&staged)?;
        row.map(|bytes| self.format.decode_columns(bytes, wanted)).transpose().map(Some)
    }
}

/// The rows of a table in a store snapshot, overlaid by those staged under a number, if any.
pub(crate) fn rows_at(
    store: &Arc<dyn StoreSnapshot>,
    table: u32,
    format: &Arc<RowFormat>,
    staged: Option<u32>,
) -> Arc<dyn RowReader> {
    let below = Arc::new(StoredRows::new(Arc::clone(store), table, Arc::clone(format)));
    let (snapshot, format) = (Arc::clone(store), Arc::clone(format));
    match staged {
        None => below,
        Some(number) => Arc::new(OverlaidRows { below, snapshot, number, table, format }),
    }
}

/// A scan of the staged rows of a table, in key order and with read-ahead.
struct StagedScan<'s> {
    rows: &'s OverlaidRows,
    /// Where to continue reading; `None` at the end.
    next: Option<Vec<u8>>,
    ahead: VecDeque<(Vec<u8>, Option<Row>)>,
}

impl<'s> StagedScan<'s> {
    fn new(rows: &'s OverlaidRows, from: &[u8]) -> Self {
        let next = Some(staged_key(rows.table, from));
        Self { rows, next, ahead: VecDeque::new() }
    }

    /// Visits the staged rows before `end` (`None`: all); returns whether to continue.
    fn pass(&mut self, end: Option<&[u8]>, visit: &mut RowVisitor<'_>) -> Result<bool> {
        loop {
            self.read_ahead()?;
            let Some((key, _)) = self.ahead.front() else { return Ok(true) };
            if end.is_some_and(|end| key.as_slice() >= end) {
                return Ok(true);
            }
            if !self.visit_first(visit)? {
                return Ok(false);
            }
        }
    }

    fn is_first(&mut self, key: &[u8]) -> Result<bool> {
        self.read_ahead()?;
        Ok(self.ahead.front().is_some_and(|(staged, _)| staged == key))
    }

    fn visit_first(&mut self, visit: &mut RowVisitor<'_>) -> Result<bool> {
        match self.ahead.pop_front() {
            Some((key, Some(row))) => visit(&key, row),
            _ => Ok(true),
        }
    }

    fn read_ahead(&mut self) -> Result<()> {
        if !self.ahead.is_empty() {
            return Ok(());
        }
        let Some(from) = self.next.take() else { return Ok(()) };
        let (rows, ahead, next) = (self.rows, &mut self.ahead, &mut self.next);
        let mut bytes = 0;
        rows.snapshot.scan(Keyspace::Rows(rows.number), &from, &mut |staged, value| {
            let (table, key) = parse_staged_key(staged)?;
            if table != rows.table {
                return Ok(false);
            }
            let row = parse_staged_value(value)?;
            let row = row.map(|bytes| rows.format.decode(bytes)).transpose()?;
            ahead.push_back((key.to_vec(), row));
            bytes += staged.len() + value.len();
            let is_full = ahead.len() >= AHEAD_ROWS || bytes >= AHEAD_BYTES;
            if is_full {
                *next = Some([staged, &[0]].concat());
            }
            Ok(!is_full)
        })
    }
}
