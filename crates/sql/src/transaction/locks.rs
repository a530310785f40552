//! The rows that a transaction has locked: by FOR UPDATE and FOR SHARE, and by its changes.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{OpenTransaction, RowKey, TransactionState};
use crate::{
    Result,
    error::from_engine_write,
    shared::{InstanceState, LockAttempt},
};

impl TransactionState {
    /// Locks a row that a locking read without NOWAIT and SKIP LOCKED has found. If another transaction has locked it, it
    /// is only protected. A row that the transaction itself has inserted is not locked: others do not see it.
    pub(crate) fn lock(&mut self, table: &str, key: &RowKey, is_exclusive: bool) {
        if let Some(open) = &mut self.open
            && !open.has_inserted(table, key)
        {
            open.locks.take(row_hash(table, key), is_exclusive);
        }
    }

    /// Locks a row for NOWAIT or SKIP LOCKED. Returns false if another transaction has locked it, or if it was changed since
    /// the snapshot, so that the commit would fail. Outside of a transaction, it is not kept locked.
    pub(crate) fn try_lock(
        &mut self,
        shared: &InstanceState,
        table: &str,
        key: &RowKey,
        is_exclusive: bool,
    ) -> Result<bool> {
        shared.row_locks.note_asked();
        let row = row_hash(table, key);
        let Some(open) = &mut self.open else {
            return Ok(!shared.row_locks.refuses(row, is_exclusive));
        };
        let is_own = open.has_inserted(table, key);
        let attempt = (!is_own).then(|| open.locks.take(row, is_exclusive));
        match attempt {
            Some(LockAttempt::Refused) => Ok(false),
            Some(LockAttempt::Own) => Ok(true),
            None | Some(LockAttempt::Locked | LockAttempt::Full) => {
                // Locked first: a transaction unlocks its rows when its commit is visible.
                let then = open.engine.reader().get(table, &key.0).map_err(from_engine_write)?;
                let now = shared.database.reader().get(table, &key.0).map_err(from_engine_write)?;
                let is_unchanged = then == now;
                if !is_unchanged && attempt == Some(LockAttempt::Locked) {
                    open.locks.give_back_last();
                }
                Ok(is_unchanged)
            }
        }
    }
}

impl OpenTransaction {
    /// Locks a row that is about to be changed, if anybody asks what is locked and others see the row: not one that is
    /// being inserted, of which a transaction may have more than can be locked, nor an entry of a hidden table.
    pub(super) fn lock_changed(&mut self, table: &str, key: &RowKey) {
        let is_asked = !self.manner.statement_only && self.locks.are_asked();
        if is_asked && !table.starts_with('#') && self.is_in_snapshot(table, key) {
            self.locks.change(row_hash(table, key));
        }
    }

    /// Whether a row is in the transaction's changes alone.
    fn has_inserted(&self, table: &str, key: &RowKey) -> bool {
        let is_changed = self.tables.get(table).is_some_and(|overlay| overlay.get(key).is_some());
        is_changed && !self.is_in_snapshot(table, key)
    }

    fn is_in_snapshot(&self, table: &str, key: &RowKey) -> bool {
        self.reader().get_columns(table, &key.0, &[]).is_ok_and(|row| row.is_some())
    }
}

fn row_hash(table: &str, key: &RowKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    (table, key).hash(&mut hasher);
    hasher.finish()
}
