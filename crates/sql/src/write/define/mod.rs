//! Definitions: CREATE, ALTER, DROP, RENAME, TRUNCATE.
//!
//! A statement's tree becomes a [`Draft`](draft::Draft), and the draft becomes the engine's definition. A table and the hidden tables of its
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
mod names;
mod percolate;
mod rebuild;
mod references;
mod selected;
mod temporary;
mod view;

pub(crate) use followed_keys::COMPUTING;
pub use key_columns::is_declared_path;
pub use percolate::percolate_table;

use std::sync::Arc;

use remora_engine::{Definition, Error as EngineError};
use remora_mysql::ErrorCode;

use super::{rows::TargetTable, unique::UniqueKey};
use crate::{
    Error, Outcome, Result,
    blocking::run_blocking_if_long,
    catalog::{SqlTable, TableName},
    error::from_engine_write,
    parse::{
        Statement,
        define::{DefinitionStatement, QualifiedName},
    },
    shared::position_name,
    state::SessionState,
    transaction::{TableStorage, read_only_transaction},
};

/// Runs a definition. All except those of temporary tables commit the open transaction.
pub(super) async fn run(session: &mut SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    use DefinitionStatement as Of;
    let is_long = statement.source.is_long();
    let definition = run_blocking_if_long(is_long, || statement.definition())?;
    let temporary = definition.is_temporary();
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
    let may_wait_for_query = matches!(definition, Of::CreateTable(_) | Of::CreateView(_));
    let shared = Arc::clone(&session.shared);
    // Temporary tables need no lock on names: no other session sees them.
    let _alone = match temporary || may_wait_for_query {
        true => None,
        false => Some(session.wait_for(shared.naming.lock()).await?),
    };
    match definition {
        Of::CreateTable(table) => create::run(session, *table).await,
        Of::CreateView(view) => view::create(session, *view).await,
        Of::CreateIndex(table, key) => alter::create_index(session, &table, key).await,
        Of::CreateDatabase { lenient, name, options } => {
            database::create(session, lenient, name, &options).await
        }
        Of::AlterTable(table) => alter::run(session, table).await,
        Of::AlterDatabase { name, options } => database::alter(session, name, &options).await,
        Of::DropTables { temporary, lenient, names } => {
            drop::drop(session, temporary, lenient, &names).await
        }
        Of::DropViews { lenient, names } => view::drop(session, lenient, &names).await,
        Of::DropIndex(table, index) => alter::drop_index(session, &table, &index).await,
        Of::DropDatabase { lenient, name } => database::drop(session, lenient, name).await,
        Of::RenameTables(pairs) => drop::rename(session, &pairs).await,
        Of::Truncate(name) => drop::truncate(session, &name).await,
    }
}

/// The table that a statement names. The default database is the session's.
fn named(session: &SessionState, name: &QualifiedName) -> Result<TableName> {
    let database = match &name.database {
        Some(database) => database.as_str(),
        None => session.current_database()?,
    };
    Ok(TableName::new(database, name.name.as_str()))
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
