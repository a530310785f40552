//! The SQL side of one server, where its sessions begin.

use std::sync::Arc;

use remora_engine::{Database, Value};

use crate::{
    Host, Identity, Session,
    shared::{InstanceState, Settings, Usage},
    variables::definition,
};

/// What all sessions share. Cheap to clone.
#[derive(Clone)]
pub struct Instance {
    shared: Arc<InstanceState>,
}

impl Instance {
    /// The SQL side of this database in this server.
    pub fn new(database: Database, host: Arc<dyn Host>, settings: Settings) -> Self {
        Self { shared: Arc::new(InstanceState::new(database, host, settings)) }
    }

    /// What its sessions share.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<InstanceState> {
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
