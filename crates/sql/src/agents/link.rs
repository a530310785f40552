//! A connection to one of the servers of an agent, in a thread of its own: who waits for its answers is not held up by
//! it for longer than he may wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use remora_engine::{Error, Result, Unless};

use super::{
    definition::{Agent, Mirror},
    wire::{self, Request},
};
use crate::{aside::wait_aside, host::AgentConnection, shared::InstanceState};

/// How soon who waits notices that he is not to.
const STEP: Duration = Duration::from_millis(20);
/// What a wait lasts beyond what the server may take.
const GRACE: Duration = Duration::from_millis(500);
/// A thread that sends bytes and waits.
const STACK_BYTES: usize = 512 << 10;

/// An answer, or why there is none.
type Answered = std::result::Result<Vec<u8>, String>;

/// A question on its way.
struct Command {
    statement: String,
    reply: SyncSender<Answered>,
}

/// An open connection.
pub(super) struct Link {
    commands: Sender<Command>,
    name: String,
    patience: Duration,
}

/// One that is being opened.
pub(super) struct Connecting {
    commands: Sender<Command>,
    ready: Receiver<std::result::Result<(Mirror, Vec<u8>), String>>,
    /// Tells the thread that nobody waits for it.
    left: Arc<AtomicBool>,
    patience: Duration,
    /// For the connection with all tries.
    patience_to_open: Duration,
    name: String,
}

/// An answer that is still to come.
pub(super) struct Awaited {
    reply: Receiver<Answered>,
    name: String,
    deadline: Instant,
    patience: Duration,
}

impl Connecting {
    /// Begins to connect, to one mirror after the other until one answers what opens its part.
    pub(super) fn begin(
        shared: &Arc<InstanceState>,
        agent: Agent,
        open: impl Fn(&Mirror) -> Request + Send + 'static,
    ) -> Result<Self> {
        let (commands, taken) = channel();
        let (answer, ready) = sync_channel(1);
        let left = Arc::new(AtomicBool::new(false));
        let tries = u32::try_from(agent.retries).unwrap_or(u32::MAX).saturating_add(1);
        let mirrors = u32::try_from(agent.mirrors.len()).unwrap_or(u32::MAX);
        let each = agent.times.connect.saturating_add(agent.times.query).saturating_mul(mirrors);
        let opening = each.saturating_add(agent.retry_delay).saturating_mul(tries);
        let names: Vec<String> = agent.mirrors.iter().map(Mirror::name).collect();
        let this = Self {
            commands,
            ready,
            left: Arc::clone(&left),
            patience: agent.times.query.saturating_add(GRACE),
            patience_to_open: opening.saturating_add(GRACE),
            name: names.join("|"),
        };
        let shared = Arc::clone(shared);
        let work = move || {
            let opened = connect(&shared, &agent, &open, &left);
            // The server is let go of where it could not be opened, or nobody waits.
            let connection = match opened {
                Ok((connection, mirror, opened)) => {
                    answer.send(Ok((mirror, opened))).ok().map(|()| connection)
                }
                Err(error) => {
                    let _ = answer.send(Err(error));
                    None
                }
            };
            drop(answer);
            if let Some(connection) = connection {
                serve(connection, &taken, agent.times.is_kept);
            }
        };
        let named = thread::Builder::new().name("remora-agent".to_owned()).stack_size(STACK_BYTES);
        let spawned = named.spawn(work);
        spawned.map_err(|error| Error::Busy(format!("no thread asks another server: {error}")))?;
        Ok(this)
    }

    /// The servers that are tried.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the connection; the answer that opened the part.
    pub(super) fn finish(self, unless: &Unless) -> Result<(Link, Vec<u8>)> {
        let waiting = Waiting { name: &self.name, patience: self.patience_to_open };
        let deadline = Instant::now().checked_add(self.patience_to_open);
        let opened = waiting.receive(&self.ready, deadline, unless);
        self.left.store(opened.is_err(), Ordering::Relaxed);
        let (mirror, answer) = opened?.map_err(Error::Elsewhere)?;
        let (commands, patience) = (self.commands.clone(), self.patience);
        Ok((Link { commands, name: mirror.name(), patience }, answer))
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.left.store(true, Ordering::Relaxed);
    }
}

