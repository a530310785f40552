//! Tables whose rows lie in other servers too: which servers those are, what is asked of them, and what they answer.
//!
//! A statement opens such a table once: each server pins a moment, and all that the statement reads of the table is of
//! these moments. How the answers become one table is the engine's ([`remora_engine::GatheredTable`]); how bytes get
//! there is the host's ([`crate::Host::agent`]).

mod definition;
mod link;
mod part;
mod served;
pub(crate) mod wire;

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use remora_engine::{
    Elsewhere, Error as EngineError, GatheredTable, LocalPart, Lost, Part, Reader, RequestPart,
    Result as EngineResult, Schema, united_name,
};

pub(crate) use definition::{Asked, check_named, check_setting, normalised};
pub(crate) use served::ServedPart;

use crate::{catalog::TableName, shared::InstanceState};
use part::Opening;

/// Opens the tables of a statement.
pub(crate) struct Agents {
    shared: Arc<InstanceState>,
    /// What the statement says of how they are asked.
    asked: Asked,
    /// How many servers there are between this one and the client's.
    depth: u8,
    /// Is told of those that do not answer.
    lost: Lost,
    opened: Mutex<HashMap<String, Arc<GatheredTable>>>,
}

impl Agents {
    pub(crate) fn new(shared: Arc<InstanceState>, asked: Asked, depth: u8, lost: Lost) -> Self {
        Self { shared, asked, depth, lost, opened: Mutex::default() }
    }

    /// What the statement says.
    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }

    fn open(&self, declared: &Schema, reader: &Reader) -> EngineResult<GatheredTable> {
        let refused = |message: String| EngineError::request(RequestPart::Schema, message);
        if self.depth >= wire::MAX_DEPTH {
            return Err(refused(format!(
                "table {:?} lies in other servers, and so did {} tables before it: tables may not lie in each other",
                declared.name,
                wire::MAX_DEPTH
            )));
        }
        let unless = reader.ending().clone();
        let lost = self.asked.is_partial.then(|| Arc::clone(&self.lost));
        let database = TableName::of_engine(&declared.name, &self.shared).database;
        let agents = definition::agents(declared, self.asked, &database);
        let agents = agents.map_err(|error| refused(error.message))?;
        let opening: Vec<Opening> = agents
            .into_iter()
            .map(|agent| Opening::begin(&self.shared, agent, self.depth + 1, self.asked.is_partial))
            .collect::<EngineResult<_>>()?;
        let mut parts: Vec<Arc<dyn Part>> = Vec::new();
        if !declared.parts().is_empty() {
            let local = united_name(declared.parts().iter().map(String::as_str));
            parts.push(Arc::new(LocalPart::new(reader, &local)?));
        }
        let mut last = None;
        for opening in opening {
            let name = opening.name().to_owned();
            match (opening.finish(&unless), &lost) {
                (Ok((part, left_out)), _) => {
                    for what in left_out {
                        (self.lost)(part.name(), &EngineError::Elsewhere(what));
                    }
                    parts.push(Arc::new(part));
                }
                (Err(error), Some(lost)) if !matches!(error, EngineError::Ended(_)) => {
                    lost(&name, &error);
                    last = Some(error);
                }
                (Err(error), _) => return Err(error),
            }
        }
        if let (true, Some(error)) = (parts.is_empty(), last) {
            return Err(error);
        }
        let shared_keys = &self.shared.agents.shared_keys;
        GatheredTable::open(declared, parts, shared_keys, lost, &unless)
    }
}

impl Elsewhere for Agents {
    fn table(&self, declared: &Schema, reader: &Reader) -> EngineResult<Arc<GatheredTable>> {
        let mut opened = self.opened.lock();
        if let Some(known) = opened.get(&declared.name) {
            return Ok(Arc::clone(known));
        }
        let table = Arc::new(self.open(declared, reader)?);
        opened.insert(declared.name.clone(), Arc::clone(&table));
        Ok(table)
    }
}
