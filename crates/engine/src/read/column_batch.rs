//! Batches of typed columns: the result of a scan.
//!
//! The layout is that of columnar formats in general, so a batch becomes one of theirs by moving its vectors: values in
//! a vector of their type, strings as offsets into one buffer, and NULLs in a bitmap.

use remora_index::column::{Cell, Column};

use crate::{
    ColumnType, Date, DateTime, Decimal, Error, RequestPart, Result, Row, Value,
    encode::{
        decimal_of_cell, decode_cell, float_of_ordinal, int_of_ordinal, unpack_date,
        unpack_date_time,
    },
};

/// Decimals of up to this many digits are stored as numbers.
const MAX_NUMBER_PRECISION: u8 = 38;
/// A batch with this many bytes of strings is returned before it has all its rows.
const BATCH_BYTES: usize = 16 << 20;

/// Some rows of a table, column by column.
#[derive(Clone, Debug)]
pub struct ColumnBatch {
    /// The number of rows.
    pub rows: usize,
    /// The requested columns, in that order.
    pub columns: Vec<ColumnValues>,
}

/// One column of a batch.
#[derive(Clone, Debug)]
pub struct ColumnValues {
    /// A bit for each row that says whether it is not NULL; `None` if no row is NULL.
    pub valid: Option<Validity>,
    /// The values; a NULL row has an arbitrary one.
    pub data: ColumnData,
}

/// The values of a column, by its type.
#[derive(Clone, Debug)]
pub enum ColumnData {
    /// Signed integers of any width.
    Int(Vec<i64>),
    /// Unsigned integers of any width.
    Uint(Vec<u64>),
    /// Float and Double.
    Float(Vec<f64>),
    /// Decimals of up to 38 digits, times ten to the scale.
    Decimal {
        /// Digits behind the point.
        scale: u8,
        /// The numbers times ten to the scale.
        unscaled: Vec<i128>,
    },
    /// Decimals of more digits.
    WideDecimal(Vec<Decimal>),
    /// True or false.
    Bool(Vec<bool>),
    /// UTF-8 text.
    Text(Strings),
    /// Bytes.
    Bytes(Strings),
    /// JSON documents as their text.
    Json(Strings),
    /// Dates, parts of which may be zero.
    Date(Vec<Date>),
    /// Spans of time, in microseconds.
    Time(Vec<i64>),
    /// Dates and times, parts of which may be zero.
    DateTime(Vec<DateTime>),
    /// Moments, in microseconds since 1970.
    Timestamp(Vec<i64>),
}

/// Strings one after the other.
#[derive(Clone, Debug)]
pub struct Strings {
    /// The offset in `bytes` at which each string begins, and the end of the last string: one offset more than strings.
    pub offsets: Vec<i32>,
    /// The strings.
    pub bytes: Vec<u8>,
}

/// The validity bitmap of a column: which rows are not NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// One bit for each row, the first in the lowest bit of the first word; 1 if the row has a value.
    pub words: Vec<u64>,
    /// The number of rows.
    pub rows: usize,
    /// The number of NULLs.
    pub nulls: usize,
}

impl ColumnBatch {
    /// The batch as rows.
    pub fn to_rows(&self) -> Vec<Row> {
        let row = |row| self.columns.iter().map(|column| column.value(row)).collect();
        (0..self.rows).map(row).collect()
    }

    /// The memory of the values, in bytes.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(|column| column.data.bytes()).sum()
    }
}

/// The limit of a batch in bytes of strings; the last row may exceed it.
pub(super) fn byte_limit(asked: Option<usize>) -> usize {
    asked.map_or(BATCH_BYTES, |asked| asked.clamp(1, BATCH_BYTES))
}

fn bytes_of<T>(values: &[T]) -> usize {
    size_of_val(values)
}

impl ColumnValues {
    /// The value of a row; NULL past the end.
    pub fn value(&self, row: usize) -> Value {
        if self.valid.as_ref().is_some_and(|valid| !valid.contains(row)) {
            return Value::Null;
        }
        self.data.value(row).unwrap_or(Value::Null)
    }
}

