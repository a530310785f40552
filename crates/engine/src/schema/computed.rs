//! Hidden columns with the values of key expressions.
//!
//! The engine evaluates no expressions. The program registers once, for the whole process, as for text orders
//! (`text_order.rs`), which columns a definition needs for its keys and how rows get the values.

use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::{HIDDEN_PREFIX, Schema};
use crate::{Result, Row};

/// Puts the values of the hidden columns at the end of a definition behind those of a row, which has all others. An error
/// says which key cannot be computed of the row, and why.
pub type ComputeRow = Arc<dyn Fn(&mut Row) -> std::result::Result<(), String> + Send + Sync>;

/// Who knows expressions.
#[derive(Clone, Copy)]
pub struct Computing {
    /// Gives a definition what its declared keys need beyond its columns: hidden columns at its end, secondary indexes
    /// and paths. The second definition is what the table has been, if it has rows: columns that it lacks are not added,
    /// nor those that read other columns than they did, since no row has their values. Says of each key that it leaves out
    /// why.
    pub complete: fn(&mut Schema, Option<&Schema>) -> Vec<String>,
    /// What computes the hidden columns at the end of a definition; `None` if it does not know one of them. Asked once for
    /// each batch.
    pub computation: fn(&Arc<Schema>) -> Option<ComputeRow>,
}

static COMPUTING: OnceLock<Computing> = OnceLock::new();

/// Most definitions whose keys could not be computed of a row.
const MAX_FAILED: usize = 1_024;

/// Why the keys of definitions could not be computed of a row, by what they declare.
static FAILED: LazyLock<RwLock<FxHashMap<Vec<String>, String>>> = LazyLock::new(RwLock::default);

/// Tells who knows expressions; the first who tells is heard. Call it before tables are followed: without it keys over
/// expressions are declared and answer nothing.
pub fn register_computing(computing: Computing) {
    // The same is told again by who does not know of it.
    let _ = COMPUTING.set(computing);
}

impl Schema {
    /// Adds what the declared keys need, as far as somebody knows ([`register_computing`]); `previous` is what the table
    /// has been, if it has rows. Says of each key that is left out why.
    ///
    /// # Errors
    /// [`crate::Error::Request`] if the definition with what they need is none that a table can have: it stays as it was,
    /// and no key over an expression answers anything.
    pub fn complete(&mut self, previous: Option<&Self>) -> Result<Vec<String>> {
        let Some(computing) = COMPUTING.get() else { return Ok(Vec::new()) };
        if let Some(why) = self.computing_failure() {
            return Ok(vec![why]);
        }
        let declared = self.clone();
        let left_out = (computing.complete)(self, previous);
        // A key that cannot be had here is no reason to refuse its table.
        match self.validate() {
            Ok(()) => Ok(left_out),
            Err(error) => {
                *self = declared;
                Err(error)
            }
        }
    }

    /// Why keys over expressions that it declares answer nothing, each with its reason; empty if all do, or if nobody knows
    /// expressions. Cost: what keys are over is read.
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

    /// Why its keys over expressions are not computed any more: one could not be of a row that came since the process began.
    /// A table that is made now of the same declaration has none of them ([`Schema::complete`]), and takes that row.
    pub fn computing_failure(&self) -> Option<String> {
        FAILED.read().get(&self.computed_by()?).cloned()
    }

    /// Notes that its keys cannot be computed of every row.
    pub(crate) fn note_computing_failure(&self, why: &str) {
        let Some(by) = self.computed_by() else { return };
        let mut failed = FAILED.write();
        if failed.len() < MAX_FAILED {
            failed.entry(by).or_insert_with(|| {
                format!("keys over expressions are not used until a restart, or until they change: {why}")
            });
        }
    }

    /// What its computed columns follow from, whatever the table is called: its keys and the columns that are given.
    fn computed_by(&self) -> Option<Vec<String>> {
        let keys = self.declared.as_ref()?.keys.iter().cloned();
        let columns = self.columns.iter().take(self.given_columns());
        let columns = columns.map(|column| format!("{} {:?}", column.name, column.declared));
        Some(keys.chain(columns).collect())
    }

    /// Whether a column has what the expression of a key gives. It is never shown, and its values are its writer's to
    /// compute ([`crate::Database::apply_computed`]), or the engine's ([`register_computing`]).
    pub fn is_computed(&self, place: usize) -> bool {
        self.columns.get(place).is_some_and(|column| is_computed_name(&column.name))
    }

    /// How many columns stand before the hidden ones at the end that are computed.
    pub fn given_columns(&self) -> usize {
        let computed = (0..self.columns.len()).rev().take_while(|place| self.is_computed(*place));
        self.columns.len() - computed.count()
    }

    /// The key whose expression a column is computed by; `None` of a column that users see.
    fn computed_key(&self, place: usize) -> Option<&str> {
        let name = &self.columns.get(place)?.name;
        let name = name.get(HIDDEN_PREFIX.len()..).filter(|_| is_computed_name(name))?;
        // The part of the key stands before its name.
        Some(name.split_once('.').map_or(name, |(_, key)| key))
    }

    /// What a column is called where indexes are told: one that nobody sees by its key, in parentheses.
    pub fn shown_name(&self, place: usize) -> String {
        match self.computed_key(place) {
            Some(key) => format!("({key})"),
            None => self.columns.get(place).map(|column| column.name.clone()).unwrap_or_default(),
        }
    }

    /// The keys whose expressions its hidden columns are computed by, each once, in the columns' order.
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

/// Whether a column of this name is one that nobody sees and that is computed, in whatever case it is asked for.
pub fn is_computed_name(name: &str) -> bool {
    let begin = name.as_bytes().get(..HIDDEN_PREFIX.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(HIDDEN_PREFIX.as_bytes()))
}

/// What computes all hidden columns of a definition; `None` as long as nobody knows them, or if others stand behind one.
pub(crate) fn computation(schema: &Arc<Schema>) -> Option<ComputeRow> {
    let given = schema.given_columns();
    let is_at_end = (0..given).all(|place| !schema.is_computed(place));
    COMPUTING.get().filter(|_| is_at_end).and_then(|computing| (computing.computation)(schema))
}
