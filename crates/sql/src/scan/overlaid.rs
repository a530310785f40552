//! A scan of a session's uncommitted rows over those of the snapshot.

use std::sync::Arc;

use datafusion::arrow::array::BooleanArray;
use remora_engine::{
    ColumnBatch, ColumnData, ColumnType, ColumnValues, Date, DateTime, Decimal, Row, Schema,
    Strings, Validity, Value,
};

use super::EngineTable;
use crate::transaction::{Overlay, RowKey};

const NO_DATE: Date = Date { year: 0, month: 0, day: 0 };
/// Decimals with at most this many digits are stored as 128-bit integers.
const NARROW_DIGITS: u8 = 38;

/// The session's changes to a table.
#[derive(Clone)]
pub(super) struct Overlaid {
    overlay: Arc<Overlay>,
    schema: Arc<Schema>,
}

impl Overlaid {
    /// The session's changes to a table, if there are any.
    pub(super) fn of(table: &EngineTable) -> Option<Self> {
        let overlay = Arc::clone(table.overlay.as_ref()?);
        Some(Self { overlay, schema: Arc::clone(&table.table.schema) })
    }

    /// The number of the session's own rows.
    pub(super) fn row_count(&self) -> usize {
        self.overlay.row_count()
    }

    /// The positions of the key columns.
    pub(super) fn key(&self) -> &[usize] {
        &self.schema.primary_key
    }

    /// Which of the snapshot's rows, given their keys, the session has not changed.
    pub(super) fn shown(&self, keys: &[ColumnValues], rows: usize) -> BooleanArray {
        let key = |row: usize| RowKey(keys.iter().map(|column| column.value(row)).collect());
        (0..rows).map(|row| Some(!self.overlay.hides(&key(row)))).collect()
    }

    /// The session's rows. A table with scores has none: see [`EngineTable::scoring`].
    pub(super) fn own_rows(&self, columns: &[usize]) -> ColumnBatch {
        let rows: Vec<&Arc<Row>> = self.overlay.rows().collect();
        let made = columns.iter().map(|position| {
            let kind = self.schema.columns.get(*position).map(|column| column.kind);
            let values = rows.iter().map(|row| row.get(*position).unwrap_or(&Value::Null));
            column(kind.unwrap_or(ColumnType::Text), values, rows.len())
        });
        ColumnBatch { rows: rows.len(), columns: made.collect() }
    }
}

/// Values of one type as a column.
pub(super) fn column<'v>(
    kind: ColumnType,
    values: impl Iterator<Item = &'v Value> + Clone,
    rows: usize,
) -> ColumnValues {
    let nulls = values.clone().filter(|value| value.is_null()).count();
    let valid = (nulls > 0).then(|| {
        let mut words = vec![0_u64; rows.div_ceil(64)];
        for (row, value) in values.clone().enumerate() {
            if let Some(word) = words.get_mut(row / 64) {
                *word |= u64::from(!value.is_null()) << (row % 64);
            }
        }
        Validity { words, rows, nulls }
    });
    ColumnValues { valid, data: data(kind, values) }
}

fn data<'v>(kind: ColumnType, values: impl Iterator<Item = &'v Value>) -> ColumnData {
    match kind {
        ColumnType::Int(_) => ColumnData::Int(values.map(signed).collect()),
        ColumnType::Time => ColumnData::Time(values.map(signed).collect()),
        ColumnType::Timestamp => ColumnData::Timestamp(values.map(signed).collect()),
        ColumnType::Uint(_) => ColumnData::Uint(values.map(unsigned).collect()),
        ColumnType::Float | ColumnType::Double => ColumnData::Float(values.map(float).collect()),
        ColumnType::Bool => {
            ColumnData::Bool(values.map(|value| *value == Value::Bool(true)).collect())
        }
        ColumnType::Decimal(digits, scale) if digits <= NARROW_DIGITS => {
            let unscaled = values.map(|value| match value {
                Value::Decimal(number) => number.to_scaled(scale).unwrap_or(0),
                _ => 0,
            });
            ColumnData::Decimal { scale, unscaled: unscaled.collect() }
        }
        ColumnType::Decimal(..) => {
            let number = |value: &Value| match value {
                Value::Decimal(number) => number.clone(),
                _ => Decimal::from_scaled(0, 0),
            };
            ColumnData::WideDecimal(values.map(number).collect())
        }
        ColumnType::Text => ColumnData::Text(strings(values)),
        ColumnType::Json => ColumnData::Json(strings(values)),
        ColumnType::Bytes => ColumnData::Bytes(strings(values)),
        ColumnType::Date => ColumnData::Date(values.map(date).collect()),
        ColumnType::DateTime => ColumnData::DateTime(values.map(date_time).collect()),
    }
}

fn signed(value: &Value) -> i64 {
    match value {
        Value::Int(number) | Value::Time(number) | Value::Timestamp(number) => *number,
        _ => 0,
    }
}

fn unsigned(value: &Value) -> u64 {
    if let Value::Uint(number) = value { *number } else { 0 }
}

fn float(value: &Value) -> f64 {
    if let Value::Float(number) = value { *number } else { 0.0 }
}

fn date(value: &Value) -> Date {
    if let Value::Date(date) = value { *date } else { NO_DATE }
}

fn date_time(value: &Value) -> DateTime {
    match value {
        Value::DateTime(moment) => *moment,
        _ => DateTime { date: NO_DATE, micros: 0 },
    }
}

fn strings<'v>(values: impl Iterator<Item = &'v Value>) -> Strings {
    let mut strings = Strings { offsets: vec![0], bytes: Vec::new() };
    for value in values {
        match value {
            Value::Text(text) | Value::Json(text) => strings.bytes.extend(text.as_bytes()),
            Value::Bytes(bytes) => strings.bytes.extend(bytes.iter()),
            _ => {}
        }
        strings.offsets.push(i32::try_from(strings.bytes.len()).unwrap_or(i32::MAX));
    }
    strings
}
