//! How values become bytes: keys, column cells, stored rows, typed literals.

use remora_index::column::{Cell, ColumnKind};

use crate::{ColumnType, KeyValues, Result, Row, Schema, Value};

/// How the segments hold a column of this type.
pub(crate) fn column_kind(_kind: ColumnType) -> ColumnKind {
    ColumnKind::Ordinal
}

/// The order-preserving bytes of a primary key given as its parts' values.
pub(crate) fn encode_key(_schema: &Schema, _parts: &[Value]) -> Result<Vec<u8>> {
    Ok(Vec::new())
}

/// The parts of a key from its bytes.
pub(crate) fn decode_key(_schema: &Schema, _bytes: &[u8]) -> Result<KeyValues> {
    Ok(KeyValues::new())
}

/// A value as a column cell; byte cells are appended to `scratch` and borrowed from it.
pub(crate) fn encode_cell<'s>(_kind: ColumnType, _value: &Value, _scratch: &'s mut Vec<u8>) -> Cell<'s> {
    Cell::Null
}

/// A column cell as the value it stands for.
pub(crate) fn decode_cell(_kind: ColumnType, _cell: Cell<'_>) -> Value {
    Value::Null
}

/// Text as typed in a filter or a file, turned into a value of the column's type; `None` if it is
/// not one.
pub(crate) fn parse_literal(_kind: ColumnType, _text: &str) -> Option<Value> {
    None
}

/// The stored bytes of a row.
pub(crate) fn encode_row(_schema: &Schema, _row: &Row) -> Result<Vec<u8>> {
    Ok(Vec::new())
}

/// A row from its stored bytes.
pub(crate) fn decode_row(_schema: &Schema, _bytes: &[u8]) -> Result<Row> {
    Ok(Row::new())
}
