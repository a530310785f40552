//! Keys and values as text: MygramDB's quoting, and the escapes of FIELDS.

use std::io::Write;

use remora_engine::{DateTime, KeyValues, Value};

use super::number;
use crate::line::token::white_space_at;

/// A primary key as one token: unquoted, or in double quotes with escapes if it contains white
/// space, quotes, backslashes or control characters. The parts of a composite key are joined by
/// commas; commas and backslashes within a part are first escaped by a backslash.
pub fn write_key(out: &mut Vec<u8>, key: &[Value]) {
    match key {
        [Value::Int(key)] => signed(out, *key),
        [Value::Uint(key)] => number(out, *key),
        [Value::Text(key)] => write_token(out, key),
        [key] => write_token(out, &key.to_string()),
        parts => write_token(out, &joined_key(parts)),
    }
}

/// A key in the form of FIELDS, escaped.
pub(super) fn write_escaped_key(out: &mut Vec<u8>, key: &KeyValues) {
    match key.as_slice() {
        [part] => write_field(out, part),
        parts => escaped(out, &joined_key(parts)),
    }
}

/// A key in the form that GET accepts, without the quotes of a token.
pub(crate) fn key_text(key: &[Value]) -> String {
    match key {
        [part] => part.to_string(),
        parts => joined_key(parts),
    }
}

fn joined_key(parts: &[Value]) -> String {
    let mut key = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            key.push(',');
        }
        for char in part.to_string().chars() {
            if matches!(char, ',' | '\\') {
                key.push('\\');
            }
            key.push(char);
        }
    }
    key
}

/// Text as one token.
pub(super) fn write_token(out: &mut Vec<u8>, text: &str) {
    if needs_quotes(text) {
        write_quoted(out, text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Text as a quoted token.
pub(in crate::line) fn write_quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            byte => escape(out, byte),
        }
    }
    out.push(b'"');
}

fn needs_quotes(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if bytes.iter().all(plain) {
        return bytes.is_empty();
    }
    let special = |char: char| char.is_ascii_control() || matches!(char, '"' | '\'' | '\\');
    text.char_indices().any(|(at, char)| special(char) || white_space_at(text, at).is_some())
}

/// A byte with backslashes and control characters escaped.
fn escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..0x20 | 0x7f => drop(write!(out, "\\x{byte:02X}")),
        byte => out.push(byte),
    }
}

/// A value in the form of FIELDS: NULL is `\N`, other values are their canonical text, escaped.
pub(super) fn write_field(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"\\N"),
        Value::Int(value) => signed(out, *value),
        Value::Uint(value) => number(out, *value),
        Value::Text(text) | Value::Json(text) => escaped(out, text),
        value => escaped(out, &value.to_string()),
    }
}

/// Text with backslashes and control characters escaped.
pub(super) fn escaped(out: &mut Vec<u8>, text: &str) {
    text.bytes().for_each(|byte| escape(out, byte));
}

/// A value in MygramDB's form of a filter column: floats have six decimals, times are seconds,
/// texts are tokens.
pub(super) fn write_filter_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Int(value) => signed(out, *value),
        Value::Uint(value) => number(out, *value),
        Value::Text(text) | Value::Json(text) => write_token(out, text),
        Value::Float(value) => drop(write!(out, "{value:.6}")),
        value => match epoch_seconds(value) {
            Some(seconds) => signed(out, seconds),
            None => write_token(out, &value.to_string()),
        },
    }
}

/// Dates and times as MygramDB stores them: seconds since 1970, or the seconds of a duration.
pub(crate) fn epoch_seconds(value: &Value) -> Option<i64> {
    let micros = match value {
        Value::Time(micros) => return Some(micros / 1_000_000),
        Value::Timestamp(micros) => *micros,
        Value::DateTime(moment) => moment.to_timestamp()?,
        Value::Date(date) => DateTime { date: *date, micros: 0 }.to_timestamp()?,
        _ => return None,
    };
    Some(micros.div_euclid(1_000_000))
}

fn signed(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use remora_engine::Date;

    use super::*;

    fn token(text: &str) -> String {
        let mut out = Vec::new();
        write_token(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn field(value: Value) -> String {
        let mut out = Vec::new();
        write_field(&mut out, &value);
        String::from_utf8(out).unwrap()
    }

    fn filter_value(value: Value) -> String {
        let mut out = Vec::new();
        write_filter_value(&mut out, &value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tokens_are_quoted_where_they_must_be() {
        assert_eq!(token("c++:42"), "c++:42");
        assert_eq!(token("東京"), "東京");
        assert_eq!(token(""), "\"\"");
        assert_eq!(token("a b"), "\"a b\"");
        assert_eq!(token("全角\u{3000}"), "\"全角\u{3000}\"");
        assert_eq!(token("a\"\\\n\u{1}\u{7f}"), r#""a\"\\\n\x01\x7F""#);
    }

    #[test]
    fn fields_are_escaped() {
        assert_eq!(field(Value::Null), "\\N");
        assert_eq!(field(Value::Text("\\N".into())), "\\\\N");
        assert_eq!(field(Value::Text("a\tb\r\nc\0".into())), "a\\tb\\r\\nc\\x00");
        assert_eq!(field(Value::Float(1.5)), "1.5");
    }

    #[test]
    fn filter_values_are_printed_as_mygramdb_does() {
        let day = Date { year: 1970, month: 1, day: 2 };
        assert_eq!(filter_value(Value::Null), "NULL");
        assert_eq!(filter_value(Value::Bool(true)), "true");
        assert_eq!(filter_value(Value::Float(2.5)), "2.500000");
        assert_eq!(filter_value(Value::Date(day)), "86400");
        assert_eq!(filter_value(Value::Time(-3_600_000_000)), "-3600");
        assert_eq!(filter_value(Value::Timestamp(-1)), "-1");
        assert_eq!(filter_value(Value::Text("a b".into())), "\"a b\"");
    }

    #[test]
    fn composite_keys_are_one_token() {
        let mut out = Vec::new();
        let key: KeyValues = [Value::Int(7), Value::Text("a,b".into())].into_iter().collect();
        write_key(&mut out, &key);
        assert_eq!(out, br#""7,a\\,b""#);
    }
}
