//! What this server knows of other servers that hold parts of tables: keys that parts have in
//! common, and the health of each server.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use remora_engine::PartsCache;

use super::InstanceState;

/// A server that failed this often in a row counts as dead and is asked last.
const DEAD_AFTER: u32 = 3;
/// One error in this many requests is ignored.
const FEW_ERRORS: u64 = 33;
/// The most servers whose health is recorded.
const MAX_SERVERS: usize = 4_096;

/// The order in which servers with the same rows are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// At random.
    #[default]
    Random,
    /// In turn.
    RoundRobin,
    /// At random, with dead servers last.
    NoDeads,
    /// The server with the lowest error rate first.
    NoErrors,
}

impl Strategy {
    /// The strategy of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "random" => Self::Random,
            "roundrobin" => Self::RoundRobin,
            "nodeads" => Self::NoDeads,
            "noerrors" => Self::NoErrors,
            _ => return None,
        })
    }
}

/// A server's health: how often and how fast it answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// The number of requests.
    pub asked: u64,
    /// The number of requests that failed.
    pub failed: u64,
    /// The number of failures in a row up to now.
    pub failed_last: u32,
    /// How long the last successful opening took.
    pub last: Duration,
}

/// What this server knows of other servers.
pub(crate) struct AgentsState {
    /// Cached facts of tables with several parts: common keys and definitions.
    pub parts: PartsCache,
    /// An identifier of this run of the server. Table numbers may repeat in another run.
    pub run: String,
    health: Mutex<HashMap<String, Health>>,
    turn: Mutex<usize>,
    /// The number of threads that ask other servers.
    asking: AtomicUsize,
}

/// A slot of `agents.max_connections`. Dropping it frees the slot.
pub(crate) struct AgentThreadPermit(Arc<InstanceState>);

impl Drop for AgentThreadPermit {
    fn drop(&mut self) {
        self.0.agents.asking.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for AgentsState {
    fn default() -> Self {
        let (one, other) = (RandomState::new(), RandomState::new());
        let run = format!("{:016x}{:016x}", one.hash_one(0), other.hash_one(1));
        let (health, turn) = (Mutex::default(), Mutex::default());
        let asking = AtomicUsize::new(0);
        Self { parts: PartsCache::default(), run, health, turn, asking }
    }
}

impl AgentsState {
    /// Takes a slot for a thread that asks another server. If all are taken, the error is their
    /// number.
    pub(crate) fn place(instance: &Arc<InstanceState>) -> Result<AgentThreadPermit, usize> {
        let most = instance.host.most_agents();
        let asking = &instance.agents.asking;
        let one_more = |count: usize| (count < most).then_some(count + 1);
        match asking.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(AgentThreadPermit(Arc::clone(instance))),
            Err(_) => Err(most),
        }
    }

    /// Records whether a server opened a part, and how long that took.
    pub(crate) fn note(&self, address: &str, answered: bool, took: Duration) {
        let mut all = self.health.lock();
        if all.len() >= MAX_SERVERS && !all.contains_key(address) {
            all.clear();
        }
        let health = all.entry(address.to_owned()).or_default();
        health.asked += 1;
        match answered {
            true => (health.failed_last, health.last) = (0, took),
            false => {
                health.failed += 1;
                health.failed_last = health.failed_last.saturating_add(1);
            }
        }
    }

    /// The health of every server asked so far.
    pub(crate) fn health(&self) -> Vec<(String, Health)> {
        let all = self.health.lock();
        let mut told: Vec<_> = all.iter().map(|(name, health)| (name.clone(), *health)).collect();
        told.sort_by(|a, b| a.0.cmp(&b.0));
        told
    }

    /// Indexes of `addresses` in the order in which to ask them.
    pub(crate) fn order(&self, strategy: Strategy, addresses: &[&str]) -> Vec<usize> {
        let count = addresses.len();
        let start = match strategy {
            Strategy::RoundRobin => {
                let mut turn = self.turn.lock();
                *turn = turn.wrapping_add(1);
                *turn
            }
            _ => RandomState::new().hash_one(count) as usize,
        };
        let mut order: Vec<usize> = (0..count)
            .map(|place| place.wrapping_add(start % count.max(1)) % count.max(1))
            .collect();
        let all = self.health.lock();
        let health = |place: &usize| {
            addresses.get(*place).and_then(|it| all.get(*it)).copied().unwrap_or_default()
        };
        match strategy {
            Strategy::Random | Strategy::RoundRobin => {}
            Strategy::NoDeads => order.sort_by_key(|place| health(place).failed_last > DEAD_AFTER),
            Strategy::NoErrors => order.sort_by_key(|place| {
                let Health { asked, failed, .. } = health(place);
                // An error rate up to 3 % counts as zero.
                if failed.saturating_mul(FEW_ERRORS) <= asked {
                    0
                } else {
                    failed * 1_000 / asked.max(1)
                }
            }),
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_first_follows_from_how_they_answered() {
        let state = AgentsState::default();
        let all = ["a", "b", "c"];
        let first = |strategy| state.order(strategy, &all)[0];
        let turns: Vec<usize> = (0..4).map(|_| first(Strategy::RoundRobin)).collect();
        assert_eq!(turns, [1, 2, 0, 1]);
        for _ in 0..4 {
            state.note("a", false, Duration::ZERO);
            state.note("b", true, Duration::from_millis(2));
        }
        state.note("c", false, Duration::ZERO);
        state.note("c", true, Duration::ZERO);
        for _ in 0..50 {
            assert_ne!(first(Strategy::NoDeads), 0);
            assert_eq!(state.order(Strategy::NoErrors, &all), [1, 2, 0]);
        }
        let random: Vec<usize> = (0..200).map(|_| first(Strategy::Random)).collect();
        assert!((0..3).all(|place| random.contains(&place)));
        // One answer revives a dead server.
        state.note("a", true, Duration::ZERO);
        assert!((0..200).any(|_| first(Strategy::NoDeads) == 0));
        assert_eq!(state.health()[0].1.failed_last, 0);
        assert!(state.order(Strategy::Random, &[]).is_empty());
    }
}
