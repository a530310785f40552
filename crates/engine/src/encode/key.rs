//! Primary keys as bytes that are ordered like the keys.
//!
//! ```text
//! key       := part                              of a single column: without escape or end mark
//!            | part+                             composite, in the order of the primary key
//! part      := ordinal:u64 big endian            types with ordinal cells, see `cell`
//!            | decimal                           wide decimals: fixed length, see `cell`
//!            | byte*                             text and bytes as the last part
//!            | escaped* 0x00 0x00                text and bytes before the last part
//! escaped   := 0x01..0xff | 0x00 0xff
//! ```
//! So a single number, date, time or bool is exactly eight bytes, which the key list of a segment packs.

use std::borrow::Cow;

use remora_index::column::ColumnKind;

use super::{
    cell::{
        append_bytes, column_kind, ordinal, value_of_bytes, value_of_ordinal, wide_decimal_bytes,
    },
    fit::fit,
};
use crate::{ColumnDef, ColumnType, Error, KeyValues, RequestPart, Result, Schema, Value};

/// The most bytes of an encoded key. A key of MySQL has at most 3,072 bytes in its character sets;
/// in UTF-8 a byte of it may become three, a zero byte before the last column two, and a number
/// eight.
const MAX_KEY_BYTES: usize = 16_384;

/// The bytes of a primary key. Keys that lead to the same row have the same bytes, whatever types their values are given
/// in.
///
/// # Errors
/// [`crate::Error::Request`] if the values are not those of a key.
pub fn key_bytes(schema: &Schema, parts: &[Value]) -> Result<Vec<u8>> {
    encode_key(schema, parts)
}

/// Encodes a primary key given as the values of its parts, which are first converted to the types of their columns.
pub(crate) fn encode_key(schema: &Schema, parts: &[Value]) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(8 * parts.len());
    append_key(schema, parts, &mut key)?;
    Ok(key)
}

/// As [`encode_key`], appended to `key`.
pub(crate) fn append_key(schema: &Schema, parts: &[Value], key: &mut Vec<u8>) -> Result<()> {
    if parts.len() != schema.primary_key.len() {
        return Err(wrong_part_count(schema, parts.len()));
    }
    let start = key.len();
    for (index, (column, value)) in key_columns(schema).zip(parts).enumerate() {
        let value = fit(column, value)?;
        if value.is_null() {
            let message = format!("the key column {:?} must not be NULL", column.name);
            return Err(Error::request(RequestPart::Key, message));
        }
        append_part(column, &value, index + 1 == parts.len(), key)?;
    }
    let bytes = key.len() - start;
    if bytes > MAX_KEY_BYTES {
        let message = format!(
            "the key of table {:?} takes {bytes} bytes: the limit is {MAX_KEY_BYTES}",
            schema.name
        );
        return Err(Error::request(RequestPart::Key, message));
    }
    Ok(())
}

/// Decodes a key into the values of its parts.
pub(crate) fn decode_key(schema: &Schema, bytes: &[u8]) -> Result<KeyValues> {
    let corrupt = || Error::Corrupt(format!("a key of table {:?} is malformed", schema.name));
    let mut rest = bytes;
    let mut parts = KeyValues::new();
    let count = schema.primary_key.len();
    for (index, column) in key_columns(schema).enumerate() {
        let (value, behind) =
            split_part(column.kind, rest, index + 1 == count).ok_or_else(corrupt)?;
        parts.push(value);
        rest = behind;
    }
    if rest.is_empty() && parts.len() == count { Ok(parts) } else { Err(corrupt()) }
}

fn key_columns(schema: &Schema) -> impl Iterator<Item = &ColumnDef> {
    schema.primary_key.iter().filter_map(|&position| schema.columns.get(position))
}

fn append_part(column: &ColumnDef, value: &Value, last: bool, key: &mut Vec<u8>) -> Result<()> {
    let start = key.len();
    if let Some(ordinal) = ordinal(column.kind, value) {
        key.extend_from_slice(&ordinal.to_be_bytes());
    } else if append_bytes(column.kind, value, key).is_none() {
        let message = format!("{value} cannot be a key of column {:?}", column.name);
        return Err(Error::request(RequestPart::Key, message));
    } else if !last && is_variable(column.kind) {
        let raw = key.split_off(start);
        escape(&raw, key);
    }
    Ok(())
}

