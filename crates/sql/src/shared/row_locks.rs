//! Rows that open transactions have locked, for SKIP LOCKED and NOWAIT. Nobody waits for them, and they decide no commit:
//! SKIP LOCKED leaves them out, NOWAIT refuses them. The engine alone detects conflicts.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The most rows that all transactions lock together. Further rows are protected at the commit, but not left out by
/// others.
const MAX_LOCKED: usize = 1 << 18;

/// The locked rows of all sessions.
#[derive(Default)]
pub(crate) struct RowLocks {
    /// By the hash of table and key. If two rows have one hash, one of them may be left out without need.
    rows: Mutex<FxHashMap<u64, Holders>>,
    transactions: AtomicU64,
    /// Whether any statement has asked what is locked.
    is_asked: AtomicBool,
}

/// The transactions that have locked a row; several if they share it.
struct Holders {
    first: u64,
    others: Vec<u64>,
    is_exclusive: bool,
}

impl Holders {
    fn is_only(&self, transaction: u64) -> bool {
        self.first == transaction && self.others.is_empty()
    }

    fn contains(&self, transaction: u64) -> bool {
        self.first == transaction || self.others.contains(&transaction)
    }
}

/// The outcome of an attempt to lock a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockAttempt {
    /// It is locked from now on.
    Locked,
    /// The transaction had locked it before.
    Own,
    /// Another transaction has locked it.
    Refused,
    /// Too many rows are locked.
    Full,
}

/// The rows that one transaction has locked. Dropping it unlocks them.
pub(crate) struct TransactionLocks {
    all: Arc<RowLocks>,
    transaction: u64,
    held: Vec<u64>,
}

impl RowLocks {
    /// Whether a statement outside a transaction could not lock a row.
    pub(crate) fn refuses(&self, row: u64, is_exclusive: bool) -> bool {
        let rows = self.rows.lock();
        rows.get(&row).is_some_and(|holders| holders.is_exclusive || is_exclusive)
    }

    /// Notes that a statement asks what is locked: from now on, rows that open transactions change count as locked.
    pub(crate) fn note_asked(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }
}

impl TransactionLocks {
    /// Those of a transaction that begins.
    pub(crate) fn new(all: &Arc<RowLocks>) -> Self {
        let transaction = all.transactions.fetch_add(1, Ordering::Relaxed);
        Self { all: Arc::clone(all), transaction, held: Vec::new() }
    }

    /// Whether any statement has asked what is locked.
    pub(crate) fn are_asked(&self) -> bool {
        self.all.is_asked.load(Ordering::Relaxed)
    }

    /// Locks a row, without waiting.
    pub(crate) fn take(&mut self, row: u64, is_exclusive: bool) -> LockAttempt {
        let mut rows = self.all.rows.lock();
        let has_room = rows.len() < MAX_LOCKED;
        let Some(holders) = rows.get_mut(&row) else {
            if !has_room {
                return LockAttempt::Full;
            }
            rows.insert(row, Holders { first: self.transaction, others: Vec::new(), is_exclusive });
            self.held.push(row);
            return LockAttempt::Locked;
        };
        if holders.is_only(self.transaction) {
            holders.is_exclusive |= is_exclusive;
            return LockAttempt::Own;
        }
        if is_exclusive || holders.is_exclusive {
            return LockAttempt::Refused;
        }
        if holders.contains(self.transaction) {
            return LockAttempt::Own;
        }
        holders.others.push(self.transaction);
        self.held.push(row);
        LockAttempt::Locked
    }

    /// Unlocks the row that was locked last.
    pub(crate) fn give_back_last(&mut self) {
        if let Some(row) = self.held.pop() {
            self.all.rows.lock().give_back(row, self.transaction);
        }
    }
}

/// The map of locked rows.
trait Unlock {
    fn give_back(&mut self, row: u64, transaction: u64);
}

impl Unlock for FxHashMap<u64, Holders> {
    fn give_back(&mut self, row: u64, transaction: u64) {
        let Some(holders) = self.get_mut(&row) else { return };
        if holders.is_only(transaction) {
            self.remove(&row);
        } else if holders.first == transaction {
            holders.first = holders.others.pop().unwrap_or(transaction);
        } else {
            holders.others.retain(|other| *other != transaction);
        }
    }
}

impl Drop for TransactionLocks {
    fn drop(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let mut rows = self.all.rows.lock();
        self.held.iter().for_each(|row| rows.give_back(*row, self.transaction));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_shared_or_one_transactions_until_that_ends() {
        let all = Arc::new(RowLocks::default());
        let (mut a, mut b) = (TransactionLocks::new(&all), TransactionLocks::new(&all));
        assert_eq!(
            (a.take(1, false), b.take(1, false)),
            (LockAttempt::Locked, LockAttempt::Locked)
        );
        assert_eq!((a.take(1, true), b.take(1, false)), (LockAttempt::Refused, LockAttempt::Own));
        assert!(all.refuses(1, true) && !all.refuses(1, false) && !all.refuses(2, true));
        drop(a);
        assert_eq!((b.take(1, true), b.take(1, true)), (LockAttempt::Own, LockAttempt::Own));
        let mut c = TransactionLocks::new(&all);
        assert_eq!(
            (c.take(1, false), c.take(2, true)),
            (LockAttempt::Refused, LockAttempt::Locked)
        );
        c.give_back_last();
        assert_eq!(b.take(2, true), LockAttempt::Locked);
        drop((b, c));
        assert!(all.rows.lock().is_empty());
    }
}
