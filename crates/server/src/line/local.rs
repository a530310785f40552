//! A session without a connection, for the shell on a data directory.

use std::sync::Arc;

use remora_engine::Database;

use super::Session;
use crate::{Result, settings::Settings, shared::ServerState};

/// Answers requests in this process.
pub struct LocalSession {
    session: Session,
    reply: Vec<u8>,
}

impl LocalSession {
    /// A session of the data directory's owner, without login.
    pub(crate) fn new(settings: Settings, database: Database) -> Self {
        Self::of(Arc::new(ServerState::new(settings, database, None)))
    }

    /// A session in a running server.
    pub(crate) fn of(shared: Arc<ServerState>) -> Self {
        Self { session: Session::of_owner(shared), reply: Vec::new() }
    }

    /// The reply to a request, without its last line break.
    pub fn ask(&mut self, request: &str) -> String {
        self.reply.clear();
        self.session.answer(request.as_bytes(), &mut self.reply);
        if self.session.take_export().is_some() {
            return "ERROR 4 EXPORT needs a connection: use 'remora export --data'".to_owned();
        }
        let reply = String::from_utf8_lossy(&self.reply);
        reply.strip_suffix("\r\n").unwrap_or(&reply).to_owned()
    }

    /// Waits for a dump in progress and closes the data directory.
    pub(crate) fn close(self) -> Result<()> {
        self.session.caller.shared.dump.wait();
        Ok(self.session.caller.shared.database.close()?)
    }
}
