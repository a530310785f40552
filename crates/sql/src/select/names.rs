//! Which table a name means, and who may read it.
//!
//! Tables of the engine are `database.table`, or `table` alone, which is shown in the default
//! database. Names of databases and tables are exact, as MySQL has them on Linux; names of columns
//! and aliases are without regard to case.

use crate::{Code, Error, Identity, Result, instance::Shared, session::SessionState};

/// Databases that exist without tables.
pub(crate) const SYSTEM_DATABASES: [&str; 4] =
    ["information_schema", "mysql", "performance_schema", "sys"];

/// What the names of the engine's hidden tables begin with.
const HIDDEN: char = '#';

/// A table by its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    /// The database.
    pub database: String,
    /// The table in it.
    pub table: String,
}

impl TableName {
    pub(crate) fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into() }
    }

    /// The name the engine knows it by. A table of the default database whose name has a point in
    /// it keeps its database: without one it would be a table of another.
    pub(crate) fn engine_name(&self, shared: &Shared) -> String {
        let full = format!("{}.{}", self.database, self.table);
        let bare = self.database == shared.settings.default_database
            && !self.table.contains('.')
            && shared.database.schema(&full).is_err();
        if bare { self.table.clone() } else { full }
    }

    /// What an engine's table is called in SQL.
    pub(crate) fn of_engine(name: &str, shared: &Shared) -> Self {
        match name.split_once('.') {
            Some((database, table)) => Self::new(database, table),
            None => Self::new(&shared.settings.default_database, name),
        }
    }

    /// 1146.
    pub(crate) fn missing(&self) -> Error {
        let message = format!("Table '{}.{}' doesn't exist", self.database, self.table);
        Error::new(Code::NoSuchTable, message)
    }

    /// 1142 if it may not be read or written; 1146 for what is hidden, such as the tables of unique
    /// keys.
    pub(crate) fn check(&self, identity: &Identity, write: bool) -> Result<()> {
        if self.database.starts_with(HIDDEN) || self.table.starts_with(HIDDEN) {
            return Err(self.missing());
        }
        if identity.may(&self.database, &self.table, write) {
            return Ok(());
        }
        let verb = if write { "UPDATE" } else { "SELECT" };
        let message = format!(
            "{verb} command denied to user '{}'@'{}' for table '{}'",
            identity.user, identity.host, self.table
        );
        Err(Error::new(Code::TableAccessDenied, message))
    }
}

/// The databases there are, sorted.
pub(crate) fn databases(shared: &Shared) -> Vec<String> {
    let tables = shared.database.tables();
    let of_tables = tables.iter().map(|name| TableName::of_engine(name, shared).database);
    let mut names: Vec<String> = of_tables.collect();
    names.extend(SYSTEM_DATABASES.iter().map(|name| (*name).to_owned()));
    names.push(shared.settings.default_database.clone());
    names.extend(crate::write::empty_databases(shared));
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

/// Whether there is a database of this name.
pub(crate) fn database_exists(session: &SessionState, name: &str) -> bool {
    let system = SYSTEM_DATABASES.iter().any(|system| system.eq_ignore_ascii_case(name));
    system || databases(&session.shared).iter().any(|known| known == name)
}
