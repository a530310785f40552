//! The SQL side of one server: what all its sessions share.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::RwLock;
use remora_engine::{Database, Value};

use crate::{
    Host, Identity, Session, fast,
    select::room::Rooms,
    session::locks::NamedLocks,
    variables::{Globals, definition},
    write,
};

/// What all sessions share. Cheap to clone.
#[derive(Clone)]
pub struct Instance {
    shared: Arc<Shared>,
}

/// What sessions reach of it.
pub(crate) struct Shared {
    /// The tables.
    pub database: Database,
    /// The server around.
    pub host: Arc<dyn Host>,
    /// What the operator set.
    pub settings: Settings,
    /// System variables as new sessions get them.
    pub globals: RwLock<Globals>,
    /// AUTO_INCREMENT values and hidden row numbers.
    pub counters: write::Counters,
    /// Held for reading by commits, for writing where a table is made anew.
    pub definitions: tokio::sync::RwLock<()>,
    /// Held while a definition finds out what there is and changes it.
    pub naming: tokio::sync::Mutex<()>,
    /// What temporary tables take in memory, about.
    pub temporary_bytes: Arc<AtomicU64>,
    /// Locks by name.
    pub locks: Arc<NamedLocks>,
    /// Statements that were made ready before.
    pub plans: fast::Plans,
    /// What plans take of memory and disk.
    pub rooms: Rooms,
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

impl Instance {
    /// The SQL side of this database in this server.
    pub fn new(database: Database, host: Arc<dyn Host>, settings: Settings) -> Self {
        let rooms = Rooms::new(&settings);
        Self {
            shared: Arc::new(Shared {
                database,
                host,
                settings,
                rooms,
                globals: RwLock::default(),
                counters: write::Counters::default(),
                definitions: tokio::sync::RwLock::default(),
                naming: tokio::sync::Mutex::default(),
                temporary_bytes: Arc::default(),
                locks: Arc::default(),
                plans: fast::Plans::default(),
            }),
        }
    }

    /// What its sessions share.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Sets a system variable as new sessions get it; a name that is not known is passed over.
    pub fn set_global(&self, name: &str, value: Value) {
        if let Some(definition) = definition(name) {
            self.shared.globals.write().set(definition.name, value);
        }
    }

    /// What statements take at this moment.
    pub fn usage(&self) -> Usage {
        let rooms = &self.shared.rooms;
        Usage {
            running: rooms.running(),
            memory_bytes: rooms.memory_bytes(),
            spilled_bytes: rooms.disk_bytes(),
        }
    }

    /// A session of a client that has proved who it is. `id` is the connection's number.
    pub fn session(&self, id: u64, identity: Identity) -> Session {
        Session::new(Arc::clone(&self.shared), id, identity)
    }
}