impl ColumnData {
    fn new(kind: ColumnType, rows: usize) -> Self {
        let strings = || {
            let mut offsets = Vec::with_capacity(rows + 1);
            offsets.push(0);
            Strings { offsets, bytes: Vec::new() }
        };
        match kind {
            ColumnType::Int(_) => Self::Int(Vec::with_capacity(rows)),
            ColumnType::Uint(_) => Self::Uint(Vec::with_capacity(rows)),
            ColumnType::Float | ColumnType::Double => Self::Float(Vec::with_capacity(rows)),
            ColumnType::Decimal(precision, scale) if precision <= MAX_NUMBER_PRECISION => {
                Self::Decimal { scale, unscaled: Vec::with_capacity(rows) }
            }
            ColumnType::Decimal(..) => Self::WideDecimal(Vec::with_capacity(rows)),
            ColumnType::Bool => Self::Bool(Vec::with_capacity(rows)),
            ColumnType::Text => Self::Text(strings()),
            ColumnType::Bytes => Self::Bytes(strings()),
            ColumnType::Json => Self::Json(strings()),
            ColumnType::Date => Self::Date(Vec::with_capacity(rows)),
            ColumnType::Time => Self::Time(Vec::with_capacity(rows)),
            ColumnType::DateTime => Self::DateTime(Vec::with_capacity(rows)),
            ColumnType::Timestamp => Self::Timestamp(Vec::with_capacity(rows)),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Int(values) | Self::Time(values) | Self::Timestamp(values) => bytes_of(values),
            Self::Uint(values) => bytes_of(values),
            Self::Float(values) => bytes_of(values),
            Self::Decimal { unscaled, .. } => bytes_of(unscaled),
            Self::WideDecimal(values) => bytes_of(values),
            Self::Bool(values) => bytes_of(values),
            Self::Text(strings) | Self::Bytes(strings) | Self::Json(strings) => {
                bytes_of(&strings.offsets) + strings.bytes.len()
            }
            Self::Date(values) => bytes_of(values),
            Self::DateTime(values) => bytes_of(values),
        }
    }

    fn value(&self, row: usize) -> Option<Value> {
        let text = |strings: &Strings| Some(std::str::from_utf8(strings.get(row)?).ok()?.into());
        Some(match self {
            Self::Int(values) => Value::Int(*values.get(row)?),
            Self::Uint(values) => Value::Uint(*values.get(row)?),
            Self::Float(values) => Value::Float(*values.get(row)?),
            Self::Decimal { scale, unscaled } => {
                Value::Decimal(Decimal::from_scaled(*unscaled.get(row)?, *scale))
            }
            Self::WideDecimal(values) => Value::Decimal(values.get(row)?.clone()),
            Self::Bool(values) => Value::Bool(*values.get(row)?),
            Self::Text(strings) => Value::Text(text(strings)?),
            Self::Bytes(strings) => Value::Bytes(strings.get(row)?.into()),
            Self::Json(strings) => Value::Json(text(strings)?),
            Self::Date(values) => Value::Date(*values.get(row)?),
            Self::Time(values) => Value::Time(*values.get(row)?),
            Self::DateTime(values) => Value::DateTime(*values.get(row)?),
            Self::Timestamp(values) => Value::Timestamp(*values.get(row)?),
        })
    }

    /// Appends an arbitrary value in the place of NULL.
    fn push_filler(&mut self) {
        const NO_DATE: Date = Date { year: 0, month: 0, day: 0 };
        match self {
            Self::Int(values) | Self::Time(values) | Self::Timestamp(values) => values.push(0),
            Self::Uint(values) => values.push(0),
            Self::Float(values) => values.push(0.0),
            Self::Decimal { unscaled, .. } => unscaled.push(0),
            Self::WideDecimal(values) => values.push(Decimal::from_scaled(0, 0)),
            Self::Bool(values) => values.push(false),
            Self::Text(strings) | Self::Bytes(strings) | Self::Json(strings) => {
                strings.offsets.extend_from_within(strings.offsets.len().saturating_sub(1)..);
            }
            Self::Date(values) => values.push(NO_DATE),
            Self::DateTime(values) => values.push(DateTime { date: NO_DATE, micros: 0 }),
        }
    }

