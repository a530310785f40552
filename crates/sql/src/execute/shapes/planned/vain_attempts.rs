//! Attempts that are given up after several in a row were in vain.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// After so many attempts in vain none is made, except once in `TRIED_AGAIN` times.
const GIVEN_UP: u32 = 3;
const TRIED_AGAIN: u32 = 16;

/// How many attempts in a row were in vain, those that were not made included.
#[derive(Default)]
pub(super) struct VainAttempts(AtomicU32);

impl VainAttempts {
    /// Whether to make no attempt this time.
    pub(super) fn is_given_up(&self) -> bool {
        let count = self.0.load(Relaxed);
        let is_given_up = count >= GIVEN_UP && !count.is_multiple_of(TRIED_AGAIN);
        if is_given_up {
            self.0.fetch_add(1, Relaxed);
        }
        is_given_up
    }

    /// Notes an attempt.
    pub(super) fn note(&self, is_in_vain: bool) {
        let count = if is_in_vain { self.0.load(Relaxed).saturating_add(1) } else { 0 };
        self.0.store(count, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_vain_is_tried_seldom() {
        let attempts = VainAttempts::default();
        let mut tried = 0;
        for _ in 0..67 {
            if !attempts.is_given_up() {
                attempts.note(true);
                tried += 1;
            }
        }
        assert_eq!(tried, 7);
        attempts.note(false);
        assert!(!attempts.is_given_up());
    }
}
