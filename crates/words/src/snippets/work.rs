//! Counts the work of an excerpt and checks for cancellation every so many steps, so that checking costs next to
//! nothing and a cancelled excerpt ends within milliseconds.

use std::cell::Cell;

/// Steps between two checks. A step takes well below a microsecond.
const STEPS: usize = 4_096;

/// The work on one excerpt.
pub(super) struct Work<'w> {
    /// Steps until the next check.
    left: Cell<usize>,
    is_over: Cell<bool>,
    is_ended: &'w dyn Fn() -> bool,
}

impl<'w> Work<'w> {
    /// Work that ends when `is_ended` returns true.
    pub(super) fn new(is_ended: &'w dyn Fn() -> bool) -> Self {
        Self { left: Cell::new(STEPS), is_over: Cell::new(false), is_ended }
    }

    /// Counts steps; returns whether to continue. Once false, always false.
    pub(super) fn goes_on(&self, steps: usize) -> bool {
        match self.left.get().checked_sub(steps) {
            Some(left) => self.left.set(left),
            None => {
                self.left.set(STEPS);
                self.is_over.set(self.is_over.get() || (self.is_ended)());
            }
        }
        !self.is_over.get()
    }

    /// Whether the work was ended; its results are incomplete then.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruption_is_polled_and_final() {
        let asked = Cell::new(0);
        let is_ended = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let work = Work::new(&is_ended);
        let steps = (0..).take_while(|_| work.goes_on(1)).count();
        assert_eq!((asked.get(), steps), (3, 3 * (STEPS + 1) - 1));
        assert!(!work.goes_on(1) && work.is_over() && !work.goes_on(10 * STEPS));
        // Many steps counted together lead to a single check.
        asked.set(2);
        assert!(!Work::new(&is_ended).goes_on(STEPS + 1));
    }
}
