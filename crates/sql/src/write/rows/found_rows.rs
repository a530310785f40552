//! The rows of a query whose values are stored in columns. A column of BIT, ENUM or SET gives the bytes and texts that
//! clients see; a column of numbers is given its number instead, as in MySQL.

use std::sync::Arc;

use remora_engine::Value;

use crate::{Column, SqlType, catalog::TypeSpec};

/// The rows of a query.
pub(crate) struct FoundRows {
    /// Its columns.
    pub columns: Vec<Column>,
    /// The labels of each column that is an ENUM or SET.
    pub labels: Vec<Option<Arc<[String]>>>,
    /// The values of each row.
    pub rows: Vec<Vec<Value>>,
}

impl FoundRows {
    /// Makes the values of these columns what columns of these types are given.
    pub(crate) fn fit<'k>(&mut self, kinds: impl Iterator<Item = (usize, &'k TypeSpec)>) {
        for (place, kind) in kinds {
            let Some(column) = self.columns.get(place) else { continue };
            let labels = self.labels.get(place).and_then(Option::as_deref).unwrap_or_default();
            let number: &dyn Fn(&Value) -> Option<u64> = match column.kind {
                SqlType::Bit(_) if takes_bits(kind) => &of_bits,
                SqlType::Enum if is_number(kind) => &|value: &Value| of_label(value, labels),
                SqlType::Set if is_number(kind) => &|value: &Value| of_labels(value, labels),
                _ => continue,
            };
            for value in self.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
                if let Some(number) = number(value) {
                    *value = Value::Uint(number);
                }
            }
        }
    }
}

/// Whether a column holds numbers.
fn is_number(kind: &TypeSpec) -> bool {
    let is_fraction = matches!(kind.sql, SqlType::Float | SqlType::Double | SqlType::Decimal(..));
    is_fraction || kind.is_integer() || matches!(kind.sql, SqlType::Year | SqlType::Bit(_))
}

/// Whether a column is given the number of bits, not their bytes.
fn takes_bits(kind: &TypeSpec) -> bool {
    let is_moment = matches!(
        kind.sql,
        SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_) | SqlType::Time(_)
    );
    is_moment || is_number(kind) || kind.has_labels()
}

/// The number of some bits.
fn of_bits(value: &Value) -> Option<u64> {
    let Value::Bytes(bytes) = value else { return None };
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The number of a label; 0 of the empty text, which is none.
fn of_label(value: &Value, labels: &[String]) -> Option<u64> {
    let Value::Text(text) = value else { return None };
    let place = labels.iter().position(|label| **label == **text);
    Some(place.map_or(0, |place| place as u64 + 1))
}

/// The number of a set: a bit for each label.
fn of_labels(value: &Value, labels: &[String]) -> Option<u64> {
    let Value::Text(text) = value else { return None };
    let place = |part: &str| labels.iter().position(|label| label == part);
    let bit = |place: usize| 1_u64.checked_shl(place as u32).unwrap_or(0);
    Some(text.split(',').filter_map(place).fold(0, |bits, place| bits | bit(place)))
}
