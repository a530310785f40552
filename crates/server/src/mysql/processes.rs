//! All connections: their users, their statements, and KILL.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use parking_lot::Mutex;
use remora_sql::Process;
use tokio::sync::Notify;

use super::wire::Peer;

/// The most bytes of a statement in the list.
const MAX_STATEMENT_BYTES: usize = 64 << 10;

/// All connections of the MySQL protocol.
#[derive(Default)]
pub(crate) struct Processes {
    open: Mutex<BTreeMap<u32, Arc<ListedConnection>>>,
    connected: AtomicUsize,
    next_id: AtomicU32,
    /// Connections since the start.
    total: AtomicU64,
    /// Failed logins.
    refused: AtomicU64,
    /// Commands since the start.
    commands: AtomicU64,
}

/// A connection as it is listed.
pub(super) struct ListedConnection {
    pub id: u32,
    state: Mutex<State>,
    /// Interrupts the running statement.
    interrupter: Mutex<Arc<AtomicBool>>,
    is_killed: AtomicBool,
    killed: Notify,
    peer: OnceLock<Peer>,
}

struct State {
    user: String,
    host: String,
    database: Option<String>,
    command: &'static str,
    since: Instant,
    statement: StatementText,
}

enum StatementText {
    Nothing,
    /// A text whose buffer is reused.
    Text(String),
    Shared(Arc<str>),
}

/// A registered connection; unregistered when dropped.
pub(crate) struct ConnectionSlot {
    processes: Arc<Processes>,
    pub(super) connection: Arc<ListedConnection>,
}

impl Processes {
    /// Registers a connection; `None` if there are `most` already.
    pub(super) fn connect(self: &Arc<Self>, most: usize) -> Option<ConnectionSlot> {
        self.total.fetch_add(1, Relaxed);
        let id = self.next_id.fetch_add(1, Relaxed).wrapping_add(1);
        if self.connected.fetch_add(1, Relaxed) >= most {
            self.connected.fetch_sub(1, Relaxed);
            return None;
        }
        let connection = Arc::new(ListedConnection::new(id));
        self.open.lock().insert(id, Arc::clone(&connection));
        Some(ConnectionSlot { processes: Arc::clone(self), connection })
    }

    /// The current number of connections.
    pub(super) fn connected(&self) -> usize {
        self.connected.load(Relaxed)
    }

    /// The current number of connections that run a command.
    pub(super) fn running(&self) -> usize {
        let open = self.open.lock();
        open.values().filter(|connection| connection.state.lock().command != "Sleep").count()
    }

    /// The connections since the start.
    pub(super) fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Counts a failed login.
    pub(super) fn count_refusal(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// The failed logins since the start.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Counts a command.
    pub(super) fn count_command(&self) {
        self.commands.fetch_add(1, Relaxed);
    }

    /// The commands since the start.
    pub(super) fn commands(&self) -> u64 {
        self.commands.load(Relaxed)
    }

    /// The current number of a user's connections.
    pub(super) fn of_user(&self, user: &str) -> usize {
        let open = self.open.lock();
        open.values().filter(|connection| connection.state.lock().user == user).count()
    }

    /// All connections, by number.
    pub(super) fn list(&self) -> Vec<Process> {
        let open: Vec<_> = self.open.lock().values().cloned().collect();
        open.iter().map(|connection| connection.to_process()).collect()
    }

    /// The connection with this number.
    pub(super) fn find(&self, id: u64) -> Option<Arc<ListedConnection>> {
        self.open.lock().get(&u32::try_from(id).ok()?).cloned()
    }
}

impl ListedConnection {
    fn new(id: u32) -> Self {
        let state = State {
            user: "unauthenticated user".to_owned(),
            host: String::new(),
            database: None,
            command: "Connect",
            since: Instant::now(),
            statement: StatementText::Nothing,
        };
        Self {
            id,
            state: Mutex::new(state),
            interrupter: Mutex::default(),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
            peer: OnceLock::new(),
        }
    }

    /// Sets the stream.
    pub(super) fn set_peer(&self, peer: Peer) {
        let _ = self.peer.set(peer);
    }

    /// Whether the client has disconnected.
    pub(super) fn is_disconnected(&self) -> bool {
        self.peer.get().and_then(Peer::upgrade).is_some_and(|socket| socket.is_gone())
    }

    /// Sets the user after the login.
    pub(super) fn identify(&self, user: &str, host: &str, interrupter: Arc<AtomicBool>) {
        let mut state = self.state.lock();
        user.clone_into(&mut state.user);
        host.clone_into(&mut state.host);
        *self.interrupter.lock() = interrupter;
    }

