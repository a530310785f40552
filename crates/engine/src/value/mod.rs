//! Values: the contents of a row's columns, with their order and their text form.

mod decimal;
mod stored;
mod time;

use std::{cmp::Ordering, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

pub use decimal::Decimal;
pub(crate) use decimal::{MAX_PRECISION, MAX_SCALE};
pub use time::{Date, DateTime, ZERO_TIMESTAMP_MICROS};
pub(crate) use time::{
    TIME_LIMIT_MICROS, TIMESTAMP_RANGE_MICROS, parse_date, parse_date_time, parse_epoch,
    parse_time, parse_timestamp,
};

/// A value. The type of a column determines the variant of its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "stored::StoredValue", try_from = "stored::StoredValue")]
pub enum Value {
    /// No value.
    Null,
    /// Signed integers of any width.
    Int(i64),
    /// Unsigned integers of any width.
    Uint(u64),
    /// FLOAT and DOUBLE. Never NaN.
    Float(f64),
    /// An exact decimal.
    Decimal(Decimal),
    /// True or false.
    Bool(bool),
    /// UTF-8 text.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A calendar date.
    Date(Date),
    /// A duration in microseconds (SQL TIME).
    Time(i64),
    /// A date and time of day without a zone.
    DateTime(DateTime),
    /// An instant, in microseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// A JSON document as its text.
    Json(Arc<str>),
}

/// A row: one value for each column of the schema, in its order.
pub type Row = Vec<Value>;

/// A primary key: one value in almost every table.
pub type KeyValues = smallvec::SmallVec<[Value; 1]>;

impl Value {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The order among values of different types, such as NULL before all others.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) | Self::Uint(_) => 2,
            Self::Decimal(_) => 3,
            Self::Float(_) => 4,
            Self::Date(_) => 5,
            Self::DateTime(_) => 6,
            Self::Timestamp(_) => 7,
            Self::Time(_) => 8,
            Self::Text(_) => 9,
            Self::Bytes(_) => 10,
            Self::Json(_) => 11,
        }
    }
}

/// The order of values within one column: NULL first, numbers and times by size, text and bytes by bytes, -0.0 equal
/// to 0.0. Values of different types have some fixed order.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Int(a), Value::Uint(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Uint(a), Value::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Float(a), Value::Float(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) | (Value::Json(a), Value::Json(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) | (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        _ => a.rank().cmp(&b.rank()),
    }
}

/// The canonical text, which can be parsed again with the column's type: `NULL`, `true`, `-1.50`, the shortest digits
/// that give the same float, ISO dates and times, text as it is, bytes as `0x` and hexadecimal digits, instants in
/// UTC.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("NULL"),
            Self::Int(number) => number.fmt(out),
            Self::Uint(number) => number.fmt(out),
            Self::Float(number) => write_float(*number, out),
            Self::Decimal(number) => number.fmt(out),
            Self::Bool(truth) => truth.fmt(out),
            Self::Text(text) | Self::Json(text) => out.write_str(text),
            Self::Bytes(bytes) => write_hexadecimal(bytes, out),
            Self::Date(date) => date.fmt(out),
            Self::Time(micros) => time::write_span(*micros, out),
            Self::DateTime(moment) => moment.fmt(out),
            Self::Timestamp(micros) => time::write_timestamp(*micros, out),
        }
    }
}

/// Very large and very small numbers in scientific notation, because they would take hundreds of digits.
fn write_float(number: f64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = number.abs();
    if size != 0.0 && !(1e-5..1e17).contains(&size) {
        return write!(out, "{number:e}");
    }
    write!(out, "{}", number + 0.0)
}

fn write_hexadecimal(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    out.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02X}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_canonical_form() {
        let shown = |value: Value| value.to_string();
        assert_eq!(shown(Value::Float(-0.0)), "0");
        assert_eq!(shown(Value::Float(1.5)), "1.5");
        assert_eq!(shown(Value::Float(1e300)), "1e300");
        assert_eq!(shown(Value::Bytes(Arc::from([0, 171]))), "0x00AB");
        assert_eq!(shown(Value::Bool(true)), "true");
        assert_eq!(shown(Value::Null), "NULL");
        assert_eq!(shown(Value::Int(i64::MIN)), "-9223372036854775808");
    }

    #[test]
    fn null_sorts_first_and_zeros_are_equal() {
        assert_eq!(compare(&Value::Null, &Value::Int(i64::MIN)), Ordering::Less);
        assert_eq!(compare(&Value::Float(-0.0), &Value::Float(0.0)), Ordering::Equal);
        assert_eq!(compare(&Value::Int(-1), &Value::Uint(u64::MAX)), Ordering::Less);
        assert_eq!(compare(&Value::Null, &Value::Null), Ordering::Equal);
    }
}
