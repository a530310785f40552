//! An open database, shared by all objects made from it. The last one closes it.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{
    Change, ChangeBatch, Database, Error as EngineError, Reader, Row, Schema, TableChanges, Value,
};

#[cfg(feature = "sql")]
use crate::sessions::Sessions;
use crate::{Error, Result, directory::TemporaryDirectory, ids::Ids};

/// How often a change is retried after another writer was faster.
pub(crate) const MAX_TRIES: usize = 100;

/// Closes the engine when its last owner is dropped, unless the engine belongs to the program.
pub(crate) struct Handle {
    #[cfg(feature = "sql")]
    pub sessions: Sessions,
    pub ids: Ids,
    /// Locked while a definition is read, changed and written.
    pub definitions: Mutex<()>,
    pub engine: Database,
    /// Whether dropping this closes the engine.
    pub closes: bool,
    /// The directory of a temporary database. It is declared after the engine, so that the engine
    /// is closed first.
    pub directory: Option<TemporaryDirectory>,
}

impl Handle {
    /// The definition of a table that can be written without SQL.
    pub fn writable(&self, table: &str) -> Result<Arc<Schema>> {
        let schema = self.engine.schema(table)?;
        if schema.declared.is_some() {
            let message = format!(
                "table {table:?} was defined by SQL, which keeps its keys, lengths and conditions: write \
                 it with SQL"
            );
            return Err(Error::request(message));
        }
        Ok(schema)
    }

    /// Applies changes to a table, all or none.
    pub fn write(&self, table: &Arc<str>, changes: Vec<Change>) -> Result<()> {
        Ok(self.engine.apply(batch(table, changes)).map(drop)?)
    }

    /// Changes a row depending on its current value: `make` gets the row with the key and returns
    /// the change, if any. It is called again if another writer was faster. Returns whether
    /// anything was changed.
    pub fn change(
        &self,
        table: &Arc<str>,
        key: &[Value],
        mut make: impl FnMut(Option<Row>) -> Result<Option<Change>>,
    ) -> Result<bool> {
        self.attempt(table, |reader| make(reader.get(table, key)?))
    }

    /// Changes a row regardless of its value, if it exists. Retries if another writer was faster.
    /// Returns whether it existed. Cost: does not read the row.
    pub fn change_unread(
        &self,
        table: &Arc<str>,
        key: &[Value],
        mut make: impl FnMut() -> Change,
    ) -> Result<bool> {
        self.attempt(table, |reader| {
            Ok(reader.get_columns(table, key, &[])?.is_some().then(&mut make))
        })
    }

    fn attempt(
        &self,
        table: &Arc<str>,
        mut make: impl FnMut(&Reader) -> Result<Option<Change>>,
    ) -> Result<bool> {
        for _ in 0..MAX_TRIES {
            let transaction = self.engine.begin();
            let Some(change) = make(transaction.reader())? else { return Ok(false) };
            match transaction.commit(batch(table, vec![change])) {
                Ok(_) => return Ok(true),
                Err(EngineError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::conflict(format!(
            "a row of {table:?} is changed by others again and again: try again"
        )))
    }

    /// Deletes a row. Returns whether it existed.
    pub fn delete(&self, table: &Arc<str>, key: &[Value]) -> Result<bool> {
        self.change_unread(table, key, || Change::Delete(key.to_vec()))
    }
}

/// A batch of changes of one table.
pub(crate) fn batch(table: &Arc<str>, changes: Vec<Change>) -> ChangeBatch {
    let tables = vec![TableChanges { table: Arc::clone(table), changes }];
    ChangeBatch { tables, positions: Vec::new() }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.closes {
            // Callers who need the error close it before.
            let _ = self.engine.close();
        }
        drop(self.directory.take());
    }
}
