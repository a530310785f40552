//! Integers, floats, decimals, bits and years.

use remora_engine::{Decimal, Value};
use remora_mysql::ErrorCode;

use super::{Converter, TargetColumn, text_of, truncated_text};
use crate::{
    Result, SqlType,
    meaning::number::{double_prefix, round_to_integer},
};

/// The most digits of a DECIMAL.
const MAX_DIGITS: u8 = 65;
/// The most fraction digits of a DECIMAL.
const MAX_SCALE: u8 = 30;

impl Converter {
    pub(super) fn fit_integer(&self, slot: TargetColumn<'_>, value: &Value) -> Result<Value> {
        let bits = slot.kind.integer_bits().unwrap_or(64);
        let (least, most) = match slot.kind.unsigned {
            true => (0, (1_i128 << bits) - 1),
            false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        };
        let made = |number: i128| match slot.kind.unsigned {
            true => Value::Uint(number as u64),
            false => Value::Int(number as i64),
        };
        let text = match value {
            Value::Text(_) | Value::Bytes(_) | Value::Json(_) => Some(text_of(value)),
            _ => None,
        };
        let (number, complete) = match &text {
            Some(text) => integer_of_text(text),
            None => (integer_of(value), true),
        };
        let kept = number.clamp(least, most);
        if kept != number {
            return self.out_of_range(slot, made(kept));
        }
        match &text {
            Some(text) if !has_digits(text) => self.incorrect(slot, "integer", value, made(kept)),
            Some(_) if !complete => self.truncated(slot, made(kept)),
            _ => Ok(made(kept)),
        }
    }

    pub(super) fn fit_float(&self, slot: TargetColumn<'_>, value: &Value) -> Result<Value> {
        let single = slot.kind.sql == SqlType::Float;
        let is_text = matches!(value, Value::Text(_) | Value::Bytes(_) | Value::Json(_));
        let (mut number, complete) = match is_text {
            true => double_prefix(&text_of(value)),
            false => (double_of(value), true),
        };
        if let Some((_, scale)) = slot.kind.digits {
            let power = 10_f64.powi(i32::from(scale));
            // As in MySQL (Field_real::truncate): only the fraction is rounded, half to even.
            let whole = number.floor();
            if whole.is_finite() {
                number = whole + ((number - whole) * power).round_ties_even() / power;
            }
        }
        let most = match slot.kind.digits {
            Some((digits, scale)) => {
                let unit = 10_f64.powi(-i32::from(scale));
                10_f64.powi(i32::from(digits) - i32::from(scale)) - unit
            }
            None if single => f64::from(f32::MAX),
            None => f64::MAX,
        };
        let least = if slot.kind.unsigned { 0.0 } else { -most };
        let kept = number.clamp(least, most);
        let held = Value::Float(if single { f64::from(kept as f32) } else { kept } + 0.0);
        if !complete {
            return self.incorrect(slot, if single { "FLOAT" } else { "DOUBLE" }, value, held);
        }
        if kept != number {
            return self.out_of_range(slot, held);
        }
        Ok(held)
    }

    pub(super) fn fit_decimal(
        &self,
        slot: TargetColumn<'_>,
        value: &Value,
        digits: u8,
        scale: u8,
    ) -> Result<Value> {
        let is_text = matches!(value, Value::Text(_) | Value::Bytes(_) | Value::Json(_));
        let text = number_text(value);
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let prefix = if is_text { number_prefix(trimmed) } else { trimmed };
        let rounded = Decimal::parse(prefix, digits, scale);
        if prefix.len() < trimmed.len() && self.is_strict() {
            return self.incorrect(slot, "decimal", value, Value::Null);
        }
        let Some(number) = rounded else {
            let parsed = Decimal::parse(prefix, MAX_DIGITS, MAX_SCALE);
            if parsed.is_none() && !has_digits(prefix) {
                let zero = Value::Decimal(Decimal::from_scaled(0, scale));
                return self.incorrect(slot, "decimal", value, zero);
            }
            let negative = prefix.starts_with('-');
            return self
                .out_of_range(slot, largest(digits, scale, negative && !slot.kind.unsigned));
        };
        if slot.kind.unsigned && number.as_str().starts_with('-') {
            return self.out_of_range(slot, Value::Decimal(Decimal::from_scaled(0, scale)));
        }
        if prefix.len() < trimmed.len() {
            return self.incorrect(slot, "decimal", value, Value::Decimal(number));
        }
        let exact = Decimal::parse(prefix, MAX_DIGITS, MAX_SCALE);
        let loses = exact.is_some_and(|exact| has_digits_beyond(exact.as_str(), scale));
        if loses {
            self.note(ErrorCode::DataTruncated, truncated_text(slot));
        }
        Ok(Value::Decimal(number))
    }