/// A connection to the first server that opens the part.
fn connect(
    shared: &Arc<InstanceState>,
    agent: &Agent,
    open: &dyn Fn(&Mirror) -> Request,
    left: &AtomicBool,
) -> std::result::Result<(Box<dyn AgentConnection>, Mirror, Vec<u8>), String> {
    let addresses: Vec<&str> = agent.mirrors.iter().map(|mirror| mirror.address.as_str()).collect();
    let mut last = String::new();
    for round in 0..=agent.retries {
        let pause = Instant::now();
        while round > 0 && pause.elapsed() < agent.retry_delay && !left.load(Ordering::Relaxed) {
            thread::sleep(STEP.min(agent.retry_delay));
        }
        for place in shared.agents.order(agent.strategy, &addresses) {
            let Some(mirror) = agent.mirrors.get(place) else { continue };
            if left.load(Ordering::Relaxed) {
                return Err(last);
            }
            let begun = Instant::now();
            let statement = wire::statement(&open(mirror)).map_err(|error| error.message)?;
            let opened = shared.host.agent(&mirror.address, agent.times).and_then(|mut it| {
                let answer = it.ask(&statement)?;
                Ok((it, answer))
            });
            shared.agents.note(&mirror.address, opened.is_ok(), begun.elapsed());
            match opened {
                Ok((connection, answer)) => return Ok((connection, mirror.clone(), answer)),
                Err(error) => last = format!("{}: {}", mirror.name(), error.message),
            }
        }
    }
    Err(last)
}

/// Asks what comes until nobody asks any more.
fn serve(mut connection: Box<dyn AgentConnection>, commands: &Receiver<Command>, is_kept: bool) {
    while let Ok(Command { statement, reply }) = commands.recv() {
        let answered = connection.ask(&statement).map_err(|error| error.message);
        let has_failed = answered.is_err();
        // Who asked may have left.
        let _ = reply.send(answered);
        if has_failed {
            return;
        }
    }
    if is_kept && let Ok(statement) = wire::statement(&Request::Close) {
        // Its moment is let go of; one that fails is not kept.
        let _ = connection.ask(&statement);
    }
}

impl Link {
    /// What people know the server and the tables by.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a question.
    pub(super) fn send(&self, request: &Request) -> Result<Awaited> {
        let statement =
            wire::statement(request).map_err(|error| Error::Elsewhere(error.message))?;
        let (reply, awaited) = sync_channel(1);
        let sent = self.commands.send(Command { statement, reply });
        sent.map_err(|_| Error::Elsewhere(format!("{}: the connection broke off", self.name)))?;
        let (name, patience) = (self.name.clone(), self.patience);
        // Questions before it on the same connection have their time too.
        let deadline = Instant::now().checked_add(patience).unwrap_or_else(Instant::now);
        Ok(Awaited { reply: awaited, name, deadline, patience })
    }
}

impl Awaited {
    /// Waits for the answer.
    pub(super) fn wait(self, unless: &Unless) -> Result<Vec<u8>> {
        let waiting = Waiting { name: &self.name, patience: self.patience };
        let answered = waiting.receive(&self.reply, Some(self.deadline), unless)?;
        answered.map_err(|error| Error::Elsewhere(format!("{}: {error}", self.name)))
    }
}

/// For whom is waited, and how long.
struct Waiting<'w> {
    name: &'w str,
    patience: Duration,
}

impl Waiting<'_> {
    fn receive<T>(
        &self,
        receiver: &Receiver<T>,
        deadline: Option<Instant>,
        unless: &Unless,
    ) -> Result<T> {
        if let Ok(received) = receiver.try_recv() {
            return Ok(received);
        }
        wait_aside(|| {
            loop {
                match receiver.recv_timeout(STEP) {
                    Ok(received) => return Ok(received),
                    Err(RecvTimeoutError::Disconnected) => {
                        let message = format!("{}: the connection broke off", self.name);
                        return Err(Error::Elsewhere(message));
                    }
                    Err(RecvTimeoutError::Timeout) => unless.check()?,
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    let ms = self.patience.as_millis();
                    let message = format!("{} did not answer within {ms} ms", self.name);
                    return Err(Error::Elsewhere(message));
                }
            }
        })
    }
}
