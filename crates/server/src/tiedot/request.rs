//! A request to an endpoint, and its answer.

use std::sync::Arc;

use remora::{Collection, Database};
use remora_sql::Access;

use super::{
    parameters::Parameters,
    reply::{Refusal, Reply, shortened},
};
use crate::{requests::Caller, settings::Settings};

/// The answer of an endpoint.
pub(super) type Answer = Result<Reply, Refusal>;

/// A request.
pub(super) struct EndpointRequest {
    pub(super) caller: Caller,
    pub(super) library: Database,
    pub(super) settings: Arc<Settings>,
    pub(super) parameters: Parameters,
}

impl EndpointRequest {
    /// The value of a required parameter.
    pub(super) fn require(&self, name: &str) -> Result<&str, Refusal> {
        self.parameters.require(name)
    }

    /// Refuses access to a table without this right.
    pub(super) fn require_right(&self, table: &str, access: Access) -> Result<(), Refusal> {
        self.caller.require_loaded()?;
        match self.caller.may(table, access) {
            true => Ok(()),
            false => Err(self.caller.denied(access, table).into()),
        }
    }

    /// The collection of this name, if the client has this access.
    pub(super) fn collection(&self, name: &str, access: Access) -> Result<Collection, Refusal> {
        self.require_right(name, access)?;
        // Names with this prefix are internal to the engine.
        let is_hidden = name.split('.').any(|part| part.starts_with('#'));
        let found = if is_hidden { None } else { self.library.find_collection(name)? };
        let missing =
            || Refusal::wrong(format!("Collection '{}' does not exist.", shortened(name)));
        let found = found.ok_or_else(missing)?;
        let is_followed = || {
            self.caller.shared.sources.source_of(name).is_some_and(|(_, table, _)| table == name)
        };
        if access != Access::Read && is_followed() {
            let text =
                format!("Collection '{}' is a copy of a table that is followed.", shortened(name));
            return Err(Refusal::forbidden(text));
        }
        Ok(found)
    }
}
