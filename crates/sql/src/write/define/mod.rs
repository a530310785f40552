//! Definitions: CREATE, ALTER, DROP, RENAME, TRUNCATE.
//!
//! A statement becomes a [`Draft`], and the draft becomes the engine's definition. A table and the hidden tables of its
//! unique keys change in one step.

mod alter;
mod build;
mod create;
mod database;
mod distributed;
mod draft;
mod drop;
mod followed_keys;
mod followed_words;
mod foreign;
mod key_columns;
mod percolate;
mod rebuild;
mod stored;
mod temporary;
mod view;

pub(super) use draft::is_parenthesised;
pub(crate) use followed_keys::COMPUTING;
pub use key_columns::is_declared_path;
pub use percolate::percolate_table;
pub(super) use stored::{Owner, check_stored};

use std::sync::Arc;

use remora_engine::{Definition, Error as EngineError};
use remora_mysql::ErrorCode;

use super::{rows::TargetTable, unique::UniqueKey};
use crate::{
    Error, Outcome, Result,
    catalog::{SqlTable, TableName, ViewHead},
    error::from_engine_write,
    parse::{Statement, Tokens},
    shared::position_name,
    state::SessionState,
    transaction::{TableStorage, read_only_transaction},
};

/// Runs a definition. All except those of temporary tables commit the open transaction.
pub(super) async fn run(session: &mut SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    let source = &statement.source;
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    let temporary = {
        let mut ahead = tokens;
        ahead.next();
        ahead.is_word("TEMPORARY")
    };
    if !temporary {
        session.commit().await?;
        // SET TRANSACTION applied to this implicit transaction.
        session.transaction.next_read_only = None;
        session.transaction.next_sees_committed = None;
    }
    let session_reads = session.variables.transaction_read_only;
    if session.transaction.only_reads().unwrap_or(session_reads) {
        return Err(read_only_transaction());
    }
    let creates_table = {
        let mut ahead = tokens;
        ahead.accept("CREATE") && (ahead.is_word("TABLE") || ahead.is_word("TEMPORARY"))
    };
    if creates_table {
        tokens.next();
        return create::run(session, &mut tokens, statement.parameters).await;
    }
    if let Some(alters) = takes_view(&mut tokens) {
        return view::create(session, &mut tokens, alters).await;
    }
    let shared = Arc::clone(&session.shared);
    // Temporary tables need no lock on names: no other session sees them.
    let _alone = if temporary { None } else { Some(session.wait_for(shared.naming.lock()).await?) };
    run_alone(session, statement, &mut tokens).await
}

/// Consumes CREATE or ALTER if a view's definition follows; returns whether it is ALTER.
fn takes_view(tokens: &mut Tokens<'_>) -> Option<bool> {
    let mut ahead = *tokens;
    let alters = ahead.accept("ALTER");
    if !(alters || ahead.accept("CREATE")) || !ViewHead::is_next(&ahead) {
        return None;
    }
    *tokens = ahead;
    Some(alters)
}

/// Runs any definition except CREATE TABLE and CREATE VIEW, which may wait for a query. No other definition runs
/// meanwhile.
async fn run_alone(
    session: &mut SessionState,
    statement: &Statement<'_>,
    tokens: &mut Tokens<'_>,
) -> Result<Outcome> {
    if tokens.accept("CREATE") {
        if tokens.accept_any(&["DATABASE", "SCHEMA"]) {
            return database::create(session, tokens).await;
        }
        return alter::create_index(session, tokens).await;
    }
    if tokens.accept("DROP") {
        if tokens.accept_any(&["DATABASE", "SCHEMA"]) {
            return database::drop(session, tokens).await;
        }
        if tokens.accept("INDEX") {
            return alter::drop_index(session, tokens).await;
        }
        return drop::drop(session, tokens).await;
    }
    if tokens.accept("ALTER") {
        if tokens.accept("TABLE") {
            return alter::run(session, tokens).await;
        }
        if tokens.accept_any(&["DATABASE", "SCHEMA"]) {
            return database::alter(session, tokens);
        }
    }
    if tokens.accept("TRUNCATE") {
        return drop::truncate(session, tokens).await;
    }
    if tokens.accept("RENAME") {
        return drop::rename(session, tokens).await;
    }
    Err(Error::unsupported(statement.source.shown()))
}

/// The definitions that drop a table and everything that belongs to it.
fn dropping(target: &TargetTable) -> (Vec<Definition>, Vec<(String, String)>) {
    let Some(name) = target.engine_name() else { return (Vec::new(), Vec::new()) };
    let mut definitions = vec![Definition::Drop(name.to_string())];
    for hidden in hidden_tables(&target.table, &target.place) {
        definitions.push(Definition::Drop(hidden));
    }
    (definitions, vec![(position_name(name), String::new())])
}

/// The engine's names of a table's hidden tables.
fn hidden_tables(table: &SqlTable, place: &TableStorage) -> Vec<String> {
    let names = UniqueKey::of(table, place).into_iter().filter_map(|unique| match unique.place {
        TableStorage::Engine(name) => Some(name.to_string()),
        TableStorage::Temporary(_) => None,
    });
    names.collect()
}

/// Changes definitions in one step, in a thread that may block.
async fn define(
    session: &SessionState,
    definitions: Vec<Definition>,
    positions: Vec<(String, String)>,
) -> Result<()> {
    let database = session.shared.database.clone();
    let defined = tokio::task::spawn_blocking(move || database.define(definitions, positions));
    let defined = defined.await;
    let defined = defined.map_err(|error| Error::new(ErrorCode::Unknown, error.to_string()))?;
    let named = |table: &str| TableName::of_engine(table, &session.shared).table;
    defined.map(|_| ()).map_err(|error| match error {
        EngineError::Taken { table } => table_exists(&named(&table)),
        error => from_engine_write(error),
    })
}

/// Error 1050.
fn table_exists(table: &str) -> Error {
    Error::new(ErrorCode::TableExists, format!("Table '{table}' already exists"))
}
