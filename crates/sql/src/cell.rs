//! One value of a reply's row, borrowed from wherever it lies.

use remora_engine::{Date, DateTime, Decimal};

/// A value on its way to a client. Which variants a column has is its [`crate::SqlType`]'s to say;
/// a wire writes each as text or binary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// A signed integer of any width; also YEAR.
    Int(i64),
    /// An unsigned integer of any width.
    Uint(u64),
    /// FLOAT: written with the digits of 32 bits.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// An exact decimal, at the scale it is shown with.
    Decimal(&'a Decimal),
    /// Text, in UTF-8; also ENUM, SET and JSON.
    Text(&'a str),
    /// Bytes; also BIT (big-endian) and GEOMETRY.
    Bytes(&'a [u8]),
    /// A date.
    Date(Date),
    /// A span of time in microseconds, shown with the column's digits of fraction.
    Time(i64),
    /// A date and time of day; also TIMESTAMP, already in the session's time zone.
    DateTime(DateTime),
}
