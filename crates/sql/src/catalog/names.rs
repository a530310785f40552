//! Resolves names to tables and checks the right to use them.
//!
//! The engine calls a table `database.table`, or `table` alone if it is in the default database. Names of databases and
//! tables are case-sensitive, as in MySQL on Linux; names of columns and aliases are not.

use std::fmt;

use remora_engine::{Schema, united_name, united_names};
use remora_mysql::ErrorCode;

use crate::{
    Access, Error, Identity, Result,
    identity::{STORED_POINT, is_hidden},
    shared::InstanceState,
};

/// What a statement does to a table, with the word for it in error messages.
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

    /// The word in error messages.
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

/// A table's qualified name. Several tables of one database that are read as one share a single name ([`united_name`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    /// The database.
    pub database: String,
    /// The table's name in the database.
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

    /// The tables of this name: one, or several that are read as one.
    pub(crate) fn each(&self) -> impl Iterator<Item = Self> + '_ {
        united_names(&self.table).map(move |table| Self::new(self.database.as_str(), table))
    }

    /// The engine's name, or those of tables read as one. A table in the default database whose name has a point keeps
    /// its database: without it the name would be taken for one in another database.
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

    /// The SQL name of a table of the engine.
    pub(crate) fn of_engine(name: &str, shared: &InstanceState) -> Self {
        match name.split_once('.') {
            Some((database, table)) => Self::new(database.replace(STORED_POINT, "."), table),
            None => Self::new(&shared.settings.default_database, name),
        }
    }

    /// Error 1146.
    pub(crate) fn missing(&self) -> Error {
        let message = format!("Table '{}.{}' doesn't exist", self.database, self.shown());
        Error::new(ErrorCode::NoSuchTable, message)
    }

    /// The table's name; several are separated by commas.
    pub(crate) fn shown(&self) -> String {
        united_names(&self.table).collect::<Vec<_>>().join(",")
    }

    /// Error 1142 if the account may not do this; 1146 for hidden tables, such as those of unique keys.
    pub(crate) fn check(&self, identity: &Identity, verb: Verb) -> Result<()> {
        self.each().try_for_each(|table| table.check_one(identity, verb))
    }

    /// Error 1142 if the account may not read the parts of a distributed table.
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
