//! LAST_INSERT_ID(): the first value that the last INSERT made, or the value that a statement gave it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The value of LAST_INSERT_ID(). Clones share it: functions of a running statement read it, and
/// `LAST_INSERT_ID(value)` changes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastInsertId(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    value: AtomicU64,
    /// Whether the running statement set it by `LAST_INSERT_ID(value)`.
    is_given: AtomicBool,
}

impl LastInsertId {
    pub(crate) fn get(&self) -> u64 {
        self.0.value.load(Ordering::Relaxed)
    }

    /// Called when a statement begins or is run again: it has set no value yet.
    pub(crate) fn begin(&self) {
        self.0.is_given.store(false, Ordering::Relaxed);
    }

    /// Stores a value that an INSERT generated or that a client set.
    pub(crate) fn set(&self, value: u64) {
        self.0.value.store(value, Ordering::Relaxed);
    }

    /// `LAST_INSERT_ID(value)`.
    pub(crate) fn give(&self, value: u64) {
        self.set(value);
        self.0.is_given.store(true, Ordering::Relaxed);
    }

    /// The value that the running statement set by `LAST_INSERT_ID(value)`. Clients receive it like
    /// the ID of a new row.
    pub(crate) fn given(&self) -> Option<u64> {
        self.0.is_given.load(Ordering::Relaxed).then(|| self.get())
    }
}
