//! A connection to one server of an agent. It has its own thread, so that the statement never waits
//! longer than its timeout.
//!
//! All requests of a statement to a server share one deadline: `agent_query_timeout` after the
//! statement began, plus the time spent on servers that did not answer and on answers that the
//! statement discarded. When nobody waits for an answer any more, the connection is closed; the
//! other server notices that and stops.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use remora_engine::{Error, InterruptCheck, Result};
use remora_mysql::ErrorCode;

use super::{
    definition::{Agent, Mirror},
    wire::{self, Request},
};
use crate::{
    blocking::run_blocking,
    host::{AgentConnection, AgentLimit},
    shared::{AgentThreadPermit, AgentsState, InstanceState},
};

/// How often a waiting thread checks whether its statement was interrupted.
const STEP: Duration = Duration::from_millis(20);
/// How much longer the statement waits than the server's deadline, so that the server's own error
/// arrives first.
const GRACE: Duration = Duration::from_millis(500);
/// How long a server may take to release its snapshot before the connection is kept for reuse.
const FAREWELL: Duration = Duration::from_secs(1);
/// The stack of the connection's thread, which only sends, receives and waits.
const STACK_BYTES: usize = 512 << 10;
/// The most bytes that a server may send while it connects and logs in.
const GREETING_BYTES: usize = 64 << 10;

/// The error for a request to a connection whose deadline has passed.
const LATE: &str =
    "it was not asked in time: agent_query_timeout is for all that a statement asks of a server";

/// The bytes of an answer, or the message of an error.
type ReplyResult = std::result::Result<Vec<u8>, String>;

/// The clock by which a statement's requests to other servers time out.
#[derive(Clone)]
pub(super) struct StatementTime {
    /// When the statement began.
    pub begun: Instant,
    /// Milliseconds spent on answers that the statement discarded. They extend every deadline, also
    /// those that are already set.
    pub given_up_ms: Arc<AtomicU64>,
}

impl StatementTime {
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now(), given_up_ms: Arc::default() }
    }

    /// The deadline of requests that may take this long.
    fn deadline(&self, lasting: Duration) -> Deadline {
        Deadline { moment: later(self.begun, lasting), given_up_ms: Arc::clone(&self.given_up_ms) }
    }
}

/// When a server must have answered all requests of a statement.
#[derive(Clone)]
struct Deadline {
    /// The deadline without the time of discarded answers.
    moment: Instant,
    given_up_ms: Arc<AtomicU64>,
}

impl Deadline {
    /// The deadline as it stands now.
    fn moment(&self) -> Instant {
        later(self.moment, Duration::from_millis(self.given_up_ms.load(Ordering::Relaxed)))
    }

    /// The time that is left until the deadline.
    fn left(&self) -> Duration {
        self.moment().saturating_duration_since(Instant::now())
    }
}

/// A request for the connection's thread.
struct Command {
    statement: String,
    most_bytes: usize,
    /// Where the answer goes; `None` if nobody needs it.
    reply: Option<SyncSender<ReplyResult>>,
}

/// The state that a connection's thread shares with the statement.
#[derive(Default)]
struct LinkState {
    /// Whether nobody waits for this connection any more.
    left: AtomicBool,
    /// The number of requests whose answers somebody waits for.
    waited_for: AtomicUsize,
}

/// An open connection. Dropping it ends what the server does for the statement: the connection is
/// closed, or kept for reuse if that is asked for and no answer is awaited.
pub(super) struct Link {
    commands: Sender<Command>,
    shared: Arc<LinkState>,
    name: String,
    deadline: Deadline,
}

/// What the thread reports once a server has opened the part.
struct ReadyConnection {
    mirror: Mirror,
    answer: Vec<u8>,
    deadline: Deadline,
}

/// A connection that is being opened.
pub(super) struct PendingLink {
    commands: Sender<Command>,
    ready: Receiver<std::result::Result<ReadyConnection, String>>,
    shared: Arc<LinkState>,
    is_taken: bool,
    /// The deadline for connecting, all retries included.
    until: Instant,
    name: String,
}

