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
    /// A session of the owner of the data directory: nothing asks for a token.
    pub(crate) fn new(settings: Settings, database: Database) -> Self {
        Self::of(Arc::new(ServerState::new(settings, database, None)))
    }

    /// A session beside those of a running server.
    pub(crate) fn of(shared: Arc<ServerState>) -> Self {
        Self { session: Session::of_owner(shared), reply: Vec::new() }
    }

    /// The reply to a request, without its last line end.
    pub fn ask(&mut self, request: &str) -> String {
        self.reply.clear();
        self.session.answer(request.as_bytes(), &mut self.reply);
        let reply = String::from_utf8_lossy(&self.reply);
        reply.strip_suffix("\r\n").unwrap_or(&reply).to_owned()
    }

    /// Waits for a dump that is being written and closes the data directory.
    pub(crate) fn close(self) -> Result<()> {
        self.session.caller.shared.dump.wait();
        Ok(self.session.caller.shared.database.close()?)
    }
}
