//! The databases, and which of them an account may see.
//!
//! A database is the first part of its tables' names. A database that was created without tables is stored as a
//! position, under a source name that begins with `#database.`; the value is its default collation.

use remora_mysql::{Collation, ErrorCode, messages};

use crate::{
    Access, Error, Identity, Result,
    catalog::{TableName, View},
    shared::InstanceState,
};

/// The prefix of stored databases' names.
const STORED: &str = "#database.";

/// Databases that exist without tables.
pub(crate) const SYSTEM_DATABASES: [&str; 4] =
    ["information_schema", "mysql", "performance_schema", "sys"];

/// The name of the position that stores a database.
pub(crate) fn database_position(name: &str) -> String {
    format!("{STORED}{name}")
}

/// The created databases, with or without tables.
fn empty_databases(shared: &InstanceState) -> Vec<String> {
    let positions = shared.database.source_positions();
    let names = positions.iter().filter_map(|(name, _)| name.strip_prefix(STORED));
    names.map(str::to_owned).collect()
}

/// The default collation of a database's new tables.
pub(crate) fn database_collation(shared: &InstanceState, database: &str) -> Collation {
    if database.eq_ignore_ascii_case(SYSTEM_DATABASES[0]) {
        return Collation::UTF8MB3_GENERAL_CI;
    }
    let stored = shared.database.source_position(&database_position(database));
    let stored = stored.ok().flatten().and_then(|name| Collation::by_name(&name));
    stored.unwrap_or(Collation::UTF8MB4_0900_AI_CI)
}

/// Error 1044 unless the account may create, alter and drop all tables of the database.
pub(crate) fn check_database(identity: &Identity, name: &str) -> Result<()> {
    match identity.may(name, "", Access::Define) {
        true => Ok(()),
        false => Err(database_denied(identity, name)),
    }
}

/// Error 1044.
pub(crate) fn database_denied(identity: &Identity, name: &str) -> Error {
    let Identity { user, host, .. } = identity;
    let message = format!("Access denied for user '{user}'@'{host}' to database '{name}'");
    Error::new(ErrorCode::DatabaseAccessDenied, message)
}

/// Whether an account may know about a database: it is a system database, or the account may read something in it.
pub(crate) fn may_see(identity: &Identity, name: &str) -> bool {
    let system = SYSTEM_DATABASES.iter().any(|system| system.eq_ignore_ascii_case(name));
    system || identity.may_see(name)
}

/// All databases, sorted.
pub(crate) fn databases(shared: &InstanceState) -> Vec<String> {
    let tables = shared.database.tables();
    let of_tables = tables.iter().map(|name| TableName::of_engine(name, shared).database);
    let mut names: Vec<String> = of_tables.collect();
    names.extend(SYSTEM_DATABASES.iter().map(|name| (*name).to_owned()));
    names.push(shared.settings.default_database.clone());
    names.extend(empty_databases(shared));
    names.extend(View::names(&shared.database.reader()).map(|name| name.database));
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

/// Whether this database exists.
pub(crate) fn database_exists(shared: &InstanceState, name: &str) -> bool {
    let system = SYSTEM_DATABASES.iter().any(|system| system.eq_ignore_ascii_case(name));
    system || databases(shared).iter().any(|known| known == name)
}

/// Checks that a database exists: error 1044 if the account may read nothing in it, whether it exists or not; else
/// 1049.
pub(crate) fn check_seen(shared: &InstanceState, identity: &Identity, name: &str) -> Result<()> {
    if !may_see(identity, name) {
        return Err(database_denied(identity, name));
    }
    match database_exists(shared, name) {
        true => Ok(()),
        false => Err(Error::new(ErrorCode::UnknownDatabase, messages::unknown_database(name))),
    }
}
