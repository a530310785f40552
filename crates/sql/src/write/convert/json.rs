//! JSON documents.

use remora_engine::Value;
use remora_mysql::ErrorCode;

use super::TargetColumn;
use crate::{Error, Result, meaning::json::Json};

/// Converts a value to a JSON document.
pub(super) fn fit(slot: TargetColumn<'_>, value: Value) -> Result<Value> {
    match &value {
        Value::Json(text) | Value::Text(text) => Ok(Value::Json(normal(text, slot)?.into())),
        Value::Bytes(_) => Err(Error::new(
            ErrorCode::InvalidJsonCharset,
            "Cannot create a JSON value from a string with CHARACTER SET 'binary'.",
        )),
        _ => Err(invalid("not a JSON text, may need CAST", 0, slot)),
    }
}

/// The document in MySQL's normalized form.
fn normal(text: &str, slot: TargetColumn<'_>) -> Result<String> {
    if text.trim().is_empty() {
        return Err(invalid("The document is empty.", text.len(), slot));
    }
    let parsed = Json::parse(text).map_err(|error| {
        // At the end of the text there is no wrong character to count.
        let before = usize::from(!error.is_eof());
        let what = match error.to_string() {
            words if words.starts_with("trailing") => {
                "The document root must not be followed by other values."
            }
            words if words.contains("key must be") || words.contains("parsing an object") => {
                "Missing a name for object member."
            }
            _ => "Invalid value.",
        };
        invalid(what, error.column().saturating_sub(before), slot)
    })?;
    Ok(parsed.text())
}

fn invalid(what: &str, position: usize, slot: TargetColumn<'_>) -> Error {
    let message = format!(
        "Invalid JSON text: \"{what}\" at position {position} in value for column '{}'.",
        slot.name
    );
    Error::new(ErrorCode::InvalidJson, message)
}
