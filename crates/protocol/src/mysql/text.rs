//! Values as text in MySQL's spelling: rows of the text protocol, and texts in binary rows.

use std::io::Write;

use remora_engine::{Date, DateTime};
use remora_mysql::Charset;
use remora_sql::{Cell, Column, SqlType};

use super::encode::{put_bytes, put_short};

/// The byte for NULL in a text row.
const NULL: u8 = 0xFB;
/// The most places of the point from the first digit; beyond that a number is shown with an
/// exponent.
const MAX_FIXED_POINT: i32 = 15;
/// The number of digits of a FLOAT.
const FLOAT_DIGITS: usize = 6;
/// The most decimals that MySQL permits for a float.
const MAX_DECIMALS: u8 = 30;
/// The greatest width of ZEROFILL.
const MAX_PLACES: u32 = 255;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// How a column's values are written.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The type in the column's definition.
    pub kind: SqlType,
    /// The width up to which numbers get leading zeros; 0 means none.
    pub filled: u32,
    /// The fixed number of decimals of a float, if it has one.
    pub decimals: Option<u8>,
}

impl From<&Column> for Shape {
    fn from(column: &Column) -> Self {
        let filled = if column.zerofill { column.length } else { 0 };
        Self { kind: column.kind, filled, decimals: column.decimals }
    }
}

impl From<SqlType> for Shape {
    fn from(kind: SqlType) -> Self {
        Self { kind, filled: 0, decimals: None }
    }
}

/// Writes a value of a text row, converted if a character set is given.
pub fn put_text(
    out: &mut Vec<u8>,
    cell: &Cell<'_>,
    shape: impl Into<Shape>,
    charset: Option<Charset>,
) {
    let shape = shape.into();
    let kind = shape.kind;
    match *cell {
        Cell::Int(_) | Cell::Uint(_) | Cell::Float(_) | Cell::Double(_) | Cell::Decimal(_)
            if shape.filled > 0 || shape.decimals.is_some() =>
        {
            put_formatted(out, cell, shape);
        }
        Cell::Null => out.push(NULL),
        Cell::Text(text) => match charset {
            None => put_bytes(out, text.as_bytes()),
            Some(charset) => put_encoded(out, text, charset),
        },
        Cell::Bytes(bytes) => put_bytes(out, bytes),
        Cell::Decimal(decimal) => put_bytes(out, decimal.as_str().as_bytes()),
        _ => put_short(out, |out| put_short_value(out, cell, kind)),
    }
}

/// Writes a number of a column with leading zeros or a fixed number of decimals.
#[cold]
fn put_formatted(out: &mut Vec<u8>, cell: &Cell<'_>, shape: Shape) {
    let mut text = Vec::new();
    let fixed = match (shape.decimals, cell) {
        (Some(decimals), Cell::Float(number)) => Some((f64::from(*number), decimals)),
        (Some(decimals), Cell::Double(number)) => Some((*number, decimals)),
        _ => None,
    };
    match (fixed, cell) {
        // Writing to a Vec cannot fail.
        (Some((number, decimals)), _) => {
            let decimals = usize::from(decimals.min(MAX_DECIMALS));
            let _ = write!(text, "{number:.decimals$}");
        }
        (None, Cell::Decimal(decimal)) => text.extend_from_slice(decimal.as_str().as_bytes()),
        (None, _) => put_short_value(&mut text, cell, shape.kind),
    }
    let places = usize::try_from(shape.filled.min(MAX_PLACES)).unwrap_or(0);
    let mut filled = vec![b'0'; places.saturating_sub(text.len())];
    filled.append(&mut text);
    put_bytes(out, &filled);
}

fn put_encoded(out: &mut Vec<u8>, text: &str, charset: Charset) {
    let mut encoded = Vec::with_capacity(text.len());
    charset.encode(text, &mut encoded);
    put_bytes(out, &encoded);
}

