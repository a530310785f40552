//! The rows of united tables, by key.

use std::{collections::VecDeque, sync::Arc};

use super::TableView;
use crate::{
    Result, Row,
    storage::{
        rows::{RowReader, RowVisitor},
        store::{RowVersion, StoredBytes},
    },
};

/// Rows of each table that a scan reads ahead.
const AHEAD_ROWS: usize = 256;

/// The rows of united tables. If several have a key, the row of the last one is used.
pub(super) struct UnitedRows {
    parts: Vec<Arc<TableView>>,
    /// Whether tables store rows that are not in their views.
    has_others: bool,
    /// The number of columns that all have; after them are the hidden columns of key expressions.
    columns: usize,
}

impl UnitedRows {
    pub fn new(parts: Vec<Arc<TableView>>) -> Self {
        let has_others = parts.iter().any(|part| part.schema.required.is_some());
        let columns = parts.first().map_or(0, |part| part.schema.given_columns());
        Self { parts, has_others, columns }
    }

    fn shown(&self, mut row: Row) -> Row {
        row.truncate(self.columns);
        row
    }

    /// The last table that has a row with the key.
    fn owner(&self, key: &[u8]) -> Option<&TableView> {
        let mut parts = self.parts.iter().rev().map(|part| &**part);
        parts.find(|part| is_live(part, key))
    }
}

fn is_live(part: &TableView, key: &[u8]) -> bool {
    part.segments.iter().any(|segment| segment.has_live(key))
}

impl RowReader for UnitedRows {
    fn get(
        &self,
        key: &[u8],
        version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        let Some(part) = self.owner(key) else { return Ok(None) };
        Ok(part.rows.get(key, version, wanted)?.map(|row| self.shown(row)))
    }

    fn stored(&self, key: &[u8]) -> Result<Option<StoredBytes>> {
        self.owner(key).map_or(Ok(None), |part| part.rows.stored(key))
    }

    fn scan_columns(
        &self,
        from: &[u8],
        _: &dyn Fn(usize) -> bool,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let ahead = |part| Ahead { part, next: Some(from.to_vec()), rows: VecDeque::new() };
        let mut all: Vec<Ahead<'_>> = self.parts.iter().map(ahead).collect();
        loop {
            for part in &mut all {
                part.read()?;
            }
            let first = all.iter().filter_map(|part| Some(part.rows.front()?.0.clone())).min();
            let Some(key) = first else { return Ok(()) };
            let mut last = None;
            for part in &mut all {
                if part.rows.front().is_none_or(|(other, _)| *other != key) {
                    continue;
                }
                let Some((_, row)) = part.rows.pop_front() else { continue };
                if !self.has_others || is_live(part.part, &key) {
                    last = Some(row);
                }
            }
            if let Some(row) = last
                && !visit(&key, self.shown(row))?
            {
                return Ok(());
            }
        }
    }
}

/// A table's rows in key order, some of them read ahead.
struct Ahead<'p> {
    part: &'p Arc<TableView>,
    /// The next key to read; `None` at the end.
    next: Option<Vec<u8>>,
    rows: VecDeque<(Vec<u8>, Row)>,
}

impl Ahead<'_> {
    /// Reads ahead if no row is left.
    fn read(&mut self) -> Result<()> {
        if !self.rows.is_empty() {
            return Ok(());
        }
        let Some(from) = self.next.take() else { return Ok(()) };
        let Self { part, next, rows } = self;
        part.rows.scan(&from, &mut |key, row| {
            rows.push_back((key.to_vec(), row));
            let is_full = rows.len() >= AHEAD_ROWS;
            if is_full {
                // The successor of this key.
                *next = Some([key, &[0]].concat());
            }
            Ok(!is_full)
        })
    }
}
