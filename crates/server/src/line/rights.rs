//! What a client may do, by the rights of its user: for those who may do everything, all that
//! follows costs nothing.

use remora_protocol::line::{Command, LineError, code};
use remora_sql::Access;

use super::{Answer, Session};

impl Session {
    /// Whether the client may do some things only.
    pub(crate) fn is_limited(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.rights.is_some())
    }

    /// Whether so much may be done with the engine's table of this name.
    pub(crate) fn may(&self, table: &str, access: Access) -> bool {
        let Some(identity) = self.identity.as_ref().filter(|_| self.is_limited()) else {
            return true;
        };
        let settings = self.shared.settings.load();
        identity.may_engine(table, &settings.sql.default_database, access)
    }

    /// Whether the client may know of a table.
    pub(crate) fn sees(&self, table: &str) -> bool {
        self.may(table, Access::Read)
    }

    /// The refusal of what may not be done with a table, whether it is there or not.
    pub(super) fn denied(&self, access: Access, table: &str) -> LineError {
        let what = match access {
            Access::Read => "Reading is",
            Access::Write => "Writing is",
            Access::Define => "Defining is",
        };
        LineError::denied(what, self.who(), format_args!("table '{table}'"))
    }

    fn who(&self) -> String {
        let identity = self.identity.clone().unwrap_or_default();
        format!("'{}'@'{}'", identity.user, identity.host)
    }

    /// Refuses what is about the server as a whole to those who may not do everything.
    pub(crate) fn require_everything(&self) -> Answer {
        if !self.is_limited() {
            return Ok(());
        }
        let message = format!("This needs an account that may do everything, not {}", self.who());
        Err(LineError::new(code::PERMISSION_DENIED, message))
    }

    /// Refuses commands to those who have no right to them; tables are looked at where they are found.
    pub(super) fn require_right(&self, command: &Command) -> Answer {
        match command {
            Command::Search(_)
            | Command::Count(_)
            | Command::Get(_)
            | Command::Facet(_)
            | Command::Info
            | Command::Auth(_)
            | Command::Debug(_)
            | Command::Position(_)
            | Command::Wait(_)
            | Command::Optimize(Some(_)) => Ok(()),
            _ => self.require_everything(),
        }
    }

    /// Refuses positions under names that are not those of imported files: what is stored there says
    /// how far a source is, and which databases there are.
    pub(super) fn require_source(&self, name: &str) -> Answer {
        let owner = name.split('/').next().unwrap_or(name);
        let is_kept = name.starts_with('#')
            || self.shared.settings.load().sources.iter().any(|source| source.name == owner);
        if is_kept { self.require_everything() } else { Ok(()) }
    }
}
