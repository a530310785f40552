//! Rows that come without the columns that are computed from the others.

use std::{cell::OnceCell, sync::Arc};

use crate::{
    Change, Row, Schema,
    schema::{ComputeRow, computation},
};

/// Completes the rows of one table.
pub(super) struct Completing<'s> {
    schema: &'s Arc<Schema>,
    /// How many columns at the end are computed.
    computed: usize,
    compute: OnceCell<Option<ComputeRow>>,
}

impl<'s> Completing<'s> {
    /// Those of a table of this definition.
    pub(super) fn of(schema: &'s Arc<Schema>) -> Self {
        Self { schema, computed: schema.computed_columns(), compute: OnceCell::new() }
    }

    /// The change, whose row has all columns if it came with all but those that are computed.
    pub(super) fn complete(&self, change: Change) -> Change {
        match change {
            Change::Put(row) => Change::Put(self.row(row)),
            Change::Insert(row) => Change::Insert(self.row(row)),
            change => change,
        }
    }

    fn row(&self, mut row: Row) -> Row {
        let is_short = row.len() + self.computed == self.schema.columns.len();
        if self.computed > 0
            && is_short
            && let Some(compute) = self.compute.get_or_init(|| computation(self.schema))
        {
            compute(&mut row);
        }
        row
    }
}
