//! Rows that open transactions have locked, for SKIP LOCKED and NOWAIT. Nobody waits for them, and they decide no commit:
//! SKIP LOCKED leaves them out, NOWAIT refuses them. The engine alone detects conflicts.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The most locks that all transactions hold together: a row that several share counts once for each. Further rows are
/// protected at the commit, but not left out by others.
const MAX_LOCKED: usize = 1 << 18;

/// The locked rows of all sessions.
#[derive(Default)]
pub(crate) struct RowLocks {
    rows: Mutex<LockTable>,
    transactions: AtomicU64,
    /// Whether any statement has asked what is locked.
    is_asked: AtomicBool,
}

#[derive(Default)]
struct LockTable {
    /// By the hash of table and key. If two rows have one hash, one of them may be left out without need.
    rows: FxHashMap<u64, Holders>,
    /// The number of holders of all rows.
    count: usize,
}

/// The transactions that have locked a row, and whether exclusively. Several hold it if they share it, or if one that
/// shares it has changed it.
#[derive(Default)]
struct Holders {
    /// Most rows have one holder only, which needs no map.
    first: Option<(u64, bool)>,
    others: FxHashMap<u64, bool>,
    /// How many hold it exclusively.
    exclusive: usize,
}

impl Holders {
    fn get(&self, transaction: u64) -> Option<bool> {
        match self.first {
            Some((first, is_exclusive)) if first == transaction => Some(is_exclusive),
            _ => self.others.get(&transaction).copied(),
        }
    }

    /// Whether the locks of others keep a transaction from locking it.
    fn refuse(&self, transaction: u64, is_exclusive: bool) -> bool {
        let own = self.get(transaction);
        let others = self.len() - usize::from(own.is_some());
        let exclusive = self.exclusive - usize::from(own == Some(true));
        exclusive > 0 || is_exclusive && others > 0
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Adds a holder, or makes its lock exclusive.
    fn put(&mut self, transaction: u64, is_exclusive: bool) {
        let own = self.get(transaction);
        let is_first = self.first.is_none_or(|(first, _)| first == transaction);
        let becomes = is_exclusive || own == Some(true);
        self.exclusive += usize::from(becomes && own != Some(true));
        if is_first && !self.others.contains_key(&transaction) {
            self.first = Some((transaction, becomes));
        } else {
            self.others.insert(transaction, becomes);
        }
    }

    /// Removes a holder. Returns whether it was one.
    fn remove(&mut self, transaction: u64) -> bool {
        let was = match self.first {
            Some((first, is_exclusive)) if first == transaction => {
                self.first = None;
                Some(is_exclusive)
            }
            _ => self.others.remove(&transaction),
        };
        self.exclusive -= usize::from(was == Some(true));
        was.is_some()
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
        let table = self.rows.lock();
        table.rows.get(&row).is_some_and(|holders| holders.exclusive > 0 || is_exclusive)
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
        self.add(row, is_exclusive, false)
    }

    /// Locks a row exclusively that the transaction changes, even if others have locked it: nobody waits for them.
    pub(crate) fn change(&mut self, row: u64) {
        self.add(row, true, true);
    }

    fn add(&mut self, row: u64, is_exclusive: bool, is_forced: bool) -> LockAttempt {
        let transaction = self.transaction;
        let mut table = self.all.rows.lock();
        let has_room = table.count < MAX_LOCKED;
        if let Some(holders) = table.rows.get_mut(&row) {
            if !is_forced && holders.refuse(transaction, is_exclusive) {
                return LockAttempt::Refused;
            }
            if holders.get(transaction).is_some() {
                holders.put(transaction, is_exclusive);
                return LockAttempt::Own;
            }
        }
        if !has_room {
            return LockAttempt::Full;
        }
        table.rows.entry(row).or_default().put(transaction, is_exclusive);
        table.count += 1;
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

impl LockTable {
    fn give_back(&mut self, row: u64, transaction: u64) {
        let Some(holders) = self.rows.get_mut(&row) else { return };
        if holders.remove(transaction) {
            self.count = self.count.saturating_sub(1);
        }
        if holders.len() == 0 {
            self.rows.remove(&row);
        }
    }
}

impl Drop for TransactionLocks {
    fn drop(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let mut table = self.all.rows.lock();
        self.held.iter().for_each(|row| table.give_back(*row, self.transaction));
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
        assert!(is_empty(&all));
    }

    #[test]
    fn who_changes_a_shared_row_has_locked_it_exclusively() {
        let all = Arc::new(RowLocks::default());
        let (mut a, mut b) = (TransactionLocks::new(&all), TransactionLocks::new(&all));
        let mut c = TransactionLocks::new(&all);
        assert_eq!(
            (a.take(1, false), b.take(1, false)),
            (LockAttempt::Locked, LockAttempt::Locked)
        );
        b.change(1);
        assert!(all.refuses(1, false));
        assert_eq!(
            (c.take(1, false), a.take(1, false)),
            (LockAttempt::Refused, LockAttempt::Refused)
        );
        assert_eq!((b.take(1, false), a.take(1, true)), (LockAttempt::Own, LockAttempt::Refused));
        drop(b);
        assert_eq!((c.take(1, false), a.take(1, false)), (LockAttempt::Locked, LockAttempt::Own));
        // Also one that another transaction has locked: its changes outlast that lock.
        c.change(2);
        a.change(2);
        drop(c);
        assert!(all.refuses(2, false) && !all.refuses(1, false));
        drop(a);
        assert!(is_empty(&all));
    }

    #[test]
    fn each_holder_of_a_shared_row_counts() {
        let all = Arc::new(RowLocks::default());
        let mut sharers: Vec<TransactionLocks> =
            (0..9).map(|_| TransactionLocks::new(&all)).collect();
        sharers.iter_mut().for_each(|sharer| _ = sharer.take(1, false));
        assert_eq!(all.rows.lock().count, 9);
        // The first one ends before the others.
        drop(sharers.remove(0));
        assert_eq!(all.rows.lock().count, 8);
        let mut many = TransactionLocks::new(&all);
        let all_locked =
            (2..).take(MAX_LOCKED - 8).all(|row| many.take(row, true) == LockAttempt::Locked);
        assert!(all_locked);
        let mut last = TransactionLocks::new(&all);
        assert_eq!(
            (last.take(1, false), last.take(0, true)),
            (LockAttempt::Full, LockAttempt::Full)
        );
        assert_eq!(many.take(2, true), LockAttempt::Own);
        drop((many, sharers));
        assert_eq!(last.take(1, true), LockAttempt::Locked);
        drop(last);
        assert!(is_empty(&all));
    }

    fn is_empty(all: &RowLocks) -> bool {
        let table = all.rows.lock();
        table.rows.is_empty() && table.count == 0
    }
}
