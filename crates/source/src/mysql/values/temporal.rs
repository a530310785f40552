//! Dates and times in the servers' binary forms.
//!
//! ```text
//! date        := u24 LE: year << 9 | month << 5 | day
//! datetime2   := u40 BE + 2^39: ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6
//!                | second, then a fraction
//! time2       := u24 BE + 2^23: hour << 12 | minute << 6 | second, then a fraction; of a negative
//!                time, integer and fraction as one number are negative
//! timestamp2  := u32 BE: seconds since 1970, then a fraction
//! fraction    := 0, 1, 2 or 3 bytes BE for 0, 1-2, 3-4 or 5-6 digits
//!
//! Before 5.6, and with mysql56_temporal_format=OFF:
//! datetime    := u64 LE: YYYYMMDDhhmmss          time := i24 LE: hhmmss
//! timestamp   := u32 LE
//! MariaDB's with a fraction, in units of its last digit, BE:
//! datetime    := 6, 6, 7, 7, 7, 8 bytes: (((year * 13 + month) * 32 + day) * 86400 + second)
//! time        := 4, 4, 5, 5, 5, 6 bytes: 839 hours are added
//! timestamp   := u32 BE, then a fraction
//! ```

use remora_engine::{Date, DateTime, Value, ZERO_TIMESTAMP_MICROS};

use super::Malformed;
use crate::mysql::bytes::Reader;

const MICROS: i64 = 1_000_000;
/// One second more than the longest time, in seconds.
const TIME_ZERO_SECONDS: i64 = 838 * 3_600 + 59 * 60 + 60;

/// DATE.
pub(crate) fn date(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    let packed = reader.uint(3)?;
    let date = Date {
        year: (packed >> 9) as u16,
        month: (packed >> 5 & 15) as u8,
        day: (packed & 31) as u8,
    };
    date.is_valid().then_some(Value::Date(date)).ok_or(Malformed)
}

/// DATETIME with this many fraction digits.
pub(crate) fn date_time2(reader: &mut Reader<'_>, digits: u16) -> Result<Value, Malformed> {
    let whole = big_endian(reader, 5)?.checked_sub(1 << 39).ok_or(Malformed)?;
    let micros = fraction(reader, digits)?;
    packed_date_time(whole << 24 | micros)
}

/// A date and time in binary JSON: the number above times 2^24, plus the microseconds.
pub(crate) fn packed_date_time(packed: u64) -> Result<Value, Malformed> {
    let (whole, micros) = (packed >> 24, packed & 0xff_ffff);
    let (days, clock) = (whole >> 17, whole & 0x1_ffff);
    let months = days >> 5;
    let date = Date {
        year: u16::try_from(months / 13).map_err(|_| Malformed)?,
        month: (months % 13) as u8,
        day: (days & 31) as u8,
    };
    moment(date, clock >> 12, clock >> 6 & 63, clock & 63, micros)
}

/// TIME with this many fraction digits.
pub(crate) fn time2(reader: &mut Reader<'_>, digits: u16) -> Result<Value, Malformed> {
    let bytes = u32::from(digits.min(6).div_ceil(2));
    let whole = big_endian(reader, 3 + bytes as usize)? as i64 - (1 << (23 + 8 * bytes));
    let unit = 100_i64.pow(3 - bytes);
    let size = whole.abs();
    let (clock, parts) = (size >> (8 * bytes), size & ((1 << (8 * bytes)) - 1));
    span(whole < 0, clock >> 12, clock >> 6 & 63, clock & 63, parts * unit)
}

/// A time in binary JSON: hour << 12 | minute << 6 | second, times 2^24, plus the microseconds.
pub(crate) fn packed_time(packed: i64) -> Result<Value, Malformed> {
    let size = packed.checked_abs().ok_or(Malformed)?;
    let clock = size >> 24;
    span(packed < 0, clock >> 12 & 1_023, clock >> 6 & 63, clock & 63, size & 0xff_ffff)
}

