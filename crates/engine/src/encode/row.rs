//! The encoding of rows in the row store.
//!
//! ```text
//! row    := version:u8 count:varint nulls value*
//! nulls  := one bit for each of the `count` columns, lowest first; 1 is NULL
//! value  := for each column that is not NULL, by its type
//!     Int, Time, Timestamp   varint of the zigzag form (0, -1, 1, -2 … are 0, 1, 2, 3 …)
//!     Uint, Bool             varint
//!     Date, DateTime         varint of the packed form, see `cell`
//!     Float, Double          8 bytes, little endian
//!     Decimal                length:varint text
//!     Text, Bytes, Json      length:varint byte*
//! varint := seven bits a byte, lowest first, the high bit set on all but the last
//! ```
//! A row written with fewer columns reads NULL for the missing ones. The width of integers is not stored, so widening
//! a column keeps its rows readable.

use super::cell::{pack_date, pack_date_time, unpack_date, unpack_date_time};
use crate::{ColumnType, Decimal, Error, Result, Row, Schema, Value};

/// The version byte of a row in its table's first layout; see `layout` for later ones.
pub(super) const VERSION: u8 = 1;

/// Encodes a row whose values fit their columns.
pub(crate) fn encode_row(schema: &Schema, row: &Row) -> Result<Vec<u8>> {
    let count = schema.columns.len();
    if row.len() != count {
        return Err(misfit(schema, "has another number of values than the table has columns"));
    }
    let texts = row.iter().map(|value| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    });
    let mut out = Vec::with_capacity(8 + 4 * count + texts.sum::<usize>());
    out.push(VERSION);
    push_varint(&mut out, count as u64);
    let nulls = out.len();
    out.resize(nulls + count.div_ceil(8), 0);
    for (index, (column, value)) in schema.columns.iter().zip(row).enumerate() {
        if !value.is_null() {
            push_value(&mut out, column.kind, value)
                .ok_or_else(|| misfit(schema, "holds a value of another type than its column"))?;
        } else if let Some(byte) = out.get_mut(nulls + index / 8) {
            *byte |= 1 << (index % 8);
        }
    }
    Ok(out)
}

/// Decodes a stored row.
pub(crate) fn decode_row(schema: &Schema, bytes: &[u8]) -> Result<Row> {
    decode_columns(schema, bytes, &|_| true)
}

/// Decodes the wanted columns of a row; the others are NULL.
pub(crate) fn decode_columns(
    schema: &Schema,
    bytes: &[u8],
    wanted: &dyn Fn(usize) -> bool,
) -> Result<Row> {
    read_row(schema, bytes, wanted)
        .ok_or_else(|| Error::Corrupt(format!("a row of table {:?} is malformed", schema.name)))
}

fn read_row(schema: &Schema, bytes: &[u8], wanted: &dyn Fn(usize) -> bool) -> Option<Row> {
    let mut reader = RowParts { bytes };
    if reader.byte()? != VERSION {
        return None;
    }
    let count = usize::try_from(reader.varint()?).ok()?;
    if count > schema.columns.len() {
        return None;
    }
    let nulls = reader.take(count.div_ceil(8))?;
    let mut row = Row::with_capacity(schema.columns.len());
    for (index, column) in schema.columns.iter().take(count).enumerate() {
        let null = nulls.get(index / 8)? >> (index % 8) & 1 == 1;
        row.push(match (null, wanted(index)) {
            (false, true) => reader.value(column.kind)?,
            (false, false) => reader.skip(column.kind)?,
            (true, _) => Value::Null,
        });
    }
    row.resize(schema.columns.len(), Value::Null);
    reader.bytes.is_empty().then_some(row)
}

