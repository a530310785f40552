//! FORMAT_BYTES and FORMAT_PICO_TIME: numbers with readable units.

use super::super::{
    call::{Call, TypeContext},
    function::Definition,
    types::ExprType,
    value::SqlValue,
};
use crate::Result;
use remora_mysql::Collation;

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("format_bytes", 1, 1, bytes_type, format_bytes),
    Definition::new("format_pico_time", 1, 1, time_type, format_pico_time),
];

const KIB: f64 = 1_024.0;
const NANOSECOND: f64 = 1e3;

/// Units of memory, the largest first.
const OF_BYTES: [(f64, &str); 6] = [
    (KIB * KIB * KIB * KIB * KIB * KIB, "EiB"),
    (KIB * KIB * KIB * KIB * KIB, "PiB"),
    (KIB * KIB * KIB * KIB, "TiB"),
    (KIB * KIB * KIB, "GiB"),
    (KIB * KIB, "MiB"),
    (KIB, "KiB"),
];

/// Units of time, in picoseconds.
const OF_TIME: [(f64, &str); 7] = [
    (86_400e12, "d"),
    (3_600e12, "h"),
    (60e12, "min"),
    (1e12, "s"),
    (1e9, "ms"),
    (1e6, "us"),
    (NANOSECOND, "ns"),
];

fn bytes_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(system_text(17))
}

fn time_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(system_text(17))
}

fn system_text(characters: u32) -> ExprType {
    ExprType::text(characters, Collation::UTF8MB4_0900_AI_CI)
}

/// `places` is the minimum width of a number in the smallest unit, which has no fraction.
fn in_units(number: f64, units: &[(f64, &str)], smallest: &str, places: usize) -> String {
    let found = units.iter().find(|(size, _)| number.abs() >= *size);
    let Some((size, unit)) = found else {
        let whole = number.trunc() as i64;
        return format!("{whole:>places$} {smallest}");
    };
    let shown = number / size;
    // Numbers too large for the largest unit get an exponent.
    if shown.abs() < 100_000.0 {
        return format!("{shown:.2} {unit}");
    }
    let scientific = format!("{shown:.2e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e+{exponent:02} {unit}")
}

fn format_bytes<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(formatted(call, args, |number| in_units(number, &OF_BYTES, "bytes", 4)))
}

fn format_pico_time<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(formatted(call, args, |number| in_units(number, &OF_TIME, "ps", 3)))
}

fn formatted<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    show: impl Fn(f64) -> String,
) -> SqlValue<'a> {
    match args.first() {
        None | Some(SqlValue::Null) => SqlValue::Null,
        Some(value) => SqlValue::text(show(value.double(call))),
    }
}