fn split_part(kind: ColumnType, bytes: &[u8], last: bool) -> Option<(Value, &[u8])> {
    if column_kind(kind) == ColumnKind::Ordinal {
        let (ordinal, rest) = bytes.split_first_chunk()?;
        return Some((value_of_ordinal(kind, u64::from_be_bytes(*ordinal))?, rest));
    }
    let (raw, rest) = match kind {
        ColumnType::Decimal(precision, _) => {
            let (raw, rest) = bytes.split_at_checked(wide_decimal_bytes(precision))?;
            (Cow::Borrowed(raw), rest)
        }
        _ if last => (Cow::Borrowed(bytes), &[][..]),
        _ => unescape(bytes)?,
    };
    Some((value_of_bytes(kind, &raw)?, rest))
}

fn is_variable(kind: ColumnType) -> bool {
    matches!(kind, ColumnType::Text | ColumnType::Bytes | ColumnType::Json)
}

fn escape(raw: &[u8], key: &mut Vec<u8>) {
    for &byte in raw {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

fn unescape(bytes: &[u8]) -> Option<(Cow<'static, [u8]>, &[u8])> {
    let mut raw = Vec::new();
    let mut rest = bytes;
    loop {
        let (&byte, behind) = rest.split_first()?;
        rest = behind;
        if byte != 0 {
            raw.push(byte);
            continue;
        }
        let (&mark, behind) = rest.split_first()?;
        rest = behind;
        match mark {
            0 => return Some((Cow::Owned(raw), rest)),
            0xff => raw.push(0),
            _ => return None,
        }
    }
}

fn wrong_part_count(schema: &Schema, given: usize) -> Error {
    let names: Vec<_> = key_columns(schema).map(|column| column.name.as_str()).collect();
    let message = format!(
        "{given} values were given for the key ({}) of table {:?}: give one for each column",
        names.join(", "),
        schema.name
    );
    Error::request(RequestPart::Key, message)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        compare,
        encode::strategies::{key_values, table},
    };

    fn compare_keys(a: &[Value], b: &[Value]) -> Ordering {
        let parts = a.iter().zip(b).map(|(a, b)| compare(a, b));
        parts.fold(Ordering::Equal, Ordering::then)
    }

    proptest! {
        #[test]
        fn keys_keep_part_order_and_round_trip((kinds, a, b) in key_values()) {
            let schema = table(&kinds);
            let key = encode_key(&schema, &a).unwrap();
            let other = encode_key(&schema, &b).unwrap();
            prop_assert_eq!(key.cmp(&other), compare_keys(&a, &b), "{:?} {:?}", a, b);
            prop_assert_eq!(decode_key(&schema, &key).unwrap().to_vec(), a);
            if let [kind] = kinds[..] && column_kind(kind) == ColumnKind::Ordinal {
                prop_assert_eq!(key.len(), 8);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_a_key((kinds, _, _) in key_values(), bytes: Vec<u8>) {
            if let Ok(parts) = decode_key(&table(&kinds), &bytes) {
                parts.iter().for_each(|part| _ = part.to_string());
            }
        }
    }

    #[test]
    fn single_texts_are_raw_and_long_ones_are_refused() {
        let schema = table(&[ColumnType::Text]);
        assert_eq!(encode_key(&schema, &[Value::Text("a\0b".into())]).unwrap(), b"a\0b");
        let long = Value::Text("x".repeat(MAX_KEY_BYTES + 1).into());
        let error = encode_key(&schema, &[long]).unwrap_err().to_string();
        assert!(error.contains("16385 bytes: the limit is 16384"), "{error}");
        assert!(encode_key(&schema, &[]).is_err());
        assert!(encode_key(&schema, &[Value::Null]).is_err());
    }

    #[test]
    fn keys_are_converted_to_their_column_types() {
        let schema = table(&[ColumnType::Int(32)]);
        let key = encode_key(&schema, &[Value::Text("-5".into())]).unwrap();
        assert_eq!(key, encode_key(&schema, &[Value::Int(-5)]).unwrap());
    }
}
