//! Tables with rows on other servers: which servers hold them, the requests to them and their
//! answers.
//!
//! A statement opens such a table once. Each server pins a snapshot, and all that the statement
//! reads of the table comes from these snapshots. The engine combines the parts into one table
//! ([`remora_engine::GatheredTable`]); the host provides the connections ([`crate::Host::agent`]).

mod definition;
mod link;
mod part;
mod served;
pub(crate) mod wire;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_engine::{
    Error as EngineError, GatheredTable, LocalPart, Part, Reader, RemoteTables, RequestPart,
    Result as EngineResult, Schema, united_name,
};

pub(crate) use definition::{AgentOptions, check_named, check_setting, normalised};
pub(crate) use served::ServedPart;

use crate::{catalog::TableName, shared::InstanceState};
use definition::Agent;
use link::{StatementTime, longest_opening};
use part::Opening;

/// Opens the distributed tables of one statement.
pub(crate) struct Agents {
    shared: Arc<InstanceState>,
    /// The options of the statement.
    asked: AgentOptions,
    /// The chain of tables, each with its server, through which another server's request came here.
    /// It detects cycles.
    trail: Vec<String>,
    time: StatementTime,
    /// Whether an answer was discarded and the statement has to be answered in another way.
    is_given_up: AtomicBool,
    /// Called for each server that is left out, with its name and the reason.
    lost: OmissionCallback,
    /// The servers left out so far.
    left_out: Mutex<Vec<OmittedServer>>,
    /// Names of agents to skip. If set, every other agent must answer.
    without: Option<Vec<String>>,
    opened: Mutex<HashMap<String, OpenOutcome>>,
}

/// A server whose rows are missing from a table.
struct OmittedServer {
    name: String,
    why: String,
    /// Whether the missing server stands behind the one of this name, which answered without it.
    is_behind: bool,
}

/// A callback for each server that is left out: its name and the reason.
pub(crate) type OmissionCallback = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// A table that was opened, or the error that each further attempt of the statement gets.
type OpenOutcome = std::result::Result<Arc<GatheredTable>, String>;

/// Why a table could not be opened. `agent` is the place of the agent at fault, if one was.
struct Failed {
    agent: Option<usize>,
    error: EngineError,
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        Self { agent: None, error }
    }
}

impl Agents {
    pub(crate) fn new(
        shared: Arc<InstanceState>,
        asked: AgentOptions,
        trail: Vec<String>,
        lost: OmissionCallback,
    ) -> Self {
        let (time, is_given_up) = (StatementTime::begin(), AtomicBool::new(false));
        let (left_out, opened) = (Mutex::default(), Mutex::default());
        Self { shared, asked, trail, time, is_given_up, lost, left_out, without: None, opened }
    }

