//! Rows as bytes for messages between servers.
//!
//! ```text
//! rows  := count:u32 row*           row := value*, one per column; both sides know the columns
//! value := 0                        NULL
//!        | 1 i64 | 2 u64 | 3 f64    integers, and a float that is not NaN
//!        | 4 text                   a decimal
//!        | 5 u8                     0 or 1: false or true
//!        | 6 text | 7 text | 8 text text, bytes, a JSON document
//!        | 9 date | 10 i64          a date; a duration in microseconds
//!        | 11 date u64 | 12 i64     a date and time of day; an instant, both in microseconds
//! date  := year:u16 month:u8 day:u8
//! text  := length:u32 byte*
//! ```
//! Numbers are little endian.

use std::sync::Arc;

use crate::{Date, DateTime, Decimal, Error, Result, Row, Value};

/// Encodes rows.
pub fn encode_rows(rows: &[Row]) -> Vec<u8> {
    let mut out = (rows.len() as u32).to_le_bytes().to_vec();
    rows.iter().flatten().for_each(|value| append(value, &mut out));
    out
}

/// Decodes at most `most` rows of `columns` columns. Cost: some 40 bytes of memory per value, however short its
/// encoding.
///
/// # Errors
/// [`Error::RemoteServer`] if the bytes are malformed or contain more rows.
pub fn decode_rows(bytes: &[u8], columns: usize, most: usize) -> Result<Vec<Row>> {
    let malformed = || Error::RemoteServer("it sent malformed rows".to_owned());
    let mut rest = bytes;
    let count = u32::from_le_bytes(array(&mut rest).ok_or_else(malformed)?) as usize;
    // Each value takes at least one byte.
    if columns == 0 || count > rest.len() / columns || count > most {
        return Err(malformed());
    }
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        let row: Option<Row> = (0..columns).map(|_| value(&mut rest)).collect();
        rows.push(row.ok_or_else(malformed)?);
    }
    if rest.is_empty() { Ok(rows) } else { Err(malformed()) }
}

fn append(value: &Value, out: &mut Vec<u8>) {
    let mut put = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => put(0, &[]),
        Value::Int(number) => put(1, &number.to_le_bytes()),
        Value::Uint(number) => put(2, &number.to_le_bytes()),
        Value::Float(number) => put(3, &number.to_bits().to_le_bytes()),
        Value::Decimal(number) => append_text(4, number.as_str().as_bytes(), out),
        Value::Bool(truth) => put(5, &[u8::from(*truth)]),
        Value::Text(text) => append_text(6, text.as_bytes(), out),
        Value::Bytes(bytes) => append_text(7, bytes, out),
        Value::Json(text) => append_text(8, text.as_bytes(), out),
        Value::Date(date) => put(9, &date_bytes(*date)),
        Value::Time(micros) => put(10, &micros.to_le_bytes()),
        Value::DateTime(moment) => {
            put(11, &date_bytes(moment.date));
            out.extend_from_slice(&moment.micros.to_le_bytes());
        }
        Value::Timestamp(micros) => put(12, &micros.to_le_bytes()),
    }
}

fn append_text(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn date_bytes(date: Date) -> [u8; 4] {
    let [low, high] = date.year.to_le_bytes();
    [low, high, date.month, date.day]
}

fn value(rest: &mut &[u8]) -> Option<Value> {
    let [tag] = array(rest)?;
    Some(match tag {
        0 => Value::Null,
        1 => Value::Int(i64::from_le_bytes(array(rest)?)),
        2 => Value::Uint(u64::from_le_bytes(array(rest)?)),
        3 => {
            let number = f64::from_bits(u64::from_le_bytes(array(rest)?));
            Value::Float(Some(number).filter(|number| !number.is_nan())?)
        }
        4 => Value::Decimal(Decimal::from_canonical(text(rest)?)?),
        5 => match array(rest)? {
            [0] => Value::Bool(false),
            [1] => Value::Bool(true),
            _ => return None,
        },
        6 => Value::Text(text(rest)?.into()),
        7 => Value::Bytes(Arc::from(bytes(rest)?)),
        8 => Value::Json(text(rest)?.into()),
        9 => Value::Date(date(rest)?),
        10 => Value::Time(i64::from_le_bytes(array(rest)?)),
        11 => {
            let date = date(rest)?;
            let moment = DateTime { date, micros: u64::from_le_bytes(array(rest)?) };
            Value::DateTime(Some(moment).filter(DateTime::is_valid)?)
        }
        12 => Value::Timestamp(i64::from_le_bytes(array(rest)?)),
        _ => return None,
    })
}

fn date(rest: &mut &[u8]) -> Option<Date> {
    let [low, high, month, day] = array(rest)?;
    Some(Date { year: u16::from_le_bytes([low, high]), month, day }).filter(Date::is_valid)
}

fn text<'r>(rest: &mut &'r [u8]) -> Option<&'r str> {
    std::str::from_utf8(bytes(rest)?).ok()
}

fn bytes<'r>(rest: &mut &'r [u8]) -> Option<&'r [u8]> {
    let length = usize::try_from(u32::from_le_bytes(array(rest)?)).ok()?;
    let (bytes, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(bytes)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encode::strategies::typed_values;

    proptest! {
        #[test]
        fn rows_round_trip((_, values) in typed_values(24), cut: prop::sample::Index) {
            let rows: Vec<Row> = values.chunks_exact(3).map(<[Value]>::to_vec).collect();
            let bytes = encode_rows(&rows);
            if let Some(fewer) = rows.len().checked_sub(1) {
                prop_assert!(decode_rows(&bytes, 3, fewer).is_err());
            }
            prop_assert_eq!(decode_rows(&bytes, 3, rows.len()).unwrap(), rows);
            let cut = cut.index(bytes.len());
            prop_assert!(decode_rows(&bytes[..cut], 3, usize::MAX).is_err());
        }

        #[test]
        fn invalid_row_bytes_are_refused(bytes: Vec<u8>, columns in 0_usize..5) {
            let _ = decode_rows(&bytes, columns, 10);
        }
    }

    #[test]
    fn malformed_values_are_refused() {
        let one = |value: &[u8]| decode_rows(&[&[1, 0, 0, 0], value].concat(), 1, 1);
        assert_eq!(one(&[5, 1]).unwrap(), [[Value::Bool(true)]]);
        let nan = [&[3][..], &f64::NAN.to_bits().to_le_bytes()].concat();
        for value in [
            &[5, 2][..],
            &[13],
            &[6, 1, 0, 0, 0, 255],
            &[6, 255, 255, 255, 255],
            &[9, 0, 0, 13, 1],
            &nan,
        ] {
            assert!(one(value).is_err(), "{value:?}");
        }
        assert!(decode_rows(&[255, 255, 255, 255, 0], 1, usize::MAX).is_err());
        assert!(decode_rows(&[0, 0, 0, 0, 0], 1, 1).is_err());
    }
}