/// Appends a value with a short text, without its length.
fn put_short_value(out: &mut Vec<u8>, cell: &Cell<'_>, kind: SqlType) {
    match *cell {
        Cell::Int(year) if kind == SqlType::Year => put_padded(out, year.unsigned_abs(), 4),
        Cell::Int(number) => {
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        Cell::Uint(year) if kind == SqlType::Year => put_padded(out, year, 4),
        Cell::Uint(number) => {
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        Cell::Float(number) => put_float(out, number),
        Cell::Double(number) => put_double(out, number),
        Cell::Date(date) => put_date(out, date),
        Cell::DateTime(moment) => put_date_time(out, moment, fraction_digits(kind)),
        Cell::Time(micros) => put_time(out, micros, fraction_digits(kind)),
        Cell::Null | Cell::Text(_) | Cell::Bytes(_) | Cell::Decimal(_) => {}
    }
}

/// The number of fraction digits that a temporal type shows.
fn fraction_digits(kind: SqlType) -> u8 {
    match kind {
        SqlType::Time(digits) | SqlType::DateTime(digits) | SqlType::Timestamp(digits) => digits,
        _ => 0,
    }
}

/// Appends a DOUBLE with the fewest digits that read back as the same number.
pub fn put_double(out: &mut Vec<u8>, number: f64) {
    let mut buffer = [0; 32];
    let mut rest = &mut buffer[..];
    let _ = write!(rest, "{number:e}");
    let unused = rest.len();
    put_scientific(out, buffer.get(..buffer.len() - unused).unwrap_or_default());
}

/// Appends a FLOAT with six digits.
pub fn put_float(out: &mut Vec<u8>, number: f32) {
    let mut buffer = [0; 32];
    let mut rest = &mut buffer[..];
    let _ = write!(rest, "{:.*e}", FLOAT_DIGITS - 1, f64::from(number));
    let unused = rest.len();
    put_scientific(out, buffer.get(..buffer.len() - unused).unwrap_or_default());
}

/// Converts `-1.25e-3` to MySQL's spelling.
fn put_scientific(out: &mut Vec<u8>, text: &[u8]) {
    let mut parts = text.splitn(2, |byte| *byte == b'e');
    let mantissa = parts.next().unwrap_or_default();
    let exponent = parts.next().and_then(|exponent| std::str::from_utf8(exponent).ok());
    let Some(exponent) = exponent.and_then(|exponent| exponent.parse::<i32>().ok()) else {
        // MySQL has neither infinity nor NaN.
        out.push(b'0');
        return;
    };
    let unsigned = mantissa.strip_prefix(b"-").unwrap_or(mantissa);
    if unsigned.len() < mantissa.len() {
        out.push(b'-');
    }
    let mut digits = [0; 24];
    let mut count = 0;
    for (place, digit) in digits.iter_mut().zip(unsigned.iter().filter(|byte| **byte != b'.')) {
        *place = *digit;
        count += 1;
    }
    let digits = digits.get(..count).unwrap_or_default();
    let last = digits.iter().rposition(|digit| *digit != b'0').unwrap_or(0);
    let digits = digits.get(..=last).unwrap_or_default();
    put_digits(out, digits, exponent + 1);
}

/// Appends the number `0.digits` times ten to the power of `point`.
fn put_digits(out: &mut Vec<u8>, digits: &[u8], point: i32) {
    if !(1 - MAX_FIXED_POINT..=MAX_FIXED_POINT).contains(&point) {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, &[]));
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        out.push(b'e');
        out.extend_from_slice(itoa::Buffer::new().format(point - 1).as_bytes());
        return;
    }
    let zeros = |out: &mut Vec<u8>, count: i32| {
        out.resize(out.len() + usize::try_from(count).unwrap_or(0), b'0');
    };
    match usize::try_from(point) {
        Ok(before) if before > 0 => {
            let (whole, fraction) = digits.split_at_checked(before).unwrap_or((digits, &[]));
            out.extend_from_slice(whole);
            zeros(out, point - digits.len() as i32);
            if !fraction.is_empty() {
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
        }
        _ if digits == b"0" => out.push(b'0'),
        _ => {
            out.extend_from_slice(b"0.");
            zeros(out, -point);
            out.extend_from_slice(digits);
        }
    }
}

/// Appends a number with at least this many digits.
fn put_padded(out: &mut Vec<u8>, number: u64, digits: usize) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number);
    out.resize(out.len() + digits.saturating_sub(text.len()), b'0');
    out.extend_from_slice(text.as_bytes());
}

fn put_date(out: &mut Vec<u8>, date: Date) {
    put_padded(out, date.year.into(), 4);
    out.push(b'-');
    put_padded(out, date.month.into(), 2);
    out.push(b'-');
    put_padded(out, date.day.into(), 2);
}

fn put_date_time(out: &mut Vec<u8>, moment: DateTime, digits: u8) {
    put_date(out, moment.date);
    out.push(b' ');
    put_clock(out, moment.micros, digits);
}

fn put_time(out: &mut Vec<u8>, micros: i64, digits: u8) {
    if micros < 0 {
        out.push(b'-');
    }
    put_clock(out, micros.unsigned_abs(), digits);
}

