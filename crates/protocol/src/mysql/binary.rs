//! Rows in the binary protocol, which executed prepared statements return.
//!
//! ```text
//! row = 0x00  null bits: one per column after two unused ones, up to a whole byte  value of each
//!       column that is not NULL
//! ```

use remora_engine::{Date, DateTime};
use remora_mysql::{Charset, ErrorCode};
use remora_sql::{Cell, Error, Result, SqlType};

use super::{
    encode::put_short,
    text::{Shape, put_text},
};

const MICROS_PER_SECOND: u64 = 1_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// Writes a row. `shapes` are the declared forms of the columns. Texts are converted if a character
/// set is given.
pub fn put_row(
    out: &mut Vec<u8>,
    cells: &[Cell<'_>],
    shapes: &[impl Copy + Into<Shape>],
    charset: Option<Charset>,
) -> Result<()> {
    out.push(0);
    let nulls = out.len();
    out.resize(nulls + (cells.len() + 2).div_ceil(8), 0);
    for (at, (cell, shape)) in cells.iter().zip(shapes).enumerate() {
        let shape: Shape = (*shape).into();
        // The column of a bare NULL cannot represent other values.
        if matches!(cell, Cell::Null) || shape.kind == SqlType::Null {
            let bit = at + 2;
            if let Some(byte) = out.get_mut(nulls + bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        } else {
            put_value(out, cell, shape, charset)?;
        }
    }
    Ok(())
}

fn put_value(
    out: &mut Vec<u8>,
    cell: &Cell<'_>,
    shape: Shape,
    charset: Option<Charset>,
) -> Result<()> {
    let kind = shape.kind;
    match kind {
        SqlType::TinyInt => out.push(integer(cell, kind)? as u8),
        SqlType::SmallInt | SqlType::Year => {
            out.extend_from_slice(&(integer(cell, kind)? as u16).to_le_bytes());
        }
        SqlType::MediumInt | SqlType::Int => {
            out.extend_from_slice(&(integer(cell, kind)? as u32).to_le_bytes());
        }
        SqlType::BigInt => out.extend_from_slice(&integer(cell, kind)?.to_le_bytes()),
        SqlType::Float => out.extend_from_slice(&(real(cell, kind)? as f32).to_le_bytes()),
        SqlType::Double => out.extend_from_slice(&real(cell, kind)?.to_le_bytes()),
        SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_) => match *cell {
            Cell::Date(date) => put_moment(out, date, 0),
            Cell::DateTime(DateTime { date, micros }) => put_moment(out, date, micros),
            _ => return Err(mismatch(cell, kind)),
        },
        SqlType::Time(_) => match *cell {
            Cell::Time(micros) => put_time(out, micros),
            _ => return Err(mismatch(cell, kind)),
        },
        _ => put_text(out, cell, shape, charset),
    }
    Ok(())
}

/// The 64 bits of an integer, of which a narrower column takes the low ones.
fn integer(cell: &Cell<'_>, kind: SqlType) -> Result<u64> {
    match *cell {
        Cell::Int(number) => Ok(number as u64),
        Cell::Uint(number) => Ok(number),
        _ => Err(mismatch(cell, kind)),
    }
}

fn real(cell: &Cell<'_>, kind: SqlType) -> Result<f64> {
    match *cell {
        Cell::Float(number) => Ok(f64::from(number)),
        Cell::Double(number) => Ok(number),
        Cell::Int(number) => Ok(number as f64),
        Cell::Uint(number) => Ok(number as f64),
        _ => Err(mismatch(cell, kind)),
    }
}

fn put_moment(out: &mut Vec<u8>, date: Date, micros: u64) {
    put_short(out, |out| {
        let is_zero = date.year == 0 && date.month == 0 && date.day == 0 && micros == 0;
        if is_zero {
            return;
        }
        out.extend_from_slice(&date.year.to_le_bytes());
        out.extend_from_slice(&[date.month, date.day]);
        if micros > 0 {
            put_clock(out, micros);
        }
    });
}

fn put_time(out: &mut Vec<u8>, micros: i64) {
    put_short(out, |out| {
        if micros == 0 {
            return;
        }
        let span = micros.unsigned_abs();
        let day_micros = SECONDS_PER_DAY * MICROS_PER_SECOND;
        out.push(u8::from(micros < 0));
        out.extend_from_slice(&((span / day_micros) as u32).to_le_bytes());
        put_clock(out, span % day_micros);
    });
}

/// Writes hours, minutes and seconds, and the fraction unless it is zero.
fn put_clock(out: &mut Vec<u8>, micros: u64) {
    let seconds = micros / MICROS_PER_SECOND;
    let parts = [seconds / 3600, seconds / 60 % 60, seconds % 60];
    out.extend(parts.map(|part| part as u8));
    let fraction = micros % MICROS_PER_SECOND;
    if fraction > 0 {
        out.extend_from_slice(&(fraction as u32).to_le_bytes());
    }
}

fn mismatch(cell: &Cell<'_>, kind: SqlType) -> Error {
    Error::new(ErrorCode::Unknown, format!("a column told as {kind:?} got the value {cell:?}"))
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use mysql_common::{
        constants::{ColumnFlags, ColumnType},
        io::ParseBuf,
        packets::Column,
        proto::Binary,
        row::RowDeserializer,
        value::{ServerSide, Value},
    };
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], columns: &[(ColumnType, bool)]) -> io::Result<Vec<Value>> {
        let column = |(kind, unsigned): &(ColumnType, bool)| {
            let mut flags = ColumnFlags::empty();
            flags.set(ColumnFlags::UNSIGNED_FLAG, *unsigned);
            Column::new(*kind).with_flags(flags)
        };
        let columns: Arc<[Column]> = columns.iter().map(column).collect();
        let row = ParseBuf(bytes).parse::<RowDeserializer<ServerSide, Binary>>(columns)?;
        Ok(mysql_common::row::Row::from(row).unwrap())
    }

    fn round_trip(cells: &[(Cell<'_>, SqlType, ColumnType, bool)]) -> Vec<Value> {
        let mut bytes = Vec::new();
        let values: Vec<_> = cells.iter().map(|cell| cell.0).collect();
        let kinds: Vec<_> = cells.iter().map(|cell| cell.1).collect();
        put_row(&mut bytes, &values, &kinds, None).unwrap();
        read(&bytes, &cells.iter().map(|cell| (cell.2, cell.3)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn client_reads_values_of_every_type() {
        use ColumnType::*;
        let date = Date { year: 2024, month: 2, day: 29 };
        let moment = DateTime { date, micros: 3_723_000_001 };
        let row = round_trip(&[
            (Cell::Int(-1), SqlType::TinyInt, MYSQL_TYPE_TINY, false),
            (Cell::Uint(65_535), SqlType::SmallInt, MYSQL_TYPE_SHORT, true),
            (Cell::Int(-8_388_608), SqlType::MediumInt, MYSQL_TYPE_INT24, false),
            (Cell::Int(i64::MIN), SqlType::BigInt, MYSQL_TYPE_LONGLONG, false),
            (Cell::Null, SqlType::Int, MYSQL_TYPE_LONG, false),
            (Cell::Float(1.5), SqlType::Float, MYSQL_TYPE_FLOAT, false),
            (Cell::Double(-2.25), SqlType::Double, MYSQL_TYPE_DOUBLE, false),
            (Cell::Text("日本"), SqlType::VarChar, MYSQL_TYPE_VAR_STRING, false),
            (Cell::Date(date), SqlType::Date, MYSQL_TYPE_DATE, false),
            (Cell::DateTime(moment), SqlType::DateTime(6), MYSQL_TYPE_DATETIME, false),
            (Cell::Time(-90_061_000_000), SqlType::Time(0), MYSQL_TYPE_TIME, false),
            (Cell::Time(0), SqlType::Time(0), MYSQL_TYPE_TIME, false),
            (Cell::Text("unused"), SqlType::Null, MYSQL_TYPE_NULL, false),
            (Cell::Uint(7), SqlType::Decimal(3, 0), MYSQL_TYPE_NEWDECIMAL, false),
        ]);
        assert_eq!(
            row,
            [
                Value::Int(-1),
                Value::Int(65_535),
                Value::Int(-8_388_608),
                Value::Int(i64::MIN),
                Value::NULL,
                Value::Float(1.5),
                Value::Double(-2.25),
                Value::Bytes("日本".as_bytes().to_vec()),
                Value::Date(2024, 2, 29, 0, 0, 0, 0),
                Value::Date(2024, 2, 29, 1, 2, 3, 1),
                Value::Time(true, 1, 1, 1, 1, 0),
                Value::Time(false, 0, 0, 0, 0, 0),
                Value::NULL,
                Value::Bytes(b"7".to_vec()),
            ]
        );
    }

    #[test]
    fn value_of_the_wrong_column_type_is_refused() {
        let mut bytes = Vec::new();
        assert!(put_row(&mut bytes, &[Cell::Text("x")], &[SqlType::Int], None).is_err());
    }

    proptest! {
        #[test]
        fn null_bitmap_matches_the_client(nulls in prop::collection::vec(any::<bool>(), 1..40)) {
            let cells: Vec<_> = nulls
                .iter()
                .map(|null| {
                    let cell = if *null { Cell::Null } else { Cell::Int(5) };
                    (cell, SqlType::BigInt, ColumnType::MYSQL_TYPE_LONGLONG, false)
                })
                .collect();
            let row = round_trip(&cells);
            prop_assert_eq!(row.iter().map(|value| *value == Value::NULL).collect::<Vec<_>>(), nulls);
        }
    }
}
