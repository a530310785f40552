//! Paces batches by a token bucket: at once while there are few, at an even rate while many transactions arrive, so
//! that several of them share the cost of a batch.

use std::time::{Duration, Instant};

/// The interval between tokens.
const INTERVAL: Duration = Duration::from_millis(8);
/// The most tokens in the bucket.
const MOST: u32 = 4;

/// A token bucket. A batch takes one token.
#[derive(Debug)]
pub(super) struct Pace {
    /// When the bucket was or will be empty.
    empty_at: Instant,
}

impl Pace {
    /// A full bucket.
    pub fn new(now: Instant) -> Self {
        Self { empty_at: now.checked_sub(INTERVAL * MOST).unwrap_or(now) }
    }

    /// When the next batch may be submitted.
    pub fn next(&self) -> Instant {
        self.empty_at + INTERVAL
    }

    /// Takes a token, also for a batch that could not wait.
    pub fn spend(&mut self, now: Instant) {
        let full = now.checked_sub(INTERVAL * MOST).unwrap_or(self.empty_at);
        self.empty_at = self.empty_at.max(full).min(now) + INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of batches in milliseconds, if one is ready at this interval.
    fn submitted(every_ms: u64, until_ms: u64) -> Vec<u64> {
        let start = Instant::now() + Duration::from_secs(10);
        let mut pace = Pace::new(start);
        let mut submitted = Vec::new();
        for ms in 0..until_ms {
            let now = start + Duration::from_millis(ms);
            let is_ready = ms % every_ms == 0 || submitted.len() as u64 * every_ms < ms;
            if is_ready && pace.next() <= now {
                pace.spend(now);
                submitted.push(ms);
            }
        }
        submitted
    }

    #[test]
    fn few_batches_are_submitted_at_once() {
        assert_eq!(submitted(20, 100), [0, 20, 40, 60, 80]);
    }

    #[test]
    fn many_batches_are_rate_limited_after_a_burst() {
        let submitted = submitted(1, 100);
        assert_eq!(submitted[..4], [0, 1, 2, 3]);
        assert!(submitted[4..].windows(2).all(|pair| pair[1] - pair[0] == 8), "{submitted:?}");
    }

    #[test]
    fn batches_that_cannot_wait_do_not_delay_later_ones() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut pace = Pace::new(start);
        (0..1_000).for_each(|_| pace.spend(start));
        assert_eq!(pace.next() - start, 2 * INTERVAL);
    }
}
