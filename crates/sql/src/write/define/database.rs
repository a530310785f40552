//! CREATE, ALTER and DROP DATABASE.

use remora_engine::Definition;
use remora_mysql::ErrorCode;

use super::{define, hidden_tables};
use crate::{
    Error, Outcome, Result,
    catalog::{
        SYSTEM_DATABASES, SqlTable, TableName, TableOptions, View, check_database,
        database_collation, database_denied, database_exists, database_position, databases,
    },
    identity::STORED_POINT,
    parse::define::TableOption,
    shared::position_name,
    state::SessionState,
    transaction::TableStorage,
    write::rows::check_local,
};

/// Runs CREATE DATABASE.
pub(super) async fn create(
    session: &mut SessionState,
    lenient: bool,
    name: String,
    options: &[TableOption],
) -> Result<Outcome> {
    let mut set = TableOptions::default();
    set.set_all(options)?;
    let collation = set.collation;
    let wrong = name.is_empty() || name.contains('#') || name.contains(STORED_POINT);
    if wrong || name.ends_with(' ') || name.chars().count() > 64 {
        let message = format!("Incorrect database name '{name}'");
        return Err(Error::new(ErrorCode::WrongDatabaseName, message));
    }
    check_database(&session.identity, &name)?;
    if database_exists(&session.shared, &name) {
        let message = format!("Can't create database '{name}'; database exists");
        if !lenient {
            return Err(Error::new(ErrorCode::DatabaseExists, message));
        }
        session.note(ErrorCode::DatabaseExists, message);
        return Ok(Outcome { affected_rows: 1, ..Outcome::default() });
    }
    let stored = (database_position(&name), collation.name().to_owned());
    define(session, Vec::new(), vec![stored]).await?;
    Ok(Outcome { affected_rows: 1, ..Outcome::default() })
}

/// Runs ALTER DATABASE: its character set and collation are those of tables made later.
pub(super) async fn alter(
    session: &mut SessionState,
    name: Option<String>,
    options: &[TableOption],
) -> Result<Outcome> {
    let name = match name {
        Some(name) => name,
        None => session.current_database()?.to_owned(),
    };
    check_database(&session.identity, &name)?;
    if is_system(&name) {
        return Err(database_denied(&session.identity, &name));
    }
    if !database_exists(&session.shared, &name) {
        let message = format!("Database '{name}' doesn't exist");
        return Err(Error::new(ErrorCode::DatabaseMissing, message));
    }
    let before = database_collation(&session.shared, &name);
    let mut set = TableOptions { collation: before, ..TableOptions::default() };
    set.set_all(options)?;
    if set.collation != before {
        let stored = (database_position(&name), set.collation.name().to_owned());
        define(session, Vec::new(), vec![stored]).await?;
    }
    if session.database.as_deref() == Some(name.as_str()) {
        session.settle_database()?;
    }
    Ok(Outcome { affected_rows: 1, ..Outcome::default() })
}

fn is_system(name: &str) -> bool {
    SYSTEM_DATABASES.iter().any(|system| system.eq_ignore_ascii_case(name))
}

/// Runs DROP DATABASE.
pub(super) async fn drop(
    session: &mut SessionState,
    lenient: bool,
    name: String,
) -> Result<Outcome> {
    check_database(&session.identity, &name)?;
    if is_system(&name) {
        return Err(database_denied(&session.identity, &name));
    }
    if !databases(&session.shared).contains(&name) {
        let message = format!("Can't drop database '{name}'; database doesn't exist");
        if !lenient {
            return Err(Error::new(ErrorCode::CannotDropDatabase, message));
        }
        session.note(ErrorCode::CannotDropDatabase, message);
        return Ok(Outcome::default());
    }
    let (mut definitions, mut positions) = (Vec::new(), Vec::new());
    let mut dropped = 0;
    for table in session.shared.database.tables() {
        if TableName::of_engine(&table, &session.shared).database != name {
            continue;
        }
        check_local(session, &table)?;
        let schema = session.shared.database.schema(&table);
        let schema = schema.map_err(crate::error::from_engine_write)?;
        let place = TableStorage::Engine(table.as_str().into());
        let hidden = hidden_tables(&SqlTable::of(&schema), &place);
        definitions.extend(hidden.into_iter().map(Definition::Drop));
        positions.push((position_name(&table), String::new()));
        session.shared.counters.forget(&table);
        definitions.push(Definition::Drop(table));
        dropped += 1;
    }
    for view in View::names(&session.shared.database.reader()).filter(|it| it.database == name) {
        positions.push(View::to_forget(&view));
        dropped += 1;
    }
    positions.push((database_position(&name), String::new()));
    define(session, definitions, positions).await?;
    if session.database.as_deref() == Some(name.as_str()) {
        session.database = None;
        session.settle_database()?;
    }
    Ok(Outcome { affected_rows: dropped, ..Outcome::default() })
}