    /// Appends a value; false, and nothing is appended, if it is not of the column's type.
    fn push(&mut self, value: &Value) -> Result<bool> {
        match (self, value) {
            (Self::Int(values), Value::Int(value))
            | (Self::Time(values), Value::Time(value))
            | (Self::Timestamp(values), Value::Timestamp(value)) => values.push(*value),
            (Self::Uint(values), Value::Uint(value)) => values.push(*value),
            (Self::Float(values), Value::Float(value)) => values.push(*value),
            (Self::Decimal { scale, unscaled }, Value::Decimal(value)) => {
                let Some(value) = value.to_scaled(*scale) else { return Ok(false) };
                unscaled.push(value);
            }
            (Self::WideDecimal(values), Value::Decimal(value)) => values.push(value.clone()),
            (Self::Bool(values), Value::Bool(value)) => values.push(*value),
            (Self::Text(strings), Value::Text(text)) | (Self::Json(strings), Value::Json(text)) => {
                strings.push(text.as_bytes())?;
            }
            (Self::Bytes(strings), Value::Bytes(bytes)) => strings.push(bytes)?,
            (Self::Date(values), Value::Date(value)) => values.push(*value),
            (Self::DateTime(values), Value::DateTime(value)) => values.push(*value),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Strings {
    /// The string of a row.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let (start, end) = (*self.offsets.get(row)?, *self.offsets.get(row.checked_add(1)?)?);
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    #[inline]
    fn push(&mut self, string: &[u8]) -> Result<()> {
        let end = i32::try_from(self.bytes.len() + string.len());
        self.offsets.push(end.map_err(|_| too_long())?);
        self.bytes.extend_from_slice(string);
        Ok(())
    }
}

fn too_long() -> Error {
    let message = "a few rows have more than 2 GiB in one column: ask for fewer columns";
    Error::request(RequestPart::Fields, message)
}

impl Validity {
    /// Whether a row has a value.
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    #[inline]
    fn push(&mut self, is_valid: bool) {
        let bit = self.rows % 64;
        if bit == 0 {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(is_valid) << bit;
        }
        self.rows += 1;
        self.nulls += usize::from(!is_valid);
    }
}

/// A column under construction.
pub(crate) struct ColumnBuilder {
    kind: ColumnType,
    valid: Validity,
    data: ColumnData,
}

impl ColumnBuilder {
    /// An empty column of a type, with room for some rows.
    pub fn new(kind: ColumnType, rows: usize) -> Self {
        let words = Vec::with_capacity(rows.div_ceil(64));
        let valid = Validity { words, rows: 0, nulls: 0 };
        Self { kind, valid, data: ColumnData::new(kind, rows) }
    }

    /// The size of the strings so far, in bytes.
    pub fn string_bytes(&self) -> usize {
        match &self.data {
            ColumnData::Text(strings) | ColumnData::Bytes(strings) | ColumnData::Json(strings) => {
                strings.bytes.len()
            }
            _ => 0,
        }
    }

    /// Appends a value; a value of another type is appended as NULL.
    pub fn push(&mut self, value: &Value) -> Result<()> {
        let is_valid = self.data.push(value)?;
        if !is_valid {
            self.data.push_filler();
        }
        self.valid.push(is_valid);
        Ok(())
    }

    /// Appends `rows` NULLs.
    pub fn push_nulls(&mut self, rows: usize) {
        for _ in 0..rows {
            self.data.push_filler();
            self.valid.push(false);
        }
    }

    /// Appends the values of `docs` out of a segment's column.
    pub fn gather(&mut self, column: &Column, docs: &[u32]) -> Result<()> {
        let valid = &mut self.valid;
        match &mut self.data {
            ColumnData::Int(out) | ColumnData::Time(out) | ColumnData::Timestamp(out) => {
                gather_ordinals(column, docs, valid, out, int_of_ordinal);
            }
            ColumnData::Uint(out) => gather_ordinals(column, docs, valid, out, |ordinal| ordinal),
            ColumnData::Float(out) => gather_ordinals(column, docs, valid, out, float_of_ordinal),
            ColumnData::Bool(out) => gather_ordinals(column, docs, valid, out, |bit| bit != 0),
            ColumnData::Date(out) => gather_ordinals(column, docs, valid, out, unpack_date),
            ColumnData::DateTime(out) => {
                gather_ordinals(column, docs, valid, out, unpack_date_time);
            }
            ColumnData::Decimal { unscaled, .. } => column.for_each_of(docs, |cell| {
                let number = decimal_of_cell(cell);
                valid.push(number.is_some());
                unscaled.push(number.unwrap_or(0));
            }),
            ColumnData::Text(out) | ColumnData::Bytes(out) | ColumnData::Json(out) => {
                return gather_strings(column, docs, valid, out);
            }
            ColumnData::WideDecimal(_) => {
                let kind = self.kind;
                let mut pushed = Ok(());
                column.for_each_of(docs, |cell| {
                    if pushed.is_ok() {
                        pushed = self.push(&decode_cell(kind, cell));
                    }
                });
                return pushed;
            }
        }
        Ok(())
    }

    /// The column.
    pub fn finish(self) -> ColumnValues {
        let valid = (self.valid.nulls > 0).then_some(self.valid);
        ColumnValues { valid, data: self.data }
    }
}

fn gather_ordinals<T: Copy>(
    column: &Column,
    docs: &[u32],
    valid: &mut Validity,
    out: &mut Vec<T>,
    value: impl Fn(u64) -> T,
) {
    column.for_each_of(docs, |cell| {
        let ordinal = if let Cell::Ordinal(ordinal) = cell { Some(ordinal) } else { None };
        valid.push(ordinal.is_some());
        out.push(value(ordinal.unwrap_or(0)));
    });
}

fn gather_strings(
    column: &Column,
    docs: &[u32],
    valid: &mut Validity,
    out: &mut Strings,
) -> Result<()> {
    let mut pushed = Ok(());
    column.for_each_of(docs, |cell| {
        let string = if let Cell::Bytes(string) = cell { Some(string) } else { None };
        valid.push(string.is_some());
        if let Err(error) = out.push(string.unwrap_or_default()) {
            pushed = Err(error);
        }
    });
    pushed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use remora_index::{
        SectionWriter, Sections,
        column::{ColumnKind, ColumnWriter},
    };

    use super::*;
    use crate::encode::{column_kind, encode_cell, strategies::typed_values};

    fn column(kind: ColumnKind, cells: &[Cell<'_>]) -> Column {
        let mut writer = ColumnWriter::new(1, kind);
        cells.iter().for_each(|&cell| writer.push(cell).unwrap());
        let mut out = SectionWriter::new();
        writer.finish(&mut out).unwrap();
        let sections = Sections::open(out.finish()).unwrap();
        Column::open(&sections, 1, cells.len() as u32).unwrap().unwrap()
    }

    proptest! {
        #[test]
        fn values_and_cells_round_trip((kind, values) in typed_values(90), twice: bool) {
            let mut scratches = vec![Vec::new(); values.len()];
            let pairs = values.iter().zip(&mut scratches);
            let cells: Vec<Cell<'_>> =
                pairs.map(|(value, scratch)| encode_cell(kind, value, scratch)).collect();
            // Eight times the same values make a dictionary.
            let cells = cells.repeat(if twice { 8 } else { 1 });
            let column = column(column_kind(kind), &cells);
            let docs: Vec<u32> = (0..cells.len() as u32).filter(|doc| doc % 3 != 1).collect();
            let mut builder = ColumnBuilder::new(kind, 0);
            builder.gather(&column, &docs).unwrap();
            for value in &values {
                builder.push(value).unwrap();
            }
            builder.push_nulls(2);
            let built = builder.finish();
            let gathered = docs.iter().map(|&doc| &values[doc as usize % values.len()]);
            let expected: Vec<&Value> =
                gathered.chain(&values).chain([&Value::Null, &Value::Null]).collect();
            for (row, value) in expected.iter().enumerate() {
                prop_assert_eq!(&built.value(row), *value, "row {}", row);
            }
            prop_assert_eq!(built.value(expected.len()), Value::Null);
            let valid = built.valid.unwrap();
            prop_assert_eq!(valid.rows, expected.len());
            let nulls = expected.iter().filter(|value| value.is_null()).count();
            prop_assert_eq!(valid.nulls, nulls);
        }
    }
}
