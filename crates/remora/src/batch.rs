//! Atomic changes of several tables and collections.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use remora_engine::{Change as EngineChange, ChangeBatch, TableChanges, Watch};
use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    Change, Collection, DocumentId, Error, IntoFilter, IntoKey, Result, Table, Version,
    collection::row as document_row,
    handle::{Handle, Keeper},
    json::{to_document, to_text},
    keyed::KeyedRows,
    table::encode,
};

/// Changes of several tables and collections that become durable and visible together, or not at
/// all. Dropping it without [`Batch::commit`] changes nothing. Changes apply in their order; those
/// that depend on a document's state read it at the commit, with the changes before them. For
/// statements among the changes, and to read between them, take `Database::transaction`.
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
    steps: Vec<Step>,
    /// The tables that are changed.
    tables: BTreeSet<Arc<str>>,
    positions: Vec<(String, String)>,
}

/// A change that reads what it changes.
type Edit = Box<dyn FnMut(&mut dyn KeyedRows) -> Result<()> + Send>;

/// One change.
enum Step {
    /// A change of a row of this table, whatever is there.
    Change(Arc<str>, EngineChange),
    Edit(Edit),
}

impl Batch {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, steps: Vec::new(), tables: BTreeSet::new(), positions: Vec::new() }
    }

    /// Inserts a row. No row with its key may exist. Cost: encodes the row; nothing is written before
    /// [`Batch::commit`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// let mut batch = db.batch();
    /// batch.insert(&birds, &json!({"id": 1, "name": "Heron"}))?;
    /// assert_eq!(birds.count()?, 0);
    /// batch.commit()?;
    /// assert_eq!(birds.count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
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

    /// Inserts a row, or replaces the row with its key. Cost: that of [`Batch::insert`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
    /// let mut batch = db.batch();
    /// batch.upsert(&birds, &json!({"id": 1, "name": "Grey heron"}))?;
    /// batch.upsert(&birds, &json!({"id": 2, "name": "Kite"}))?;
    /// batch.commit()?;
    /// assert_eq!(birds.get_as::<(i64, String)>(1)?, Some((1, "Grey heron".to_owned())));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert`].
    pub fn upsert<T: Serialize + ?Sized>(&mut self, table: &Table, row: &T) -> Result<()> {
        let schema = self.writable(&table.handle, &table.name)?;
        let row = encode::row(row, &schema)?;
        self.push(&table.name, EngineChange::Put(row));
        Ok(())
    }

    /// Deletes the row with this key, if there is one. Cost: that of [`Batch::insert`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert_many([json!({"id": 1}), json!({"id": 2})])?;
    /// let mut batch = db.batch();
    /// batch.delete(&birds, 1)?;
    /// batch.delete(&birds, 7)?; // There is none: nothing happens.
    /// batch.commit()?;
    /// assert_eq!(birds.count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert`].
    pub fn delete(&mut self, table: &Table, key: impl IntoKey) -> Result<()> {
        self.writable(&table.handle, &table.name)?;
        self.push(&table.name, EngineChange::Delete(key.into_key()));
        Ok(())
    }

    /// Inserts a document and returns its generated id. Cost: that of [`Batch::insert`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let (orders, items) = (db.collection("orders")?, db.collection("items")?);
    /// let mut batch = db.batch();
    /// let order = batch.insert_document(&orders, &json!({"customer": "Ann"}))?;
    /// batch.insert_document(&items, &json!({"order": order, "sku": "lamp"}))?;
    /// batch.commit()?;
    /// assert_eq!(items.find(remora::field("order").equals(order)).count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if the value is not a valid document, if the collection belongs to
    /// another database, or if it follows a source; [`Error::NotFound`] if it was dropped.
    pub fn insert_document<T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection,
        document: &T,
    ) -> Result<i64> {
        self.check_collection(collection)?;
        let text = to_text(document)?;
        let id = collection.reserve_ids(1)?;
        let row = document_row(remora_engine::Value::Int(id), text);
        self.push(&collection.name, EngineChange::Insert(row));
        Ok(id)
    }

    /// Inserts a document with an id that the caller gives. No document with this id may exist. Cost: that of
    /// [`Batch::insert`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let books = db.keyed_collection("books")?;
    /// let mut batch = db.batch();
    /// batch.insert_document_as(&books, "978-3-16", &json!({"title": "Reef"}))?;
    /// batch.commit()?;
    /// assert_eq!(books.get("978-3-16")?, Some(json!({"title": "Reef"})));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`].
    pub fn insert_document_as<K: DocumentId, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        document: &T,
    ) -> Result<()> {
        self.check_collection(collection)?;
        let row = document_row(K::value(id)?, to_text(document)?);
        self.push(&collection.name, EngineChange::Insert(row));
        Ok(())
    }

    /// Inserts a document, or replaces the document with its id. Cost: that of [`Batch::insert`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let books = db.keyed_collection("books")?;
    /// books.insert_as("978-3-16", &json!({"title": "Reef"}))?;
    /// let mut batch = db.batch();
    /// batch.upsert_document(&books, "978-3-16", &json!({"title": "Reefs"}))?;
    /// batch.commit()?;
    /// assert_eq!(books.get("978-3-16")?, Some(json!({"title": "Reefs"})));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`].
    pub fn upsert_document<K: DocumentId, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        document: &T,
    ) -> Result<()> {
        self.check_collection(collection)?;
        let row = document_row(K::value(id)?, to_text(document)?);
        self.push(&collection.name, EngineChange::Put(row));
        Ok(())
    }

    /// Replaces a document. At the commit it must exist. Cost: that of [`Batch::insert`], and a look-up of the id at
    /// the commit.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let books = db.keyed_collection("books")?;
    /// let mut batch = db.batch();
    /// batch.replace_document(&books, "978-3-16", &json!({"title": "Reefs"}))?;
    /// assert!(matches!(batch.commit(), Err(remora::Error::NotFound(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`].
    pub fn replace_document<K: DocumentId, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        document: &T,
    ) -> Result<()> {
        let text = to_text(document)?;
        self.edit(collection, id, move |collection, rows, id| {
            collection.replace_in(rows, id, text.clone())
        })
    }

    /// Replaces a document if it has this version at the commit. Returns its new version. Cost: that of
    /// [`Batch::insert`], and a read of the document at the commit.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// let id = books.insert(&json!({"stock": 3}))?;
    /// let (_, version) = books.get_versioned(id)?.ok_or("it is gone")?;
    /// let mut batch = db.batch();
    /// let next = batch.replace_document_if(&books, id, version, &json!({"stock": 2}))?;
    /// batch.commit()?; // Error::Changed if somebody was faster.
    /// assert_eq!(books.get_versioned(id)?, Some((json!({"stock": 2}), next)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`].
    pub fn replace_document_if<K: DocumentId, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        version: Version,
        document: &T,
    ) -> Result<Version> {
        let text = to_text(document)?;
        let new = Version::of(&text);
        self.edit(collection, id, move |collection, rows, id| {
            collection.replace_if_in(rows, id, version, text.clone()).map(drop)
        })?;
        Ok(new)
    }

    /// Applies a JSON Merge Patch (RFC 7396) to a document. At the commit it must exist. Cost: that of
    /// [`Batch::insert`], and a read of the document at the commit.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// let mut batch = db.batch();
    /// batch.merge_patch_document(&books, id, &json!({"stock": null, "sold": true}))?;
    /// batch.commit()?;
    /// assert_eq!(books.get(id)?, Some(json!({"title": "Reef", "sold": true})));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`].
    pub fn merge_patch_document<K: DocumentId, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        patch: &T,
    ) -> Result<()> {
        let patch: Json = to_document(patch)?;
        self.edit(collection, id, move |collection, rows, id| {
            collection.merge_patch_in(rows, id, &patch).map(drop)
        })
    }

    /// Applies a JSON Patch (RFC 6902) to a document. At the commit it must exist. Cost: that of [`Batch::insert`], and
    /// a read of the document at the commit.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// let id = books.insert(&json!({"tags": ["sea"]}))?;
    /// let mut batch = db.batch();
    /// batch.patch_document(&books, id, &json!([{"op": "add", "path": "/tags/-", "value": "ice"}]))?;
    /// batch.commit()?;
    /// assert_eq!(books.get(id)?, Some(json!({"tags": ["sea", "ice"]})));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`].
    pub fn patch_document<K: DocumentId, T: Serialize + ?Sized>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        patch: &T,
    ) -> Result<()> {
        let patch: Json = to_document(patch)?;
        self.edit(collection, id, move |collection, rows, id| {
            collection.patch_in(rows, id, &patch).map(drop)
        })
    }

    /// Deletes the document with this id, if there is one. Cost: that of [`Batch::insert`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let (open, done) = (db.collection("open")?, db.collection("done")?);
    /// let id = open.insert(&json!({"task": "paint"}))?;
    /// let mut batch = db.batch();
    /// batch.insert_document_as(&done, id, &json!({"task": "paint"}))?;
    /// batch.delete_document(&open, id)?;
    /// batch.commit()?;
    /// assert_eq!((open.len()?, done.len()?), (0, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`].
    pub fn delete_document<K: DocumentId>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
    ) -> Result<()> {
        self.check_collection(collection)?;
        self.push(&collection.name, EngineChange::Delete(vec![K::value(id)?]));
        Ok(())
    }

    /// Deletes the documents that satisfy a filter as of one moment at the commit. One that begins to satisfy it while the
    /// batch is committed may stay. Cost: the search runs at the commit, as [`Collection::delete_found`] does.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let orders = db.collection("orders")?;
    /// orders.insert_many([json!({"state": "paid"}), json!({"state": "open"})])?;
    /// let mut batch = db.batch();
    /// batch.delete_found_documents(&orders, "state = 'paid'")?;
    /// batch.commit()?;
    /// assert_eq!(orders.len()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Batch::insert_document`]; [`Error::Request`] if the filter is wrong.
    pub fn delete_found_documents<K: DocumentId>(
        &mut self,
        collection: &Collection<K>,
        filter: impl IntoFilter,
    ) -> Result<()> {
        self.check_collection(collection)?;
        let (collection, filter) = (collection.clone(), filter.into_filter()?);
        let edit =
            move |rows: &mut dyn KeyedRows| collection.delete_found_in(rows, &filter).map(drop);
        self.steps.push(Step::Edit(Box::new(edit)));
        Ok(())
    }

    /// Stores, together with the changes, that a named watcher has processed everything up to this
    /// change. The next watch of that name continues after it. So the effect of a change is written
    /// exactly once, whatever crashes. Cost: some bytes more in the commit.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let (birds, letters) = (db.collection("birds")?, db.collection("letters")?);
    /// let mut changes = db.watch().named("mailer").tables(["birds"]).start()?;
    /// birds.insert(&json!({"name": "Heron"}))?;
    /// let change = changes.next_within(std::time::Duration::from_secs(10))?.ok_or("none came")?;
    /// let mut batch = db.batch();
    /// batch.insert_document(&letters, &json!({"about": change.table()}))?;
    /// batch.done(&change)?; // The letter is written if, and only if, the position is.
    /// batch.commit()?;
    /// assert_eq!(db.watchers()[0].position, change.position());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// Commits the batch. On return it is durable and visible. Cost: one sync, however many changes; those that depend
    /// on a document read it first.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
    /// let mut batch = db.batch();
    /// batch.insert(&birds, &json!({"id": 2, "name": "Kite"}))?;
    /// batch.insert(&birds, &json!({"id": 1, "name": "Stork"}))?;
    /// assert!(matches!(batch.commit(), Err(remora::Error::Exists(_))));
    /// assert_eq!(birds.count()?, 1); // Nothing of it was written.
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`] if an inserted row's key exists, [`Error::NotFound`] if a document that is
    /// replaced or patched does not exist, [`Error::Changed`] if it has another version or fails a
    /// patch's `test`; [`Error::Request`] if there are more than a million changes, or a patch
    /// cannot be applied; [`Error::NotFound`] or [`Error::Conflict`] if a table was dropped or
    /// altered in the meantime, or if others changed the same documents a hundred times;
    /// [`Error::Full`], [`Error::ReadOnly`], [`Error::Busy`] or [`Error::Closed`] if it cannot be
    /// written.
    pub fn commit(mut self) -> Result<()> {
        let reads = self.steps.iter().any(|step| matches!(step, Step::Edit(_)));
        let keeper = self.keeper()?;
        if reads || keeper == Keeper::Sql {
            let positions = std::mem::take(&mut self.positions);
            let steps = &mut self.steps;
            return self.handle.transact(keeper, &positions, &mut |rows| run(steps, rows));
        }
        let mut tables: BTreeMap<Arc<str>, Vec<EngineChange>> = BTreeMap::new();
        for step in self.steps {
            if let Step::Change(table, change) = step {
                tables.entry(table).or_default().push(change);
            }
        }
        let tables = tables.into_iter().map(|(table, changes)| TableChanges { table, changes });
        let batch = ChangeBatch { tables: tables.collect(), positions: self.positions };
        if batch.tables.is_empty() && batch.positions.is_empty() {
            return Ok(());
        }
        self.handle.engine.apply(batch)?;
        Ok(())
    }

    fn writable(
        &mut self,
        handle: &Arc<Handle>,
        table: &Arc<str>,
    ) -> Result<Arc<remora_engine::Schema>> {
        self.check(handle)?;
        self.tables.insert(Arc::clone(table));
        self.handle.writable(table)
    }

    /// Checks that a collection can be written.
    fn check_collection<K: DocumentId>(&mut self, collection: &Collection<K>) -> Result<()> {
        self.check(&collection.handle)?;
        self.tables.insert(Arc::clone(&collection.name));
        self.handle.keeper(&collection.name).map(drop)
    }

    /// Who keeps the tables now: SQL may have declared keys of one since a change of it was added.
    fn keeper(&self) -> Result<Keeper> {
        for table in &self.tables {
            if self.handle.keeper(table)? == Keeper::Sql {
                return Ok(Keeper::Sql);
            }
        }
        Ok(Keeper::Engine)
    }

    fn check(&self, handle: &Arc<Handle>) -> Result<()> {
        match Arc::ptr_eq(handle, &self.handle) {
            true => Ok(()),
            false => Err(Error::request(
                "the batch belongs to another database: make it with the database that it changes",
            )),
        }
    }

    /// Adds a change of one document that reads it.
    fn edit<K: DocumentId>(
        &mut self,
        collection: &Collection<K>,
        id: K::Given<'_>,
        mut edit: impl FnMut(&Collection<K>, &mut dyn KeyedRows, K::Given<'_>) -> Result<()>
        + Send
        + 'static,
    ) -> Result<()> {
        self.check_collection(collection)?;
        let id =
            K::of(&K::value(id)?).ok_or_else(|| Error::request("the id is of another type"))?;
        let collection = collection.clone();
        let edit = move |rows: &mut dyn KeyedRows| edit(&collection, rows, id.given());
        self.steps.push(Step::Edit(Box::new(edit)));
        Ok(())
    }

    fn push(&mut self, table: &Arc<str>, change: EngineChange) {
        self.steps.push(Step::Change(Arc::clone(table), change));
    }
}

/// Makes the changes in their order. Those of one table that follow each other are written together.
fn run(steps: &mut [Step], rows: &mut dyn KeyedRows) -> Result<()> {
    let mut together: Option<(Arc<str>, Vec<EngineChange>)> = None;
    for step in steps {
        match (step, &mut together) {
            (Step::Change(table, change), Some((of, changes))) if of == table => {
                changes.push(change.clone());
            }
            (Step::Change(table, change), last) => {
                if let Some((of, changes)) = last.replace((Arc::clone(table), vec![change.clone()]))
                {
                    rows.write(&of, changes)?;
                }
            }
            (Step::Edit(edit), last) => {
                if let Some((of, changes)) = last.take() {
                    rows.write(&of, changes)?;
                }
                edit(rows)?;
            }
        }
    }
    together.map_or(Ok(()), |(of, changes)| rows.write(&of, changes))
}
