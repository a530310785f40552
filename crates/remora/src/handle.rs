//! An open database, shared by all objects made from it. The last one closes it.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{
    Change, ChangeBatch, Database, Error as EngineError, Reader, Schema, TableChanges, Value,
};

#[cfg(feature = "sql")]
use crate::sessions::{Sessions, in_transaction};
use crate::{
    Error, Result,
    directory::TemporaryDirectory,
    ids::Ids,
    keyed::{Decide, KeyedRows, View},
    overlaid::{Overlaid, check_kept_by_engine},
};

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
    /// The definition of a table that can be changed without SQL.
    pub fn writable(&self, table: &str) -> Result<Arc<Schema>> {
        let schema = self.engine.schema(table)?;
        if schema.declared.is_some() {
            let message = format!(
                "table {table:?} was defined by SQL, which keeps its keys, lengths and conditions: \
                 change it with SQL"
            );
            return Err(Error::request(message));
        }
        Ok(schema)
    }

    /// Who keeps what was declared of a table: only SQL knows that.
    ///
    /// # Errors
    /// [`Error::Request`] for a table that follows a source, and for one that SQL declared if this program was built
    /// without SQL; [`Error::NotFound`] if there is no such table.
    pub fn keeper(&self, table: &str) -> Result<Keeper> {
        if !self.engine.is_declared(table)? {
            return Ok(Keeper::Engine);
        }
        if let Some(source) = self.source_of(table) {
            let message =
                format!("table {table:?} follows the source {source:?}: change its rows there");
            return Err(Error::request(message));
        }
        if cfg!(feature = "sql") {
            return Ok(Keeper::Sql);
        }
        let message = format!(
            "SQL declared keys or conditions of {table:?}, which this program cannot keep: it was built without the \
             feature \"sql\""
        );
        Err(Error::request(message))
    }

    /// The source that a table follows. It has stored positions `<source>/source` and `<source>/table/<table>`
    /// (`crates/source`, `follow/positions.rs`).
    pub fn source_of(&self, table: &str) -> Option<String> {
        let positions = self.engine.source_positions();
        let end = format!("/table/{table}");
        let mut sources = positions.iter().filter_map(|(name, _)| name.strip_suffix(end.as_str()));
        let is_one = |source: &&str| {
            let begun = format!("{source}/source");
            positions.iter().any(|(name, _)| name == begun.as_str())
        };
        sources.find(is_one).map(str::to_owned)
    }

    /// Changes a row depending on its current value: `decide` gets the row with the key and returns
    /// the change, if any. It is called again if another writer was faster. Returns whether
    /// anything was changed.
    fn change(&self, table: &Arc<str>, key: &[Value], decide: Decide<'_>) -> Result<bool> {
        self.attempt(table, |reader| decide(reader.get(table, key)?))
    }

    /// Changes a row regardless of its value, if it exists. Returns whether it existed. Cost: does not read the row.
    fn change_unread(
        &self,
        table: &Arc<str>,
        key: &[Value],
        make: &mut dyn FnMut() -> Change,
    ) -> Result<bool> {
        for _ in 0..MAX_TRIES {
            let reader = self.engine.reader();
            check_kept_by_engine(&*reader.schema(table)?)?;
            if reader.get_columns(table, key, &[])?.is_none() {
                return Ok(false);
            }
            match self.engine.apply_to_existing(&reader, batch(table, vec![make()])) {
                Ok(_) => return Ok(true),
                // It was deleted since, or the table was altered.
                Err(EngineError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(changed_again(table))
    }

    fn attempt(
        &self,
        table: &Arc<str>,
        mut make: impl FnMut(&Reader) -> Result<Option<Change>>,
    ) -> Result<bool> {
        for _ in 0..MAX_TRIES {
            let transaction = self.engine.begin();
            check_kept_by_engine(&*transaction.reader().schema(table)?)?;
            let Some(change) = make(transaction.reader())? else { return Ok(false) };
            match transaction.commit(batch(table, vec![change])) {
                Ok(_) => return Ok(true),
                Err(EngineError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(changed_again(table))
    }

    /// Applies changes to a table that the engine keeps, all or none.
    pub fn apply(&self, table: &Arc<str>, changes: Vec<Change>) -> Result<()> {
        Ok(self.engine.apply(batch(table, changes)).map(drop)?)
    }

    /// Deletes a row of a table that the engine keeps. Returns whether it existed.
    pub fn delete(&self, table: &Arc<str>, key: &[Value]) -> Result<bool> {
        self.change_unread(table, key, &mut || Change::Delete(key.to_vec()))
    }

    /// Runs work in one transaction and commits it together with these positions. It is run again if another writer
    /// was faster. `keeper` is SQL if any of the tables is kept by it.
    pub fn transact<T>(
        &self,
        keeper: Keeper,
        positions: &[(String, String)],
        work: &mut dyn FnMut(&mut dyn KeyedRows) -> Result<T>,
    ) -> Result<T> {
        if keeper == Keeper::Sql {
            return self.transact_by_sql(positions, work);
        }
        for _ in 0..MAX_TRIES {
            let mut open = Overlaid::new(self.engine.begin());
            let done = work(&mut open)?;
            match open.commit(positions.to_vec()) {
                Ok(()) => return Ok(done),
                Err(Error::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::conflict("the rows are changed by others again and again: try again"))
    }

    #[cfg(feature = "sql")]
    fn transact_by_sql<T>(
        &self,
        positions: &[(String, String)],
        work: &mut dyn FnMut(&mut dyn KeyedRows) -> Result<T>,
    ) -> Result<T> {
        let mut session = Some(self.sessions.begin());
        let done = in_transaction(&mut session, |session| {
            let open = session.as_mut().ok_or(Error::Closed)?;
            for (name, position) in positions {
                open.store_position(name.clone(), position.clone())?;
            }
            work(session)
        });
        session.into_iter().for_each(|session| self.sessions.end(session));
        done
    }

    /// Without SQL nothing has another keeper than the engine.
    #[cfg(not(feature = "sql"))]
    fn transact_by_sql<T>(
        &self,
        _positions: &[(String, String)],
        _work: &mut dyn FnMut(&mut dyn KeyedRows) -> Result<T>,
    ) -> Result<T> {
        Err(Error::Closed)
    }

    /// Runs work with the rows of a session.
    #[cfg(feature = "sql")]
    pub fn by_sql<T>(&self, work: impl FnOnce(&mut dyn KeyedRows) -> Result<T>) -> Result<T> {
        let mut session = Some(self.sessions.begin());
        let done = work(&mut session);
        session.into_iter().for_each(|session| self.sessions.end(session));
        done
    }

    /// Without SQL nothing has another keeper than the engine.
    #[cfg(not(feature = "sql"))]
    pub fn by_sql<T>(&self, _work: impl FnOnce(&mut dyn KeyedRows) -> Result<T>) -> Result<T> {
        Err(Error::Closed)
    }
}

fn changed_again(table: &str) -> Error {
    Error::conflict(format!("a row of {table:?} is changed by others again and again: try again"))
}

/// Who keeps the keys and conditions of a table when its rows change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// The engine.
    Engine,
    /// SQL.
    Sql,
}

/// Each call is a transaction of its own, by whoever keeps the table.
impl KeyedRows for &Handle {
    fn write(&mut self, table: &Arc<str>, changes: Vec<Change>) -> Result<()> {
        match self.keeper(table)? {
            Keeper::Engine => self.apply(table, changes),
            Keeper::Sql => self.by_sql(|rows| rows.write(table, changes)),
        }
    }

    fn change(&mut self, table: &Arc<str>, key: &[Value], decide: Decide<'_>) -> Result<bool> {
        match self.keeper(table)? {
            Keeper::Engine => Handle::change(self, table, key, decide),
            Keeper::Sql => self.by_sql(|rows| rows.change(table, key, decide)),
        }
    }

    fn change_unread(
        &mut self,
        table: &Arc<str>,
        key: &[Value],
        make: &mut dyn FnMut() -> Change,
    ) -> Result<bool> {
        match self.keeper(table)? {
            Keeper::Engine => Handle::change_unread(self, table, key, make),
            Keeper::Sql => self.by_sql(|rows| rows.change_unread(table, key, make)),
        }
    }

    fn view(&mut self, _table: &Arc<str>) -> Result<View> {
        Ok(View { reader: self.engine.reader(), changed: Vec::new() })
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
