//! Who writes rows says whether the columns are in them that the expressions of keys are computed into. Here all rows pass
//! on their way to the tables, so that no writer can forget them: rows that come without get the values here, and where
//! nobody can compute them they are refused. A row without them would be missing in the indexes of its keys.

use std::sync::Arc;

use crate::{
    Change, Error, RequestPart, Result, Row, Schema, Value,
    schema::{ComputeRow, computation},
};

/// What rows bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// What users see. Whatever stands in the columns that they do not see is not believed.
    Visible,
    /// What the expressions of keys give too.
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
    if brought == Brought::Computed || keys.is_empty() || !has_rows() {
        return Ok(changes);
    }
    let Some(compute) = computation(schema) else {
        let message = format!(
            "table {:?} has keys over expressions ({}), which SQL alone computes: write its rows by SQL",
            schema.name,
            keys.join(", ")
        );
        return Err(Error::request(RequestPart::Row, message));
    };
    let complete = |change| match change {
        Change::Put(row) => completed(schema, row, &compute).map(Change::Put),
        Change::Insert(row) => completed(schema, row, &compute).map(Change::Insert),
        change => Ok(change),
    };
    changes.into_iter().map(complete).collect()
}

/// A row with what is computed behind what was given. One of a wrong length stays as it is, and is refused for that.
fn completed(schema: &Schema, mut row: Row, compute: &ComputeRow) -> Result<Row> {
    let given = schema.given_columns();
    if row.len() != given && row.len() != schema.columns.len() {
        return Ok(row);
    }
    row.truncate(given);
    match compute(&mut row) {
        Ok(()) => Ok(row),
        Err(why) => {
            let key: Vec<&Value> =
                schema.primary_key.iter().filter_map(|place| row.get(*place)).collect();
            let message =
                format!("{why}, in the row {key:?} of table {:?}: drop the key", schema.name);
            Err(Error::request(RequestPart::Row, message))
        }
    }
}
