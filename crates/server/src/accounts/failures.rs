//! Failed logins by address: after many failures an address has to wait, across all protocols.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The number of failures without a wait.
const FREE: u32 = 25;
/// The wait for each further failure.
const EACH: Duration = Duration::from_secs(1);
/// A login that would have to wait longer is refused.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The most addresses that are remembered.
const MAX_ADDRESSES: usize = 10_000;

/// Recent failures. One lock, held for one lookup.
#[derive(Default)]
pub(crate) struct Failures {
    /// Until when the failures of an address last in total.
    lasting: Mutex<HashMap<IpAddr, Instant>>,
}

/// A login in progress.
pub(crate) struct Attempt<'f> {
    failures: &'f Failures,
    address: IpAddr,
    /// Whether it is counted as a failure in advance, so that concurrent logins wait longer.
    is_counted: bool,
    /// How long it must wait before it is verified.
    pub(crate) wait: Duration,
}

impl Failures {
    /// Begins a login; `None` if too many of its address are waiting already. Clients of local sockets share one
    /// address.
    pub(crate) fn begin_attempt(
        &self,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Option<Attempt<'_>> {
        let address = network_of(address);
        let mut lasting = self.lasting.lock();
        let Some(until) = lasting.get_mut(&address) else {
            return Some(Attempt {
                failures: self,
                address,
                is_counted: false,
                wait: Duration::ZERO,
            });
        };
        let wait = until.saturating_duration_since(now).saturating_sub(EACH * FREE);
        if wait > LONGEST_WAIT {
            return None;
        }
        let is_counted = !wait.is_zero();
        if is_counted {
            *until += EACH;
        }
        Some(Attempt { failures: self, address, is_counted, wait })
    }

    fn add(&self, address: IpAddr, now: Instant) {
        let mut lasting = self.lasting.lock();
        if lasting.len() >= MAX_ADDRESSES && !lasting.contains_key(&address) {
            forget(&mut lasting, now);
        }
        let until = lasting.entry(address).or_insert(now);
        *until = (*until).max(now) + EACH;
    }

    fn remove_attempt(&self, address: IpAddr) {
        if let Some(until) = self.lasting.lock().get_mut(&address) {
            *until = until.checked_sub(EACH).unwrap_or(*until);
        }
    }
}

impl Attempt<'_> {
    /// Notes that it failed.
    pub(crate) fn failed(self, now: Instant) {
        if !self.is_counted {
            self.failures.add(self.address, now);
        }
    }

    /// Notes that it succeeded.
    pub(crate) fn succeeded(self) {
        if self.is_counted {
            self.failures.remove_attempt(self.address);
        }
    }
}

/// The unit that is counted: for IPv6, the network of a single client.
fn network_of(address: Option<IpAddr>) -> IpAddr {
    match address.map(|address| address.to_canonical()) {
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        Some(IpAddr::V6(address)) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        Some(address) => address,
    }
}

/// Makes room: removes expired entries, or else the one that expires first.
fn forget(lasting: &mut HashMap<IpAddr, Instant>, now: Instant) {
    lasting.retain(|_, until| *until > now);
    if lasting.len() >= MAX_ADDRESSES {
        let first = lasting.iter().min_by_key(|(_, until)| **until).map(|(address, _)| *address);
        first.and_then(|address| lasting.remove(&address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn failed_logins_are_delayed_and_then_refused() {
        let failures = Failures::default();
        let start = Instant::now();
        let mut waits = Vec::new();
        while let Some(attempt) = failures.begin_attempt(address(1), start) {
            waits.push(attempt.wait);
            attempt.failed(start);
            assert!(waits.len() < 100);
        }
        let free = waits.iter().filter(|wait| wait.is_zero()).count();
        assert_eq!(free as u32, FREE + 1);
        assert_eq!(*waits.last().unwrap(), LONGEST_WAIT);
        assert!(
            failures.begin_attempt(address(2), start).is_some_and(|other| other.wait.is_zero())
        );
        // From then on one per second.
        let mut checked = 0;
        for second in 1..=20 {
            let now = start + Duration::from_secs(second);
            while let Some(attempt) = failures.begin_attempt(address(1), now) {
                attempt.failed(now);
                checked += 1;
            }
        }
        assert_eq!(checked, 20);
        let later = start + Duration::from_secs(600);
        assert!(
            failures.begin_attempt(address(1), later).is_some_and(|again| again.wait.is_zero())
        );
    }

    #[test]
    fn concurrent_logins_wait_in_turn() {
        let failures = Failures::default();
        let now = Instant::now();
        (0..=FREE).for_each(|_| failures.begin_attempt(address(1), now).unwrap().failed(now));
        let waiting: Vec<_> =
            std::iter::from_fn(|| failures.begin_attempt(address(1), now)).collect();
        let seconds: Vec<u64> = waiting.iter().map(|one| one.wait.as_secs()).collect();
        assert_eq!(seconds, [1, 2, 3, 4, 5]);
        // A successful login gives its place back.
        waiting.into_iter().for_each(Attempt::succeeded);
        assert_eq!(failures.begin_attempt(address(1), now).unwrap().wait, EACH);
    }

    #[test]
    fn successful_logins_are_not_delayed() {
        let failures = Failures::default();
        let now = Instant::now();
        for _ in 0..1000 {
            let attempt = failures.begin_attempt(address(1), now).unwrap();
            assert!(attempt.wait.is_zero());
            attempt.succeeded();
        }
        assert!(failures.lasting.lock().is_empty());
    }

    #[test]
    fn failed_addresses_are_counted_by_network_and_bounded() {
        let of = |text: &str| network_of(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        let failures = Failures::default();
        let now = Instant::now();
        for number in 0..MAX_ADDRESSES as u32 + 100 {
            let address = Some(IpAddr::from(number.to_be_bytes()));
            failures.begin_attempt(address, now).unwrap().failed(now);
        }
        assert_eq!(failures.lasting.lock().len(), MAX_ADDRESSES);
    }
}
