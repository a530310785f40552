//! The open transactions, and what a commit expects of its keys.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    Position, Schema,
    snapshot::{Published, Snapshot},
};

/// The moments at which the open transactions began.
#[derive(Default)]
pub(crate) struct OpenTransactions(Mutex<BTreeMap<Position, usize>>);

impl OpenTransactions {
    /// Some that began at these positions.
    #[cfg(test)]
    pub fn at(positions: &[u64]) -> Self {
        let open = Self::default();
        positions.iter().for_each(|&at| _ = open.0.lock().insert(Position(at), 1));
        open
    }

    /// Enters one that begins now, at the snapshot that is answered.
    pub fn begin(&self, published: &Published) -> Arc<Snapshot> {
        let mut open = self.0.lock();
        let snapshot = published.load();
        *open.entry(snapshot.position).or_default() += 1;
        snapshot
    }

    /// One that began at this position has ended.
    pub fn end(&self, began: Position) {
        let mut open = self.0.lock();
        if let Some(count) = open.get_mut(&began) {
            *count -= 1;
            if *count == 0 {
                open.remove(&began);
            }
        }
    }

    /// When the oldest of them began.
    pub fn oldest(&self) -> Option<Position> {
        self.0.lock().first_key_value().map(|(position, _)| *position)
    }
}

/// What a transaction's batch must not collide with.
pub(crate) struct Since {
    /// The moment the transaction reads.
    pub position: Position,
    /// Keys that it does not change and that nobody else may have written either.
    pub protected: Vec<ProtectedKeys>,
}

/// Keys of one table.
pub(crate) struct ProtectedKeys {
    /// The table's number.
    pub number: u32,
    /// Its definition.
    pub schema: Arc<Schema>,
    /// Which one that is: see `TableView::defined`.
    pub defined: Position,
    /// The encoded keys.
    pub keys: Vec<Vec<u8>>,
}
