//! Batches that were submitted to the writer: waiting for one, and sequences of them (pipelines).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{computed::RowColumns, prepare::prepare};
use crate::{
    ChangeBatch, Error, Position, Result,
    shared::{DatabaseState, Job, Outcome, Waiter},
};

/// A sequence of batches that build on each other, such as those of a source. If one fails, no later batch of the
/// pipeline is applied, so a stored position never skips changes. After a failure start a new pipeline from the
/// stored position.
///
/// Even with [`crate::Durability::Always`] these batches become visible before they are synced, which happens within
/// 100 ms. After a crash, read the stored position and submit the batches after it again.
pub struct Pipeline {
    shared: Arc<DatabaseState>,
    broken: Arc<AtomicBool>,
}

impl Pipeline {
    pub(crate) fn new(shared: &Arc<DatabaseState>) -> Self {
        Self { shared: Arc::clone(shared), broken: Arc::default() }
    }

    /// Like [`crate::Database::submit`], after the batches submitted here before.
    ///
    /// # Errors
    /// Those of [`crate::Database::submit`], and [`Error::Conflict`] if an earlier batch of this pipeline failed. A
    /// batch refused here counts as not submitted: it does not break the pipeline.
    pub fn submit(&self, batch: ChangeBatch) -> Result<Pending> {
        self.shared.check_open()?;
        if self.is_broken() {
            return Err(Error::Conflict("an earlier batch of this pipeline failed".to_owned()));
        }
        let snapshot = self.shared.published.load();
        let mut prepared = prepare(batch, RowColumns::VisibleOnly, &snapshot, &self.shared)?;
        prepared.broken = Some(Arc::clone(&self.broken));
        let (waiter, pending) = Pending::new(&self.shared);
        self.shared.queue.push(Job::Apply(prepared, waiter))?;
        Ok(pending)
    }

    /// Whether a batch of this pipeline failed.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

/// A submitted batch. It is applied whether this is waited for or dropped.
#[must_use = "whether the batch was applied is known only after a wait"]
pub struct Pending {
    outcome: Outcome,
    shared: Arc<DatabaseState>,
}

impl Pending {
    /// The writer's end, and the caller's end that waits.
    pub(crate) fn new(shared: &Arc<DatabaseState>) -> (Waiter, Self) {
        let (waiter, outcome) = Waiter::new();
        (waiter, Self { outcome, shared: Arc::clone(shared) })
    }

    /// Waits until the batch is visible and durable as the options say (a batch of a [`Pipeline`]: only visible), or
    /// refused.
    ///
    /// # Errors
    /// - [`Error::NotFound`] or [`Error::Conflict`]: its table was dropped or altered meanwhile, an earlier batch of
    ///   its [`Pipeline`] failed, or its [`crate::Transaction`] conflicts with another write.
    /// - [`Error::Exists`]: the key of an inserted row exists.
    /// - [`Error::NotUnique`]: another row has the same value at a unique path.
    /// - [`Error::Busy`]: a table has too many segments and they cannot be merged.
    /// - [`Error::Request`]: its rows are too large to be indexed together.
    /// - [`Error::Full`]: the disk is full.
    /// - [`Error::Corrupt`] or [`Error::Io`]: what it must be checked against cannot be read.
    /// - [`Error::Poisoned`] or [`Error::Closed`]: the database accepts no writes any more. After [`Error::Poisoned`]
    ///   only the next start shows whether the batch was applied.
    pub fn wait(self) -> Result<Position> {
        // The writer leaves a batch without an answer only when it ends.
        self.outcome.wait().unwrap_or_else(|| Err(self.shared.refusal()))
    }

    /// The result of [`Pending::wait`] if it is known; `None` if it is not. A result is returned once.
    pub fn poll(&self) -> Option<Result<Position>> {
        let outcome = self.outcome.poll()?;
        Some(outcome.unwrap_or_else(|| Err(self.shared.refusal())))
    }
}
