//! CREATE and ALTER TABLE for distributed tables, whose rows are those of other tables.
//!
//! ```text
//! distributed := "CREATE" "TABLE" ["IF" "NOT" "EXISTS"] name "TYPE" ["="] 'distributed' option*
//! altered     := "ALTER" "TABLE" name (option+ | "RENAME" ["TO" | "AS"] name)
//! option      := "LOCAL" ["="] '[database.]table' | ("AGENT" | "AGENT_PERSISTENT") ["="] 'agent' | setting ["="] value
//! ```
//! ALTER replaces all parts. [`crate::agents`] defines agents and their settings. No other server is asked here.

use std::sync::Arc;

use remora_engine::{Definition, MAX_PARTS, Schema};
use remora_mysql::ErrorCode;

use super::{create::check_name, define, drop::rename_all, table_exists};
use crate::{
    Error, Outcome, Result,
    agents::{check_named, check_setting, normalised},
    catalog::{DISTRIBUTED, TableName, Verb},
    error::from_engine,
    parse::Tokens,
    state::SessionState,
    write::rows::table_name,
};

/// The option that names a local part.
const LOCAL: &str = "local";
/// The option that names a part on other servers.
const AGENT: &str = "agent";
/// Likewise, with persistent connections.
const AGENT_PERSISTENT: &str = "agent_persistent";

/// Whether the options of a distributed table follow. Consumes `TYPE = 'distributed'`.
pub(super) fn is_next(tokens: &mut Tokens<'_>) -> bool {
    let mut ahead = *tokens;
    let is_type = ahead.accept("TYPE");
    ahead.take("=");
    let named = match ahead.is_text() {
        true => ahead.utf8().ok(),
        false => ahead.accept_name(),
    };
    let is_it = is_type && named.is_some_and(|named| named.eq_ignore_ascii_case(DISTRIBUTED));
    if is_it {
        *tokens = ahead;
    }
    is_it
}

/// Creates a distributed table. `tokens` are after its type.
pub(super) async fn create(
    session: &SessionState,
    name: &TableName,
    tokens: &mut Tokens<'_>,
) -> Result<()> {
    // In a dump the table may come before its parts, because tables are sorted by name.
    let parts = Parts::read(session, name, true, tokens)?;
    let shared = Arc::clone(&session.shared);
    let _alone = session.wait_for(shared.naming.lock()).await?;
    check_name(session, name)?;
    if super::create::exists(session, name, false) {
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

/// Runs ALTER TABLE on a distributed table. `tokens` are after its name.
pub(super) async fn alter(
    session: &mut SessionState,
    name: TableName,
    engine_name: String,
    tokens: &mut Tokens<'_>,
) -> Result<Outcome> {
    name.check(&session.identity, Verb::Alter)?;
    if tokens.accept("RENAME") {
        tokens.accept_any(&["TO", "AS"]);
        let to = table_name(tokens, session)?;
        tokens.expect_end()?;
        rename_all(session, vec![(name, to)]).await?;
        return Ok(Outcome::default());
    }
    let schema = Parts::read(session, &name, false, tokens)?.schema(engine_name);
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
    /// Reads options to the end. Missing parts are an error, or a warning if `may_lack`.
    fn read(
        session: &SessionState,
        name: &TableName,
        may_lack: bool,
        tokens: &mut Tokens<'_>,
    ) -> Result<Self> {
        let mut parts = Self::default();
        let mut present: Vec<String> = Vec::new();
        while !tokens.at_end() {
            let option = tokens.name()?.to_lowercase();
            // The limit bounds the comparison of each name with those before, and the warnings.
            let is_part = matches!(option.as_str(), LOCAL | AGENT | AGENT_PERSISTENT);
            if is_part && parts.locals.len() + parts.agents.len() == MAX_PARTS {
                let message = format!("a distributed table has up to {MAX_PARTS} parts");
                return Err(Error::new(ErrorCode::NotSupported, message));
            }
            tokens.take("=");
            match option.as_str() {
                LOCAL => {
                    let named = tokens.utf8()?;
                    let part = match named.split_once('.') {
                        Some((database, table)) => TableName::new(database, table),
                        None => TableName::new(name.database.as_str(), named),
                    };
                    let may_lack = may_lack && part != *name;
                    let (part, is_there) = part_of(session, &part, &parts.locals, may_lack)?;
                    present.extend(is_there.then(|| part.clone()));
                    parts.locals.push(part);
                }
                AGENT | AGENT_PERSISTENT => {
                    check_may_declare_agents(session)?;
                    let is_kept = option == AGENT_PERSISTENT;
                    parts.agents.push(normalised(&tokens.utf8()?, &name.database, is_kept)?);
                }
                setting => {
                    check_named(setting)?;
                    let value = match tokens.is_text() {
                        true => tokens.utf8()?,
                        false => tokens.number().map(|number| number.to_string())?,
                    };
                    check_setting(setting, &value)?;
                    parts.settings.retain(|(known, _)| known != setting);
                    parts.settings.push((option, value));
                }
            }
            tokens.take(",");
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
