//! An open database, shared by all objects made of it; the last one closes it.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{
    Change, ChangeBatch, Database, Error as EngineError, Reader, Row, Schema, TableChanges, Value,
};

#[cfg(feature = "sql")]
use crate::sessions::Sessions;
use crate::{Error, Result, directory::TemporaryDirectory, ids::Ids};

/// How often a change is tried again that somebody else was faster than.
const MAX_TRIES: usize = 100;

/// Closed when the last of what shares it is gone, unless the engine is somebody else's.
pub(crate) struct Handle {
    #[cfg(feature = "sql")]
    pub sessions: Sessions,
    pub ids: Ids,
    /// Held while a definition is read, changed and written.
    pub definitions: Mutex<()>,
    pub engine: Database,
    /// Whether the engine is closed with this; not if it is somebody else's.
    pub closes: bool,
    /// Where it lives, if that goes with it. Behind the engine, which is closed before.
    pub directory: Option<TemporaryDirectory>,
}

impl Handle {
    /// The definition of a table whose rows are written without SQL.
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

    /// Changes to a table, all of them or none.
    pub fn write(&self, table: &Arc<str>, changes: Vec<Change>) -> Result<()> {
        Ok(self.engine.apply(batch(table, changes)).map(drop)?)
    }

    /// Changes a row by what it is, again where somebody else was faster: `make` is given the row
    /// with the key, and says what happens, if anything. Says whether anything did.
    pub fn change(
        &self,
        table: &Arc<str>,
        key: &[Value],
        mut make: impl FnMut(Option<Row>) -> Result<Option<Change>>,
    ) -> Result<bool> {
        self.attempt(table, |reader| make(reader.get(table, key)?))
    }

    /// Changes a row whatever it is, if it is there, again where somebody else was faster. Says whether it was. Cost: the
    /// row is not read.
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

    /// Deletes a row; says whether there was one.
    pub fn delete(&self, table: &Arc<str>, key: &[Value]) -> Result<bool> {
        self.change_unread(table, key, || Change::Delete(key.to_vec()))
    }
}

fn batch(table: &Arc<str>, changes: Vec<Change>) -> ChangeBatch {
    let tables = vec![TableChanges { table: Arc::clone(table), changes }];
    ChangeBatch { tables, positions: Vec::new() }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.closes {
            // Whoever wants to know closes it before.
            let _ = self.engine.close();
        }
        drop(self.directory.take());
    }
}
