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

/// The most idle connections to one server, and to all.
const MAX_IDLE_OF_SERVER: usize = 16;
const MAX_IDLE: usize = 64;
/// How long a connection may stay idle: less than servers permit.
const IDLE_TIME: Duration = Duration::from_secs(60);

/// All connections to other servers.
#[derive(Default)]
pub(super) struct AgentClients(Mutex<Pool>);

#[derive(Default)]
struct Pool {
    idle: HashMap<String, Vec<Idle>>,
    /// The number of used connections to each server; no entry for 0.
    used: HashMap<String, usize>,
}

/// An idle connection.
struct Idle {
    stream: AgentStream,
    account: (String, String),
    since: Instant,
}

/// A connection in use; counted until it is dropped.
struct AgentClient {
    clients: Arc<AgentClients>,
    address: String,
    account: (String, String),
    stream: Option<AgentStream>,
    is_kept: bool,
    /// Whether all requests were answered.
    is_clean: bool,
}

impl Pool {
    fn idle_count(&self) -> usize {
        self.idle.values().map(Vec::len).sum()
    }

    /// Removes the connections to any server that were idle for too long.
    fn take_old(&mut self) -> Vec<Idle> {
        let mut old = Vec::new();
        self.idle.retain(|_, idle| {
            let is_old = |it: &mut Idle| it.since.elapsed() >= IDLE_TIME;
            old.extend(idle.extract_if(.., is_old));
            !idle.is_empty()
        });
        old
    }

    /// Counts a new connection, and returns idle ones to close for it, if any must be. Fails at the limits of used
    /// connections.
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
        // Preferably of another server.
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

    /// An idle connection with this account. Connections that were idle for too long are removed.
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

    /// Keeps a connection for reuse, if there is room; otherwise returns it.
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
    /// A logged-in connection to a server that the settings name, within the limit. Cost: an idle one is checked with a
    /// ping; if it is dead, all idle ones to that server are closed and a new connection is made.
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
    /// An idle connection that still answers.
    fn idle(&self, limit: &AgentLimit<'_>) -> Option<AgentStream> {
        loop {
            let (taken, old) = self.clients.0.lock().take_idle(&self.address, &self.account);
            drop(old);
            let mut stream = taken?.stream;
            if !stream.is_quiet() {
                continue;
            }
            // An unreachable host costs this wait only once, and only a part of the connect time, however many idle
            // connections there are.
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
