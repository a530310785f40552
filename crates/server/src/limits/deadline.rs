//! The time limit of a query of the line protocol or HTTP.

use std::time::{Duration, Instant};

use remora_engine::{Ending, Interrupt};

/// Interrupts a read once its time is over.
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// A deadline in this many milliseconds; `None` for 0, which means no limit, and for overflow.
    pub(crate) fn after_ms(limit_ms: u64) -> Option<Self> {
        let limit = Duration::from_millis(limit_ms);
        Instant::now().checked_add(limit).filter(|_| limit_ms > 0).map(Self)
    }
}

impl Interrupt for Deadline {
    fn ending(&self) -> Option<Ending> {
        (Instant::now() >= self.0).then_some(Ending::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_ends_and_none_does_not() {
        assert!(Deadline::after_ms(0).is_none());
        assert_eq!(Deadline::after_ms(1 << 40).unwrap().ending(), None);
        let short = Deadline::after_ms(1).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(short.ending(), Some(Ending::TimedOut));
    }
}
