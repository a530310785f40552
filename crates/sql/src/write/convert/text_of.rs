//! Values as texts.

use remora_engine::Value;

use crate::meaning::{
    number::{format_double, format_float},
    temporal::time_text,
};

/// A value as MySQL writes it into text.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Float(number) if f64::from(*number as f32) == *number => {
            let short = format_float(*number as f32);
            match short.parse::<f64>() {
                Ok(again) if again == *number => short,
                _ => format_double(*number),
            }
        }
        Value::Float(number) => format_double(*number),
        Value::Bool(truth) => u8::from(*truth).to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Time(micros) => {
            let digits = if micros % 1_000_000 == 0 { 0 } else { 6 };
            time_text(*micros, digits)
        }
        other => other.to_string(),
    }
}
