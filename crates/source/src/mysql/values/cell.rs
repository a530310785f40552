//! One column of a row image: its length in bytes and its value.

use std::{borrow::Cow, sync::Arc};

use remora_engine::Value;
use remora_mysql::Charset;

use super::{
    Malformed, address,
    compressed::decompress,
    decimal,
    json::{json_is_no_text, json_text},
    temporal,
};
use crate::mysql::bytes::Reader;

/// The length of a column in a row image, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellLength {
    /// Fixed.
    Fixed(usize),
    /// Given by a length prefix of this many bytes.
    Prefixed(usize),
}

impl CellLength {
    /// Reads the column's bytes, without the length prefix.
    pub(crate) fn take<'b>(self, reader: &mut Reader<'b>) -> Result<&'b [u8], Malformed> {
        let length = match self {
            Self::Fixed(length) => length,
            Self::Prefixed(bytes) => usize::try_from(reader.uint(bytes)?).map_err(|_| Malformed)?,
        };
        Ok(reader.bytes(length)?)
    }
}

/// The decoder of a column in row images.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// A signed integer of this many bytes.
    Int(usize),
    /// An unsigned integer of this many bytes.
    Uint(usize),
    Float,
    Double,
    /// Precision and scale.
    Decimal(u8, u8),
    /// A big-endian number of this many bytes.
    Bit(usize),
    Year,
    ShortYear,
    Date,
    /// With this many fraction digits, like the following five.
    Time(u16),
    DateTime(u16),
    Timestamp(u16),
    OldTime(u8),
    OldDateTime(u8),
    OldTimestamp(u8),
    Text(CellLength, Charset),
    /// Text whose trailing spaces are ignored.
    Padded(CellLength, Charset),
    Bytes(CellLength),
    /// Bytes that are padded with zeros to this length.
    Filled(CellLength, usize),
    CompressedText(CellLength, Charset),
    CompressedBytes(CellLength),
    /// The number of a label, from 1, in this many bytes.
    Enum(usize, Arc<[Arc<str>]>),
    /// A bit for each label, in this many bytes.
    Set(usize, Arc<[Arc<str>]>),
    Json(CellLength),
    Uuid(CellLength),
    Inet4(CellLength),
    Inet6(CellLength),
}

impl Cell {
    /// Whether the column is text and these bytes are invalid in its character set.
    pub(crate) fn is_no_text(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Text(_, charset) | Self::Padded(_, charset) => text(bytes, charset).is_err(),
            Self::CompressedText(_, charset) => {
                decompress(bytes).is_ok_and(|bytes| text(&bytes, charset).is_err())
            }
            Self::Json(_) => json_is_no_text(bytes),
            _ => false,
        }
    }

    /// Reads the next value of the row image.
    pub(crate) fn read(&self, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
        Ok(match self {
            Self::Int(bytes) => {
                let spare = 64_usize.saturating_sub(8 * bytes).min(63);
                Value::Int((reader.uint(*bytes)? as i64) << spare >> spare)
            }
            Self::Uint(bytes) => Value::Uint(reader.uint(*bytes)?),
            Self::Text(length, charset) => {
                Value::Text(text(length.take(reader)?, charset)?.as_ref().into())
            }
            Self::Padded(length, charset) => {
                Value::Text(text(length.take(reader)?, charset)?.trim_end_matches(' ').into())
            }
            Self::Bytes(length) => Value::Bytes(length.take(reader)?.into()),
            Self::Filled(length, whole) => filled(length.take(reader)?, *whole),
            Self::Float => float(f64::from(f32::from_le_bytes(reader.array()?)))?,
            Self::Double => float(f64::from_le_bytes(reader.array()?))?,
            Self::Decimal(precision, scale) => {
                Value::Decimal(decimal::decimal(reader, *precision, *scale)?)
            }
            Self::Bit(bytes) => Value::Uint(temporal::big_endian(reader, *bytes)?),
            Self::Year => year(reader.u8()?),
            // Years are counted from 1900, and 0 means year 0: both show the same two digits.
            Self::ShortYear => Value::Uint(u64::from(reader.u8()? % 100)),
            Self::Date => temporal::date(reader)?,
            Self::Time(digits) => temporal::time2(reader, *digits)?,
            Self::DateTime(digits) => temporal::date_time2(reader, *digits)?,
            Self::Timestamp(digits) => temporal::timestamp2(reader, *digits)?,
            Self::OldTime(digits) => temporal::old_time(reader, *digits)?,
            Self::OldDateTime(digits) => temporal::old_date_time(reader, *digits)?,
            Self::OldTimestamp(digits) => temporal::old_timestamp(reader, *digits)?,
            Self::CompressedText(length, charset) => {
                let bytes = decompress(length.take(reader)?)?;
                Value::Text(text(&bytes, charset)?.as_ref().into())
            }
            Self::CompressedBytes(length) => {
                Value::Bytes(decompress(length.take(reader)?)?.as_ref().into())
            }
            Self::Enum(bytes, labels) => label(reader.uint(*bytes)?, labels)?,
            Self::Set(bytes, labels) => members(reader.uint(*bytes)?, labels)?,
            Self::Json(length) => Value::Json(json_text(length.take(reader)?)?),
            Self::Uuid(length) => Value::Text(address::uuid(length.take(reader)?)?),
            Self::Inet4(length) => Value::Text(address::inet4(length.take(reader)?)?),
            Self::Inet6(length) => Value::Text(address::inet6(length.take(reader)?)?),
        })
    }
}

/// An error for text that is not valid Unicode, because different invalid texts would become equal.
fn text<'b>(bytes: &'b [u8], charset: &Charset) -> Result<Cow<'b, str>, Malformed> {
    charset.decode_exact(bytes).ok_or(Malformed)
}

fn filled(bytes: &[u8], whole: usize) -> Value {
    if bytes.len() >= whole {
        return Value::Bytes(bytes.into());
    }
    let mut filled = bytes.to_vec();
    filled.resize(whole, 0);
    Value::Bytes(filled.into())
}

/// Servers store neither infinity nor NaN. Minus zero becomes zero.
fn float(number: f64) -> Result<Value, Malformed> {
    number.is_finite().then_some(Value::Float(number + 0.0)).ok_or(Malformed)
}

fn year(byte: u8) -> Value {
    Value::Uint(if byte == 0 { 0 } else { 1_900 + u64::from(byte) })
}

/// Number 0 means an invalid label, which a SELECT returns as an empty text.
fn label(number: u64, labels: &[Arc<str>]) -> Result<Value, Malformed> {
    let Some(index) = number.checked_sub(1) else { return Ok(Value::Text("".into())) };
    let label = usize::try_from(index).ok().and_then(|index| labels.get(index));
    Ok(Value::Text(Arc::clone(label.ok_or(Malformed)?)))
}

fn members(bits: u64, labels: &[Arc<str>]) -> Result<Value, Malformed> {
    if bits.checked_shr(labels.len() as u32).unwrap_or(0) != 0 {
        return Err(Malformed);
    }
    let chosen = labels.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
    let mut text = String::new();
    for (_, label) in chosen {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(label);
    }
    Ok(Value::Text(text.into()))
}
