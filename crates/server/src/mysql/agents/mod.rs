//! Connections to other servers for distributed tables: allowed addresses, limits, and the pool of idle connections.

mod stream;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_mysql::ErrorCode;
use remora_sql::{AgentConnection, AgentLimit, Error, Result};

use crate::settings::Agents;
use stream::AgentStream;

/// Connections to a server, and to all, that wait for the next statement.
const MAX_IDLE_OF_SERVER: usize = 16;
const MAX_IDLE: usize = 64;
/// How long one waits: shorter than servers let them.
const IDLE_TIME: Duration = Duration::from_secs(60);

/// All connections to other servers.
#[derive(Default)]
pub(super) struct AgentClients(Mutex<Pool>);

#[derive(Default)]
struct Pool {
    idle: HashMap<String, Vec<Idle>>,
    /// How many of each server are used; none that is not.
    used: HashMap<String, usize>,
}

/// One that waits.
struct Idle {
    stream: AgentStream,
    account: (String, String),
    since: Instant,
}

/// One that is used; it is counted until it goes.
struct AgentClient {
    clients: Arc<AgentClients>,
    address: String,
    account: (String, String),
    stream: Option<AgentStream>,
    is_kept: bool,
    /// Whether all that was asked was answered.
    is_clean: bool,
}

impl Pool {
    fn idle_count(&self) -> usize {
        self.idle.values().map(Vec::len).sum()
    }

    /// Takes out those that waited for too long, whomever they are to.
    fn take_old(&mut self) -> Vec<Idle> {
        let mut old = Vec::new();
        self.idle.retain(|_, idle| {
            let is_old = |it: &mut Idle| it.since.elapsed() >= IDLE_TIME;
            old.extend(idle.extract_if(.., is_old));
            !idle.is_empty()
        });
        old
    }

    /// Counts a connection that will be used; what is closed for it.
    fn take_place(&mut self, address: &str, settings: &Agents) -> Result<Option<Vec<Idle>>> {
        let used: usize = self.used.values().sum();
        let of_server = self.used.get(address).copied().unwrap_or(0);
        for (count, most, name) in [
            (used, settings.max_connections, "max_connections"),
            (of_server, settings.max_connections_per_server, "max_connections_per_server"),
        ] {
            if count >= most {
                let message = format!(
                    "{count} connections to other servers are used: agents.{name} of remora.toml allows no more"
                );
                return Err(Error::new(ErrorCode::TooManyConnections, message));
            }
        }
        *self.used.entry(address.to_owned()).or_default() += 1;
        let is_full = used + 1 + self.idle_count() > settings.max_connections;
        if !is_full {
            return Ok(None);
        }
        // Of another server, if one waits.
        let known = || self.idle.keys();
        let other = known().find(|known| *known != address).or_else(|| known().next()).cloned();
        Ok(other.and_then(|other| self.idle.remove(&other)))
    }

    fn give_back(&mut self, address: &str) {
        if let Some(count) = self.used.get_mut(address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.used.remove(address);
            }
        }
    }

    /// One that waits, of that account; those that waited for too long are taken out with it.
    fn take_idle(
        &mut self,
        address: &str,
        account: &(String, String),
    ) -> (Option<Idle>, Vec<Idle>) {
        let Some(idle) = self.idle.get_mut(address) else { return (None, Vec::new()) };
        let is_fresh = |it: &Idle| it.since.elapsed() < IDLE_TIME && it.account == *account;
        let (mut fresh, mut old) = (Vec::new(), Vec::new());
        for each in idle.drain(..) {
            if is_fresh(&each) { fresh.push(each) } else { old.push(each) }
        }
        let taken = fresh.pop();
        if fresh.is_empty() {
            self.idle.remove(address);
        } else {
            *idle = fresh;
        }
        (taken, old)
    }

    /// Keeps one for the next statement, if there is room.
    fn keep(&mut self, address: &str, one: Idle) -> Option<Idle> {
        let of_server = self.idle.get(address).map_or(0, Vec::len);
        if of_server >= MAX_IDLE_OF_SERVER || self.idle_count() >= MAX_IDLE {
            return Some(one);
        }
        self.idle.entry(address.to_owned()).or_default().push(one);
        None
    }
}

impl AgentClients {
    /// A connection to a server that the settings name, logged in within the limit. Cost: one that waits is asked whether it still
    /// answers; where it does not, those beside it are given up with it, and a new one is made.
    pub(super) fn open(
        self: &Arc<Self>,
        settings: &Agents,
        address: &str,
        is_kept: bool,
        limit: &AgentLimit<'_>,
    ) -> Result<Box<dyn AgentConnection>> {
        let refused = |message: String| Err(Error::new(ErrorCode::NotSupported, message));
        if !settings.addresses.iter().any(|known| known == address) {
            return refused(format!(
                "{address} is not a server that may be asked: add it to agents.addresses of remora.toml"
            ));
        }
        let Some(user) = settings.user.clone() else {
            return refused(format!(
                "no user is set for {address}: set agents.user of remora.toml to an account \
                 there that may read those tables and nothing else"
            ));
        };
        let old = self.0.lock().take_old();
        drop(old);
        drop(self.0.lock().take_place(address, settings)?);
        let account = (user, settings.password.clone());
        let mut client = AgentClient {
            clients: Arc::clone(self),
            address: address.to_owned(),
            account,
            stream: None,
            is_kept,
            is_clean: true,
        };
        if is_kept {
            client.stream = client.idle(limit);
        }
        if client.stream.is_none() {
            let (user, password) = &client.account;
            let stream = AgentStream::connect(address, user, password, limit);
            client.stream = Some(stream.map_err(failed)?);
        }
        Ok(Box::new(client))
    }
}

impl AgentClient {
    /// One that waits, and still answers.
    fn idle(&self, limit: &AgentLimit<'_>) -> Option<AgentStream> {
        loop {
            let (taken, old) = self.clients.0.lock().take_idle(&self.address, &self.account);
            drop(old);
            let mut stream = taken?.stream;
            if !stream.is_quiet() {
                continue;
            }
            // A host that is gone without a word is waited for once, with a part of the time to connect, however many connections
            // to it wait.
            let half = limit.until.saturating_duration_since(Instant::now()) / 2;
            let soon = AgentLimit { until: Instant::now() + half, ..*limit };
            if stream.ping(&soon).is_ok() {
                return Some(stream);
            }
            let others = self.clients.0.lock().idle.remove(&self.address);
            drop(others);
            return None;
        }
    }
}

impl AgentConnection for AgentClient {
    fn ask(&mut self, statement: &str, limit: &AgentLimit<'_>) -> Result<Vec<u8>> {
        self.is_clean = false;
        let stream = self.stream.as_mut().ok_or_else(|| failed("the connection is closed"))?;
        let value = stream.ask(statement, limit).map_err(failed)?;
        let value = value.ok_or_else(|| failed("it answers with something else than one value"))?;
        self.is_clean = true;
        Ok(value)
    }
}

impl Drop for AgentClient {
    fn drop(&mut self) {
        let mut pool = self.clients.0.lock();
        pool.give_back(&self.address);
        let kept = self.stream.take().filter(|_| self.is_clean && self.is_kept);
        let (account, since) = (self.account.clone(), Instant::now());
        let old = pool.take_old();
        let rest =
            kept.and_then(|stream| pool.keep(&self.address, Idle { stream, account, since }));
        drop(pool);
        drop((old, rest));
    }
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ForeignQuery, message)
}