/// TIMESTAMP with this many fraction digits.
pub(crate) fn timestamp2(reader: &mut Reader<'_>, digits: u16) -> Result<Value, Malformed> {
    let seconds = big_endian(reader, 4)?;
    Ok(timestamp(seconds, fraction(reader, digits)?))
}

/// The old DATETIME with this many fraction digits.
pub(crate) fn old_date_time(reader: &mut Reader<'_>, digits: u8) -> Result<Value, Malformed> {
    if digits > 0 {
        let bytes = [6, 6, 7, 7, 7, 8].get(usize::from(digits) - 1).ok_or(Malformed)?;
        let (seconds, micros) = units(big_endian(reader, *bytes)?, digits)?;
        let (days, clock) = (seconds / 86_400, seconds % 86_400);
        let months = days / 32;
        let year = u16::try_from(months / 13).map_err(|_| Malformed)?;
        let date = Date { year, month: (months % 13) as u8, day: (days % 32) as u8 };
        return moment(date, clock / 3_600, clock / 60 % 60, clock % 60, micros);
    }
    let number = reader.u64()?;
    let (days, clock) = (number / 1_000_000, number % 1_000_000);
    let year = u16::try_from(days / 10_000).map_err(|_| Malformed)?;
    let date = Date { year, month: (days / 100 % 100) as u8, day: (days % 100) as u8 };
    moment(date, clock / 10_000, clock / 100 % 100, clock % 100, 0)
}

/// The old TIME with this many fraction digits.
pub(crate) fn old_time(reader: &mut Reader<'_>, digits: u8) -> Result<Value, Malformed> {
    if digits > 0 {
        let bytes = [4, 4, 5, 5, 5, 6].get(usize::from(digits) - 1).ok_or(Malformed)?;
        let unit = 10_i64.pow(6 - u32::from(digits));
        let shifted = big_endian(reader, *bytes)? as i64;
        let micros = shifted.checked_mul(unit).ok_or(Malformed)?;
        return Ok(Value::Time(micros - TIME_ZERO_SECONDS * MICROS));
    }
    let raw = reader.uint(3)? as i64;
    let number = raw << 40 >> 40;
    let size = number.abs();
    span(number < 0, size / 10_000, size / 100 % 100, size % 100, 0)
}

/// The old TIMESTAMP with this many fraction digits.
pub(crate) fn old_timestamp(reader: &mut Reader<'_>, digits: u8) -> Result<Value, Malformed> {
    match digits {
        0 => Ok(timestamp(u64::from(reader.u32()?), 0)),
        1..=6 => {
            let seconds = big_endian(reader, 4)?;
            let parts = big_endian(reader, usize::from(digits.div_ceil(2)))?;
            let unit = 10_u64.pow(6 - u32::from(digits));
            Ok(timestamp(seconds, parts.checked_mul(unit).ok_or(Malformed)?))
        }
        _ => Err(Malformed),
    }
}

/// Second 0 means `0000-00-00 00:00:00`.
fn timestamp(seconds: u64, micros: u64) -> Value {
    if seconds == 0 && micros == 0 {
        return Value::Timestamp(ZERO_TIMESTAMP_MICROS);
    }
    Value::Timestamp(seconds as i64 * MICROS + micros as i64)
}

fn moment(
    date: Date,
    hour: u64,
    minute: u64,
    second: u64,
    micros: u64,
) -> Result<Value, Malformed> {
    let seconds = hour * 3_600 + minute * 60 + second;
    let moment = DateTime { date, micros: seconds * MICROS as u64 + micros };
    let valid = moment.is_valid() && minute < 60 && second < 60 && micros < MICROS as u64;
    valid.then_some(Value::DateTime(moment)).ok_or(Malformed)
}

fn span(
    negative: bool,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
) -> Result<Value, Malformed> {
    let valid = hour < 839 && minute < 60 && second < 60 && micros < MICROS;
    let size = (hour * 3_600 + minute * 60 + second) * MICROS + micros;
    valid.then_some(Value::Time(if negative { -size } else { size })).ok_or(Malformed)
}

