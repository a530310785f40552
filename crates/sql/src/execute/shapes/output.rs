//! Rows of engine values as the cells of a reply.

use jiff::tz::TimeZone;
use remora_engine::{Date, DateTime, Value, ZERO_TIMESTAMP_MICROS};
use remora_mysql::ErrorCode;
use smallvec::SmallVec;

use crate::{Cell, Column, Error, Reply, Result, SqlType, multi};

/// Sends a row.
pub(super) fn send<R: Reply>(
    reply: &mut R,
    columns: &[Column],
    values: &[Value],
    zone: &TimeZone,
) -> Result<()> {
    let mut bits: SmallVec<[[u8; 8]; 2]> = SmallVec::new();
    let mut sets: SmallVec<[String; 2]> = SmallVec::new();
    for (column, value) in columns.iter().zip(values) {
        match (column.kind, value) {
            (SqlType::Bit(_), Value::Uint(number)) => bits.push(number.to_be_bytes()),
            (SqlType::Multi | SqlType::Multi64, Value::Json(held)) => sets.push(multi::shown(held)),
            _ => {}
        }
    }
    let (mut next_bits, mut next_sets) = (bits.iter(), sets.iter());
    let mut cells: SmallVec<[Cell<'_>; 16]> = SmallVec::new();
    for (column, value) in columns.iter().zip(values) {
        cells.push(match (column.kind, value) {
            (SqlType::Bit(width), Value::Uint(_)) => {
                let bytes = next_bits.next().map_or(&[][..], |bytes| &bytes[..]);
                let skipped = bytes.len().saturating_sub(usize::from(width).div_ceil(8));
                Cell::Bytes(bytes.get(skipped..).unwrap_or_default())
            }
            (SqlType::Multi | SqlType::Multi64, Value::Json(_)) => {
                Cell::Text(next_sets.next().map_or("", String::as_str))
            }
            _ => cell(column.kind, value, zone)?,
        });
    }
    reply.row(&cells)
}

fn cell<'v>(kind: SqlType, value: &'v Value, zone: &TimeZone) -> Result<Cell<'v>> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Int(number) => Cell::Int(*number),
        Value::Uint(number) => match (kind, i64::try_from(*number)) {
            (SqlType::Year, Ok(year)) => Cell::Int(year),
            _ => Cell::Uint(*number),
        },
        Value::Float(number) if kind == SqlType::Float => Cell::Float(*number as f32),
        Value::Float(number) => Cell::Double(*number),
        Value::Decimal(number) => Cell::Decimal(number),
        Value::Bool(truth) => Cell::Int((*truth).into()),
        Value::Text(text) | Value::Json(text) => Cell::Text(text),
        Value::Bytes(bytes) => Cell::Bytes(bytes),
        Value::Date(date) => Cell::Date(*date),
        Value::Time(micros) => Cell::Time(*micros),
        Value::DateTime(moment) => Cell::DateTime(*moment),
        Value::Timestamp(micros) => Cell::DateTime(local(*micros, zone)?),
    })
}

/// A moment as local date and time in a zone.
fn local(micros: i64, zone: &TimeZone) -> Result<DateTime> {
    if micros == ZERO_TIMESTAMP_MICROS {
        let date = Date { year: 0, month: 0, day: 0 };
        return Ok(DateTime { date, micros: 0 });
    }
    let moment = jiff::Timestamp::from_microsecond(micros)
        .map_err(|error| Error::new(ErrorCode::Unknown, error.to_string()))?;
    let local = zone.to_datetime(moment);
    let (date, time) = (local.date(), local.time());
    let seconds =
        i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    Ok(DateTime {
        date: Date {
            year: date.year().unsigned_abs(),
            month: date.month().unsigned_abs(),
            day: date.day().unsigned_abs(),
        },
        micros: (seconds * 1_000_000 + i64::from(time.subsec_nanosecond()) / 1_000).unsigned_abs(),
    })
}
