//! The state that the threads of one follower and its owner share.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use remora_engine::Database;

use super::{
    history_loss::ObservedState,
    status::{State, StatusBoard},
    words::WordsRequest,
};
use crate::mysql::{
    binlog::Interrupter,
    coordinates::Coordinates,
    inbox::{Inbox, Message},
    schema::Selection,
    settings::MysqlSettings,
    table_name::TableName,
};

/// The most waiting requests; more are refused.
const MAX_REQUESTS: usize = 4_096;

/// The shared state of a follower.
pub(crate) struct FollowState {
    pub database: Database,
    pub settings: MysqlSettings,
    pub selection: Selection,
    pub board: StatusBoard,
    /// Tables that stopped until a copy is ordered, with the reasons.
    pub given_up: Mutex<HashMap<TableName, String>>,
    /// Local names of tables that stopped because their rows were refused, until that is stored.
    pub refused: Mutex<HashSet<String>>,
    /// The number of batches to submit table by table.
    pub batches_table_by_table: AtomicU32,
    /// How often each table's rows were unreadable.
    pub unreadable: Mutex<HashMap<TableName, u32>>,
    /// How often in a row a table's row layout did not match its definition.
    pub unfitting: Mutex<HashMap<TableName, u32>>,
    /// The position where a table's rows were last unreadable. The stream is read again up to there, and definitions
    /// found before it are no remedy.
    pub failed_at: Mutex<HashMap<TableName, Coordinates>>,
    /// What the source last showed of its history.
    pub observed: Mutex<Option<ObservedState>>,
    /// Whether following failed because the position is lost: it can only start again with new copies.
    pub lost: AtomicBool,
    /// Held while definitions are made and committed, and while a session begins.
    pub defining: Mutex<()>,
    /// The number of the last request for ranked search.
    pub words_requests: AtomicU64,
    requests: Mutex<PendingRequests>,
    changed: Condvar,
}

/// The owner's wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestedState {
    /// Follow.
    #[default]
    Run,
    /// Do not follow for now.
    Stop,
    /// Never follow again.
    Close,
}

/// What the owner requests for tables.
#[derive(Clone, Debug)]
pub(crate) enum TableRequest {
    /// Copy the table of this local name again.
    Sync(String),
    /// Cancel the copy of the table of this name, or of all tables.
    Cancel(Option<String>),
    /// Change the ranked search of a table.
    Words(WordsRequest),
}

#[derive(Default)]
struct PendingRequests {
    requested: RequestedState,
    tables: VecDeque<TableRequest>,
    /// Whether nothing runs and following is paused.
    is_idle: bool,
    inbox: Option<Arc<Inbox>>,
    interrupter: Option<Interrupter>,
}

