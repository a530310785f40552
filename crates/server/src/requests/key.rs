//! Parses typed keys.

use remora_engine::{KeyValues, Schema};
use remora_mysql::Zone;
use remora_protocol::line::{LineError, code, split_key};
use remora_source::files::parse_literal;

use crate::zone;

/// Parses the values of a typed key.
pub(crate) fn parse_key(
    schema: &Schema,
    text: &str,
    zone: Option<&Zone>,
) -> Result<KeyValues, LineError> {
    let wrong = |message| LineError::new(code::INVALID_ARGUMENT, message);
    let parts = split_key(text, schema.primary_key.len()).ok_or_else(|| {
        let count = schema.primary_key.len();
        wrong(format!("The key of '{}' has {count} parts, joined by commas: '{text}'", schema.name))
    })?;
    let mut key = KeyValues::new();
    for (part, index) in parts.iter().zip(&schema.primary_key) {
        let column = schema.columns.get(*index);
        let value = column.and_then(|column| {
            parse_literal(column.kind, &zone::key_in_utc(zone, column.kind, part))
        });
        key.push(value.ok_or_else(|| {
            let name = column.map_or("", |column| column.name.as_str());
            wrong(format!("'{part}' is no value of the key column '{name}'"))
        })?);
    }
    Ok(key)
}