/// An answer that has not arrived yet.
pub(super) struct PendingReply {
    reply: Receiver<ReplyResult>,
    name: String,
    until: Instant,
}

/// The state of a connection's thread.
struct Work {
    /// Counts this thread against `agents.max_connections` until it ends.
    _place: AgentThreadPermit,
    instance: Arc<InstanceState>,
    agent: Agent,
    time: StatementTime,
    shared: Arc<LinkState>,
}

impl PendingLink {
    /// Starts to connect. Mirrors are tried in turn until one has opened the part.
    ///
    /// # Errors
    /// [`Error::RemoteServer`] if `agents.max_connections` threads already ask other servers.
    pub(super) fn begin(
        instance: &Arc<InstanceState>,
        agent: Agent,
        time: StatementTime,
        open: impl Fn(&Mirror) -> Request + Send + 'static,
    ) -> Result<Self> {
        let full = |most: usize| {
            let why =
                "threads ask other servers: agents.max_connections of remora.toml allows no more";
            Error::RemoteServer(format!("{}: {most} {why}", agent.name()))
        };
        let place = AgentsState::place(instance).map_err(full)?;
        let (commands, taken) = channel();
        let (answer, ready) = sync_channel(1);
        let shared = Arc::<LinkState>::default();
        let this = Self {
            commands,
            ready,
            shared: Arc::clone(&shared),
            is_taken: false,
            until: later(Instant::now(), longest_opening(&agent).saturating_add(GRACE)),
            name: agent.name(),
        };
        let work = Work { _place: place, instance: Arc::clone(instance), agent, time, shared };
        let run = move || {
            let opened = work.connect(&open);
            let (connection, told) = match opened {
                Ok((connection, ready)) => (Some((connection, ready.deadline.clone())), Ok(ready)),
                Err(error) => (None, Err(error)),
            };
            // If no server opened the part, or nobody waits for it any more, the connection is
            // dropped here.
            if answer.send(told).is_ok()
                && let Some((connection, deadline)) = connection
            {
                work.serve(connection, &deadline, &taken);
            }
        };
        let named = thread::Builder::new().name("remora-agent".to_owned()).stack_size(STACK_BYTES);
        let spawned = named.spawn(run);
        spawned.map_err(|error| Error::Busy(format!("no thread asks another server: {error}")))?;
        Ok(this)
    }

    /// Waits until a server has opened the part; returns the connection and the server's answer.
    pub(super) fn finish(mut self, unless: &InterruptCheck) -> Result<(Link, Vec<u8>)> {
        let ready = receive(&self.ready, &self.name, self.until, unless)?;
        let ready = ready.map_err(Error::RemoteServer)?;
        self.is_taken = true;
        let (commands, shared) = (self.commands.clone(), Arc::clone(&self.shared));
        let ReadyConnection { mirror, answer, deadline } = ready;
        Ok((Link { commands, shared, name: mirror.name(), deadline }, answer))
    }
}

impl Drop for PendingLink {
    fn drop(&mut self) {
        if !self.is_taken {
            self.shared.left.store(true, Ordering::Relaxed);
        }
    }
}