    /// Records that the statement discarded an answer after `took`. Deadlines move by that time, so
    /// that the servers can give the other answer.
    pub(crate) fn give_up(&self, took: Duration) {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        // Each time adds less than one deadline, so the sum cannot overflow.
        self.time.given_up_ms.fetch_add(took_ms, Ordering::Relaxed);
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Whether an answer was discarded since the last call.
    pub(crate) fn take_given_up(&self) -> bool {
        self.is_given_up.swap(false, Ordering::Relaxed)
    }

    /// For a second look at the servers of an earlier statement: skips the agents that it left out.
    pub(crate) fn again(self, without: Vec<String>) -> Self {
        Self { without: Some(without), ..self }
    }

    /// The agents that were left out, for [`Agents::again`]; `None` if servers behind other servers
    /// are missing too, since those cannot be skipped by name.
    pub(crate) fn missing(&self) -> Option<Vec<String>> {
        let left_out = self.left_out.lock();
        let name = |left: &OmittedServer| (!left.is_behind).then(|| left.name.clone());
        left_out.iter().map(name).collect()
    }

    /// Whether agents that do not answer may be left out.
    fn is_partial(&self) -> bool {
        self.asked.is_partial && self.without.is_none()
    }

    /// Reports the missing servers once more: each facet of a SELECT is a statement with its own
    /// warnings.
    pub(crate) fn report_left_out_again(&self) {
        self.left_out.lock().iter().for_each(|left| (self.lost)(&left.name, &left.why));
    }

    /// The options of the statement.
    pub(crate) fn asked(&self) -> AgentOptions {
        self.asked
    }

    /// The chain of tables to send with a request for this table's parts. Refuses cycles and chains
    /// that are too long.
    fn trail_of(&self, table: &str) -> EngineResult<Vec<String>> {
        let refused = |message: String| EngineError::request(RequestPart::Schema, message);
        let own = format!("{}/{table}", self.shared.agents.run);
        if self.trail.contains(&own) {
            return Err(refused(format!(
                "table {table:?} lies in itself: one of its agents, or of theirs, names it"
            )));
        }
        if self.trail.len() >= wire::MAX_DEPTH {
            return Err(refused(format!(
                "table {table:?} lies in other servers, and so did {} tables before it: no more may",
                wire::MAX_DEPTH
            )));
        }
        Ok(self.trail.iter().cloned().chain([own]).collect())
    }

    /// Opens a table. With `partial`, an agent that fails is left out and all others are opened
    /// anew: rows of theirs may have been hidden because the lost agent had the same keys.
    fn open(&self, declared: &Schema, reader: &Reader) -> EngineResult<GatheredTable> {
        let trail = self.trail_of(&declared.name)?;
        let database = TableName::of_engine(&declared.name, &self.shared).database;
        let agents = definition::agents(declared, self.asked, &database);
        let mut agents =
            agents.map_err(|error| EngineError::request(RequestPart::Schema, error.message))?;
        let is_asked = |agent: &Agent| !self.without.iter().flatten().any(|it| *it == agent.name());
        agents.retain(is_asked);
        let mut lost: Vec<OmittedServer> = Vec::new();
        let mut begun = self.time.begun;
        loop {
            let mut left_out = Vec::new();
            let asked = (agents.as_slice(), begun);
            match self.open_all(declared, reader, asked, &trail, &mut left_out) {
                Ok(table) => {
                    lost.append(&mut left_out);
                    lost.iter().for_each(|left| (self.lost)(&left.name, &left.why));
                    self.left_out.lock().append(&mut lost);
                    return Ok(table);
                }
                Err(Failed { agent: Some(at), error })
                    if self.is_partial() && at < agents.len() =>
                {
                    let (name, why) = (agents.remove(at).name(), error.to_string());
                    lost.push(OmittedServer { name, why, is_behind: false });
                    begun = Instant::now();
                    // At least one part must remain.
                    if agents.is_empty() && declared.parts().is_empty() {
                        return Err(error);
                    }
                }
                Err(failed) => return Err(failed.error),
            }
        }
    }

    /// Opens a table over these agents, all of which are asked at once, for a statement that began
    /// at the given moment. Servers that are missing are added to `left_out`.
    fn open_all(
        &self,
        declared: &Schema,
        reader: &Reader,
        (agents, mut begun): (&[Agent], Instant),
        trail: &[String],
        left_out: &mut Vec<OmittedServer>,
    ) -> std::result::Result<GatheredTable, Failed> {
        let unless = reader.ending().clone();
        // The time spent waiting for agents that fail must not make the others late.
        if self.is_partial() {
            let longest = agents.iter().map(longest_opening).max().unwrap_or_default();
            begun = begun.checked_add(longest).unwrap_or(begun);
        }
        let begin = |agent: &Agent| {
            let (agent, trail) = (agent.clone(), trail.to_vec());
            let time = StatementTime { begun, ..self.time.clone() };
            Opening::begin(&self.shared, agent, time, trail, self.is_partial())
        };
        let opening: Vec<Opening> = agents.iter().map(begin).collect::<EngineResult<_>>()?;
        let mut parts: Vec<Arc<dyn Part>> = Vec::new();
        // For each part, the place of its agent; `None` for the local part.
        let mut places: Vec<Option<usize>> = Vec::new();
        if !declared.parts().is_empty() {
            let local = united_name(declared.parts().iter().map(String::as_str));
            parts.push(Arc::new(LocalPart::new(reader, &local)?));
            places.push(None);
        }
        let (mut lost, mut last) = (Vec::new(), None);
        for (at, opening) in opening.into_iter().enumerate() {
            match opening.finish(&unless) {
                Ok((part, without)) => {
                    let name = part.name().to_owned();
                    let left = |why| OmittedServer { name: name.clone(), why, is_behind: true };
                    left_out.extend(without.into_iter().map(left));
                    parts.push(Arc::new(part));
                    places.push(Some(at));
                }
                // No rows were hidden yet, so the other parts stay as they are.
                Err(error @ EngineError::RemoteServer(_)) if self.is_partial() => {
                    let name = agents.get(at).map(Agent::name).unwrap_or_default();
                    lost.push(OmittedServer { name, why: error.to_string(), is_behind: false });
                    last = Some(error);
                }
                Err(error) => {
                    let is_lost = matches!(error, EngineError::RemoteServer(_));
                    return Err(Failed { agent: is_lost.then_some(at), error });
                }
            }
        }
        if let (true, Some(error)) = (parts.is_empty(), last) {
            return Err(error.into());
        }
        left_out.append(&mut lost);
        let opened = GatheredTable::open(declared, parts, &self.shared.agents.parts, &unless);
        opened.map_err(|unopened| {
            let agent = unopened.part.and_then(|part| places.get(part).copied().flatten());
            Failed { agent, error: *unopened.error }
        })
    }
}

impl RemoteTables for Agents {
    fn table(&self, declared: &Schema, reader: &Reader) -> EngineResult<Arc<GatheredTable>> {
        let mut opened = self.opened.lock();
        match opened.get(&declared.name) {
            Some(Ok(known)) => return Ok(Arc::clone(known)),
            Some(Err(why)) => return Err(EngineError::RemoteServer(why.clone())),
            None => {}
        }
        let table = self.open(declared, reader).map(Arc::new);
        match &table {
            Ok(table) => {
                opened.insert(declared.name.clone(), Ok(Arc::clone(table)));
            }
            // A statement does not wait for the same failing server twice.
            Err(EngineError::RemoteServer(why)) => {
                opened.insert(declared.name.clone(), Err(why.clone()));
            }
            Err(_) => {}
        }
        table
    }
}