    /// Sets the current database.
    pub(super) fn set_database(&self, database: Option<&str>) {
        self.state.lock().database = database.map(str::to_owned);
    }

    /// Notes the start of a command.
    pub(super) fn begin(&self, command: &'static str, text: &[u8]) {
        let mut state = self.state.lock();
        state.command = command;
        state.since = Instant::now();
        let mut buffer = match std::mem::replace(&mut state.statement, StatementText::Nothing) {
            StatementText::Text(buffer) => buffer,
            _ => String::new(),
        };
        buffer.clear();
        let shown = text.get(..MAX_STATEMENT_BYTES).unwrap_or(text);
        buffer.push_str(&String::from_utf8_lossy(shown));
        state.statement = StatementText::Text(buffer);
    }

    /// Notes the start of a prepared statement.
    pub(super) fn begin_prepared(&self, command: &'static str, text: &Arc<str>) {
        let mut state = self.state.lock();
        state.command = command;
        state.since = Instant::now();
        state.statement = StatementText::Shared(Arc::clone(text));
    }

    /// Notes the end of a command.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.command = "Sleep";
        state.since = Instant::now();
        match &mut state.statement {
            StatementText::Text(text) if text.capacity() <= 4096 => text.clear(),
            other => *other = StatementText::Nothing,
        }
    }

    /// Interrupts the running statement, and ends the connection unless `only_statement`.
    pub(super) fn kill(&self, only_statement: bool) {
        if !only_statement {
            self.is_killed.store(true, Relaxed);
            self.killed.notify_one();
            // An idle connection is closed before the killer gets its answer.
            if matches!(self.state.lock().command, "Sleep" | "Connect")
                && let Some(socket) = self.peer.get().and_then(Peer::upgrade)
            {
                let _ = socket.close();
            }
        }
        self.interrupter.lock().store(true, Relaxed);
    }

    /// The user's name.
    pub(super) fn user(&self) -> String {
        self.state.lock().user.clone()
    }

    /// Whether the connection was killed.
    pub(super) fn is_killed(&self) -> bool {
        self.is_killed.load(Relaxed)
    }

    /// Waits until the connection is killed.
    pub(super) async fn killed(&self) {
        while !self.is_killed() {
            self.killed.notified().await;
        }
    }

    fn to_process(&self) -> Process {
        let state = self.state.lock();
        let statement = match &state.statement {
            StatementText::Text(text) if !text.is_empty() => Some(text.clone()),
            StatementText::Shared(text) => Some(text.to_string()),
            _ => None,
        };
        Process {
            id: u64::from(self.id),
            user: state.user.clone(),
            host: state.host.clone(),
            database: state.database.clone(),
            command: state.command.to_owned(),
            seconds: state.since.elapsed().as_secs(),
            state: if statement.is_some() { "executing" } else { "" }.to_owned(),
            statement,
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.processes.open.lock().remove(&self.connection.id);
        self.processes.connected.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_slots_are_limited_listed_and_released() {
        let processes = Arc::new(Processes::default());
        let first = processes.connect(2).unwrap();
        let second = processes.connect(2).unwrap();
        assert!(processes.connect(2).is_none());
        first.connection.identify("anna", "127.0.0.1:5", Arc::default());
        first.connection.begin("Query", b"SELECT 1");
        second.connection.begin_prepared("Execute", &Arc::from("SELECT ?"));
        second.connection.end();
        assert_eq!((processes.of_user("anna"), processes.connected()), (1, 2));
        let list = processes.list();
        assert_eq!(list[0].statement.as_deref(), Some("SELECT 1"));
        assert_eq!((list[0].user.as_str(), list[0].command.as_str()), ("anna", "Query"));
        assert_eq!((list[1].command.as_str(), &list[1].statement), ("Sleep", &None));
        drop(first);
        assert_eq!((processes.list().len(), processes.total()), (1, 3));
        assert!(processes.connect(2).is_some());
    }

    #[test]
    fn kill_interrupts_and_disconnects_are_detected() {
        let processes = Arc::new(Processes::default());
        let slot = processes.connect(1).unwrap();
        let interrupter = Arc::new(AtomicBool::new(false));
        slot.connection.identify("a", "", Arc::clone(&interrupter));
        let found = processes.find(u64::from(slot.connection.id)).unwrap();
        found.kill(true);
        assert!(interrupter.load(Relaxed) && !found.is_killed());
        found.kill(false);
        assert!(found.is_killed());
        assert!(processes.find(u64::MAX).is_none());
    }
}
