//! A connection's prepared statements.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use remora_protocol::mysql::{Cursor, Parameters};
use remora_sql::Prepared;

/// The memory of a statement per byte of its text: two copies and the tokens.
const TEXT_COPIES: usize = 8;

/// A prepared statement with its state between executions.
pub(super) struct Statement {
    pub prepared: Prepared,
    pub text: Arc<str>,
    pub parameters: Parameters,
    /// Rows that wait to be fetched.
    pub cursor: Option<Cursor>,
    /// Whether long data was refused, which the next execution reports.
    pub is_cut: bool,
}

impl Statement {
    /// The bytes of its text, parameters and rows.
    pub(super) fn kept_bytes(&self) -> usize {
        let rows = self.cursor.as_ref().map_or(0, Cursor::held_bytes);
        TEXT_COPIES * self.text.len() + self.parameters.long_bytes() + rows
    }
}

/// The prepared statements of one connection, by number.
pub(super) struct Statements {
    open: HashMap<u32, Statement>,
    last_id: u32,
    /// The bytes of all texts, parameters and rows.
    kept_bytes: usize,
    /// The number of prepared statements of all connections.
    service: Arc<AtomicUsize>,
}

impl Statements {
    /// No statements yet. They are also counted in `service`.
    pub(super) fn new(service: Arc<AtomicUsize>) -> Self {
        Self { open: HashMap::new(), last_id: 0, kept_bytes: 0, service }
    }

    /// Adds a statement and returns its number; `None` if all connections together have `most`.
    pub(super) fn add(&mut self, prepared: Prepared, text: Arc<str>, most: usize) -> Option<u32> {
        if self.service.fetch_add(1, Relaxed) >= most {
            self.service.fetch_sub(1, Relaxed);
            return None;
        }
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if !self.open.contains_key(&self.last_id) {
                break;
            }
        }
        let parameters = Parameters::default();
        let statement = Statement { prepared, text, parameters, cursor: None, is_cut: false };
        self.kept_bytes += statement.kept_bytes();
        self.open.insert(self.last_id, statement);
        Some(self.last_id)
    }

    /// The statement with this number. The largest number means the last one created.
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Statement> {
        let id = if id == u32::MAX { self.last_id } else { id };
        self.open.get_mut(&id)
    }

    /// Removes a statement.
    pub(super) fn close(&mut self, id: u32) {
        if let Some(closed) = self.open.remove(&id) {
            self.service.fetch_sub(1, Relaxed);
            self.kept_bytes = self.kept_bytes.saturating_sub(closed.kept_bytes());
        }
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.service.fetch_sub(self.open.len(), Relaxed);
        self.open = HashMap::new();
        self.kept_bytes = 0;
    }

    /// The bytes of all texts, parameters and rows, as last counted.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Counts those bytes again; must be called when they change.
    pub(super) fn count_kept(&mut self) {
        self.kept_bytes = self.open.values().map(Statement::kept_bytes).sum();
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        self.clear();
    }
}
