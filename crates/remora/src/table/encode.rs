//! Converts structs to rows.

use remora_engine::{ColumnDef, ColumnType, Schema, Value};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::{Error, Result, json::to_json};

/// The most bytes of a row.
const MAX_ROW_BYTES: usize = 64 << 20;

/// Converts a value to a row, by the names of its fields.
pub(crate) fn row<T: Serialize + ?Sized>(value: &T, schema: &Schema) -> Result<Vec<Value>> {
    let place = || format!("a row of table {:?}", schema.name);
    let fields = match to_json(value, MAX_ROW_BYTES).map_err(|error| error.at(place()))? {
        Json::Object(fields) => fields,
        _ => {
            let message = format!("{} is no struct and no map of its columns", place());
            return Err(Error::request(message));
        }
    };
    let mut row = vec![Value::Null; schema.columns.len()];
    for (name, field) in fields {
        let mut columns = schema.columns.iter().zip(&mut row);
        let found = columns.find(|(column, _)| column.name.eq_ignore_ascii_case(&name));
        let Some((column, slot)) = found else { return Err(no_column(&name, schema)) };
        *slot = fit(column, field)?;
    }
    Ok(row)
}

fn no_column(name: &str, schema: &Schema) -> Error {
    let names: Vec<&str> = schema.columns.iter().map(|column| &*column.name).collect();
    Error::request(format!(
        "field {name:?} is no column of table {:?}, which has {}: leave it out or rename it (serde's \
         skip and rename)",
        schema.name,
        names.join(", ")
    ))
}

/// Converts a field to a value of a column. The engine checks its range.
fn fit(column: &ColumnDef, field: Json) -> Result<Value> {
    if column.kind == ColumnType::Json && !field.is_null() {
        return Ok(Value::Json(field.to_string().into()));
    }
    match field {
        Json::Null => Ok(Value::Null),
        Json::Bool(truth) => Ok(Value::Bool(truth)),
        Json::Number(number) => Ok(match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (_, Some(number)) => Value::Uint(number),
            _ => Value::Float(number.as_f64().unwrap_or(0.0)),
        }),
        Json::String(text) if column.kind == ColumnType::Bytes => {
            Ok(Value::Bytes(text.into_bytes().into()))
        }
        Json::String(text) => Ok(Value::Text(text.into())),
        Json::Array(elements) if column.kind == ColumnType::Bytes => {
            let byte = |element: &Json| element.as_u64().and_then(|byte| u8::try_from(byte).ok());
            let bytes: Option<Vec<u8>> = elements.iter().map(byte).collect();
            let bytes = bytes.ok_or_else(|| misfit(column, "an array that is not of bytes"))?;
            Ok(Value::Bytes(bytes.into()))
        }
        Json::Array(_) => Err(misfit(column, "an array")),
        Json::Object(members) => Err(misfit(column, described(&members))),
    }
}

fn described(members: &Map<String, Json>) -> &'static str {
    if members.len() == 1 { "an object or an enum with content" } else { "an object" }
}

fn misfit(column: &ColumnDef, what: &str) -> Error {
    Error::request(format!(
        "{what} does not fit column {:?}, which holds {:?}: make it a column of JSON",
        column.name, column.kind
    ))
}
