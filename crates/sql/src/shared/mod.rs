//! What all sessions of a server share: the database, the operator's settings, global variables, counters, locks,
//! cached plans, and resource limits.

mod agents;
mod counters;
mod locks;
mod percolators;
mod plans;
mod resource_limits;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::RwLock;
use remora_engine::Database;

pub(crate) use agents::{AgentThreadPermit, AgentsState, Strategy};
pub(crate) use counters::{Counters, position_name};
pub(crate) use locks::{LocksOwner, NamedLocks, SessionLocks, lock_name};
pub(crate) use percolators::{MAX_RULES_BYTES, Percolators, Rule, Rules, rule_bytes};
pub(crate) use plans::{CachedStatement, Plans};
pub(crate) use resource_limits::ResourceLimits;

use crate::{Host, variables::Globals};

/// What sessions reach of their server.
pub(crate) struct InstanceState {
    /// The tables.
    pub database: Database,
    /// The server around.
    pub host: Arc<dyn Host>,
    /// What the operator set.
    pub settings: Settings,
    /// System variables as new sessions get them.
    pub globals: RwLock<Globals>,
    /// AUTO_INCREMENT values and hidden row numbers.
    pub counters: Counters,
    /// Held for reading by commits, for writing where a table is made anew.
    pub definitions: tokio::sync::RwLock<()>,
    /// Held while a definition finds out what there is and changes it.
    pub naming: tokio::sync::Mutex<()>,
    /// What temporary tables take in memory, about.
    pub temporary_bytes: Arc<AtomicU64>,
    /// Locks by name.
    pub locks: Arc<NamedLocks>,
    /// Statements that were made ready before.
    pub plans: Plans,
    /// The rules of percolate tables.
    pub percolators: Percolators,
    /// The memory and disk that statements take, with their limits.
    pub resources: ResourceLimits,
    /// What is known of other servers in whose tables parts of tables lie.
    pub agents: AgentsState,
}

/// Tables of more rows are read by as many threads as there are, as an optimizer divides them.
pub const MAX_DIRECT_ROWS: usize = 200_000;

/// What an operator sets of the SQL side.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What `@@version` says.
    pub version: String,
    /// Most memory of one statement, and of a session's temporary tables.
    pub max_query_memory_bytes: u64,
    /// Most memory of all statements together.
    pub max_total_memory_bytes: u64,
    /// Most memory of the temporary tables of all sessions.
    pub max_temporary_memory_bytes: u64,
    /// The folder for rows that memory has no room for, this server's alone: it is emptied at the
    /// start. `None` takes one of the system's for temporary files.
    pub spill: Option<PathBuf>,
    /// Most bytes in it.
    pub max_spill_bytes: u64,
    /// Most rows of a table whose statements are planned without an optimizer where they are simple:
    /// [`MAX_DIRECT_ROWS`] but in tests, which compare both ways.
    pub max_direct_rows: usize,
    /// The database that tables without one are shown in, and that a session begins in.
    pub default_database: String,
}

/// What statements take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// How many are planned or run, those included that nobody waits for any more.
    pub running: usize,
    /// Their bytes in memory.
    pub memory_bytes: u64,
    /// Their bytes on the disk.
    pub spilled_bytes: u64,
}

impl InstanceState {
    /// What the sessions of a new server share.
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
            plans: Plans::default(),
            percolators: Percolators::default(),
            agents: AgentsState::default(),
        }
    }
}