/// A fraction in microseconds.
fn fraction(reader: &mut Reader<'_>, digits: u16) -> Result<u64, Malformed> {
    let bytes = usize::from(digits.min(6).div_ceil(2));
    let unit = [1_000_000, 10_000, 100, 1].get(bytes).copied().unwrap_or(1);
    big_endian(reader, bytes)?.checked_mul(unit).ok_or(Malformed)
}

/// Seconds and microseconds of a number of units.
fn units(number: u64, digits: u8) -> Result<(u64, u64), Malformed> {
    let per_second = 10_u64.pow(u32::from(digits));
    let unit = 1_000_000_u64.checked_div(per_second).filter(|&unit| unit > 0).ok_or(Malformed)?;
    Ok((number / per_second, number % per_second * unit))
}

/// Up to eight bytes, big-endian.
pub(crate) fn big_endian(reader: &mut Reader<'_>, length: usize) -> Result<u64, Malformed> {
    let bytes = reader.bytes(length)?;
    Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: Result<Value, Malformed>) -> String {
        value.map_or("refused".to_owned(), |value| value.to_string())
    }

    #[test]
    fn new_formats_hold_fractions_and_signs() {
        let mut reader = Reader::new(b"\x99\x12\xad\x11\x12\x30\x39");
        let _ = printed(date_time2(&mut reader, 4));
        let time = |bytes: &[u8], digits| printed(time2(&mut Reader::new(bytes), digits));
        assert_eq!(time(b"\x80\x00\x00", 0), "00:00:00");
        assert_eq!(time(b"\x7f\xff\xff\xff", 2), "-00:00:00.010000");
        assert_eq!(time(b"\x7f\xff\xff\xff\xff", 4), "-00:00:00.000100");
        assert_eq!(time(b"\x7f\xff\xff\xff\xff\xff", 6), "-00:00:00.000001");
        assert_eq!(time(b"\xb4\x6e\xfb", 0), "838:59:59");
        assert_eq!(time(b"\x4b\x91\x05\x00\x00\x00", 6), "-838:59:59");
        assert_eq!(printed(timestamp2(&mut Reader::new(&[0; 4]), 0)), "0000-00-00 00:00:00");
        assert_eq!(
            printed(timestamp2(&mut Reader::new(b"\x65\xba\x38\x40\x0a"), 1)),
            "2024-01-31 12:08:32.100000"
        );
        assert_eq!(
            printed(date_time2(&mut Reader::new(b"\x80\0\0\0\0"), 0)),
            "0000-00-00 00:00:00"
        );
        assert_eq!(printed(date(&mut Reader::new(b"\x9f\xcf\x0f"))), "2023-12-31");
    }

    #[test]
    fn old_formats_are_decimal() {
        let moment = 20_240_131_235_958_u64.to_le_bytes();
        assert_eq!(printed(old_date_time(&mut Reader::new(&moment), 0)), "2024-01-31 23:59:58");
        let time = (-123_456_i32).to_le_bytes();
        assert_eq!(printed(old_time(&mut Reader::new(&time), 0)), "-12:34:56");
        let stamp = 1_706_702_400_u32.to_le_bytes();
        assert_eq!(printed(old_timestamp(&mut Reader::new(&stamp), 0)), "2024-01-31 12:00:00");
    }

    #[test]
    fn any_bytes_are_a_moment_or_refused() {
        for byte in 0..=255 {
            for digits in 0..=7 {
                let bytes = [byte; 16];
                let _ = date_time2(&mut Reader::new(&bytes), digits);
                let _ = time2(&mut Reader::new(&bytes), digits);
                let _ = timestamp2(&mut Reader::new(&bytes), digits);
                let _ = old_date_time(&mut Reader::new(&bytes), digits as u8);
                let _ = old_time(&mut Reader::new(&bytes), digits as u8);
                let _ = old_timestamp(&mut Reader::new(&bytes), digits as u8);
                let _ = date(&mut Reader::new(&bytes));
                let _ = packed_time(i64::from_le_bytes([byte; 8]));
                let _ = packed_date_time(u64::from_le_bytes([byte; 8]));
            }
        }
    }
}
