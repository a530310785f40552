//! The SQL side of one server, where its sessions begin.

use std::sync::Arc;

use remora_engine::{Database, Value};
use remora_mysql::Collation;

use crate::{
    Host, Identity, Session,
    meaning::collation::push_key,
    shared::{InstanceState, Settings, Usage},
    variables::definition,
    write::COMPUTING,
};

/// What all sessions share. Cheap to clone.
#[derive(Clone)]
pub struct Instance {
    shared: Arc<InstanceState>,
}

/// Tells the engine how the texts of each collation are ordered, by the collation's number, and what keys of followed
/// tables are over. Do so before a database is opened, so that its indexes over texts are made and used from the beginning.
pub fn register_collations() {
    remora_engine::register_computing(COMPUTING);
    remora_engine::register_text_key(|number, text, key| {
        let collation = Collation(u16::try_from(number).unwrap_or(Collation::BINARY.0));
        match std::str::from_utf8(text) {
            Ok(text) => push_key(text, collation, key),
            Err(_) => key.extend_from_slice(text),
        }
    });
}

impl Instance {
    /// The SQL side of this database in this server.
    pub fn new(database: Database, host: Arc<dyn Host>, settings: Settings) -> Self {
        register_collations();
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
        let resources = &self.shared.resources;
        Usage {
            running: resources.running(),
            memory_bytes: resources.memory_bytes(),
            spilled_bytes: resources.disk_bytes(),
        }
    }

    /// A session of a client that has proved who it is. `id` is the connection's number.
    pub fn session(&self, id: u64, identity: Identity) -> Session {
        Session::new(Arc::clone(&self.shared), id, identity)
    }
}
