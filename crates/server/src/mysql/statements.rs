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

/// What a statement takes for each byte of its text: the text itself twice, and its tokens.
const TEXT_COPIES: usize = 8;

/// A prepared statement and what belongs to it between its runs.
pub(super) struct Statement {
    pub prepared: Prepared,
    pub text: Arc<str>,
    pub parameters: Parameters,
    /// Rows that wait to be fetched.
    pub cursor: Option<Cursor>,
    /// Whether long data was refused, of which the next run tells.
    pub is_cut: bool,
}

impl Statement {
    /// Bytes of its text, its parameters and its rows that it keeps.
    pub(super) fn kept_bytes(&self) -> usize {
        let rows = self.cursor.as_ref().map_or(0, Cursor::held_bytes);
        TEXT_COPIES * self.text.len() + self.parameters.long_bytes() + rows
    }
}

/// The statements of one connection by their numbers.
pub(super) struct Statements {
    open: HashMap<u32, Statement>,
    last_id: u32,
    /// Bytes of texts, parameters and rows that are kept.
    kept_bytes: usize,
    /// Those of all connections.
    side: Arc<AtomicUsize>,
}

impl Statements {
    /// None yet; counted in `side` too.
    pub(super) fn new(side: Arc<AtomicUsize>) -> Self {
        Self { open: HashMap::new(), last_id: 0, kept_bytes: 0, side }
    }

    /// Keeps a statement and gives its number; `None` where all connections together have `most`.
    pub(super) fn add(&mut self, prepared: Prepared, text: Arc<str>, most: usize) -> Option<u32> {
        if self.side.fetch_add(1, Relaxed) >= most {
            self.side.fetch_sub(1, Relaxed);
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

    /// The statement with this number. A client that asks for the largest number means the last
    /// one that was made.
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Statement> {
        let id = if id == u32::MAX { self.last_id } else { id };
        self.open.get_mut(&id)
    }

    /// Forgets a statement.
    pub(super) fn close(&mut self, id: u32) {
        if let Some(closed) = self.open.remove(&id) {
            self.side.fetch_sub(1, Relaxed);
            self.kept_bytes = self.kept_bytes.saturating_sub(closed.kept_bytes());
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.side.fetch_sub(self.open.len(), Relaxed);
        self.open = HashMap::new();
        self.kept_bytes = 0;
    }

    /// Bytes of texts, parameters and rows that are kept, when they were last counted.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Counts what is kept; to be called when it changes.
    pub(super) fn count_kept(&mut self) {
        self.kept_bytes = self.open.values().map(Statement::kept_bytes).sum();
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        self.clear();
    }
}
