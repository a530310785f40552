//! Which rights each command needs. Rights to tables are checked where the tables are found.

use remora_protocol::line::Command;

use super::Session;
use crate::requests::Answer;

impl Session {
    /// Refuses commands without the required right. Tables are checked where they are found.
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

    /// Refuses names of positions that do not belong to imported files: other positions record how far a source is
    /// applied, and which databases exist.
    pub(super) fn require_source(&self, name: &str) -> Answer {
        let owner = name.split('/').next().unwrap_or(name);
        let is_kept = name.starts_with('#')
            || self.caller.shared.settings.load().sources.iter().any(|source| source.name == owner);
        if is_kept { self.caller.require_everything() } else { Ok(()) }
    }
}
