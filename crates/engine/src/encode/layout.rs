//! Rows of a table whose definition has changed since they were written.
//!
//! ```text
//! row      := 1 ..                  in the table's first layout, see `row`
//!           | 2 layout:varint ..    in a later one; the rest as in the first
//! history  := JSON { "layouts": the past ones in order, each a list of [column number, type],
//!                    "fills": a list of [column number, value of rows that lack the column],
//!                    "dropped_texts": numbers of text indexes that were dropped,
//!                    "indexed_from": segments of batches before this one cannot be used }
//! ```
//! A layout is the list of a row's columns by number and type. A change of the definition rewrites no rows: the
//! layout that was the newest is added to the history, and its rows are read by the numbers of its columns. A column
//! that a layout lacks gets its fill, or NULL.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    fit::fit,
    row::{RowParts, VERSION, decode_columns, encode_row, json_in, push_varint},
};
use crate::{ColumnType, Error, Result, Row, Schema, Value};

/// The version byte of a row in a later layout than its table's first.
const LATER_VERSION: u8 = 2;

/// The past definitions of a table, as far as its rows and segments depend on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct History {
    /// The columns of each past layout, oldest first.
    pub layouts: Vec<Vec<(u32, ColumnType)>>,
    /// Values of columns in rows that lack them.
    pub fills: Vec<(u32, Value)>,
    /// Dropped text indexes that older segments may still contain.
    pub dropped_texts: Vec<u32>,
    /// Segments of a manifest before this batch cannot be used.
    pub indexed_from: u64,
}

/// Encodes and decodes the rows of a table.
#[derive(Debug)]
pub(crate) struct RowFormat {
    schema: Arc<Schema>,
    history: History,
    /// How to read each layout, the newest one included; empty for a table that never changed.
    layouts: Vec<Vec<StoredColumn>>,
    /// A row with the fill of each column, or NULL.
    filled: Row,
}

/// A column of a stored row.
#[derive(Debug)]
struct StoredColumn {
    kind: ColumnType,
    /// The place of the column in the current definition, if it still exists.
    now: Option<usize>,
}

impl RowFormat {
    /// The format of a table that never changed.
    pub fn new(schema: Arc<Schema>) -> Self {
        Self::with_history(schema, History::default())
    }

    /// The format of a table with past definitions.
    pub fn with_history(schema: Arc<Schema>, history: History) -> Self {
        let place = |&(id, kind): &(u32, ColumnType)| {
            let now = schema.columns.iter().position(|column| column.id == id);
            StoredColumn { kind, now }
        };
        let newest = layout_of(&schema);
        let layouts = match history.layouts.is_empty() {
            true => Vec::new(),
            false => {
                let all = history.layouts.iter().chain([&newest]);
                all.map(|layout| layout.iter().map(place).collect()).collect()
            }
        };
        let filled = schema.columns.iter().map(|column| {
            let fill = history.fills.iter().find(|(id, _)| *id == column.id);
            // The column may have been widened since; earlier values still fit.
            let fill = fill.and_then(|(_, value)| fit(column, value).ok());
            fill.unwrap_or(Value::Null)
        });
        let filled = filled.collect();
        Self { schema, history, layouts, filled }
    }

    /// The current definition.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The past definitions.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Encodes a row whose values fit their columns.
    pub fn encode(&self, row: &Row) -> Result<Vec<u8>> {
        let encoded = encode_row(&self.schema, row)?;
        let Some(newest) = self.layouts.len().checked_sub(1) else { return Ok(encoded) };
        let mut out = Vec::with_capacity(encoded.len() + 2);
        out.push(LATER_VERSION);
        push_varint(&mut out, newest as u64);
        out.extend_from_slice(encoded.get(1..).unwrap_or_default());
        Ok(out)
    }

    /// Decodes a stored row.
    pub fn decode(&self, bytes: &[u8]) -> Result<Row> {
        self.decode_columns(bytes, &|_| true)
    }

    /// Decodes the wanted columns of a row; the values of others are unspecified.
    pub fn decode_columns(&self, bytes: &[u8], wanted: &dyn Fn(usize) -> bool) -> Result<Row> {
        if self.layouts.is_empty() {
            return decode_columns(&self.schema, bytes, wanted);
        }
        self.read(bytes, wanted).ok_or_else(|| {
            Error::Corrupt(format!("a row of table {:?} is malformed", self.schema.name))
        })
    }

    /// The document in a column of a stored row, without a copy. `None` if only [`Self::decode_columns`] can tell:
    /// it is NULL or of another type, the table has had other columns, or the row is malformed.
    pub fn json_in<'b>(&self, bytes: &'b [u8], place: usize) -> Option<&'b str> {
        if self.layouts.is_empty() { json_in(&self.schema, bytes, place) } else { None }
    }

    fn read(&self, bytes: &[u8], wanted: &dyn Fn(usize) -> bool) -> Option<Row> {
        let mut reader = RowParts { bytes };
        let layout = match reader.byte()? {
            VERSION => 0,
            LATER_VERSION => usize::try_from(reader.varint()?).ok()?,
            _ => return None,
        };
        let layout = self.layouts.get(layout)?;
        let count = usize::try_from(reader.varint()?).ok()?;
        if count > layout.len() {
            return None;
        }
        let nulls = reader.take(count.div_ceil(8))?;
        let mut row = self.filled.clone();
        for (index, place) in layout.iter().enumerate() {
            let null = index >= count || nulls.get(index / 8)? >> (index % 8) & 1 == 1;
            let Some(now) = place.now.filter(|&now| wanted(now)) else {
                if !null {
                    reader.skip(place.kind)?;
                }
                continue;
            };
            let value = if null { Value::Null } else { reader.value(place.kind)? };
            let column = self.schema.columns.get(now)?;
            let same = null || column.kind == place.kind;
            *row.get_mut(now)? = if same { value } else { fit(column, &value).ok()? };
        }
        reader.bytes.is_empty().then_some(row)
    }
}

/// The layout of rows that are written with this definition.
pub(crate) fn layout_of(schema: &Schema) -> Vec<(u32, ColumnType)> {
    schema.columns.iter().map(|column| (column.id, column.kind)).collect()
}
