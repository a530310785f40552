//! Shapes over a table with rows in other servers. Opening such a table asks them, and before its definition is known
//! nothing else is. So the statement first says how they are asked, and may end while it waits for them.

use remora_engine::Error as EngineError;

use super::{
    AnyPlan, AnyShape,
    parameterize::Constants,
    run::failed,
    shape::{Keywords, ShapeCondition},
};
use crate::{
    Result,
    agents::AgentOptions,
    catalog::{Reader, TableName, Verb},
    state::SessionState,
};

/// How a statement reads its tables.
pub(super) enum Way {
    /// All rows are here.
    Here,
    /// The table has rows in other servers, which this reader asks.
    Reaching(Reader),
    /// The general path has to be taken, and says why if it is an error. Another try may take another way.
    General,
}

/// The table of a statement, and the keyword query on it.
struct Named<'s> {
    table: TableName,
    keywords: Option<&'s Keywords>,
}

impl Way {
    /// How a plan's table is read.
    pub fn of_plan(
        plan: Option<&AnyPlan>,
        session: &SessionState,
        here: &Reader,
        constants: &Constants<'_>,
    ) -> Result<Self> {
        match plan {
            Some(AnyPlan::One(plan)) if plan.table.is_elsewhere() => {
                let (table, keywords) = (plan.table.name.clone(), plan.work.keywords());
                Named { table, keywords }.way(session, here, constants)
            }
            _ => Ok(Self::Here),
        }
    }

    /// How the table of a shape is read. Of joined tables none has rows in other servers.
    pub fn of_shape(
        shape: Option<&AnyShape>,
        session: &SessionState,
        here: &Reader,
        database: Option<&str>,
        constants: &Constants<'_>,
    ) -> Result<Self> {
        let Some(AnyShape::One(shape)) = shape else { return Ok(Self::Here) };
        let select = &shape.select;
        let Some(database) = select.database.as_deref().or(database) else {
            return Ok(Self::Here);
        };
        let table = TableName::new(database, select.table.as_str());
        let keywords = select.condition.as_ref().and_then(ShapeCondition::keywords);
        Named { table, keywords }.way(session, here, constants)
    }

    /// Whether only the general path knows an answer.
    pub fn is_general(&self) -> bool {
        matches!(self, Self::General)
    }

    /// The reader of the tables; `here` where all rows are here.
    pub fn reader<'r>(&'r self, here: &'r Reader) -> &'r Reader {
        match self {
            Self::Reaching(reader) => reader,
            Self::Here | Self::General => here,
        }
    }
}

impl Named<'_> {
    fn way(&self, session: &SessionState, here: &Reader, constants: &Constants<'_>) -> Result<Way> {
        let engine_name = self.table.engine_name(&session.shared);
        let Some(declared) = here.schema(&engine_name).ok().filter(|it| !it.agents().is_empty())
        else {
            return Ok(Way::Here);
        };
        let (transaction, identity) = (&session.transaction, &session.identity);
        let is_hidden = transaction.temporary(&self.table).is_some()
            || declared.parts().iter().any(|part| transaction.overlay(part).is_some());
        let may_read = self.table.check(identity, Verb::Select).is_ok()
            && TableName::check_parts(&declared, &session.shared, identity).is_ok();
        // Nobody is asked before the time limit of a hint is known.
        if is_hidden || !may_read || has_hint(constants.text) {
            return Ok(Way::General);
        }
        let asked = self.keywords.map(|keywords| keywords.asked_of_agents(constants));
        if let Some(asked) = asked.filter(|asked| *asked != AgentOptions::default()) {
            session.ask_agents(asked);
        }
        let reader = session.reading();
        match reader.schema(&engine_name) {
            Ok(_) => Ok(Way::Reaching(reader)),
            Err(error @ EngineError::Ended(_)) => Err(failed(error)),
            Err(_) => Ok(Way::General),
        }
    }
}

/// Whether a comment may be a hint.
fn has_hint(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"/*+").is_some()
}
