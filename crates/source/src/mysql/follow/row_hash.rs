//! The identity of a row in a table without a key: a hash of all its values.
//!
//! It is the first 128 bits of SHA-256: nobody can construct a collision, and a random one is unlikely among 2^64 rows.
//! It covers the values as they are stored here, which are the same from a SELECT and from a row image: CHAR without
//! padding, BINARY with it, no minus zero, text in UTF-8.

use remora_engine::{Date, Value};
use sha2::{Digest, Sha256};

/// The bytes of a hash.
pub(super) const HASH_BYTES: usize = 16;

/// A row's hash.
pub(super) type RowHash = [u8; HASH_BYTES];

/// The hash of a row's values at these positions.
pub(super) fn row_hash(row: &[Value], places: &[usize]) -> RowHash {
    let mut hash = Sha256::new();
    for place in places {
        add(&mut hash, row.get(*place).unwrap_or(&Value::Null));
    }
    let mut first = [0; HASH_BYTES];
    first.iter_mut().zip(hash.finalize()).for_each(|(to, byte)| *to = byte);
    first
}

/// Adds a value's type, its length if that varies, and its bytes, so that different rows have different inputs.
fn add(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update([0]),
        Value::Int(number) => add_fixed(hash, 1, &number.to_le_bytes()),
        Value::Uint(number) => add_fixed(hash, 2, &number.to_le_bytes()),
        Value::Float(number) => add_fixed(hash, 3, &(number + 0.0).to_bits().to_le_bytes()),
        Value::Decimal(number) => add_text(hash, 4, number.to_string().as_bytes()),
        Value::Bool(truth) => add_fixed(hash, 5, &[u8::from(*truth)]),
        Value::Text(text) => add_text(hash, 6, text.as_bytes()),
        Value::Bytes(bytes) => add_text(hash, 7, bytes),
        Value::Date(date) => add_date(hash, 8, date),
        Value::Time(micros) => add_fixed(hash, 9, &micros.to_le_bytes()),
        Value::DateTime(moment) => {
            add_date(hash, 10, &moment.date);
            hash.update(moment.micros.to_le_bytes());
        }
        Value::Timestamp(micros) => add_fixed(hash, 11, &micros.to_le_bytes()),
        Value::Json(text) => add_text(hash, 12, text.as_bytes()),
    }
}

fn add_fixed(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update(bytes);
}

fn add_text(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    add_fixed(hash, kind, &(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn add_date(hash: &mut Sha256, kind: u8, date: &Date) {
    add_fixed(hash, kind, &date.year.to_le_bytes());
    hash.update([date.month, date.day]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(row: &[Value]) -> RowHash {
        row_hash(row, &(0..row.len()).collect::<Vec<_>>())
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn equal_rows_and_no_others_have_one_hash() {
        let rows = [
            vec![Value::Null, Value::Null],
            vec![Value::Null, text("")],
            vec![text(""), Value::Null],
            vec![text("a"), text("bc")],
            vec![text("ab"), text("c")],
            vec![text("NULL"), Value::Null],
            vec![Value::Int(1), Value::Int(0)],
            vec![Value::Uint(1), Value::Int(0)],
            vec![Value::Bytes(b"a"[..].into()), text("bc")],
            vec![Value::Time(1), Value::Timestamp(1)],
            vec![Value::Timestamp(1), Value::Time(1)],
        ];
        for (place, row) in rows.iter().enumerate() {
            let same: Vec<_> =
                (0..rows.len()).filter(|&other| hash(&rows[other]) == hash(row)).collect();
            assert_eq!(same, [place]);
        }
        assert_eq!(hash(&[Value::Float(-0.0)]), hash(&[Value::Float(0.0)]));
    }

    #[test]
    fn row_hash_uses_only_the_named_columns() {
        let (a, b) = ([text("a"), Value::Int(1)], [text("a"), Value::Int(2)]);
        assert_eq!(row_hash(&a, &[0]), row_hash(&b, &[0]));
        assert_ne!(row_hash(&a, &[0, 1]), row_hash(&b, &[0, 1]));
    }
}
