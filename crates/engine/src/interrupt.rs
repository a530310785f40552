//! Interruption of reads that were cancelled or exceed their time limit.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{Ending, Error, Result};

/// Tells a read whether to stop. The reading thread calls it thousands of times a second.
pub trait Interrupt: Send + Sync {
    /// Why the read must end; `None` while it may continue.
    fn ending(&self) -> Option<Ending>;
}

/// The flag is set to interrupt the read.
impl Interrupt for AtomicBool {
    fn ending(&self) -> Option<Ending> {
        self.load(Ordering::Relaxed).then_some(Ending::Interrupted)
    }
}

/// Ends a read at an instant.
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline this long from now; `None` if the clock cannot represent it.
    pub fn after(limit: Duration) -> Option<Self> {
        Instant::now().checked_add(limit).map(Self)
    }
}

impl Interrupt for Deadline {
    fn ending(&self) -> Option<Ending> {
        (Instant::now() >= self.0).then_some(Ending::TimedOut)
    }
}

/// What interrupts a read, if anything does.
#[derive(Clone)]
pub struct InterruptCheck(Option<Arc<dyn Interrupt>>);

impl InterruptCheck {
    /// Never interrupts.
    pub const NEVER: Self = Self(None);

    /// Checks this interrupt.
    pub fn new(interrupt: Arc<dyn Interrupt>) -> Self {
        Self(Some(interrupt))
    }

    /// Checks whether the read may continue.
    ///
    /// # Errors
    /// [`Error::Ended`] if the read must end.
    pub fn check(&self) -> Result<()> {
        match self.0.as_ref().and_then(|interrupt| interrupt.ending()) {
            Some(ending) => Err(Error::Ended(ending)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for InterruptCheck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("InterruptCheck").field(&self.0.is_some()).finish()
    }
}

/// The number of postings or positions read between two checks, about ten microseconds; fewer in tests, whose tables
/// are small.
const POSTINGS: usize = if cfg!(test) { 16 } else { 4_096 };

/// Checks the interrupt at intervals, so that the work between two checks costs at least a hundred times as much as
/// one.
pub(crate) struct InterruptTicker {
    unless: InterruptCheck,
    /// The number of postings left until the next check.
    left: usize,
}

impl InterruptTicker {
    /// A ticker that checks at the first step.
    pub fn new(unless: &InterruptCheck) -> Self {
        Self { unless: unless.clone(), left: 0 }
    }

    /// Counts one posting; [`Error::Ended`] if the read must end.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.steps(1)
    }

    /// Counts this many postings, or work of the same cost.
    #[inline]
    pub fn steps(&mut self, postings: usize) -> Result<()> {
        if let Some(left) = self.left.checked_sub(postings) {
            self.left = left;
            return Ok(());
        }
        self.left = POSTINGS;
        self.unless.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_ends_a_read_when_it_is_over() {
        assert!(Deadline::after(Duration::MAX).is_none());
        assert_eq!(Deadline::after(Duration::from_secs(1 << 20)).unwrap().ending(), None);
        assert_eq!(Deadline::after(Duration::ZERO).unwrap().ending(), Some(Ending::TimedOut));
    }
}
