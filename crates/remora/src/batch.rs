//! Atomic changes of several tables and collections.

use std::{collections::BTreeMap, sync::Arc};

use remora_engine::{Change as EngineChange, ChangeBatch, TableChanges, Watch};
use serde::Serialize;

use crate::{
    Change, Collection, DocumentId, Error, IntoKey, Result, Table, collection::row as document_row,
    handle::Handle, json::to_text, table::encode,
};

/// Changes of several tables and collections that become durable and visible together, or not at
/// all. Dropping it without [`Batch::commit`] changes nothing.
///
/// ```
/// use remora::Database;
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let (orders, events) = (db.create_table("orders", |t| t.int("id").key())?, db.collection("events")?);
/// let mut batch = db.batch();
/// batch.insert(&orders, &json!({"id": 1}))?;
/// batch.upsert_document(&events, 1, &json!({"kind": "ordered"}))?;
/// batch.commit()?;
/// assert_eq!((orders.count()?, events.len()?), (1, 1));
/// # Ok::<(), remora::Error>(())
/// ```
pub struct Batch {
    handle: Arc<Handle>,
    tables: BTreeMap<Arc<str>, Vec<EngineChange>>,
    positions: Vec<(String, String)>,
}

impl Batch {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, tables: BTreeMap::new(), positions: Vec::new() }
    }

    /// Inserts a row. No row with its key may exist.
    ///
    /// # Errors
    /// [`Error::Request`] if a field is not a column or does not fit it, or if the table belongs to
    /// another database or to SQL; [`Error::NotFound`] if it was dropped.
    pub fn insert<T: Serialize + ?Sized>(&mut self, table: &Table, row: &T) -> Result<()> {
        let schema = self.writable(&table.handle, &table.name)?;
        let row = encode::row(row, &schema)?;
        self.push(&table.name, EngineChange::Insert(row));
        Ok(())
    }

    /// Inserts a row, or replaces the row with its key.
    ///
    /// # Errors
    /// Those of [`Batch::insert`].
    pub fn upsert<T: Serialize + ?Sized>(&mut self, table: &Table, row: &T) -> Result<()> {
        let schema = self.writable(&table.handle, &table.name)?;
        let row = encode::row(row, &schema)?;
        self.push(&table.name, EngineChange::Put(row));
        Ok(())
    }

    /// Deletes the row with this key, if there is one.
    ///
    /// # Errors
    /// Those of [`Batch::insert`].
    pub fn delete(&mut self, table: &Table, key: impl IntoKey) -> Result<()> {
        self.writable(&table.handle, &table.name)?;
        self.push(&table.name, EngineChange::Delete(key.into_key()));
        Ok(())
    }

    /// Inserts a document, or replaces the document with its id.
    ///
    /// # Errors
    /// [`Error::Request`] if the value is not a valid document, or if the collection belongs to
    /// another database; [`Error::NotFound`] if it was dropped.
    pub fn upsert_document<K: DocumentId, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        document: &T,
    ) -> Result<()> {
        self.writable(&collection.handle, &collection.name)?;
        let text = to_text(document)?;
        self.push(&collection.name, EngineChange::Put(document_row(K::value(id)?, text)));
        Ok(())
    }

    /// Deletes the document with this id, if there is one.
    ///
    /// # Errors
    /// Those of [`Batch::upsert_document`].
    pub fn delete_document<K: DocumentId>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
    ) -> Result<()> {
        self.writable(&collection.handle, &collection.name)?;
        self.push(&collection.name, EngineChange::Delete(vec![K::value(id)?]));
        Ok(())
    }

    /// Stores, together with the changes, that a named watcher has processed everything up to this
    /// change. The next watch of that name continues after it. So the effect of a change is written
    /// exactly once, whatever crashes.
    ///
    /// # Errors
    /// [`Error::Request`] if the watcher has no name, or is of another database.
    pub fn done(&mut self, change: &Change) -> Result<()> {
        self.check(&change.handle)?;
        let name = change.watcher_name()?;
        let place = remora_engine::Position(change.position());
        self.positions.push(Watch::position_of(name, place));
        Ok(())
    }

    /// Commits the batch. On return it is durable and visible.
    ///
    /// # Errors
    /// [`Error::Exists`] if an inserted row's key exists, [`Error::Request`] if there are more than
    /// a million changes, [`Error::NotFound`] or [`Error::Conflict`] if a table was dropped or
    /// altered in the meantime; [`Error::Full`], [`Error::ReadOnly`], [`Error::Busy`] or
    /// [`Error::Closed`] if it cannot be written.
    pub fn commit(self) -> Result<()> {
        let tables =
            self.tables.into_iter().map(|(table, changes)| TableChanges { table, changes });
        let batch = ChangeBatch { tables: tables.collect(), positions: self.positions };
        if batch.tables.is_empty() && batch.positions.is_empty() {
            return Ok(());
        }
        self.handle.engine.apply(batch)?;
        Ok(())
    }

    fn writable(&self, handle: &Arc<Handle>, table: &str) -> Result<Arc<remora_engine::Schema>> {
        self.check(handle)?;
        self.handle.writable(table)
    }

    fn check(&self, handle: &Arc<Handle>) -> Result<()> {
        match Arc::ptr_eq(handle, &self.handle) {
            true => Ok(()),
            false => Err(Error::request(
                "the batch belongs to another database: make it with the database that it changes",
            )),
        }
    }

    fn push(&mut self, table: &Arc<str>, change: EngineChange) {
        self.tables.entry(Arc::clone(table)).or_default().push(change);
    }
}
