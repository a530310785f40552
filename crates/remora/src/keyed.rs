//! Rows that are changed by key, wherever they are: in the database, or in the open transaction of a session.

use std::sync::Arc;

use remora_engine::{Change, Reader, Row, Value};

use crate::Result;

/// Decides about a row with a key, or that there is none, and returns the change, if any. It may be called again, with
/// the row's new state.
pub(crate) type Decide<'d> = &'d mut dyn FnMut(Option<Row>) -> Result<Option<Change>>;

/// Changes rows by key: each call in a transaction of its own, or all in one that is open.
pub(crate) trait KeyedRows {
    /// Applies changes to a table: all, or none.
    fn write(&mut self, table: &Arc<str>, changes: Vec<Change>) -> Result<()>;

    /// Changes the row with a key as `decide` says. Returns whether anything was changed.
    fn change(&mut self, table: &Arc<str>, key: &[Value], decide: Decide<'_>) -> Result<bool>;

    /// Changes the row with a key if it exists, whatever its values. Returns whether it exists.
    fn change_unread(
        &mut self,
        table: &Arc<str>,
        key: &[Value],
        make: &mut dyn FnMut() -> Change,
    ) -> Result<bool> {
        self.change(table, key, &mut |found| Ok(found.map(|_| make())))
    }

    /// The rows of a table.
    fn view(&mut self, table: &Arc<str>) -> Result<View>;
}

/// The rows of a table as a transaction sees them.
pub(crate) struct View {
    /// The snapshot that it reads.
    pub reader: Reader,
    /// The rows that it changed, by key. `None` is a deleted row.
    pub changed: Vec<(Vec<Value>, Option<Arc<Row>>)>,
}
