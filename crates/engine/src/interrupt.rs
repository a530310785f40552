//! Cancellation of reads: the caller no longer waits, or its time limit is over.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{Ending, Error, Result};

/// Tells a read whether it is to end. It is asked from the thread that reads, thousands of times a second.
pub trait Interrupt: Send + Sync {
    /// Why the read is to end; `None` for as long as it may go on.
    fn ending(&self) -> Option<Ending>;
}

/// True once the read is to end.
impl Interrupt for AtomicBool {
    fn ending(&self) -> Option<Ending> {
        self.load(Ordering::Relaxed).then_some(Ending::Interrupted)
    }
}

/// Goes on unless it is told to end.
#[derive(Clone)]
pub struct Unless(Option<Arc<dyn Interrupt>>);

impl Unless {
    /// Nobody tells it.
    pub const NEVER: Self = Self(None);

    /// Asks this one.
    pub fn new(interrupt: Arc<dyn Interrupt>) -> Self {
        Self(Some(interrupt))
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// [`Error::Ended`] if it is to end.
    pub fn check(&self) -> Result<()> {
        match self.0.as_ref().and_then(|interrupt| interrupt.ending()) {
            Some(ending) => Err(Error::Ended(ending)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Unless {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Unless").field(&self.0.is_some()).finish()
    }
}

/// Postings, or places in texts, that are read between two looks, some ten microseconds; fewer in tests, whose tables are
/// small.
const POSTINGS: usize = if cfg!(test) { 16 } else { 4_096 };

/// Asks now and then, so that what is done in between costs a hundred times as much or more.
pub(crate) struct Looks {
    unless: Unless,
    /// Postings until the next.
    left: usize,
}

impl Looks {
    /// Looks at the first step.
    pub fn new(unless: &Unless) -> Self {
        Self { unless: unless.clone(), left: 0 }
    }

    /// A posting was read; [`Error::Ended`] if it was the last.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.steps(1)
    }

    /// So many were, or what costs as much.
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
