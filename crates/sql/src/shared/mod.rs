//! What all sessions of a server share: the database, the operator's settings, global variables, counters, locks,
//! cached plans, and resource limits.

mod agents;
mod counters;
mod locks;
mod percolators;
mod plans;
mod resource_limits;
mod row_locks;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::RwLock;
use remora_engine::Database;

pub(crate) use agents::{AgentThreadPermit, AgentsState, Strategy};
pub(crate) use counters::{Counters, position_name};
pub(crate) use locks::{LocksOwner, NamedLocks, SessionLocks, lock_name};
pub(crate) use percolators::{MAX_RULES_BYTES, Percolators, Rule, Rules, VisibleRules, rule_bytes};
pub(crate) use plans::{CachedStatement, Plans};
pub(crate) use resource_limits::ResourceLimits;
pub(crate) use row_locks::{LockAttempt, RowLocks, TransactionLocks};

use crate::{Host, variables::Globals};

/// The state that all sessions of a server share.
pub(crate) struct InstanceState {
    /// The engine's database.
    pub database: Database,
    /// The server that embeds the SQL layer.
    pub host: Arc<dyn Host>,
    /// The operator's settings.
    pub settings: Settings,
    /// The values of system variables that new sessions start with.
    pub globals: RwLock<Globals>,
    /// AUTO_INCREMENT values and hidden row numbers.
    pub counters: Counters,
    /// Commits hold it for reading. A statement that rebuilds a table holds it for writing.
    pub definitions: tokio::sync::RwLock<()>,
    /// Held while a definition checks which names exist and changes them.
    pub naming: tokio::sync::Mutex<()>,
    /// The approximate memory of all temporary tables, in bytes.
    pub temporary_bytes: Arc<AtomicU64>,
    /// Named locks (GET_LOCK).
    pub locks: Arc<NamedLocks>,
    /// Rows that open transactions have locked.
    pub row_locks: Arc<RowLocks>,
    /// The plan cache.
    pub plans: Plans,
    /// The rules of percolate tables.
    pub percolators: Percolators,
    /// Memory and disk used by statements, and their limits.
    pub resources: ResourceLimits,
    /// What is known of other servers that hold parts of tables.
    pub agents: AgentsState,
}

/// Simple statements over larger tables go through the optimizer, which divides their scans among
/// threads.
pub const MAX_DIRECT_ROWS: usize = 200_000;

/// The operator's settings for the SQL layer.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The value of `@@version`.
    pub version: String,
    /// The most memory of one statement, and of a session's temporary tables, in bytes.
    pub max_query_memory_bytes: u64,
    /// The most memory of all statements together, in bytes.
    pub max_total_memory_bytes: u64,
    /// The most memory of the temporary tables of all sessions, in bytes.
    pub max_temporary_memory_bytes: u64,
    /// The folder for spill files. It must be this server's alone, as it is emptied at the start.
    /// `None` uses the system's folder for temporary files.
    pub spill: Option<PathBuf>,
    /// The most bytes of all spill files.
    pub max_spill_bytes: u64,
    /// Simple statements over a table with at most this many rows are planned without the
    /// optimizer. It is [`MAX_DIRECT_ROWS`], except in tests that compare both ways.
    pub max_direct_rows: usize,
    /// The database that shows tables without one, and that a session starts in.
    pub default_database: String,
}

/// The resources that statements use now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// How many statements are planned or run, including those that no client waits for any more.
    pub running: usize,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Bytes in spill files.
    pub spilled_bytes: u64,
}

impl InstanceState {
    pub(crate) fn new(database: Database, host: Arc<dyn Host>, settings: Settings) -> Self {
        Self {
            database,
            host,
            resources: ResourceLimits::new(&settings),
            settings,
            globals: RwLock::default(),
            counters: Counters::default(),
            definitions: tokio::sync::RwLock::default(),
            naming: tokio::sync::Mutex::default(),
            temporary_bytes: Arc::default(),
            locks: Arc::default(),
            row_locks: Arc::default(),
            plans: Plans::default(),
            percolators: Percolators::default(),
            agents: AgentsState::default(),
        }
    }
}
