//! Rate limiting: a token bucket for each client address.

use std::{collections::HashMap, net::IpAddr, time::Instant};

use parking_lot::Mutex;

use crate::settings::RateLimiting;

/// The buckets of all client addresses. One lock, held for one lookup, and taken only while rate limiting is on.
#[derive(Default)]
pub(crate) struct RateLimiter {
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl RateLimiter {
    /// Takes a token of `address`; false if there is none.
    pub(crate) fn admit(&self, address: IpAddr, limits: &RateLimiting, now: Instant) -> bool {
        let mut buckets = self.buckets.lock();
        if buckets.len() >= limits.max_clients && !buckets.contains_key(&address) {
            forget(&mut buckets, limits, now);
        }
        let capacity = limits.capacity as f64;
        let bucket = buckets.entry(address).or_insert(Bucket { tokens: capacity, filled: now });
        bucket.refill(limits, now);
        let admitted = bucket.tokens >= 1.0;
        if admitted {
            bucket.tokens -= 1.0;
        }
        admitted
    }
}

impl Bucket {
    fn refill(&mut self, limits: &RateLimiting, now: Instant) {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        let tokens = self.tokens + seconds * limits.refill_rate as f64;
        self.tokens = tokens.min(limits.capacity as f64);
        self.filled = now;
    }
}

/// Makes room: removes full buckets, or else the least recently used one.
fn forget(buckets: &mut HashMap<IpAddr, Bucket>, limits: &RateLimiting, now: Instant) {
    buckets.retain(|_, bucket| {
        bucket.refill(limits, now);
        bucket.tokens < limits.capacity as f64
    });
    if buckets.len() >= limits.max_clients {
        let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.filled).map(|(key, _)| *key);
        oldest.and_then(|address| buckets.remove(&address));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn tokens_are_taken_and_refilled() {
        let limits = RateLimiting { enable: true, capacity: 3, refill_rate: 2, max_clients: 2 };
        let limiter = RateLimiter::default();
        let start = Instant::now();
        let address = |last| IpAddr::from([127, 0, 0, last]);
        let admitted = |n| (0..n).filter(|_| limiter.admit(address(1), &limits, start)).count();
        assert_eq!(admitted(5), 3);
        assert!(limiter.admit(address(2), &limits, start));
        let later = start + Duration::from_secs(1);
        let again = (0..5).filter(|_| limiter.admit(address(1), &limits, later)).count();
        assert_eq!(again, 2);
        for last in 3..100 {
            assert!(limiter.admit(address(last), &limits, later));
        }
        assert!(limiter.buckets.lock().len() <= 2);
    }
}
