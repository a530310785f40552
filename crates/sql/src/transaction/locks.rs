//! The rows that a transaction has locked: by FOR UPDATE and FOR SHARE, and by its changes.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Key, OpenTransaction, TransactionState};
use crate::{
    Result,
    error::from_engine_write,
    shared::{InstanceState, LockAttempt},
};

impl TransactionState {
    /// Locks a row that a locking read without NOWAIT and SKIP LOCKED has found. If another transaction has locked it, it
    /// is only protected.
    pub(crate) fn lock(&mut self, table: &str, key: &Key, is_exclusive: bool) {
        if let Some(open) = &mut self.open {
            open.locks.take(row_hash(table, key), is_exclusive);
        }
    }

    /// Locks a row for NOWAIT or SKIP LOCKED. Returns false if another transaction has locked it, or if it was changed since
    /// the snapshot, so that the commit would fail. Outside of a transaction, it is not kept locked.
    pub(crate) fn try_lock(
        &mut self,
        shared: &InstanceState,
        table: &str,
        key: &Key,
        is_exclusive: bool,
    ) -> Result<bool> {
        shared.row_locks.note_asked();
        let row = row_hash(table, key);
        let Some(open) = &mut self.open else {
            return Ok(!shared.row_locks.refuses(row, is_exclusive));
        };
        match open.locks.take(row, is_exclusive) {
            LockAttempt::Refused => Ok(false),
            LockAttempt::Own => Ok(true),
            attempt @ (LockAttempt::Locked | LockAttempt::Full) => {
                // Locked first: a transaction unlocks its rows when its commit is visible.
                let then = open.engine.reader().get(table, &key.0).map_err(from_engine_write)?;
                let now = shared.database.reader().get(table, &key.0).map_err(from_engine_write)?;
                let is_unchanged = then == now;
                if !is_unchanged && attempt == LockAttempt::Locked {
                    open.locks.give_back_last();
                }
                Ok(is_unchanged)
            }
        }
    }
}

impl OpenTransaction {
    /// Locks a row that is about to be changed, if anybody asks what is locked.
    pub(super) fn lock_changed(&mut self, table: &str, key: &Key) {
        if !self.manner.statement_only && self.locks.are_asked() {
            self.locks.take(row_hash(table, key), true);
        }
    }
}

fn row_hash(table: &str, key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    (table, key).hash(&mut hasher);
    hasher.finish()
}
