//! The rate limit of copies.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A rate limit that all copies of a follower share.
pub(crate) struct Throttle {
    rows_per_second: Option<u64>,
    /// When the next rows may be read.
    free: Mutex<Instant>,
}

impl Throttle {
    /// `None` means no limit.
    pub fn new(rows_per_second: Option<u64>) -> Self {
        Self { rows_per_second, free: Mutex::new(Instant::now()) }
    }

    /// The most rows of one statement, so that waits stay short.
    pub fn most_rows(&self, wanted: usize) -> usize {
        let most = self.rows_per_second.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        most.map_or(wanted, |rows| wanted.min(rows)).max(1)
    }

    /// How long to wait after this many rows were read.
    pub fn spend(&self, rows: usize) -> Duration {
        let Some(speed) = self.rows_per_second else { return Duration::ZERO };
        let now = Instant::now();
        let mut free = self.free.lock();
        let cost = Duration::from_secs_f64(rows as f64 / speed.max(1) as f64);
        *free = (*free).max(now).checked_add(cost).unwrap_or(now);
        free.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_delays_by_rows() {
        let throttle = Throttle::new(Some(1_000));
        assert!(throttle.spend(500) > Duration::from_millis(400));
        assert!(throttle.spend(500) > Duration::from_millis(900));
        assert_eq!(throttle.most_rows(10_000), 1_000);
        assert_eq!(Throttle::new(None).spend(1 << 20), Duration::ZERO);
    }
}
