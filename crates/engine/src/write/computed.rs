//! Fills the hidden columns that hold values of key expressions. Each batch says whether its rows have them. All rows
//! pass here on their way to the tables: rows without values get them, and are refused if nobody can compute them. A
//! row without them would be missing from the indexes of its keys.

use std::sync::Arc;

use remora_index::column::MAX_VALUE_BYTES;

use crate::{
    Change, Error, RequestPart, Result, Row, Schema, Value,
    encode::fit_in_place,
    schema::{ComputeRow, computation},
};

/// What rows bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// Just what users see, as sources tell it: what is longer is another table's row.
    Given,
    /// What users see. Whatever stands in the columns that they do not see is not believed.
    Visible,
    /// What the expressions of keys give too. It is believed where nobody but its writer can compute it: where keys are
    /// computed here, indexes are asked for what is computed here, and not for what sessions of other clocks make of it.
    Computed,
}

/// The changes with what their table's keys are over.
pub(super) fn computed(
    schema: &Arc<Schema>,
    changes: Vec<Change>,
    brought: Brought,
) -> Result<Vec<Change>> {
    let keys = schema.computed_keys();
    let has_rows = || changes.iter().any(|change| !matches!(change, Change::Delete(_)));
    if keys.is_empty() || !has_rows() {
        return Ok(changes);
    }
    let Some(compute) = computation(schema) else {
        if brought == Brought::Computed {
            return Ok(changes);
        }
        let message = format!(
            "table {:?} has keys over expressions ({}), which SQL alone computes: write its rows by SQL",
            schema.name,
            keys.join(", ")
        );
        return Err(Error::request(RequestPart::Row, message));
    };
    let complete = |change| match change {
        Change::Put(row) => completed(schema, row, brought, &compute).map(Change::Put),
        Change::Insert(row) => completed(schema, row, brought, &compute).map(Change::Insert),
        change => Ok(change),
    };
    changes.into_iter().map(complete).collect()
}

/// A row with what is computed behind what was given.
fn completed(schema: &Schema, mut row: Row, brought: Brought, compute: &ComputeRow) -> Result<Row> {
    let given = schema.given_columns();
    let is_whole = brought != Brought::Given && row.len() == schema.columns.len();
    if row.len() != given && !is_whole {
        let message = format!(
            "a row of {} values for table {:?}, which has {given} columns that are given",
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

/// Whether the columns take what was computed: else it is the key that is wrong, and not the row.
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
            return Err(format!("what {:?} is over takes {bytes} bytes", column.name));
        }
    }
    Ok(())
}