impl FollowState {
    pub fn new(database: Database, settings: MysqlSettings) -> Self {
        let selection = Selection::of(&settings);
        Self {
            database,
            settings,
            selection,
            board: StatusBoard::default(),
            given_up: Mutex::default(),
            refused: Mutex::default(),
            batches_table_by_table: AtomicU32::new(0),
            unreadable: Mutex::default(),
            unfitting: Mutex::default(),
            failed_at: Mutex::default(),
            observed: Mutex::default(),
            lost: AtomicBool::new(false),
            defining: Mutex::default(),
            words_requests: AtomicU64::new(0),
            requests: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Forgets a table's failures, so that it is copied.
    pub fn forget_failures(&self, table: &TableName) {
        self.given_up.lock().remove(table);
        self.unreadable.lock().remove(table);
        self.unfitting.lock().remove(table);
        self.failed_at.lock().remove(table);
    }

    /// The owner's current wish.
    pub fn requested(&self) -> RequestedState {
        self.requests.lock().requested
    }

    /// Sets the owner's wish and notifies all threads. `Close` is final.
    pub fn request_state(&self, requested: RequestedState) {
        let mut requests = self.requests.lock();
        if requests.requested != RequestedState::Close {
            requests.requested = requested;
        }
        if requests.requested == RequestedState::Run {
            requests.is_idle = false;
            self.board.resume();
        }
        self.changed.notify_all();
        if let Some(inbox) = &requests.inbox {
            inbox.push(Message::Request);
        }
        let interrupter = requests.interrupter.clone().filter(|_| requested != RequestedState::Run);
        drop(requests);
        if let Some(interrupter) = interrupter {
            interrupter.interrupt();
        }
    }

    /// Stops following with an error, unless the owner wants something else already.
    pub fn fail(&self, reason: String) {
        let mut requests = self.requests.lock();
        if requests.requested == RequestedState::Run {
            requests.requested = RequestedState::Stop;
            self.board.set_state(State::Failed(reason));
        }
    }

    /// Waits until following is wanted; false after `Close`. Nothing may be running.
    pub fn wait_to_run(&self) -> bool {
        let mut requests = self.requests.lock();
        while requests.requested == RequestedState::Stop {
            requests.is_idle = true;
            self.board.set_stopped();
            self.changed.notify_all();
            self.changed.wait(&mut requests);
        }
        requests.is_idle = false;
        requests.requested == RequestedState::Run
    }

    /// Waits until nothing runs, or following is wanted again; false after the timeout.
    pub fn wait_until_idle(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut requests = self.requests.lock();
        while requests.requested == RequestedState::Stop && !requests.is_idle {
            if self.changed.wait_until(&mut requests, deadline).timed_out() {
                return false;
            }
        }
        true
    }

    /// Waits for this time, or until something else is wanted.
    pub fn pause(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut requests = self.requests.lock();
        while requests.requested == RequestedState::Run {
            if self.changed.wait_until(&mut requests, deadline).timed_out() {
                return;
            }
        }
    }

    /// Sets the session to notify of requests and to interrupt, or none.
    pub fn set_session(&self, session: Option<(Arc<Inbox>, Interrupter)>) {
        let mut requests = self.requests.lock();
        let (inbox, interrupter) = session.unzip();
        (requests.inbox, requests.interrupter) = (inbox, interrupter);
    }

    /// Adds a request; false if too many are waiting.
    pub fn request(&self, request: TableRequest) -> bool {
        let mut requests = self.requests.lock();
        if requests.tables.len() >= MAX_REQUESTS {
            return false;
        }
        requests.tables.push_back(request);
        if let Some(inbox) = &requests.inbox {
            inbox.push(Message::Request);
        }
        true
    }

    /// Whether a session runs, which executes requests.
    pub fn has_session(&self) -> bool {
        self.requests.lock().inbox.is_some()
    }

    /// Withdraws a request for ranked search; false if it was executed already.
    pub fn withdraw_words(&self, number: u64) -> bool {
        let mut requests = self.requests.lock();
        let is_it = |request: &TableRequest| matches!(request, TableRequest::Words(one) if one.number == number);
        let place = requests.tables.iter().position(is_it);
        place.is_some_and(|place| requests.tables.remove(place).is_some())
    }

    /// The next request.
    pub fn next_request(&self) -> Option<TableRequest> {
        self.requests.lock().tables.pop_front()
    }

    /// The names of the tables to copy again, and how many requests from the first they cover.
    pub fn requested_copies(&self) -> (HashSet<String>, usize) {
        let requests = self.requests.lock();
        let copies = requests.tables.iter().map_while(|request| match request {
            TableRequest::Sync(name) => Some(name.clone()),
            TableRequest::Cancel(_) | TableRequest::Words(_) => None,
        });
        let names: Vec<_> = copies.collect();
        let count = names.len();
        (names.into_iter().collect(), count)
    }

    /// Drops the first requests, which were executed.
    pub fn drop_requests(&self, count: usize) {
        let mut requests = self.requests.lock();
        let count = count.min(requests.tables.len());
        requests.tables.drain(..count);
    }

    /// The number of events that wait to be applied.
    pub fn queue_length(&self) -> usize {
        self.requests.lock().inbox.as_ref().map_or(0, |inbox| inbox.len())
    }
}
