//! A document as MySQL prints it: `{"a": [1, 2.0, "x"], "b": null}`.

use std::{fmt::Write, sync::Arc};

use remora_engine::{DateTime, Value};
use remora_mysql::FieldType;

use super::{
    super::{Malformed, decimal, temporal},
    Json,
};
use crate::mysql::bytes::Reader;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// MySQL breaks base64 lines after this many characters.
const BASE64_LINE: usize = 76;

pub(super) fn print(document: &Json<'_>) -> Result<Arc<str>, Malformed> {
    let mut out = String::new();
    write_value(document, &mut out)?;
    Ok(out.into())
}

/// The parser and `Differences` limit the depth of documents.
fn write_value(value: &Json<'_>, out: &mut String) -> Result<(), Malformed> {
    let written = match value {
        Json::Null => out.write_str("null"),
        Json::Bool(truth) => write!(out, "{truth}"),
        Json::Int(number) => write!(out, "{number}"),
        Json::Uint(number) => write!(out, "{number}"),
        Json::Double(number) => write_double(*number, out),
        Json::String(text) => {
            write_string(text, out);
            Ok(())
        }
        Json::Opaque(kind, bytes) => return write_opaque(*kind, bytes, out),
        Json::Array(elements) => return write_array(elements, out),
        Json::Object(members) => return write_object(members, out),
    };
    written.map_err(|_| Malformed)
}

fn write_array(elements: &[Json<'_>], out: &mut String) -> Result<(), Malformed> {
    out.push('[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_value(element, out)?;
    }
    out.push(']');
    Ok(())
}

fn write_object(
    members: &[(std::borrow::Cow<'_, str>, Json<'_>)],
    out: &mut String,
) -> Result<(), Malformed> {
    out.push('{');
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_string(key, out);
        out.push_str(": ");
        write_value(value, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(control) => {
                // Writing to a String never fails.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// The shortest digits that give the number, with an exponent below 1e-14 and for integers with more than 15 digits.
/// Integers end in `.0`.
fn write_double(number: f64, out: &mut String) -> std::fmt::Result {
    if number == 0.0 {
        return out.write_str(if number.is_sign_negative() { "-0.0" } else { "0.0" });
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    // The point comes after this many digits.
    let point = exponent + 1;
    if point >= -14 && (point <= 15 || digits > point) {
        let whole = if digits <= point { ".0" } else { "" };
        return write!(out, "{number}{whole}");
    }
    out.write_str(&scientific)
}

fn write_opaque(code: u8, bytes: &[u8], out: &mut String) -> Result<(), Malformed> {
    let kind = FieldType::from_code(code);
    let written = match kind {
        FieldType::NewDecimal => {
            let (&[precision, scale], _) = bytes.split_first_chunk().ok_or(Malformed)?;
            let number = bytes.get(2..).unwrap_or_default();
            let number = decimal::decimal(&mut Reader::new(number), precision, scale)?;
            write!(out, "{number}")
        }
        FieldType::Date | FieldType::DateTime | FieldType::Timestamp | FieldType::Time => {
            let packed = Reader::new(bytes).array()?;
            let value = match kind {
                FieldType::Time => temporal::packed_time(i64::from_le_bytes(packed))?,
                _ => temporal::packed_date_time(u64::from_le_bytes(packed))?,
            };
            write_moment(kind, &value, out)
        }
        _ => {
            let written = write!(out, "\"base64:type{code}:");
            write_base64(bytes, out);
            out.push('"');
            written
        }
    };
    written.map_err(|_| Malformed)
}

/// Always with six fraction digits.
fn write_moment(kind: FieldType, value: &Value, out: &mut String) -> std::fmt::Result {
    match value {
        Value::DateTime(DateTime { date, .. }) if kind == FieldType::Date => {
            write!(out, "\"{date}\"")
        }
        Value::DateTime(DateTime { micros, .. }) if micros % 1_000_000 == 0 => {
            write!(out, "\"{value}.000000\"")
        }
        Value::Time(micros) if micros % 1_000_000 == 0 => write!(out, "\"{value}.000000\""),
        _ => write!(out, "\"{value}\""),
    }
}

fn write_base64(bytes: &[u8], out: &mut String) {
    let mut line = 0;
    for group in bytes.chunks(3) {
        if line == BASE64_LINE {
            out.push_str("\\n");
            line = 0;
        }
        let word = group.iter().fold(0, |word, &byte| word << 8 | usize::from(byte));
        let word = word << (8 * (3 - group.len()));
        for place in 0..4 {
            let sextet = word >> (18 - 6 * place) & 63;
            let letter = BASE64.get(sextet).copied().unwrap_or_default();
            out.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
        line += 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(number: f64) -> String {
        print(&Json::Double(number)).unwrap().to_string()
    }

    #[test]
    fn doubles_are_printed_as_the_server_does() {
        assert_eq!(double(1.0), "1.0");
        assert_eq!(double(-0.0), "-0.0");
        assert_eq!(double(0.1), "0.1");
        assert_eq!(double(1e15), "1e15");
        assert_eq!(double(123_456_789_012_345.0), "123456789012345.0");
        assert_eq!(double(1e300), "1e300");
        assert_eq!(double(1.5e-20), "1.5e-20");
        assert_eq!(double(0.00001), "0.00001");
        assert_eq!(double(1_234_567_890_123_456.5), "1234567890123456.5");
    }

    #[test]
    fn strings_are_escaped() {
        let text = Json::String("a\"\\\u{8}\t\n\u{c}\r\u{1}\u{7f}é/".into());
        let printed = print(&text).unwrap();
        assert_eq!(&*printed, "\"a\\\"\\\\\\b\\t\\n\\f\\r\\u0001\u{7f}é/\"");
    }

    #[test]
    fn values_of_other_types_are_base64() {
        let printed = |bytes| print(&Json::Opaque(252, bytes)).unwrap().to_string();
        assert_eq!(printed(b"a"), "\"base64:type252:YQ==\"");
        assert_eq!(printed(b"ab"), "\"base64:type252:YWI=\"");
        assert_eq!(printed(b"abc"), "\"base64:type252:YWJj\"");
    }
}