impl Work {
    fn limit(&self, until: Instant, most_bytes: usize) -> AgentLimit<'_> {
        AgentLimit { until, most_bytes, is_left: &self.shared.left }
    }

    fn is_left(&self) -> bool {
        self.shared.left.load(Ordering::Relaxed)
    }

    /// Connects to the first mirror that opens the part.
    fn connect(
        &self,
        open: &dyn Fn(&Mirror) -> Request,
    ) -> std::result::Result<(Box<dyn AgentConnection>, ReadyConnection), String> {
        let Self { instance, agent, .. } = self;
        let addresses: Vec<&str> =
            agent.mirrors.iter().map(|mirror| mirror.address.as_str()).collect();
        let mut last = String::new();
        // The time spent on mirrors that failed. It does not count against the deadline.
        let mut lost = Duration::ZERO;
        for round in 0..=agent.retries {
            let pause = Instant::now();
            while round > 0 && pause.elapsed() < agent.retry_delay && !self.is_left() {
                thread::sleep(STEP.min(agent.retry_delay));
            }
            lost += pause.elapsed();
            let mut has_asked = false;
            for place in instance.agents.order(agent.strategy, &addresses) {
                let Some(mirror) = agent.mirrors.get(place) else { continue };
                if self.is_left() {
                    return Err(last);
                }
                let begun = Instant::now();
                let opened = self.open(mirror, &open(mirror));
                let took = begun.elapsed();
                if opened.as_ref().err().is_none_or(|error| self.is_its_failure(error, took)) {
                    instance.agents.note(&mirror.address, opened.is_ok(), took);
                }
                match opened {
                    Ok((connection, answer)) => {
                        let lasting = lost.saturating_add(agent.times.query);
                        let deadline = self.time.deadline(lasting);
                        return Ok((
                            connection,
                            ReadyConnection { mirror: mirror.clone(), answer, deadline },
                        ));
                    }
                    Err(error) => {
                        has_asked |= !is_own(&error);
                        last = format!("{}: {}", mirror.name(), error.message);
                    }
                }
                lost += begun.elapsed();
            }
            // If this server refused to contact any of them, a retry would be refused too.
            if !has_asked {
                break;
            }
        }
        Err(last)
    }

    /// Whether this failure counts against the server's health. It does not if nobody waits any
    /// more, if this server refused to contact it, or if the statement set a shorter timeout than
    /// the table.
    fn is_its_failure(&self, error: &crate::Error, took: Duration) -> bool {
        let is_hasty = self.agent.is_hasty && took >= self.agent.times.query;
        !(self.is_left() || is_own(error) || is_hasty)
    }

    fn open(
        &self,
        mirror: &Mirror,
        request: &Request,
    ) -> crate::Result<(Box<dyn AgentConnection>, Vec<u8>)> {
        let times = self.agent.times;
        let statement = wire::statement(request)?;
        let limit = self.limit(later(Instant::now(), times.connect), GREETING_BYTES);
        let mut connection = self.instance.host.agent(&mirror.address, times.is_kept, &limit)?;
        let limit = self.limit(later(Instant::now(), times.query), request.most_answer_bytes());
        let answer = connection.ask(&statement, &limit)?;
        Ok((connection, answer))
    }

    /// Serves requests until the statement drops the connection or its deadline passes, so a client
    /// that reads slowly does not hold a connection.
    fn serve(
        &self,
        mut connection: Box<dyn AgentConnection>,
        deadline: &Deadline,
        commands: &Receiver<Command>,
    ) {
        loop {
            let Command { statement, most_bytes, reply } =
                match commands.recv_timeout(deadline.left()) {
                    Ok(command) => command,
                    // A discarded answer extended the deadline meanwhile.
                    Err(RecvTimeoutError::Timeout) if !deadline.left().is_zero() => continue,
                    Err(_) => break,
                };
            let answered = connection.ask(&statement, &self.limit(deadline.moment(), most_bytes));
            let has_failed = answered.is_err();
            if let Some(reply) = reply {
                self.shared.waited_for.fetch_sub(1, Ordering::Relaxed);
                // The receiver may be gone already.
                let _ = reply.send(answered.map_err(|error| error.message));
            }
            if has_failed {
                return;
            }
        }
        if self.agent.times.is_kept
            && let Ok(statement) = wire::statement(&Request::Close)
        {
            // Releases the server's snapshot. A connection on which that fails is not kept.
            let (until, is_left) = (later(Instant::now(), FAREWELL), AtomicBool::new(false));
            let most_bytes = Request::Close.most_answer_bytes();
            let _ =
                connection.ask(&statement, &AgentLimit { until, most_bytes, is_left: &is_left });
        }
    }
}

