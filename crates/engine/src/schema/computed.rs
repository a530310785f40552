//! Columns that nobody gives: what keys of a followed table are over that are expressions.
//!
//! The engine knows no expression. Who does tells it once for the whole process, as of the orders of texts
//! (`text_order.rs`), what a definition needs for its keys, and how rows get the values.

use std::sync::{Arc, OnceLock};

use super::{HIDDEN_PREFIX, Schema};
use crate::Row;

/// Puts the values of the hidden columns at the end of a definition behind those of a row.
pub type ComputeRow = Arc<dyn Fn(&mut Row) + Send + Sync>;

/// Who knows expressions.
#[derive(Clone, Copy)]
pub struct Computing {
    /// Gives a definition what its declared keys need beyond its columns: hidden columns at its end, secondary indexes
    /// and paths. The second definition is what the table has been, if it has rows: columns that it lacks are not added,
    /// since no row has their values.
    pub complete: fn(&mut Schema, Option<&Schema>),
    /// What computes the hidden columns at the end of a definition. Asked once for each batch.
    pub computation: fn(&Arc<Schema>) -> ComputeRow,
}

static COMPUTING: OnceLock<Computing> = OnceLock::new();

/// Tells who knows expressions; the first who tells is heard. Call it before tables are followed: without it keys over
/// expressions are declared and answer nothing.
pub fn register_computing(computing: Computing) {
    // The same is told again by who does not know of it.
    let _ = COMPUTING.set(computing);
}

impl Schema {
    /// Adds what the declared keys need, as far as somebody knows ([`register_computing`]). `previous` is what the table
    /// has been, if it has rows.
    pub fn complete(&mut self, previous: Option<&Self>) {
        let Some(computing) = COMPUTING.get() else { return };
        let declared = self.clone();
        (computing.complete)(self, previous);
        // A key that cannot be had here is no reason to refuse its table.
        if self.validate().is_err() {
            *self = declared;
        }
    }

    /// How many hidden columns stand at its end, which rows may come without.
    pub(crate) fn computed_columns(&self) -> usize {
        let columns = self.columns.iter().rev();
        columns.take_while(|column| column.name.starts_with(HIDDEN_PREFIX)).count()
    }
}

/// What computes the hidden columns of a definition; `None` as long as nobody knows.
pub(crate) fn computation(schema: &Arc<Schema>) -> Option<ComputeRow> {
    COMPUTING.get().map(|computing| (computing.computation)(schema))
}
