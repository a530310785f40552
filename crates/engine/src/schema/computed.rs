//! Columns that nobody gives: what keys are over that are expressions.

use super::{HIDDEN_PREFIX, Schema};

impl Schema {
    /// Whether a column has what the expression of a key gives. It is never shown, and its values are its writer's to
    /// compute ([`crate::Database::apply_computed`]).
    pub fn is_computed(&self, place: usize) -> bool {
        self.columns.get(place).is_some_and(|column| is_computed_name(&column.name))
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
