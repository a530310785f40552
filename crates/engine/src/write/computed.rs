//! Who writes rows says whether the columns are in them that the expressions of keys are computed into. Here all rows pass
//! on their way to the tables, so that no writer can forget them: a row without what its keys are over would be missing
//! in their indexes.

use crate::{Change, Error, RequestPart, Result, Schema};

/// What rows bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// What users see.
    Visible,
    /// What the expressions of keys give too.
    Computed,
}

/// Refuses rows that lack what a table's keys are over.
pub(super) fn check_computed(schema: &Schema, changes: &[Change], brought: Brought) -> Result<()> {
    let has_rows = || changes.iter().any(|change| !matches!(change, Change::Delete(_)));
    if brought == Brought::Computed {
        return Ok(());
    }
    let keys = schema.computed_keys();
    if keys.is_empty() || !has_rows() {
        return Ok(());
    }
    let message = format!(
        "table {:?} has keys over expressions ({}), which SQL alone computes: write its rows by SQL",
        schema.name,
        keys.join(", ")
    );
    Err(Error::request(RequestPart::Row, message))
}
