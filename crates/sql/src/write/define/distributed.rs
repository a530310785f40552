//! CREATE and ALTER TABLE for distributed tables, whose rows are those of other tables.
//!
//! ALTER replaces all parts. [`crate::agents`] defines agents and their settings. No other server is asked here.

use std::sync::Arc;

use remora_engine::{Definition, MAX_PARTS, Schema};
use remora_mysql::ErrorCode;

use super::{
    define,
    drop::rename_all,
    named,
    names::{check_name, exists},
    table_exists,
};
use crate::{
    Error, Outcome, Result,
    agents::{check_named, check_setting, normalised},
    catalog::{TableName, Verb},
    error::from_engine,
    parse::define::{AGENT, AGENT_PERSISTENT, AlterAction, Alteration, LOCAL, PartOption},
    state::SessionState,
};

/// Creates a distributed table.
pub(super) async fn create(
    session: &SessionState,
    name: &TableName,
    options: &[PartOption],
) -> Result<()> {
    // In a dump the table may come before its parts, because tables are sorted by name.
    let parts = Parts::of(session, name, true, options)?;
    let shared = Arc::clone(&session.shared);
    let _alone = session.wait_for(shared.naming.lock()).await?;
    check_name(session, name)?;
    if exists(session, name, false) {
        return Err(table_exists(&name.table));
    }
    let engine_name = name.engine_name(&shared);
    let schema = parts.schema(engine_name.clone());
    // Checked when the definition runs, because sources create tables too.
    let definitions = vec![Definition::Vacant(engine_name), Definition::Create(schema)];
    define(session, definitions, Vec::new()).await
}

/// The engine's name of a table, if it is distributed.
pub(super) fn find(session: &SessionState, name: &TableName) -> Option<String> {
    if session.transaction.temporary(name).is_some() {
        return None;
    }
    let engine_name = name.engine_name(&session.shared);
    let schema = session.reader().schema(&engine_name).ok()?;
    schema.is_distributed().then_some(engine_name)
}

/// Runs ALTER TABLE on a distributed table.
pub(super) async fn alter(
    session: &mut SessionState,
    name: TableName,
    engine_name: String,
    actions: &[AlterAction],
) -> Result<Outcome> {
    name.check(&session.identity, Verb::Alter)?;
    if let [AlterAction { what: Alteration::RenameTable(to), .. }] = actions {
        let to = named(session, to)?;
        rename_all(session, vec![(name, to)]).await?;
        return Ok(Outcome::default());
    }
    let mut options = Vec::new();
    for AlterAction { word, what } in actions {
        match what {
            Alteration::Parts(parts) => options.extend(parts),
            _ => check_named(word)?,
        }
    }
    let schema = Parts::of(session, &name, false, options)?.schema(engine_name);
    define(session, vec![Definition::Alter { schema, fills: Vec::new() }], Vec::new()).await?;
    Ok(Outcome::default())
}

/// The parts of a distributed table.
#[derive(Default)]
struct Parts {
    /// The engine's names of the local parts. Those that exist have compatible definitions.
    locals: Vec<String>,
    agents: Vec<String>,
    settings: Vec<(String, String)>,
}

impl Parts {
    /// The parts that options name. Missing ones are an error, or a warning if `may_lack`.
    fn of<'o>(
        session: &SessionState,
        name: &TableName,
        may_lack: bool,
        options: impl IntoIterator<Item = &'o PartOption>,
    ) -> Result<Self> {
        let mut parts = Self::default();
        let mut present: Vec<String> = Vec::new();
        for PartOption { name: option, value, .. } in options {
            // The limit bounds the comparison of each name with those before, and the warnings.
            let is_part = matches!(option.as_str(), LOCAL | AGENT | AGENT_PERSISTENT);
            if is_part && parts.locals.len() + parts.agents.len() == MAX_PARTS {
                let message = format!("a distributed table has up to {MAX_PARTS} parts");
                return Err(Error::new(ErrorCode::NotSupported, message));
            }
            match option.as_str() {
                LOCAL => {
                    let part = match value.split_once('.') {
                        Some((database, table)) => TableName::new(database, table),
                        None => TableName::new(name.database.as_str(), value.as_str()),
                    };
                    let may_lack = may_lack && part != *name;
                    let (part, is_there) = part_of(session, &part, &parts.locals, may_lack)?;
                    present.extend(is_there.then(|| part.clone()));
                    parts.locals.push(part);
                }
                AGENT | AGENT_PERSISTENT => {
                    check_may_declare_agents(session)?;
                    let is_kept = option.as_str() == AGENT_PERSISTENT;
                    parts.agents.push(normalised(value, &name.database, is_kept)?);
                }
                setting => {
                    check_setting(setting, value)?;
                    parts.settings.retain(|(known, _)| known != setting);
                    parts.settings.push((option.clone(), value.clone()));
                }
            }
        }
        if parts.locals.is_empty() && parts.agents.is_empty() {
            let message = format!(
                "a distributed table has parts: name each by {LOCAL}='table' or {AGENT}='host:port:table'"
            );
            return Err(Error::new(ErrorCode::ParseError, message));
        }
        if !present.is_empty() {
            session.reader().united_rows(&present).map_err(|error| from_engine(&error))?;
        }
        Ok(parts)
    }

    fn schema(self, engine_name: String) -> Schema {
        Schema::distributed(engine_name, self.locals).with_agents(self.agents, self.settings)
    }
}

/// Error 1227 for restricted accounts: agents are asked with the configured account, not with the user's rights.
fn check_may_declare_agents(session: &SessionState) -> Result<()> {
    if session.identity.rights.is_none() {
        return Ok(());
    }
    let message = "Access denied; you need (at least one of) the SUPER privilege(s) for this operation: whoever may read a table \
                   with agents reads what the account of [agents] may read";
    Err(Error::new(ErrorCode::SpecificAccessDenied, message))
}

/// The engine's name of a part that the user may read, and whether it exists.
fn part_of(
    session: &SessionState,
    part: &TableName,
    others: &[String],
    may_lack: bool,
) -> Result<(String, bool)> {
    let engine_name = part.engine_name(&session.shared);
    part.check(&session.identity, Verb::Select)?;
    let schema = match session.reader().schema(&engine_name) {
        Ok(schema) => Some(schema),
        Err(_) if may_lack => {
            let message =
                format!("'{part}' is not there: the distributed table is read once it is");
            session.warn(ErrorCode::NoSuchTable, message);
            None
        }
        Err(_) => return Err(part.missing()),
    };
    if schema.as_ref().is_some_and(|schema| schema.is_distributed()) {
        let message = format!("'{part}' is distributed itself: name its parts");
        return Err(Error::new(ErrorCode::NotSupported, message));
    }
    if others.contains(&engine_name) {
        let message = format!("'{part}' is a part twice");
        return Err(Error::new(ErrorCode::NotSupported, message));
    }
    Ok((engine_name, schema.is_some()))
}