impl Link {
    /// The name by which messages call this server and its tables.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request.
    pub(super) fn send(&self, request: &Request) -> Result<PendingReply> {
        let (reply, awaited) = sync_channel(1);
        self.shared.waited_for.fetch_add(1, Ordering::Relaxed);
        self.command(request, Some(reply))?;
        Ok(PendingReply {
            reply: awaited,
            name: self.name.clone(),
            until: later(self.deadline.moment(), GRACE),
        })
    }

    /// Sends a request whose answer does not matter.
    pub(super) fn send_without_reply(&self, request: &Request) {
        // A broken connection has released everything by itself.
        let _ = self.command(request, None);
    }

    fn command(&self, request: &Request, reply: Option<SyncSender<ReplyResult>>) -> Result<()> {
        let statement =
            wire::statement(request).map_err(|error| Error::RemoteServer(error.message))?;
        let most_bytes = request.most_answer_bytes();
        let sent = self.commands.send(Command { statement, most_bytes, reply });
        let why = if self.deadline.left().is_zero() { LATE } else { "the connection broke off" };
        sent.map_err(|_| Error::RemoteServer(format!("{}: {why}", self.name)))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.shared.waited_for.load(Ordering::Relaxed) > 0 {
            self.shared.left.store(true, Ordering::Relaxed);
        }
    }
}

impl PendingReply {
    /// Waits for the answer.
    pub(super) fn wait(self, unless: &InterruptCheck) -> Result<Vec<u8>> {
        let answered = receive(&self.reply, &self.name, self.until, unless)?;
        answered.map_err(|error| Error::RemoteServer(format!("{}: {error}", self.name)))
    }
}

/// Whether this server itself refused to connect: the settings do not allow the address, or too
/// many connections are open.
fn is_own(error: &crate::Error) -> bool {
    matches!(error.code, ErrorCode::NotSupported | ErrorCode::TooManyConnections)
}

/// The longest time until an agent is opened or has failed, over all mirrors and retries.
pub(super) fn longest_opening(agent: &Agent) -> Duration {
    let tries = u32::try_from(agent.retries).unwrap_or(u32::MAX).saturating_add(1);
    let mirrors = u32::try_from(agent.mirrors.len()).unwrap_or(u32::MAX);
    let each = agent.times.connect.saturating_add(agent.times.query).saturating_mul(mirrors);
    each.saturating_add(agent.retry_delay).saturating_mul(tries)
}

/// Waits until `until` for a message from the thread of the server called `name`.
fn receive<T>(
    receiver: &Receiver<T>,
    name: &str,
    until: Instant,
    unless: &InterruptCheck,
) -> Result<T> {
    if let Ok(received) = receiver.try_recv() {
        return Ok(received);
    }
    run_blocking(|| {
        loop {
            match receiver.recv_timeout(STEP) {
                Ok(received) => return Ok(received),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::RemoteServer(format!("{name}: the connection broke off")));
                }
                Err(RecvTimeoutError::Timeout) => unless.check()?,
            }
            if Instant::now() >= until {
                return Err(Error::RemoteServer(format!("{name} did not answer in time")));
            }
        }
    })
}

/// A moment this much later, or the same moment if the clock cannot represent it.
fn later(moment: Instant, by: Duration) -> Instant {
    moment.checked_add(by).unwrap_or(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_given_up_put_deadlines_off() {
        let time = StatementTime::begin();
        let early = time.deadline(Duration::from_secs(3));
        let others = StatementTime { begun: time.begun, ..StatementTime::begin() };
        let (at_first, other) = (early.moment(), others.deadline(Duration::from_secs(3)));
        assert_eq!(at_first, later(time.begun, Duration::from_secs(3)));
        time.given_up_ms.fetch_add(2_500, Ordering::Relaxed);
        let put_off = later(at_first, Duration::from_millis(2_500));
        // The deadline moves for an open link, for its thread's copy, and for links opened later.
        assert_eq!(early.moment(), put_off);
        assert_eq!(early.clone().moment(), put_off);
        assert_eq!(time.deadline(Duration::from_secs(3)).moment(), put_off);
        assert_eq!(other.moment(), at_first);
    }
}
