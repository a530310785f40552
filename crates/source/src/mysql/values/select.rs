//! Values from SELECT results.

use mysql::Value as Sent;
use remora_engine::{Date, DateTime, Decimal, Value};

use crate::{
    Error, Result,
    mysql::schema::{SourceColumn, SourceType},
};

const MICROS: i64 = 1_000_000;

/// Converts a value of a column listed by [`crate::mysql::schema::SourceTable::select_list`], from the text or the
/// binary protocol. The result is the same as from a row image. The session's time zone must be `+00:00` and its
/// character set utf8mb4.
///
/// # Errors
/// [`Error::Statement`] if it is not a value of the column.
pub fn from_select(column: &SourceColumn, value: mysql::Value) -> Result<Value> {
    if value == Sent::NULL {
        return Ok(Value::Null);
    }
    let read = match &column.kind {
        SourceType::Int { unsigned: false, .. } => signed(&value).map(Value::Int),
        SourceType::Int { .. } | SourceType::Year | SourceType::ShortYear => {
            unsigned(&value).map(Value::Uint)
        }
        SourceType::Float => float(&value).map(|number| f64::from(number as f32)).map(Value::Float),
        SourceType::Double => float(&value).map(Value::Float),
        SourceType::Decimal { precision, scale } => decimal(&value, *precision, *scale),
        SourceType::Bit(_) => bits(&value).map(Value::Uint),
        SourceType::Date => moment(&value).map(|moment| Value::Date(moment.date)),
        SourceType::DateTime(_) => moment(&value).map(Value::DateTime),
        SourceType::Timestamp(_) => {
            moment(&value).and_then(|moment| moment.to_timestamp()).map(Value::Timestamp)
        }
        SourceType::Time(_) => span(&value).map(Value::Time),
        SourceType::Char(_) => {
            bytes(value).and_then(text).map(|text| Value::Text(text.trim_end_matches(' ').into()))
        }
        SourceType::VarChar(_)
        | SourceType::Text(_)
        | SourceType::Enum(_)
        | SourceType::Set(_)
        | SourceType::Uuid
        | SourceType::Inet6
        | SourceType::Inet4 => bytes(value).and_then(text).map(|text| Value::Text(text.into())),
        SourceType::Json => bytes(value).and_then(text).map(|text| Value::Json(text.into())),
        SourceType::Binary(_)
        | SourceType::VarBinary(_)
        | SourceType::Blob(_)
        | SourceType::Geometry
        | SourceType::Vector(_) => bytes(value).map(|bytes| Value::Bytes(bytes.into())),
    };
    read.ok_or_else(|| Error::Statement {
        statement: format!("SELECT {}", column.name),
        message: format!("its answer is no value of column {:?}", column.name),
    })
}

/// Servers send invalid Unicode as it is stored.
fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok()
}

fn bytes(value: Sent) -> Option<Vec<u8>> {
    match value {
        Sent::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn digits(value: &Sent) -> Option<&str> {
    match value {
        Sent::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn signed(value: &Sent) -> Option<i64> {
    match value {
        Sent::Int(number) => Some(*number),
        Sent::UInt(number) => i64::try_from(*number).ok(),
        other => digits(other)?.parse().ok(),
    }
}

fn unsigned(value: &Sent) -> Option<u64> {
    match value {
        Sent::Int(number) => u64::try_from(*number).ok(),
        Sent::UInt(number) => Some(*number),
        other => digits(other)?.parse().ok(),
    }
}

/// Minus zero becomes zero.
fn float(value: &Sent) -> Option<f64> {
    let number = match value {
        Sent::Float(number) => f64::from(*number),
        Sent::Double(number) => *number,
        other => digits(other)?.parse().ok()?,
    };
    number.is_finite().then_some(number + 0.0)
}

/// ZEROFILL columns have leading zeros.
fn decimal(value: &Sent, precision: u8, scale: u8) -> Option<Value> {
    Decimal::parse(digits(value)?, precision, scale).map(Value::Decimal)
}

fn bits(value: &Sent) -> Option<u64> {
    match value {
        Sent::Bytes(bytes) if bytes.len() <= 8 => {
            Some(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
        }
        other => unsigned(other),
    }
}

fn moment(value: &Sent) -> Option<DateTime> {
    let moment = match value {
        Sent::Date(year, month, day, hour, minute, second, micros) => {
            let clock = i64::from(*hour) * 3_600 + i64::from(*minute) * 60 + i64::from(*second);
            let micros = (clock * MICROS) as u64 + u64::from(*micros);
            DateTime { date: Date { year: *year, month: *month, day: *day }, micros }
        }
        other => {
            let text = digits(other)?;
            let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
            let mut parts = date.splitn(3, '-');
            let date = Date {
                year: parts.next()?.parse().ok()?,
                month: parts.next()?.parse().ok()?,
                day: parts.next()?.parse().ok()?,
            };
            DateTime { date, micros: u64::try_from(clock(time)?).ok()? }
        }
    };
    moment.is_valid().then_some(moment)
}

fn span(value: &Sent) -> Option<i64> {
    match value {
        Sent::Time(negative, days, hours, minutes, seconds, micros) => {
            let hours = i64::from(*days) * 24 + i64::from(*hours);
            let seconds = hours * 3_600 + i64::from(*minutes) * 60 + i64::from(*seconds);
            let size = seconds * MICROS + i64::from(*micros);
            Some(if *negative { -size } else { size })
        }
        other => {
            let text = digits(other)?;
            match text.strip_prefix('-') {
                Some(size) => clock(size).map(|micros| -micros),
                None => clock(text),
            }
        }
    }
}

/// `h:mm:ss[.fraction]` in microseconds.
fn clock(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.splitn(3, ':');
    let mut next = || parts.next()?.parse::<i64>().ok().filter(|part| (0..=9_999).contains(part));
    let seconds = next()? * 3_600 + next()? * 60 + next()?;
    let mut micros: i64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    micros *= 10_i64.checked_pow(6_u32.checked_sub(fraction.len() as u32)?)?;
    Some(seconds * MICROS + micros)
}
