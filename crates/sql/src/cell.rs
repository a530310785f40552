//! A value of a result row, borrowed from where it is stored.

use remora_engine::{Date, DateTime, Decimal};

/// A value on its way to a client. The column's [`crate::SqlType`] decides the variant; each
/// protocol encodes it as text or binary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// A signed integer of any width; also YEAR.
    Int(i64),
    /// An unsigned integer of any width.
    Uint(u64),
    /// FLOAT: printed with the digits of a 32-bit float.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// An exact decimal, printed with its scale.
    Decimal(&'a Decimal),
    /// Text, in UTF-8; also ENUM, SET and JSON.
    Text(&'a str),
    /// Bytes; also BIT (big-endian) and GEOMETRY.
    Bytes(&'a [u8]),
    /// A date.
    Date(Date),
    /// A time in microseconds, printed with the column's fraction digits.
    Time(i64),
    /// A date and time of day; also TIMESTAMP, already in the session's time zone.
    DateTime(DateTime),
}
