//! Which rights each command needs. Rights to tables are checked where the tables are found.

use remora_protocol::line::Command;

use super::Session;
use crate::requests::Answer;

impl Session {
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
            _ => self.caller.require_everything(),
        }
    }

    /// Refuses positions under names that are not those of imported files: what is stored there says
    /// how far a source is, and which databases there are.
    pub(super) fn require_source(&self, name: &str) -> Answer {
        let owner = name.split('/').next().unwrap_or(name);
        let is_kept = name.starts_with('#')
            || self.caller.shared.settings.load().sources.iter().any(|source| source.name == owner);
        if is_kept { self.caller.require_everything() } else { Ok(()) }
    }
}