/// The document in a column of a stored row, without a copy. `None` if it is NULL or of another type, or if any part of
/// the row is malformed.
pub(super) fn json_in<'b>(schema: &Schema, bytes: &'b [u8], place: usize) -> Option<&'b str> {
    let mut reader = RowParts { bytes };
    if reader.byte()? != VERSION {
        return None;
    }
    let count = usize::try_from(reader.varint()?).ok()?;
    if place >= count || count > schema.columns.len() {
        return None;
    }
    let nulls = reader.take(count.div_ceil(8))?;
    let is_null =
        |index: usize| nulls.get(index / 8).is_none_or(|bits| bits >> (index % 8) & 1 == 1);
    let mut found = None;
    for (index, column) in schema.columns.iter().enumerate().take(count) {
        match (is_null(index), column.kind) {
            (true, _) => {}
            (false, ColumnType::Json) if index == place => found = Some(reader.text()?),
            (false, kind) => {
                reader.skip(kind)?;
            }
        }
    }
    found.filter(|_| reader.bytes.is_empty())
}

fn misfit(schema: &Schema, what: &str) -> Error {
    let message = format!("a row of table {:?} {what}", schema.name);
    Error::request(crate::RequestPart::Row, message)
}

fn push_value(out: &mut Vec<u8>, kind: ColumnType, value: &Value) -> Option<()> {
    match (kind, value) {
        (ColumnType::Int(_), Value::Int(number))
        | (ColumnType::Time, Value::Time(number))
        | (ColumnType::Timestamp, Value::Timestamp(number)) => {
            push_varint(out, (number << 1 ^ number >> 63) as u64);
        }
        (ColumnType::Uint(_), Value::Uint(number)) => push_varint(out, *number),
        (ColumnType::Bool, Value::Bool(truth)) => push_varint(out, u64::from(*truth)),
        (ColumnType::Date, Value::Date(date)) => push_varint(out, pack_date(*date)),
        (ColumnType::DateTime, Value::DateTime(moment)) => {
            push_varint(out, pack_date_time(*moment));
        }
        (ColumnType::Float | ColumnType::Double, Value::Float(number)) => {
            out.extend_from_slice(&number.to_le_bytes());
        }
        (ColumnType::Decimal(..), Value::Decimal(number)) => {
            push_bytes(out, number.as_str().as_bytes());
        }
        (ColumnType::Text, Value::Text(text)) | (ColumnType::Json, Value::Json(text)) => {
            push_bytes(out, text.as_bytes());
        }
        (ColumnType::Bytes, Value::Bytes(bytes)) => push_bytes(out, bytes),
        _ => return None,
    }
    Some(())
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads the parts of a row one after the other; `None` if they are malformed.
pub(super) struct RowParts<'a> {
    pub bytes: &'a [u8],
}

