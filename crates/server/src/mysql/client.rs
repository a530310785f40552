//! A session, and the state changes that its client is notified of.

use std::{io, time::Duration};

use remora_protocol::mysql::{
    Cursor, SessionChange, StatusFlags, WireError, flags_of, handshake::Capabilities,
};
use remora_sql::Session;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{processes::ListedConnection, reply::WireReply, watch::Ended};

/// The variables that are tracked by default (`session_track_system_variables`).
const DEFAULT_TRACKED_VARIABLES: [&str; 5] = [
    "time_zone",
    "autocommit",
    "character_set_client",
    "character_set_results",
    "character_set_connection",
];

/// What happens to a connection after a command.
pub(super) enum Flow {
    /// It waits for the next command.
    Continue,
    /// It ends.
    Disconnect,
    /// It ends, and the client is told why.
    DisconnectWithError(WireError),
}

/// One client's session.
pub(super) struct Client {
    pub session: Session,
    pub capabilities: Capabilities,
    /// Whether its user has limited rights.
    pub is_limited: bool,
    tracking: Tracking,
}

/// What the client wants to be notified of, and what it was last told.
struct Tracking {
    /// The names of variables, separated by commas; `*` is all.
    variables: String,
    database: bool,
    transaction: bool,
    /// The database that the client was last told.
    reported_database: Option<String>,
    /// Whether it was last told that a transaction is open.
    reported_transaction: bool,
    /// The session's own `wait_timeout`.
    wait_timeout: Option<Duration>,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            variables: DEFAULT_TRACKED_VARIABLES.join(","),
            database: true,
            transaction: false,
            reported_database: None,
            reported_transaction: false,
            wait_timeout: None,
        }
    }
}

impl Client {
    /// A client that was told nothing yet.
    pub(super) fn new(session: Session, capabilities: Capabilities, is_limited: bool) -> Self {
        Self { session, capabilities, is_limited, tracking: Tracking::default() }
    }

    /// The session's status flags.
    pub(super) fn flags(&self) -> StatusFlags {
        flags_of(self.session.status())
    }

    /// The session's own `wait_timeout`.
    pub(super) fn wait_timeout(&self) -> Option<Duration> {
        self.tracking.wait_timeout
    }

    /// Resets what was told, because the session was reset.
    pub(super) fn reset_tracking(&mut self) {
        let reported_database = self.tracking.reported_database.take();
        self.tracking = Tracking { reported_database, ..Tracking::default() };
    }

    /// The changes since the client was last told.
    pub(super) fn take_changes(&mut self, process: &ListedConnection) -> Vec<SessionChange> {
        let Self { session, tracking, .. } = self;
        let mut changes = Vec::new();
        for (name, value) in session.take_changes() {
            tracking.note_variable(&name, &value);
            if tracking.is_tracked(&name) {
                changes.push(SessionChange::Variable(name, value));
            }
        }
        let database = session.database();
        if tracking.reported_database.as_deref() != database {
            process.set_database(database);
            tracking.reported_database = database.map(str::to_owned);
            if tracking.database {
                changes.push(SessionChange::Database(database.unwrap_or_default().to_owned()));
            }
        }
        let is_open = session.status().in_transaction;
        if tracking.transaction && tracking.reported_transaction != is_open {
            tracking.reported_transaction = is_open;
            let letters = if is_open { "T_______" } else { "________" };
            changes.push(SessionChange::Transaction(letters.to_owned()));
        }
        changes
    }
}

impl Tracking {
    /// Notes a variable's new value, if it concerns notifications.
    fn note_variable(&mut self, name: &str, value: &str) {
        let is_on = !matches!(value, "OFF" | "0" | "");
        match name {
            "session_track_system_variables" => value.clone_into(&mut self.variables),
            "session_track_schema" => self.database = is_on,
            "session_track_transaction_info" => self.transaction = is_on,
            "wait_timeout" => {
                self.wait_timeout =
                    value.parse().ok().map(|seconds: u64| Duration::from_secs(seconds.max(1)));
            }
            _ => {}
        }
    }

    fn is_tracked(&self, name: &str) -> bool {
        let mut names = self.variables.split(',').map(str::trim);
        names.any(|tracked| tracked == "*" || tracked.eq_ignore_ascii_case(name))
    }
}

/// Ends a reply according to its statement's outcome. Rows that are kept for a cursor are handed over.
pub(super) fn finish<S: AsyncRead + AsyncWrite + Unpin>(
    client: &mut Client,
    process: &ListedConnection,
    reply: WireReply<'_, S>,
    ended: Ended<()>,
) -> io::Result<(Flow, Option<Cursor>)> {
    if let Some(error) = reply.broken {
        return Err(error);
    }
    match ended {
        Ended::Done(Ok(())) => {
            let changes = client.take_changes(process);
            let cursor = reply.results.finish(client.flags(), &changes);
            return Ok((Flow::Continue, cursor));
        }
        Ended::Done(Err(error)) => reply.results.fail(&error.into()),
        Ended::TimedOut => reply.results.fail(&WireError::query_timeout()),
        Ended::Abandoned => {
            reply.results.fail(&WireError::interrupted());
            return Ok((Flow::Disconnect, None));
        }
    }
    Ok((Flow::Continue, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_track_variables_select_the_reports() {
        let mut tracking = Tracking::default();
        assert!(tracking.is_tracked("autocommit") && !tracking.is_tracked("sql_mode"));
        tracking.note_variable("session_track_system_variables", "sql_mode, Transaction_Isolation");
        assert!(!tracking.is_tracked("autocommit") && tracking.is_tracked("transaction_isolation"));
        tracking.note_variable("session_track_system_variables", "*");
        assert!(tracking.is_tracked("anything"));
        tracking.note_variable("session_track_schema", "OFF");
        tracking.note_variable("session_track_transaction_info", "STATE");
        assert!(!tracking.database && tracking.transaction);
        tracking.note_variable("wait_timeout", "7");
        assert_eq!(tracking.wait_timeout, Some(Duration::from_secs(7)));
    }
}
