//! Values as text, the same in CSV fields and in JSON strings.
//!
//! ```text
//! bool      = "true" | "false" | "1" | "0"             (letters in any case)
//! bytes     = ["0x"] pairs of hexadecimal digits       ("" is no bytes)
//! date      = YYYY-MM-DD                               (month and day may be 00)
//! time      = ["-"] H+ ":" MM ":" SS ["." 1-6 digits]
//! datetime  = date [(" " | "T") HH ":" MM [":" SS ["." 1-6 digits]]]
//! timestamp = date (" " | "T") time of day, then "Z" or an offset; written in UTC with "Z". The zero timestamp of MySQL
//!             is 0000-00-00 00:00:00Z
//! ```

use std::io::Write;

use remora_engine::{ColumnType, Date, DateTime, Decimal, Value, ZERO_TIMESTAMP_MICROS};

const DAY_MICROS: u64 = 86_400_000_000;

/// Parses a value of this type; `None` if the text is not one or the value does not fit.
pub fn parse_literal(kind: ColumnType, text: &str) -> Option<Value> {
    Some(match kind {
        ColumnType::Int(bits) => fit_int(bits, text.trim().parse().ok()?)?,
        ColumnType::Uint(bits) => fit_uint(bits, text.trim().parse().ok()?)?,
        ColumnType::Float => Value::Float(fit_float(parse_number(text)?)?),
        ColumnType::Double => Value::Float(parse_number(text)?),
        ColumnType::Decimal(..) => Value::Decimal(parse_decimal(kind, text.trim())?),
        ColumnType::Bool => Value::Bool(parse_bool(text.trim())?),
        ColumnType::Text => Value::Text(text.into()),
        ColumnType::Bytes => Value::Bytes(parse_hex(text)?.into()),
        ColumnType::Date => Value::Date(parse_date(text.trim())?),
        ColumnType::Time => Value::Time(parse_time(text.trim())?),
        ColumnType::DateTime => Value::DateTime(parse_date_time(text.trim())?),
        ColumnType::Timestamp => Value::Timestamp(parse_timestamp(text.trim())?),
        ColumnType::Json => {
            serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
            Value::Json(text.trim().into())
        }
    })
}

/// Appends a value as text that [`parse_literal`] reads back; nothing for NULL. False for a date beyond the years of
/// the text form and for an infinite number.
#[must_use]
pub fn write_literal(value: &Value, out: &mut Vec<u8>) -> bool {
    let written = match value {
        Value::Null => Ok(()),
        Value::Text(text) | Value::Json(text) => out.write_all(text.as_bytes()),
        Value::Timestamp(micros) => match DateTime::from_timestamp(*micros) {
            Some(moment) => write!(out, "{moment}Z"),
            None => return false,
        },
        Value::Float(number) if !number.is_finite() => return false,
        other => write!(out, "{other}"),
    };
    written.is_ok()
}

/// An integer as a value of a signed column with this many bits; `None` if it does not fit.
pub(crate) fn fit_int(bits: u8, number: i64) -> Option<Value> {
    let spare = 64_u32.checked_sub(u32::from(bits))?;
    (number.checked_shl(spare)? >> spare == number).then_some(Value::Int(number))
}

/// An integer as a value of an unsigned column with this many bits; `None` if it does not fit.
pub(crate) fn fit_uint(bits: u8, number: u64) -> Option<Value> {
    let spare = 64_u32.checked_sub(u32::from(bits))?;
    (number.checked_shl(spare)? >> spare == number).then_some(Value::Uint(number))
}

/// A number in the range of 32-bit floats. It is not rounded yet: the table does that.
pub(crate) fn fit_float(number: f64) -> Option<f64> {
    (number as f32).is_finite().then_some(number)
}

/// Parses a decimal for a `Decimal` column and rounds it to the column's scale as MySQL does.
pub(crate) fn parse_decimal(kind: ColumnType, text: &str) -> Option<Decimal> {
    let ColumnType::Decimal(precision, scale) = kind else { return None };
    Decimal::parse(text, precision, scale)
}

fn parse_number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    text.chunks(2).map(pair).collect()
}

/// A number of exactly this many digits.
fn digits(text: &str, count: usize) -> Option<u64> {
    let all_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok())?
}

/// YYYY-MM-DD.
pub(crate) fn parse_date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let year = u16::try_from(digits(parts.next()?, 4)?).ok()?;
    let month = u8::try_from(digits(parts.next()?, 2)?).ok()?;
    let day = u8::try_from(digits(parts.next()?, 2)?).ok()?;
    (month <= 12 && day <= 31).then_some(Date { year, month, day })
}

/// A date, with or without a time of day, without an offset.
pub(crate) fn parse_date_time(text: &str) -> Option<DateTime> {
    let Some((date, clock)) = text.split_once([' ', 'T']) else {
        return Some(DateTime { date: parse_date(text)?, micros: 0 });
    };
    let micros = parse_clock(clock)?;
    Some(DateTime { date: parse_date(date)?, micros })
}