impl<'a> RowParts<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            value |= part << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn counted(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.varint()?).ok()?;
        self.take(count)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.counted()?).ok()
    }

    /// Skips a value; returns NULL in its place.
    pub fn skip(&mut self, kind: ColumnType) -> Option<Value> {
        let is_there = match kind {
            ColumnType::Int(_)
            | ColumnType::Time
            | ColumnType::Timestamp
            | ColumnType::Uint(_)
            | ColumnType::Bool
            | ColumnType::Date
            | ColumnType::DateTime => self.varint().is_some(),
            ColumnType::Float | ColumnType::Double => self.take(8).is_some(),
            ColumnType::Decimal(..) | ColumnType::Text | ColumnType::Json | ColumnType::Bytes => {
                self.counted().is_some()
            }
        };
        is_there.then_some(Value::Null)
    }

    pub fn value(&mut self, kind: ColumnType) -> Option<Value> {
        Some(match kind {
            ColumnType::Int(_) => Value::Int(self.signed()?),
            ColumnType::Time => Value::Time(self.signed()?),
            ColumnType::Timestamp => Value::Timestamp(self.signed()?),
            ColumnType::Uint(_) => Value::Uint(self.varint()?),
            ColumnType::Bool => Value::Bool(self.varint()? != 0),
            ColumnType::Date => Value::Date(unpack_date(self.varint()?)),
            ColumnType::DateTime => Value::DateTime(unpack_date_time(self.varint()?)),
            ColumnType::Float | ColumnType::Double => {
                Value::Float(f64::from_le_bytes(self.take(8)?.try_into().ok()?))
            }
            ColumnType::Decimal(precision, scale) => {
                Value::Decimal(Decimal::parse(self.text()?, precision, scale)?)
            }
            ColumnType::Text => Value::Text(self.text()?.into()),
            ColumnType::Json => Value::Json(self.text()?.into()),
            ColumnType::Bytes => Value::Bytes(self.counted()?.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encode::strategies::{table, table_rows};

    proptest! {
        #[test]
        fn rows_round_trip((kinds, rows) in table_rows(1)) {
            let schema = table(&kinds);
            let stored = encode_row(&schema, &rows[0]).unwrap();
            prop_assert_eq!(&decode_row(&schema, &stored).unwrap(), &rows[0]);
            for cut in 0..stored.len() {
                prop_assert!(decode_row(&schema, &stored[..cut]).is_err());
            }
        }

        #[test]
        fn unselected_columns_are_null((kinds, rows) in table_rows(1), wanted: u64) {
            let schema = table(&kinds);
            let stored = encode_row(&schema, &rows[0]).unwrap();
            let is_wanted = |index: usize| wanted >> (index % 64) & 1 == 1;
            let mut expected = rows[0].clone();
            for (_, value) in expected.iter_mut().enumerate().filter(|(at, _)| !is_wanted(*at)) {
                *value = Value::Null;
            }
            prop_assert_eq!(decode_columns(&schema, &stored, &is_wanted).unwrap(), expected);
            for cut in 0..stored.len() {
                prop_assert!(decode_columns(&schema, &stored[..cut], &is_wanted).is_err());
            }
        }

        #[test]
        fn a_document_is_read_in_place((kinds, rows) in table_rows(1), place in 0usize..9) {
            let schema = table(&kinds);
            let stored = encode_row(&schema, &rows[0]).unwrap();
            let expected = match rows[0].get(place) {
                Some(Value::Json(text)) => Some(&**text),
                _ => None,
            };
            prop_assert_eq!(json_in(&schema, &stored, place), expected);
            for cut in 0..stored.len() {
                prop_assert_eq!(json_in(&schema, &stored[..cut], place), None);
            }
            let more = [stored.as_slice(), &[0]].concat();
            prop_assert_eq!(json_in(&schema, &more, place), None);
        }

        #[test]
        fn added_columns_read_null((kinds, rows) in table_rows(1), more in 1usize..9) {
            let stored = encode_row(&table(&kinds), &rows[0]).unwrap();
            let mut wider = kinds.clone();
            wider.resize(kinds.len() + more, ColumnType::Text);
            let mut expected = rows[0].clone();
            expected.resize(wider.len(), Value::Null);
            prop_assert_eq!(decode_row(&table(&wider), &stored).unwrap(), expected);
            prop_assert!(decode_row(&table(&kinds[1..]), &stored).is_err());
        }

        #[test]
        fn any_bytes_are_refused_or_a_row((kinds, _) in table_rows(0), mut bytes: Vec<u8>) {
            if let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            let _ = decode_row(&table(&kinds), &bytes);
        }
    }

    #[test]
    fn small_values_take_little_room() {
        let schema = table(&[ColumnType::Int(64), ColumnType::Text, ColumnType::Bool]);
        let row = vec![Value::Int(-3), Value::Text("ab".into()), Value::Null];
        assert_eq!(encode_row(&schema, &row).unwrap(), [1, 3, 0b100, 5, 2, b'a', b'b']);
        let wrong = vec![Value::Text("x".into()), Value::Null, Value::Null];
        assert!(encode_row(&schema, &wrong).is_err());
        assert!(encode_row(&schema, &vec![Value::Null]).is_err());
    }
}