/// Appends `HH:MM:SS` and a fraction of this many digits.
fn put_clock(out: &mut Vec<u8>, micros: u64, digits: u8) {
    let seconds = micros / MICROS_PER_SECOND;
    put_padded(out, seconds / 3600, 2);
    out.push(b':');
    put_padded(out, seconds / 60 % 60, 2);
    out.push(b':');
    put_padded(out, seconds % 60, 2);
    let digits = usize::from(digits.min(6));
    if digits > 0 {
        out.push(b'.');
        let start = out.len();
        put_padded(out, micros % MICROS_PER_SECOND, 6);
        out.truncate(start + digits);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use remora_engine::Decimal;

    use super::*;

    fn text_of(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut bytes = Vec::new();
        put(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    fn cell(cell: Cell<'_>, kind: SqlType) -> String {
        let mut bytes = Vec::new();
        put_text(&mut bytes, &cell, kind, None);
        assert_eq!(usize::from(bytes[0]), bytes.len() - 1);
        String::from_utf8(bytes[1..].to_vec()).unwrap()
    }

    /// The texts are from MySQL 9.7.
    #[test]
    fn doubles_are_spelled_as_mysql_spells_them() {
        for (number, text) in [
            (1e15, "1e15"),
            (1e14, "100000000000000"),
            (1e-15, "0.000000000000001"),
            (1e-14, "0.00000000000001"),
            (1e-16, "1e-16"),
            (1e16, "1e16"),
            (1.5e-16, "1.5e-16"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e17"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-0.0, "-0"),
            (0.0, "0"),
            (1.0, "1"),
            (-12.5, "-12.5"),
            (100.25, "100.25"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(text_of(|out| put_double(out, number)), text);
        }
    }

    #[test]
    fn floats_have_six_digits() {
        for (number, text) in [
            (2.718_281_7, "2.71828"),
            (16_777_216.0, "16777200"),
            (1e-7, "0.0000001"),
            (1.5e20, "1.5e20"),
            (123_456.7, "123457"),
            (0.5, "0.5"),
            (0.0, "0"),
        ] {
            assert_eq!(text_of(|out| put_float(out, number)), text);
        }
    }

    /// The texts are from MySQL 9.7.
    #[test]
    fn numbers_are_written_as_their_columns_are_declared() {
        let shown = |number: Cell<'_>, kind, filled, decimals| {
            let mut bytes = Vec::new();
            put_text(&mut bytes, &number, Shape { kind, filled, decimals }, None);
            String::from_utf8(bytes.split_off(1)).unwrap()
        };
        assert_eq!(shown(Cell::Uint(42), SqlType::Int, 5, None), "00042");
        assert_eq!(shown(Cell::Uint(1_234_567), SqlType::Int, 5, None), "1234567");
        assert_eq!(shown(Cell::Float(-12.3457), SqlType::Float, 0, Some(4)), "-12.3457");
        assert_eq!(shown(Cell::Float(1.5), SqlType::Float, 7, Some(4)), "01.5000");
        assert_eq!(shown(Cell::Float(12_345_678.0), SqlType::Float, 12, None), "000012345700");
        assert_eq!(shown(Cell::Double(1e20), SqlType::Double, 22, None), "0000000000000000001e20");
        assert_eq!(shown(Cell::Double(2.5), SqlType::Double, 0, Some(2)), "2.50");
        let decimal = Decimal::parse("12.5", 6, 2).unwrap();
        assert_eq!(shown(Cell::Decimal(&decimal), SqlType::Decimal(6, 2), 7, None), "0012.50");
        let mut long = Vec::new();
        put_text(
            &mut long,
            &Cell::Double(1e224),
            Shape { kind: SqlType::Double, filled: 255, decimals: Some(30) },
            None,
        );
        assert_eq!((long.len(), long[0]), (258, 0xFC));
    }

    #[test]
    fn dates_and_times() {
        let date = Date { year: 2024, month: 2, day: 9 };
        assert_eq!(cell(Cell::Date(date), SqlType::Date), "2024-02-09");
        let zero = Date { year: 0, month: 0, day: 0 };
        assert_eq!(cell(Cell::Date(zero), SqlType::Date), "0000-00-00");
        let moment = DateTime { date, micros: 86_399_000_450 };
        assert_eq!(cell(Cell::DateTime(moment), SqlType::DateTime(0)), "2024-02-09 23:59:59");
        assert_eq!(
            cell(Cell::DateTime(moment), SqlType::Timestamp(6)),
            "2024-02-09 23:59:59.000450"
        );
        assert_eq!(cell(Cell::Time(-3_020_399_000_000), SqlType::Time(0)), "-838:59:59");
        assert_eq!(cell(Cell::Time(1_500_000), SqlType::Time(1)), "00:00:01.5");
    }

    #[test]
    fn integers_years_decimals_and_blobs_are_printed() {
        assert_eq!(cell(Cell::Int(i64::MIN), SqlType::BigInt), "-9223372036854775808");
        assert_eq!(cell(Cell::Uint(u64::MAX), SqlType::BigInt), "18446744073709551615");
        assert_eq!(cell(Cell::Int(0), SqlType::Year), "0000");
        assert_eq!(cell(Cell::Uint(1999), SqlType::Year), "1999");
        let decimal = Decimal::parse("-12.50", 5, 2).unwrap();
        assert_eq!(cell(Cell::Decimal(&decimal), SqlType::Decimal(5, 2)), decimal.as_str());
        let mut bytes = Vec::new();
        put_text(&mut bytes, &Cell::Null, SqlType::Int, None);
        put_text(&mut bytes, &Cell::Bytes(&[7; 300]), SqlType::Blob, None);
        assert_eq!((bytes[0], &bytes[1..4], bytes.len()), (NULL, &[0xFC, 44, 1][..], 304));
    }

    proptest! {
        #[test]
        fn doubles_read_back(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let text = text_of(|out| put_double(out, number));
            prop_assert_eq!(text.parse::<f64>().unwrap(), number);
        }

        #[test]
        fn moderate_doubles_read_back(number in -1e17_f64..1e17, shift in -20_i32..20) {
            let number = number * 10_f64.powi(shift);
            let text = text_of(|out| put_double(out, number));
            prop_assert_eq!(text.parse::<f64>().unwrap(), number);
        }
    }
}
