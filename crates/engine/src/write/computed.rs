//! Fills the hidden columns that hold the values of key expressions. Every row passes here on its way to a table, and
//! every batch says what its rows contain. Missing values are computed; a row is refused if nothing can compute them,
//! because it would be missing from the indexes of those keys.

use std::sync::Arc;

use remora_index::column::MAX_VALUE_BYTES;

use crate::{
    Change, Error, RequestPart, Result, Row, Schema, Value,
    encode::fit_in_place,
    schema::{ComputeRow, computation},
};

/// Which columns the rows of a batch contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowColumns {
    /// Visible columns only, as from a source. A longer row is refused: it belongs to another table.
    VisibleOnly,
    /// Visible columns. Hidden ones may follow, but are computed again.
    Visible,
    /// Hidden columns too. They are kept only if this process cannot compute them. If it can, they are computed
    /// again: queries expect the values that this server computes, and a session's time zone could make them differ.
    Computed,
}

/// Adds the values of key expressions to the rows of these changes.
pub(crate) fn computed(
    schema: &Arc<Schema>,
    changes: Vec<Change>,
    row_columns: RowColumns,
) -> Result<Vec<Change>> {
    let keys = schema.computed_keys();
    let has_rows = || changes.iter().any(|change| !matches!(change, Change::Delete(_)));
    if keys.is_empty() || !has_rows() {
        return Ok(changes);
    }
    let Some(compute) = computation(schema) else {
        if row_columns == RowColumns::Computed {
            return Ok(changes);
        }
        let message = format!(
            "table {:?} has keys over expressions ({}), which only SQL can compute: write its rows by SQL",
            schema.name,
            keys.join(", ")
        );
        return Err(Error::request(RequestPart::Row, message));
    };
    let complete = |change| match change {
        Change::Put(row) => completed(schema, row, row_columns, &compute).map(Change::Put),
        Change::Insert(row) => completed(schema, row, row_columns, &compute).map(Change::Insert),
        change => Ok(change),
    };
    changes.into_iter().map(complete).collect()
}

/// A row with its hidden columns computed.
fn completed(
    schema: &Schema,
    mut row: Row,
    row_columns: RowColumns,
    compute: &ComputeRow,
) -> Result<Row> {
    let given = schema.given_columns();
    let is_whole = row_columns != RowColumns::VisibleOnly && row.len() == schema.columns.len();
    if row.len() != given && !is_whole {
        let message = format!(
            "a row of {} values for table {:?}: give {given} values",
            row.len(),
            schema.name
        );
        return Err(Error::request(RequestPart::Row, message));
    }
    row.truncate(given);
    match compute(&mut row).and_then(|()| fit_computed(schema, &mut row, given)) {
        Ok(()) => Ok(row),
        Err(why) => {
            schema.note_computing_failure(&why);
            let key: Vec<&Value> =
                schema.primary_key.iter().filter_map(|place| row.get(*place)).collect();
            let message =
                format!("{why}, in the row {key:?} of table {:?}: drop the key", schema.name);
            Err(Error::request(RequestPart::Row, message))
        }
    }
}

/// Checks that the hidden columns can hold what was computed. If not, the key expression is at fault, not the row.
fn fit_computed(
    schema: &Schema,
    row: &mut [Value],
    given: usize,
) -> std::result::Result<(), String> {
    for (column, value) in schema.columns.iter().zip(row).skip(given) {
        fit_in_place(column, value).map_err(|error| error.to_string())?;
        let bytes = match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        if bytes > MAX_VALUE_BYTES {
            return Err(format!(
                "the value computed for {:?} takes {bytes} bytes, the limit is {MAX_VALUE_BYTES}",
                column.name
            ));
        }
    }
    Ok(())
}
