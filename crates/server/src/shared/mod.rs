//! The state that all sessions of a server share, in every protocol.

mod dump_state;

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Instant,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use remora_engine::Database;
use remora_sql::Instance;
use tokio::sync::{Notify, watch};

pub(crate) use dump_state::{DumpState, Trigger, busy, half_loaded};

use crate::{
    LogHandle,
    accounts::Logins,
    cache::QueryCache,
    counters::Counters,
    limits::{BufferBudget, RateLimiter},
    query_log::QueryLog,
    settings::Settings,
    sources::Sources,
};

/// The state that all sessions share. Every part may be used from any thread.
pub(crate) struct ServerState {
    pub database: Database,
    /// The collections of the database.
    pub library: remora::Database,
    /// The SQL layer, while the server runs: the only one that numbers rows of its tables. It has this state, too.
    pub sql: Mutex<Option<Instance>>,
    pub settings: ArcSwap<Settings>,
    /// Serializes changes of the settings; readers only load the swapped pointer.
    pub changing: Mutex<()>,
    pub counters: Arc<Counters>,
    pub cache: QueryCache,
    pub limiter: RateLimiter,
    pub logins: Logins,
    pub buffers: Arc<BufferBudget>,
    pub dump: DumpState,
    pub sources: Sources,
    pub log: Option<LogHandle>,
    pub query_log: QueryLog,
    /// The number of exports that run.
    pub exports: Arc<AtomicUsize>,
    pub started: Instant,
    pub stopping: watch::Sender<bool>,
    /// Notified when a client asks to stop the server.
    pub stop_asked: Notify,
}

impl ServerState {
    /// The state of a starting server.
    pub(crate) fn new(settings: Settings, database: Database, log: Option<LogHandle>) -> Self {
        Self {
            library: remora::Database::over(database.clone()),
            database,
            sql: Mutex::default(),
            changing: Mutex::new(()),
            counters: Arc::default(),
            cache: QueryCache::default(),
            limiter: RateLimiter::default(),
            logins: Logins::default(),
            buffers: Arc::default(),
            dump: DumpState::default(),
            sources: Sources::default(),
            log,
            query_log: QueryLog::default(),
            exports: Arc::default(),
            started: Instant::now(),
            stopping: watch::Sender::new(false),
            stop_asked: Notify::new(),
            settings: ArcSwap::from_pointee(settings),
        }
    }
}
