//! Which table a name means, and who may read it.
//!
//! Tables of the engine are called `database.table`, or `table` alone, which appears in the default database. Names of
//! databases and tables are case-sensitive, as in MySQL on Linux; names of columns and aliases are not.

use std::fmt;

use remora_engine::{Schema, united_name, united_names};
use remora_mysql::ErrorCode;

use crate::{
    Access, Error, Identity, Result,
    identity::{STORED_POINT, is_hidden},
    shared::InstanceState,
};

/// What a statement does to a table, in the words that a refusal has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Reading.
    Select,
    /// SHOW CREATE TABLE.
    Show,
    /// INSERT and LOAD DATA.
    Insert,
    /// REPLACE.
    Replace,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// CREATE TABLE.
    Create,
    /// CREATE VIEW and ALTER VIEW.
    CreateView,
    /// ALTER TABLE.
    Alter,
    /// CREATE INDEX and DROP INDEX.
    Index,
    /// DROP TABLE and TRUNCATE.
    Drop,
    /// RENAME.
    Rename,
}

impl Verb {
    fn access(self) -> Access {
        match self {
            Self::Select | Self::Show => Access::Read,
            Self::Insert | Self::Replace | Self::Update | Self::Delete => Access::Write,
            Self::Create
            | Self::CreateView
            | Self::Alter
            | Self::Index
            | Self::Drop
            | Self::Rename => Access::Define,
        }
    }

    /// Its words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Show => "SHOW",
            Self::Insert => "INSERT",
            Self::Replace => "INSERT, DELETE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Create => "CREATE",
            Self::CreateView => "CREATE VIEW",
            Self::Alter => "ALTER",
            Self::Index => "INDEX",
            Self::Drop => "DROP",
            Self::Rename => "DROP, ALTER",
        }
    }
}

/// A table by its names; several of one database that are read as one have all their names in one
/// ([`united_name`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    /// The database.
    pub database: String,
    /// The table in it.
    pub table: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.database, self.table)
    }
}

impl TableName {
    pub(crate) fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into() }
    }

    /// The tables that it means: one, but for several that are read as one.
    pub(crate) fn each(&self) -> impl Iterator<Item = Self> + '_ {
        united_names(&self.table).map(move |table| Self::new(self.database.as_str(), table))
    }

    /// The name the engine knows it by, or those that are read as one. A table of the default database whose name has a point in
    /// it keeps its database: without one it would be a table of another.
    pub(crate) fn engine_name(&self, shared: &InstanceState) -> String {
        let database = self.database.replace('.', STORED_POINT);
        let name = |table: &str| {
            let full = format!("{database}.{table}");
            let bare = self.database == shared.settings.default_database
                && !table.contains('.')
                && shared.database.schema(&full).is_err();
            if bare { table.to_owned() } else { full }
        };
        let names: Vec<String> = united_names(&self.table).map(name).collect();
        united_name(names.iter().map(String::as_str))
    }

    /// What an engine's table is called in SQL.
    pub(crate) fn of_engine(name: &str, shared: &InstanceState) -> Self {
        match name.split_once('.') {
            Some((database, table)) => Self::new(database.replace(STORED_POINT, "."), table),
            None => Self::new(&shared.settings.default_database, name),
        }
    }

    /// 1146.
    pub(crate) fn missing(&self) -> Error {
        let message = format!("Table '{}.{}' doesn't exist", self.database, self.shown());
        Error::new(ErrorCode::NoSuchTable, message)
    }

    /// The table's name, with commas between several.
    pub(crate) fn shown(&self) -> String {
        united_names(&self.table).collect::<Vec<_>>().join(",")
    }

    /// 1142 if this may not be done to it; 1146 for what is hidden, such as the tables of unique
    /// keys.
    pub(crate) fn check(&self, identity: &Identity, verb: Verb) -> Result<()> {
        self.each().try_for_each(|table| table.check_one(identity, verb))
    }

    /// 1142 if the tables may not be read whose rows a distributed one has.
    pub(crate) fn check_parts(
        schema: &Schema,
        shared: &InstanceState,
        identity: &Identity,
    ) -> Result<()> {
        let mut parts = schema.parts().iter().map(|part| Self::of_engine(part, shared));
        parts.try_for_each(|part| part.check_one(identity, Verb::Select))
    }

    fn check_one(&self, identity: &Identity, verb: Verb) -> Result<()> {
        if is_hidden(&self.database, &self.table) {
            return Err(self.missing());
        }
        if identity.may(&self.database, &self.table, verb.access()) {
            return Ok(());
        }
        let message = format!(
            "{} command denied to user '{}'@'{}' for table '{}'",
            verb.words(),
            identity.user,
            identity.host,
            self.table
        );
        Err(Error::new(ErrorCode::TableAccessDenied, message))
    }
}
