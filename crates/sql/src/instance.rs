//! The SQL layer of a server, which creates sessions.

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

/// The SQL layer, shared by all sessions. Cheap to clone.
#[derive(Clone)]
pub struct Instance {
    shared: Arc<InstanceState>,
}

/// Registers the text orders of collations, and the evaluation of functional keys of followed
/// tables, with the engine. Call it before opening a database, so that indexes that need them are
/// built and used.
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
    /// The SQL layer over a database.
    pub fn new(database: Database, host: Arc<dyn Host>, settings: Settings) -> Self {
        register_collations();
        Self { shared: Arc::new(InstanceState::new(database, host, settings)) }
    }

    /// The shared state.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<InstanceState> {
        Arc::clone(&self.shared)
    }

    /// Sets the global value of a system variable. Unknown names are ignored.
    pub fn set_global(&self, name: &str, value: Value) {
        if let Some(definition) = definition(name) {
            self.shared.globals.write().set(definition.name, value);
        }
    }

    /// The resources that statements use now.
    pub fn usage(&self) -> Usage {
        let resources = &self.shared.resources;
        Usage {
            running: resources.running(),
            memory_bytes: resources.memory_bytes(),
            spilled_bytes: resources.disk_bytes(),
        }
    }

    /// A session for an authenticated client. `id` is the connection's number.
    pub fn session(&self, id: u64, identity: Identity) -> Session {
        Session::new(Arc::clone(&self.shared), id, identity)
    }
}
