//! Hidden columns with the values of key expressions.
//!
//! The engine evaluates no expressions. The program registers once, for the whole process (as for text orders,
//! `text_order.rs`), which columns a definition needs for its keys and how their values are computed.

use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::{HIDDEN_PREFIX, Schema};
use crate::{Result, Row};

/// Appends the values of a definition's hidden last columns to a row that has all others. The error says which key
/// cannot be computed for the row, and why.
pub type ComputeRow = Arc<dyn Fn(&mut Row) -> std::result::Result<(), String> + Send + Sync>;

/// The program's functions for key expressions.
#[derive(Clone, Copy)]
pub struct Computing {
    /// Adds to a definition what its declared keys need: hidden columns at its end, secondary indexes and paths. The
    /// second argument is the table's current definition, if it has rows: columns that it lacks, or that would read
    /// other columns than now, are not added, because stored rows have no values for them. Returns a reason for each
    /// key that is left out.
    pub complete: fn(&mut Schema, Option<&Schema>) -> Vec<String>,
    /// Returns the function that computes the hidden last columns of a definition; `None` if one of them is unknown.
    /// Called once per batch.
    pub computation: fn(&Arc<Schema>) -> Option<ComputeRow>,
}

static COMPUTING: OnceLock<Computing> = OnceLock::new();

/// The most definitions whose failures are remembered.
const MAX_FAILED: usize = 1_024;

/// Why keys of a definition could not be computed for a row, by [`Schema::computed_by`].
static FAILED: LazyLock<RwLock<FxHashMap<Vec<String>, String>>> = LazyLock::new(RwLock::default);

/// Registers the functions for key expressions; only the first call counts. Call it before tables are followed:
/// without it, keys over expressions are declared but not indexed.
pub fn register_computing(computing: Computing) {
    // A repeated call registers the same functions.
    let _ = COMPUTING.set(computing);
}

impl Schema {
    /// Adds what the declared keys need, if functions are registered ([`register_computing`]). `previous` is the
    /// table's current definition, if it has rows. Returns a reason for each key that is left out.
    ///
    /// # Errors
    /// [`crate::Error::Request`] if the completed definition is not valid. The definition then stays unchanged,
    /// without any key over an expression.
    pub fn complete(&mut self, previous: Option<&Self>) -> Result<Vec<String>> {
        let Some(computing) = COMPUTING.get() else { return Ok(Vec::new()) };
        if let Some(why) = self.computing_failure() {
            return Ok(vec![why]);
        }
        let declared = self.clone();
        let left_out = (computing.complete)(self, previous);
        // A key that is not possible here is no reason to refuse the table.
        match self.validate() {
            Ok(()) => Ok(left_out),
            Err(error) => {
                *self = declared;
                Err(error)
            }
        }
    }

    /// A reason for each declared key over an expression that is not indexed; empty if all are, or if no functions
    /// are registered. Cost: parses the key expressions.
    pub fn keys_left_out(&self) -> Vec<String> {
        let is_over_one = |line: &String| line.contains("((") || line.contains(",(");
        if !self.declared.as_ref().is_some_and(|declared| declared.keys.iter().any(is_over_one)) {
            return Vec::new();
        }
        let mut again = self.clone();
        again.columns.truncate(self.given_columns());
        let columns = again.columns.len();
        again.indexes.retain(|index| index.columns.iter().all(|part| part.column < columns));
        again.complete(Some(self)).unwrap_or_else(|error| vec![error.to_string()])
    }

    /// Why keys over expressions are no longer computed for this declaration: since the process began, they could not
    /// be computed for a row. A new table with the same declaration gets no such keys ([`Schema::complete`]), so that
    /// it can take the row.
    pub fn computing_failure(&self) -> Option<String> {
        FAILED.read().get(&self.computed_by()?).cloned()
    }

    /// Records that the keys cannot be computed for every row.
    pub(crate) fn note_computing_failure(&self, why: &str) {
        let Some(by) = self.computed_by() else { return };
        let mut failed = FAILED.write();
        if failed.len() < MAX_FAILED {
            failed.entry(by).or_insert_with(|| {
                format!("keys over expressions are not used until a restart, or until they change: {why}")
            });
        }
    }

    /// The keys and visible columns, on which the computed columns depend. The table's name does
    /// not matter.
    fn computed_by(&self) -> Option<Vec<String>> {
        let keys = self.declared.as_ref()?.keys.iter().cloned();
        let columns = self.columns.iter().take(self.given_columns());
        let columns = columns.map(|column| format!("{} {:?}", column.name, column.declared));
        Some(keys.chain(columns).collect())
    }

    /// Whether a column has the values of a key expression. It is never shown. Its values are computed by the writer
    /// of a row ([`crate::Database::apply_computed`]) or by the engine ([`register_computing`]).
    pub fn is_computed(&self, place: usize) -> bool {
        self.columns.get(place).is_some_and(|column| is_computed_name(&column.name))
    }

    /// The number of columns before the computed ones at the end.
    pub fn given_columns(&self) -> usize {
        let computed = (0..self.columns.len()).rev().take_while(|place| self.is_computed(*place));
        self.columns.len() - computed.count()
    }

    /// The key whose expression a column holds; `None` for a visible column.
    fn computed_key(&self, place: usize) -> Option<&str> {
        let name = &self.columns.get(place)?.name;
        let name = name.get(HIDDEN_PREFIX.len()..).filter(|_| is_computed_name(name))?;
        // A name is the number of the key's part, a point and the key's name.
        Some(name.split_once('.').map_or(name, |(_, key)| key))
    }

    /// A column's name where indexes are listed: a computed column is shown as its key in parentheses.
    pub fn shown_name(&self, place: usize) -> String {
        match self.computed_key(place) {
            Some(key) => format!("({key})"),
            None => self.columns.get(place).map(|column| column.name.clone()).unwrap_or_default(),
        }
    }

    /// The keys whose expressions the hidden columns hold, without duplicates, in column order.
    pub(crate) fn computed_keys(&self) -> Vec<&str> {
        let mut keys = Vec::new();
        for key in (0..self.columns.len()).filter_map(|place| self.computed_key(place)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

/// Whether this is the name of a computed column, ignoring case.
pub fn is_computed_name(name: &str) -> bool {
    let begin = name.as_bytes().get(..HIDDEN_PREFIX.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(HIDDEN_PREFIX.as_bytes()))
}

/// The function that computes all hidden columns of a definition; `None` if no functions are registered, a column is
/// unknown, or a visible column follows a computed one.
pub(crate) fn computation(schema: &Arc<Schema>) -> Option<ComputeRow> {
    let given = schema.given_columns();
    let is_at_end = (0..given).all(|place| !schema.is_computed(place));
    COMPUTING.get().filter(|_| is_at_end).and_then(|computing| (computing.computation)(schema))
}
