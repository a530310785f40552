//! Connections to the SQL ports of other servers, in whose tables parts of tables lie.
//!
//! What such a server sends is not believed: a message has a largest size, an answer is one value, and what the client's
//! crate does with malformed bytes ends the connection alone.

use std::{
    collections::HashMap,
    mem::forget,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mysql::{Conn, OptsBuilder, Row, prelude::Queryable};
use parking_lot::Mutex;
use remora_mysql::ErrorCode;
use remora_sql::{AgentConnection, AgentTimes, Error, Result};

use crate::settings::Agents;

/// The largest message, of a question or of an answer.
const MAX_PACKET_BYTES: usize = 64 << 20;
/// Connections to a server that wait for the next statement.
const MAX_IDLE: usize = 16;
/// An idle connection is probed after this time, so that a vanished host is noticed.
const KEEPALIVE_MS: u32 = 10_000;

/// All connections to other servers.
#[derive(Default)]
pub(super) struct AgentClients {
    /// Those that wait for the next statement, by address and how long their answers are waited for.
    idle: Mutex<HashMap<(String, Duration), Vec<Conn>>>,
    /// How many are used.
    used: AtomicUsize,
}

/// A connection that is used.
struct AgentClient {
    conn: Option<Conn>,
    clients: Arc<AgentClients>,
    address: String,
    times: AgentTimes,
    /// Whether all that was asked was answered.
    is_clean: bool,
}

impl AgentClients {
    /// A connection to a server that the settings name.
    pub(super) fn open(
        self: &Arc<Self>,
        settings: &Agents,
        address: &str,
        times: AgentTimes,
    ) -> Result<Box<dyn AgentConnection>> {
        if !settings.addresses.iter().any(|known| known == address) {
            let message = format!(
                "{address} is none of the servers that may be asked: name it in agents.addresses of remora.toml"
            );
            return Err(failed(message));
        }
        if self.used.fetch_add(1, Ordering::Relaxed) >= settings.max_connections {
            self.used.fetch_sub(1, Ordering::Relaxed);
            let message = format!(
                "{} connections to other servers are used: agents.max_connections of remora.toml allows no more",
                settings.max_connections
            );
            return Err(failed(message));
        }
        // From here on it is counted, and is not when it goes.
        let address = address.to_owned();
        let clients = Arc::clone(self);
        let mut client = AgentClient { conn: None, clients, address, times, is_clean: true };
        client.conn = Some(match client.idle() {
            Some(conn) => conn,
            None => client.connect(settings)?,
        });
        Ok(Box::new(client))
    }
}

impl AgentClient {
    fn key(&self) -> (String, Duration) {
        (self.address.clone(), self.times.query)
    }

    /// One that waits, and still answers.
    fn idle(&self) -> Option<Conn> {
        if !self.times.is_kept {
            return None;
        }
        loop {
            let mut conn = self.clients.idle.lock().get_mut(&self.key())?.pop()?;
            if guarded(|| conn.ping()).is_ok() {
                return Some(conn);
            }
        }
    }

    fn connect(&self, settings: &Agents) -> Result<Conn> {
        let wrong = || failed(format!("'{}' is no host:port", self.address));
        let (host, port) = self.address.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(host))
            .tcp_port(port)
            .user(Some(settings.user.clone()))
            .pass(Some(settings.password.clone()))
            // Else a connection to a local server would be changed to its socket file.
            .prefer_socket(false)
            .max_allowed_packet(Some(MAX_PACKET_BYTES))
            .tcp_connect_timeout(Some(self.times.connect))
            .read_timeout(Some(self.times.query))
            .write_timeout(Some(self.times.query))
            .tcp_keepalive_time_ms(Some(KEEPALIVE_MS))
            .init(vec!["SET NAMES utf8mb4", "SET SESSION sql_mode = '', autocommit = 1"]);
        guarded(|| Conn::new(options))
    }
}

impl AgentConnection for AgentClient {
    fn ask(&mut self, statement: &str) -> Result<Vec<u8>> {
        self.is_clean = false;
        let conn = self.conn.as_mut().ok_or_else(|| failed("the connection is closed"))?;
        let answer = guarded(|| {
            let mut rows = conn.query_iter(statement)?;
            let first = rows.next().transpose()?;
            if rows.next().transpose()?.is_some() {
                // What is left of the answer would be read to its end, which may not come.
                forget(rows);
                return Ok(None);
            }
            Ok(first)
        })?;
        let value = |mut row: Row| match row.len() {
            1 => row.take_opt::<Vec<u8>, _>(0)?.ok(),
            _ => None,
        };
        let value = answer.and_then(value);
        self.is_clean = value.is_some();
        value.ok_or_else(|| failed("it answers with something else than one value"))
    }
}

impl Drop for AgentClient {
    fn drop(&mut self) {
        let conn = self.conn.take();
        if let Some(conn) = conn.filter(|_| self.is_clean && self.times.is_kept) {
            let mut idle = self.clients.idle.lock();
            let waiting = idle.entry(self.key()).or_default();
            if waiting.len() < MAX_IDLE {
                waiting.push(conn);
            }
        }
        self.clients.used.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs what the client crate does with a server's bytes: where it panics on malformed ones, that is an error of the
/// connection.
fn guarded<T>(work: impl FnOnce() -> mysql::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(mysql::Error::MySqlError(error))) => Err(failed(error.message)),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed("what answers there does not speak the MySQL protocol rightly")),
    }
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ForeignQuery, message)
}