    pub(super) fn fit_bits(
        &self,
        slot: TargetColumn<'_>,
        value: &Value,
        bits: u8,
    ) -> Result<Value> {
        let most = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let bytes = match value {
            Value::Text(text) | Value::Json(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(&**bytes),
            _ => None,
        };
        let number = match bytes {
            Some(bytes) => {
                let significant: Vec<u8> = bytes.iter().copied().skip_while(|b| *b == 0).collect();
                match significant.len() {
                    0..=8 => significant.iter().fold(0, |n: i128, b| n << 8 | i128::from(*b)),
                    _ => i128::MAX,
                }
            }
            None => integer_of(value),
        };
        match u64::try_from(number).ok().filter(|number| *number <= most) {
            Some(number) => Ok(Value::Uint(number)),
            // A negative number is stored as its two's complement bits.
            None if bits >= 64 && i64::try_from(number).is_ok() => {
                Ok(Value::Uint(number as i64 as u64))
            }
            None => self.too_long(slot, Value::Uint(most)),
        }
    }

    pub(super) fn fit_year(&self, slot: TargetColumn<'_>, value: &Value) -> Result<Value> {
        let is_text = matches!(value, Value::Text(_) | Value::Bytes(_) | Value::Json(_));
        let number = match value {
            Value::Date(date) => i128::from(date.year),
            Value::DateTime(moment) => i128::from(moment.date.year),
            Value::Time(_) => {
                let now = jiff::Timestamp::from_microsecond(self.now_micros).unwrap_or_default();
                i128::from(now.to_zoned(self.zone.clone()).year())
            }
            _ if is_text => {
                let text = text_of(value);
                let (number, complete) = integer_of_text(&text);
                if !has_digits(&text) {
                    return self.incorrect(slot, "integer", value, Value::Uint(0));
                }
                if !complete {
                    return self.truncated(slot, Value::Uint(0));
                }
                // '0' and '00' are the year 2000; '0000' is the year 0.
                let short = text.trim().len() < 4;
                if number == 0 && short { 2_000 } else { number }
            }
            _ => integer_of(value),
        };
        let year = match number {
            0 => 0,
            1..=69 => number + 2_000,
            70..=99 => number + 1_900,
            1_901..=2_155 => number,
            _ => return self.out_of_range(slot, Value::Uint(0)),
        };
        Ok(Value::Uint(year as u64))
    }
}

/// The number as a text that can be parsed as a DECIMAL.
fn number_text(value: &Value) -> String {
    match value {
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => {
            integer_text_of_moment(value).unwrap_or_default()
        }
        Value::Float(number) => format!("{number:?}"),
        other => text_of(other),
    }
}

/// A date or time as the digits of a number: `20200131101112.5`.
fn integer_text_of_moment(value: &Value) -> Option<String> {
    let digits: String =
        text_of(value).chars().filter(|c| c.is_ascii_digit() || matches!(c, '.' | '-')).collect();
    match value {
        Value::Date(_) | Value::DateTime(_) => Some(digits.replace('-', "")),
        Value::Time(_) => Some(digits),
        _ => None,
    }
}

fn double_of(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        other => number_text(other).parse().unwrap_or(0.0),
    }
}

/// The integer nearest to a value that is not a text.
pub(super) fn integer_of(value: &Value) -> i128 {
    match value {
        Value::Int(number) => i128::from(*number),
        Value::Uint(number) => i128::from(*number),
        Value::Bool(truth) => i128::from(*truth),
        Value::Float(number) => round_to_integer(*number) as i128,
        other => integer_of_text(&number_text(other)).0,
    }
}

/// The integer nearest to the number at the beginning of a text, half away from zero, and whether the text has nothing
/// else.
fn integer_of_text(text: &str) -> (i128, bool) {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let prefix = number_prefix(trimmed);
    let complete = prefix.len() == trimmed.len() && !prefix.is_empty();
    let number = match Decimal::parse(prefix, MAX_DIGITS, 0) {
        Some(number) => number.as_str().parse().unwrap_or(i128::MAX),
        None if prefix.starts_with('-') => i128::MIN,
        None if prefix.is_empty() => 0,
        None => i128::MAX,
    };
    (number, complete)
}

/// The longest prefix of a text that is a number.
fn number_prefix(text: &str) -> &str {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits(sign);
    let mut at = sign + whole;
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return "";
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    text.get(..at).unwrap_or_default()
}

fn has_digits(text: &str) -> bool {
    !number_prefix(text.trim_matches(|c: char| c.is_ascii_whitespace())).is_empty()
}

/// Whether a fraction has digits other than zero beyond this many digits.
fn has_digits_beyond(text: &str, scale: u8) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().skip(usize::from(scale)).any(|digit| digit != b'0')
}

fn largest(digits: u8, scale: u8, negative: bool) -> Value {
    let whole = "9".repeat(usize::from(digits - scale).max(1));
    let whole = if digits == scale { "0".to_owned() } else { whole };
    let sign = if negative { "-" } else { "" };
    let text = match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{}", "9".repeat(usize::from(scale))),
    };
    Decimal::parse(&text, digits, scale).map_or(Value::Null, Value::Decimal)
}
