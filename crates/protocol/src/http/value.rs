//! Values as JSON.

use remora_engine::Value;
use serde_json::value::RawValue;

use crate::line::reply::value::epoch_seconds;

/// A text as a JSON string.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing to a Vec never fails.
    let _ = serde_json::to_writer(out, text);
}

/// A value in its natural form: numbers, booleans, NULL and JSON as such. Decimals, dates, times
/// and bytes are strings, because a JSON number would not represent them exactly.
pub(super) fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Int(number) => {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        Value::Uint(number) => {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        // Writing to a Vec never fails. A number that is not finite becomes null.
        Value::Float(number) => drop(serde_json::to_writer(out, number)),
        Value::Json(text) => match serde_json::from_str::<&RawValue>(text) {
            Ok(json) => out.extend_from_slice(json.get().as_bytes()),
            Err(_) => write_text(out, text),
        },
        Value::Text(text) => write_text(out, text),
        value => write_text(out, &value.to_string()),
    }
}

/// A value in MygramDB's form of a filter column: dates and times are seconds.
pub(super) fn write_filter_value(out: &mut Vec<u8>, value: &Value) {
    match epoch_seconds(value) {
        Some(seconds) => out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes()),
        None => write_value(out, value),
    }
}

#[cfg(test)]
mod tests {
    use remora_engine::{Date, Decimal};

    use super::*;

    fn json(value: Value) -> String {
        let mut out = Vec::new();
        write_value(&mut out, &value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_values_have_natural_types() {
        let day = Date { year: 1970, month: 1, day: 2 };
        let decimal = Decimal::parse("12.50", 10, 2).unwrap();
        for (value, expected) in [
            (Value::Null, "null"),
            (Value::Bool(true), "true"),
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::Uint(u64::MAX), "18446744073709551615"),
            (Value::Float(1.5), "1.5"),
            (Value::Decimal(decimal), "\"12.50\""),
            (Value::Date(day), "\"1970-01-02\""),
            (Value::Text("a\"\n東".into()), "\"a\\\"\\n東\""),
            (Value::Bytes([0, 171].as_slice().into()), "\"0x00AB\""),
            (Value::Json("{\"a\": [1]}".into()), "{\"a\": [1]}"),
            (Value::Json("{broken".into()), "\"{broken\""),
        ] {
            assert_eq!(json(value), expected);
        }
        let mut out = Vec::new();
        write_filter_value(&mut out, &Value::Date(day));
        assert_eq!(out, b"86400");
    }
}