/// Microseconds since 1970, from RFC 3339 with an offset.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    if text.starts_with("0000-00-00") {
        let moment = parse_date_time(text.strip_suffix('Z')?)?.to_timestamp();
        return moment.filter(|moment| *moment == ZERO_TIMESTAMP_MICROS);
    }
    text.parse::<jiff::Timestamp>().ok().map(|moment| moment.as_microsecond())
}

/// Microseconds since midnight, from HH:MM or HH:MM:SS or HH:MM:SS.ffffff.
fn parse_clock(text: &str) -> Option<u64> {
    let (hour, rest) = text.split_once(':')?;
    let micros = digits(hour, 2)? * 3_600_000_000 + parse_minutes(rest)?;
    (micros < DAY_MICROS).then_some(micros)
}

/// Microseconds of MM, MM:SS or MM:SS.ffffff.
fn parse_minutes(text: &str) -> Option<u64> {
    let (minute, seconds) = text.split_once(':').unwrap_or((text, "00"));
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let (minute, second) = (digits(minute, 2)?, digits(second, 2)?);
    if minute > 59 || second > 59 || fraction.len() > 6 {
        return None;
    }
    let scale = 10_u64.pow(6_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?);
    let micros = digits(fraction, fraction.len())? * scale;
    Some((minute * 60 + second) * 1_000_000 + micros)
}

fn parse_time(text: &str) -> Option<i64> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (hours, rest) = text.split_once(':')?;
    rest.contains(':').then_some(())?;
    let hours = digits(hours, hours.len())?.checked_mul(3_600_000_000)?;
    let micros = i64::try_from(hours.checked_add(parse_minutes(rest)?)?).ok()?;
    Some(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(value: &Value) -> String {
        let mut out = Vec::new();
        assert!(write_literal(value, &mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_texts() {
        let date = Date { year: 2024, month: 2, day: 0 };
        let moment = |micros| Some(Value::DateTime(DateTime { date, micros }));
        let cases = [
            (ColumnType::Int(8), "-128", Some(Value::Int(-128))),
            (ColumnType::Int(8), "128", None),
            (ColumnType::Int(24), "8388608", None),
            (ColumnType::Uint(64), "18446744073709551615", Some(Value::Uint(u64::MAX))),
            (ColumnType::Uint(8), "256", None),
            (ColumnType::Double, "NaN", None),
            (ColumnType::Double, "1e3", Some(Value::Float(1000.0))),
            (ColumnType::Bool, "TRUE", Some(Value::Bool(true))),
            (ColumnType::Bytes, "0x00fF", Some(Value::Bytes([0, 255].as_slice().into()))),
            (ColumnType::Bytes, "0", None),
            (ColumnType::Bytes, "+1", None),
            (ColumnType::Date, "2024-02-00", Some(Value::Date(date))),
            (ColumnType::Date, "2024-2-01", None),
            (ColumnType::Date, "2024-02-32", None),
            (ColumnType::DateTime, "2024-02-00", moment(0)),
            (ColumnType::DateTime, "2024-02-00T01:02", moment(3_720_000_000)),
            (ColumnType::DateTime, "2024-02-00 23:59:59.5", moment(86_399_500_000)),
            (ColumnType::DateTime, "2024-02-00 24:00:00", None),
            (ColumnType::DateTime, "2024-02-00 01:02:03Z", None),
            (ColumnType::Timestamp, "1970-01-01T01:00:00.000001+01:00", Some(Value::Timestamp(1))),
            (ColumnType::Timestamp, "1970-01-01 00:00:00", None),
            (
                ColumnType::Timestamp,
                "0000-00-00 00:00:00Z",
                Some(Value::Timestamp(ZERO_TIMESTAMP_MICROS)),
            ),
            (
                ColumnType::Timestamp,
                "0000-00-00T00:00:00Z",
                Some(Value::Timestamp(ZERO_TIMESTAMP_MICROS)),
            ),
            (ColumnType::Timestamp, "0000-00-00 00:00:01Z", None),
            (ColumnType::Timestamp, "0000-00-00 00:00:00", None),
            (ColumnType::Time, "-838:59:59", Some(Value::Time(-3_020_399_000_000))),
            (ColumnType::Time, "12:30", None),
            (ColumnType::Json, " [1] ", Some(Value::Json("[1]".into()))),
            (ColumnType::Json, "[1", None),
        ];
        for (kind, text, value) in cases {
            assert_eq!(parse_literal(kind, text), value, "{kind:?} {text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "[-+0-9a-fT:. Zé\"\\[]{0,30}") {
            for (kind, _) in crate::files::kinds_and_values() {
                let Some(value) = parse_literal(kind, &text) else { continue };
                prop_assert_eq!(parse_literal(kind, &text_of(&value)), Some(value));
            }
        }
    }
}
