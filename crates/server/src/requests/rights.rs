//! Rights of clients. Checks cost nothing for administrators.

use remora_protocol::line::{LineError, code};
use remora_sql::Access;

use super::{Answer, Caller};

impl Caller {
    /// Whether the client has limited rights.
    pub(crate) fn is_limited(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.rights.is_some())
    }

    /// Whether the client has this access to the table of this engine name, and may read its parts if it is
    /// distributed.
    pub(crate) fn may(&self, table: &str, access: Access) -> bool {
        let Some(identity) = self.identity.as_ref().filter(|_| self.is_limited()) else {
            return true;
        };
        let settings = self.shared.settings.load();
        let default = &settings.sql.default_database;
        let parts = self.shared.database.reader().parts(table);
        identity.may_engine(table, default, access)
            && parts.iter().all(|part| identity.may_engine(part, default, Access::Read))
    }

    /// Whether the client may know about a table.
    pub(crate) fn is_visible(&self, table: &str) -> bool {
        self.may(table, Access::Read)
    }

    /// The error for missing rights; the same whether the table exists or not.
    pub(crate) fn denied(&self, access: Access, table: &str) -> LineError {
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

    /// Refuses clients with limited rights operations on the whole server.
    pub(crate) fn require_everything(&self) -> Answer {
        if !self.is_limited() {
            return Ok(());
        }
        let message = format!("This needs an account that may do everything, not {}", self.who());
        Err(LineError::new(code::PERMISSION_DENIED, message))
    }
}
