//! The open transactions, and the preconditions of their commits.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    Position, Schema,
    snapshot::{Published, Snapshot},
};

/// The positions at which the open transactions began.
#[derive(Default)]
pub(crate) struct OpenTransactions(Mutex<BTreeMap<Position, usize>>);

impl OpenTransactions {
    /// For tests: open transactions that began at these positions.
    #[cfg(test)]
    pub fn at(positions: &[u64]) -> Self {
        let open = Self::default();
        positions.iter().for_each(|&at| _ = open.0.lock().insert(Position(at), 1));
        open
    }

    /// Registers a transaction that begins now, and returns its snapshot.
    pub fn begin(&self, published: &Published) -> Arc<Snapshot> {
        let mut open = self.0.lock();
        let snapshot = published.load();
        *open.entry(snapshot.position).or_default() += 1;
        snapshot
    }

    /// Removes a transaction that began at this position.
    pub fn end(&self, began: Position) {
        let mut open = self.0.lock();
        if let Some(count) = open.get_mut(&began) {
            *count -= 1;
            if *count == 0 {
                open.remove(&began);
            }
        }
    }

    /// The position at which the oldest open transaction began.
    pub fn oldest(&self) -> Option<Position> {
        self.0.lock().first_key_value().map(|(position, _)| *position)
    }
}

/// The precondition of a transaction's commit.
pub(crate) struct CommitPrecondition {
    /// The position of the transaction's snapshot.
    pub position: Position,
    /// Keys that it does not change, but that no other writer may have changed either.
    pub protected: Vec<ProtectedKeys>,
}

/// Keys of one table.
pub(crate) struct ProtectedKeys {
    /// The table's number.
    pub number: u32,
    /// The definition of the table.
    pub schema: Arc<Schema>,
    /// The version of the definition: see `TableView::defined`.
    pub defined: Position,
    /// The encoded keys.
    pub keys: Vec<Vec<u8>>,
}
