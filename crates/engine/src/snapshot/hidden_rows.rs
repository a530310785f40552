//! The rows of a table, with the rows of some keys hidden.

use std::{collections::HashSet, sync::Arc};

use crate::{
    Result, Row,
    storage::{
        rows::{RowReader, RowVisitor},
        store::{RowVersion, StoredBytes},
    },
};

/// The rows of a table except the hidden ones.
pub(crate) struct HiddenRows {
    rows: Arc<dyn RowReader>,
    hidden: HashSet<Vec<u8>>,
}

impl HiddenRows {
    /// Hides the rows with these keys.
    pub fn new(rows: Arc<dyn RowReader>, keys: &[Vec<u8>]) -> Self {
        Self { rows, hidden: keys.iter().cloned().collect() }
    }
}

impl RowReader for HiddenRows {
    fn get(
        &self,
        key: &[u8],
        version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        if self.hidden.contains(key) { Ok(None) } else { self.rows.get(key, version, wanted) }
    }

    fn stored(&self, key: &[u8]) -> Result<Option<StoredBytes>> {
        if self.hidden.contains(key) { Ok(None) } else { self.rows.stored(key) }
    }

    fn scan_columns(
        &self,
        from: &[u8],
        wanted: &dyn Fn(usize) -> bool,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        self.rows.scan_columns(from, wanted, &mut |key, row| {
            if self.hidden.contains(key) { Ok(true) } else { visit(key, row) }
        })
    }
}
