//! Batches that were submitted to the writer: waiting for one, or for a sequence of them (a pipeline).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{computed::Brought, prepare::prepare};
use crate::{
    ChangeBatch, Error, Position, Result,
    shared::{DatabaseState, Job, Outcome, Waiter},
};

/// Batches that follow from each other, as those of a source do: one that fails, whenever that is,
/// keeps all behind it from being applied, so that a stored position never jumps over changes.
/// After a failure begin a new one from what is stored.
///
/// With [`crate::Durability::Always`] they are visible before they are synced, which is done within
/// a tenth of a second: whoever feeds a pipeline finds after a crash where it is, and feeds it the
/// same again.
pub struct Pipeline {
    shared: Arc<DatabaseState>,
    broken: Arc<AtomicBool>,
}

impl Pipeline {
    pub(crate) fn new(shared: &Arc<DatabaseState>) -> Self {
        Self { shared: Arc::clone(shared), broken: Arc::default() }
    }

    /// As [`crate::Database::submit`], behind what was submitted here before. What is refused here
    /// and now counts as not submitted.
    ///
    /// # Errors
    /// Those of [`crate::Database::submit`], and [`Error::Conflict`] if a batch of this pipeline
    /// failed before. What is refused here counts as not submitted: it does not break the pipeline.
    pub fn submit(&self, batch: ChangeBatch) -> Result<Pending> {
        self.shared.check_open()?;
        if self.is_broken() {
            return Err(Error::Conflict("a batch before this one failed".to_owned()));
        }
        let snapshot = self.shared.published.load();
        let mut prepared = prepare(batch, Brought::Given, &snapshot, &self.shared)?;
        prepared.broken = Some(Arc::clone(&self.broken));
        let (waiter, pending) = Pending::new(&self.shared);
        self.shared.queue.push(Job::Apply(prepared, waiter))?;
        Ok(pending)
    }

    /// Whether a batch of it failed.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

/// A batch that was submitted: it is applied whether this is waited for or dropped.
#[must_use = "whether the batch was applied is known only after a wait"]
pub struct Pending {
    outcome: Outcome,
    shared: Arc<DatabaseState>,
}

impl Pending {
    /// What the writer answers, and the wait for it.
    pub(crate) fn new(shared: &Arc<DatabaseState>) -> (Waiter, Self) {
        let (waiter, outcome) = Waiter::new();
        (waiter, Self { outcome, shared: Arc::clone(shared) })
    }

    /// Waits until the batch is visible and, but for those of a [`Pipeline`], as durable as the
    /// options say; or refused.
    ///
    /// # Errors
    /// - [`Error::NotFound`] or [`Error::Conflict`]: its table was dropped or altered meanwhile, a
    ///   batch before it in its [`Pipeline`] failed, or its [`crate::Transaction`] met another
    ///   write.
    /// - [`Error::Exists`]: the key of a row that it inserts is there.
    /// - [`Error::NotUnique`]: another row has a value that a row of it has at a path that is unique.
    /// - [`Error::Busy`]: a table has too many segments and they cannot be merged.
    /// - [`Error::Request`]: its rows are too large to be indexed together.
    /// - [`Error::Full`]: the disk is full.
    /// - [`Error::Corrupt`] or [`Error::Io`]: what it is checked against cannot be read.
    /// - [`Error::Poisoned`] or [`Error::Closed`]: the database takes no writes any more. After
    ///   [`Error::Poisoned`] only the next start shows whether the batch was applied.
    pub fn wait(self) -> Result<Position> {
        // The writer drops what it does not answer only when it ends.
        self.outcome.wait().unwrap_or_else(|| Err(self.shared.refusal()))
    }

    /// What [`Pending::wait`] would answer now without waiting; `None` while it would wait. An
    /// outcome is told once.
    pub fn poll(&self) -> Option<Result<Position>> {
        let told = self.outcome.poll()?;
        Some(told.unwrap_or_else(|| Err(self.shared.refusal())))
    }
}
