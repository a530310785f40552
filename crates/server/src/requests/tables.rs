//! Finds tables by full and bare names, among those that the client may see.

use std::sync::Arc;

use remora_engine::{Error, Schema};
use remora_protocol::line::LineError;
use remora_source::mysql::TableState;
use remora_sql::Access;

use super::Caller;

impl Caller {
    /// The full name and the definition of a table, given its full or bare name.
    pub(crate) fn find_table(&self, name: &str) -> Result<(String, Arc<Schema>), LineError> {
        let name = match self.is_limited() {
            true => &self.resolve(name, Access::Read)?,
            false => name,
        };
        match self.shared.database.schema(name) {
            Ok(schema) => Ok((name.to_owned(), schema)),
            Err(Error::NotFound { .. }) => {
                let table = self.resolve(name, Access::Read)?;
                let schema = self.shared.database.schema(&table)?;
                Ok((table, schema))
            }
            Err(error) => Err(error.into()),
        }
    }
    /// Why a table does not exist: it is still being copied, or it is unknown.
    fn absent(&self, name: &str) -> LineError {
        match self.shared.sources.source_of(name) {
            Some((
                _,
                table,
                TableState::Copying { .. }
                | TableState::CatchingUp
                | TableState::Paused { copying: true, .. },
            )) => LineError::synchronizing(table),
            Some((_, table, TableState::Refused(why))) => {
                LineError::table_not_found(format_args!("{name} ('{table}' is refused: {why})"))
            }
            _ => LineError::table_not_found(name),
        }
    }

    /// The full name of a table, given its bare name, if that is unique and the client has this access.
    pub(crate) fn resolve(&self, name: &str, access: Access) -> Result<String, LineError> {
        let found = self.find_name(name, access)?;
        match self.may(&found, access) {
            true => Ok(found),
            false => Err(self.denied(access, name)),
        }
    }

    /// Tables that may not be read and tables that do not exist give the same errors.
    fn find_name(&self, name: &str, access: Access) -> Result<String, LineError> {
        let mut tables = self.shared.database.tables();
        if tables.iter().any(|table| table == name) {
            return Ok(name.to_owned());
        }
        tables.retain(|table| self.may(table, Access::Read));
        let databases = tables.iter().filter_map(|table| Some(table.split_once('.')?.0));
        let mut databases: Vec<&str> = databases.collect();
        databases.dedup();
        let bare = |table: &&String| table.split_once('.').is_some_and(|(_, bare)| bare == name);
        match tables.iter().find(bare) {
            Some(_) if databases.len() > 1 => Err(LineError::bare_table_name(name)),
            Some(table) => Ok(table.clone()),
            None if self.may(name, access) => Err(self.absent(name)),
            None => Err(self.denied(access, name)),
        }
    }
}
