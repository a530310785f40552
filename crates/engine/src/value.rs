//! Values: what a column of a row holds.

use std::sync::Arc;

/// One value. Which variant a column takes is its [`crate::ColumnType`]'s to say.
#[derive(Clone, Debug, PartialEq)]
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
    /// A span of time, in microseconds.
    Time(i64),
    /// A date and time of day without a zone.
    DateTime(DateTime),
    /// A moment, in microseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// A JSON document as its text.
    Json(Arc<str>),
}

/// An exact decimal in canonical text: an optional `-`, integer digits without leading zeros
/// (at least one), and as many fraction digits as its column's scale. `-0` is never held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal(pub(crate) Box<str>);

/// A calendar date as MySQL holds it: parts may be zero (`2024-00-00`, `0000-00-00`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    /// The date.
    pub date: Date,
    /// Microseconds since midnight, below 86,400,000,000.
    pub micros: u64,
}

/// A row: one value for each column of the schema, in its order.
pub type Row = Vec<Value>;
