//! Documents within the transaction of a connection, beside statements.

use std::sync::Arc;

use remora_engine::Watch;
use remora_sql::Session;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;

use crate::{
    Change, Collection, Connection, Document, DocumentId, Error, IntoFilter, Moment, Result,
    Version,
    collection::{parse, parse_as, text_of},
    handle::Handle,
    json::{self, to_document, to_text},
    sessions::{begin_reading, in_transaction},
};

/// The documents of a collection as a connection sees them: at the moment at which its transaction began, with the
/// transaction's own changes. Statements of the connection see the changes too. Everything is committed together with
/// them, or not at all. Without an open transaction each call is one of its own. Made by [`Connection::documents`].
///
/// ```
/// use remora::{Database, params};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// db.execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT)", params![])?;
/// db.execute("INSERT INTO accounts VALUES (7, 100)", params![])?;
/// let orders = db.collection("orders")?;
/// let order = db.transaction(|tx| {
///     tx.execute("UPDATE accounts SET balance = balance - 30 WHERE id = 7", params![])?;
///     let id = tx.documents(&orders)?.insert(&json!({"account": 7, "price": 30}))?;
///     tx.documents(&orders)?.merge_patch(id, &json!({"paid": true}))?;
///     let sum = tx.query("SELECT SUM(doc->'$.price') FROM orders", params![])?.one::<f64>()?;
///     if sum > 1_000.0 { Err(remora::Error::Request("too much".to_owned().into())) } else { Ok(id) }
/// })?;
/// assert_eq!(orders.get(order)?, Some(json!({"account": 7, "price": 30, "paid": true})));
/// # Ok::<(), remora::Error>(())
/// ```
pub struct Documents<'c, K: DocumentId = i64> {
    connection: &'c mut Connection,
    collection: Collection<K>,
}

impl Connection {
    /// The documents of a collection within this connection's transaction. Cost: reads nothing.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// let notes = db.collection("notes")?;
    /// let mut connection = db.connection();
    /// connection.execute("BEGIN", [])?;
    /// connection.documents(&notes)?.insert(&json!({"text": "not yet"}))?;
    /// assert_eq!(connection.query("SELECT COUNT(*) FROM notes", [])?.one::<i64>()?, 1);
    /// connection.execute("ROLLBACK", [])?;
    /// assert_eq!(notes.len()?, 0);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if the collection belongs to another database.
    pub fn documents<K: DocumentId>(
        &mut self,
        collection: &Collection<K>,
    ) -> Result<Documents<'_, K>> {
        self.check_database(&collection.handle)?;
        Ok(Documents { connection: self, collection: collection.clone() })
    }

    /// Stores with the open transaction, even if it changes nothing, that a named watcher has processed everything up
    /// to this change, as [`Batch::done`](crate::Batch::done) does. Cost: some bytes more in the commit.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.collection("birds")?;
    /// db.execute("CREATE TABLE letters (id BIGINT PRIMARY KEY AUTO_INCREMENT, about TEXT)", [])?;
    /// let mut changes = db.watch().named("mailer").tables(["birds"]).start()?;
    /// birds.insert_json(r#"{"name": "Heron"}"#)?;
    /// let change = changes.next_within(std::time::Duration::from_secs(10))?.ok_or("none came")?;
    /// db.transaction(|tx| {
    ///     tx.execute("INSERT INTO letters (about) VALUES (?)", remora::params![change.table()])?;
    ///     tx.done(&change) // The letter is written if, and only if, the position is.
    /// })?;
    /// assert_eq!(db.watchers()[0].position, change.position());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if no transaction is open, or if the watcher has no name or is of another database.
    pub fn done(&mut self, change: &Change) -> Result<()> {
        self.check_database(&change.handle)?;
        let place = remora_engine::Position(change.position());
        let (name, position) = Watch::position_of(change.watcher_name()?, place);
        let session = self.session().as_mut().ok_or(Error::Closed)?;
        Ok(session.store_position(name, position)?)
    }

    fn check_database(&self, handle: &Arc<Handle>) -> Result<()> {
        match Arc::ptr_eq(handle, self.handle()) {
            true => Ok(()),
            false => Err(Error::request(
                "the connection belongs to another database: make it with the database that it changes",
            )),
        }
    }
}

impl<K: DocumentId> Documents<'_, K> {
    /// The document with this id; `None` if there is none. Cost: that of [`Collection::get`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     own.merge_patch(id, &json!({"stock": 2}))?;
    ///     assert_eq!(own.get(id)?, Some(json!({"title": "Reef", "stock": 2})));
    ///     assert_eq!(books.get(id)?, Some(json!({"title": "Reef", "stock": 3}))); // What others see.
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn get(&mut self, id: K::Given<'_>) -> Result<Option<Json>> {
        let text = self.get_json(id)?;
        text.map(|text| parse(id, &text)).transpose()
    }

    /// The text of the document with this id. Cost: that of [`Collection::get_json`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let text = own.get_json(id)?;
    ///     assert_eq!(text.as_deref(), Some(r#"{"stock":3,"title":"Reef"}"#));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn get_json(&mut self, id: K::Given<'_>) -> Result<Option<String>> {
        let collection = &self.collection;
        let session = begin_reading(self.connection.session())?;
        let row = session.row(&collection.name, &[K::sought(id)])?;
        row.map(|row| text_of(&row).map(str::to_owned)).transpose()
    }

    /// The document with this id, deserialized. Cost: that of [`Collection::get_as`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// #[derive(serde::Deserialize)]
    /// struct Book {
    ///     stock: u32,
    /// }
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let book = own.get_as::<Book>(id)?;
    ///     assert_eq!(book.map(|book| book.stock), Some(3));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get_as`].
    pub fn get_as<T: DeserializeOwned>(&mut self, id: K::Given<'_>) -> Result<Option<T>> {
        let text = self.get_json(id)?;
        text.map(|text| parse_as(id, &text)).transpose()
    }

    /// The document with this id and its version, for [`Documents::replace_if`]. Cost: that of [`Collection::get`].
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     if let Some((mut book, version)) = own.get_versioned(id)? {
    ///         book["stock"] = 2.into();
    ///         own.replace_if(id, version, &book)?;
    ///     }
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn get_versioned(&mut self, id: K::Given<'_>) -> Result<Option<(Json, Version)>> {
        let Some(text) = self.get_json(id)? else { return Ok(None) };
        Ok(Some((parse(id, &text)?, Version::of(&text))))
    }

    /// The documents that satisfy a filter, in the order of their ids. Cost: that of [`crate::Find::run`], and a test of
    /// each document that the transaction has changed.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     own.insert(&json!({"title": "Ice", "stock": 0}))?;
    ///     let empty = own.find("stock = 0")?;
    ///     assert_eq!(empty[0].doc["title"], "Ice");
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Find::run`].
    pub fn find(&mut self, filter: impl IntoFilter) -> Result<Vec<Document<K>>> {
        self.collection.found_in(self.connection.session(), &filter.into_filter()?)
    }

    /// The collection as the transaction sees it now, for [`crate::Find::at`]: sorted, in pages, with facets. Later changes
    /// are not in it. Cost: indexes the documents that were changed since the last call, and at times more.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let db = remora::Database::in_memory()?;
    /// let votes = db.collection("votes")?;
    /// votes.insert_many([json!({"for": 3}), json!({"for": 7})])?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&votes)?;
    ///     let best = own.insert(&json!({"for": 9}))?;
    ///     let now = own.now()?;
    ///     assert_eq!(votes.find("for > 3").sort_by_desc("for").limit(1).at(&now).ids()?, [best]);
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`], and [`Error::Request`] if the changes take too much memory.
    pub fn now(&mut self) -> Result<Moment<K>> {
        let session = begin_reading(self.connection.session())?;
        Ok(Moment::of(session.reader_with_changes()?, &self.collection.name))
    }

    /// Inserts a document with an id that the caller gives. Cost: that of [`Collection::insert_as`], without the sync,
    /// which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.keyed_collection("books")?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     own.insert_as("978-3-16", &json!({"title": "Reef"}))?;
    ///     let again = own.insert_as("978-3-16", &json!({}));
    ///     assert!(matches!(again, Err(remora::Error::Exists(_))));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert_as`]. A value at a unique path ([`Collection::index_unique`]) is compared at the
    /// commit, a unique key of SQL at once.
    pub fn insert_as<T: Serialize + ?Sized>(
        &mut self,
        id: K::Given<'_>,
        document: &T,
    ) -> Result<()> {
        self.collection.insert_in(
            writing(self.connection, &self.collection)?,
            id,
            to_text(document)?,
        )
    }

    /// Inserts a document, or replaces the document with this id. Cost: that of [`Collection::upsert`], without the
    /// sync, which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.keyed_collection("books")?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     own.upsert("978-3-16", &json!({"title": "Reef"}))?;
    ///     own.upsert("978-3-16", &json!({"title": "Reefs"}))?;
    ///     assert_eq!(own.get("978-3-16")?, Some(json!({"title": "Reefs"})));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::insert_as`] except that the id exists.
    pub fn upsert<T: Serialize + ?Sized>(&mut self, id: K::Given<'_>, document: &T) -> Result<()> {
        self.collection.upsert_in(
            writing(self.connection, &self.collection)?,
            id,
            to_text(document)?,
        )
    }

    /// Inserts or replaces documents: all of them or none. Cost: that of [`Collection::upsert_many`], without the sync,
    /// which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.keyed_collection("books")?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     own.upsert_many([("a", json!({"n": 1})), ("b", json!({"n": 2}))])?;
    ///     assert_eq!(own.find("n > 1")?[0].id, "b");
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::upsert`].
    pub fn upsert_many<'i, T: Serialize>(
        &mut self,
        documents: impl IntoIterator<Item = (K::Given<'i>, T)>,
    ) -> Result<()> {
        self.collection.upsert_many_in(writing(self.connection, &self.collection)?, documents)
    }

    /// Replaces a document. Cost: that of [`Collection::replace`], without the sync, which is the commit's; what is
    /// changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     own.replace(id, &json!({"title": "Reefs"}))?;
    ///     let other = own.replace(id + 1, &json!({}));
    ///     assert!(matches!(other, Err(remora::Error::NotFound(_))));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::upsert`], and [`Error::NotFound`] if no document has the id.
    pub fn replace<T: Serialize + ?Sized>(&mut self, id: K::Given<'_>, document: &T) -> Result<()> {
        self.collection.replace_in(
            writing(self.connection, &self.collection)?,
            id,
            to_text(document)?,
        )
    }

    /// Replaces a document if it has this version. Returns its new version. Cost: that of [`Collection::replace_if`],
    /// without the sync, which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// let (_, read) = books.get_versioned(id)?.ok_or(remora::Error::Closed)?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let written = own.replace_if(id, read, &json!({"stock": 2}))?;
    ///     assert!(own.replace_if(id, read, &json!({"stock": 1})).is_err());
    ///     own.replace_if(id, written, &json!({"stock": 1}))?;
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::replace`], and [`Error::Changed`] if the version is another.
    pub fn replace_if<T: Serialize + ?Sized>(
        &mut self,
        id: K::Given<'_>,
        version: Version,
        document: &T,
    ) -> Result<Version> {
        let text = to_text(document)?;
        self.collection.replace_if_in(
            writing(self.connection, &self.collection)?,
            id,
            version,
            text,
        )
    }

    /// Changes a document in place and returns the result. Without an open transaction, `change` is called again if
    /// another writer was faster. Cost: that of [`Collection::update`], without the sync, which is the commit's; what
    /// is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let book = own.update(id, |book| {
    ///         book["title"] = "Reefs".into();
    ///         Ok(())
    ///     })?;
    ///     assert_eq!(book, json!({"title": "Reefs", "stock": 3}));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::replace`], and the error of `change`.
    pub fn update(
        &mut self,
        id: K::Given<'_>,
        mut change: impl FnMut(&mut Json) -> Result<()>,
    ) -> Result<Json> {
        self.collection.update_in(writing(self.connection, &self.collection)?, id, &mut change)
    }

    /// Applies a JSON Merge Patch (RFC 7396). Returns the resulting document. Cost: that of
    /// [`Collection::merge_patch`], without the sync, which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let book = own.merge_patch(id, &json!({"stock": null}))?;
    ///     assert_eq!(book, json!({"title": "Reef"}));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::replace`].
    pub fn merge_patch<T: Serialize + ?Sized>(
        &mut self,
        id: K::Given<'_>,
        patch: &T,
    ) -> Result<Json> {
        self.collection.merge_patch_in(
            writing(self.connection, &self.collection)?,
            id,
            &to_document(patch)?,
        )
    }

    /// Applies a JSON Patch (RFC 6902): all its operations or none. Returns the resulting document. Cost: that of
    /// [`Collection::patch`], without the sync, which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let book = own.patch(id, &json!([{"op": "remove", "path": "/stock"}]))?;
    ///     assert_eq!(book, json!({"title": "Reef"}));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::patch`].
    pub fn patch<T: Serialize + ?Sized>(&mut self, id: K::Given<'_>, patch: &T) -> Result<Json> {
        self.collection.patch_in(
            writing(self.connection, &self.collection)?,
            id,
            &to_document(patch)?,
        )
    }

    /// Deletes a document. Returns whether it existed. Cost: that of [`Collection::delete`], without the sync, which is
    /// the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     assert!(own.delete(id)?);
    ///     assert_eq!((own.get(id)?, books.len()?), (None, 1)); // Others see it until the commit.
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::delete`].
    pub fn delete(&mut self, id: K::Given<'_>) -> Result<bool> {
        self.collection.delete_in(writing(self.connection, &self.collection)?, id)
    }

    /// Deletes the documents that satisfy a filter: all of them or none. Returns their number. Without an open
    /// transaction, documents that are changed meanwhile are deleted only if they still satisfy it. Cost: that of
    /// [`Documents::find`], and memory for the ids.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// # let id = books.insert(&json!({"title": "Reef", "stock": 3}))?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     own.insert(&json!({"title": "Ice", "stock": 0}))?;
    ///     assert_eq!(own.delete_found("stock < 5")?, 2);
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::find`] and [`Documents::delete`].
    pub fn delete_found(&mut self, filter: impl IntoFilter) -> Result<u64> {
        let filter = filter.into_filter()?;
        let collection = &self.collection;
        in_transaction(writing(self.connection, collection)?, |rows| {
            collection.delete_found_in(rows, &filter)
        })
    }
}

impl Documents<'_> {
    /// Inserts a document and returns its generated id. An id of a transaction that is rolled back is not given again.
    /// Cost: that of [`Collection::insert`], without the sync, which is the commit's; what is changed is in memory
    /// until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let id = own.insert(&json!({"title": "Reef"}))?;
    ///     own.insert(&json!({"sequel_of": id}))?;
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert`] and [`Documents::insert_as`].
    pub fn insert<T: Serialize + ?Sized>(&mut self, document: &T) -> Result<i64> {
        self.collection
            .insert_made_in(writing(self.connection, &self.collection)?, to_text(document)?)
    }

    /// Inserts a document given as JSON text and returns its generated id. Cost: that of [`Collection::insert_json`],
    /// without the sync, which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let id = own.insert_json(r#"{"title": "Reef"}"#)?;
    ///     assert_eq!(own.get(id)?, Some(json!({"title": "Reef"})));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert_json`] and [`Documents::insert_as`].
    pub fn insert_json(&mut self, text: &str) -> Result<i64> {
        let text = json::text(&json::parse_document(text)?)?;
        self.collection.insert_made_in(writing(self.connection, &self.collection)?, text)
    }

    /// Inserts documents: all of them or none. Returns their ids in order. Cost: that of [`Collection::insert_many`],
    /// without the sync, which is the commit's; what is changed is in memory until then.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let db = remora::Database::in_memory()?;
    /// # let books = db.collection("books")?;
    /// db.transaction(|tx| {
    ///     let mut own = tx.documents(&books)?;
    ///     let ids = own.insert_many([json!({"title": "Reef"}), json!({"title": "Ice"})])?;
    ///     assert_eq!(own.get(ids[1])?, Some(json!({"title": "Ice"})));
    ///     Ok::<_, remora::Error>(())
    /// })?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Documents::insert`].
    pub fn insert_many<T: Serialize>(
        &mut self,
        documents: impl IntoIterator<Item = T>,
    ) -> Result<Vec<i64>> {
        self.collection.insert_many_in(writing(self.connection, &self.collection)?, documents)
    }
}

/// The session of a connection, for a write to this collection.
fn writing<'c, K: DocumentId>(
    connection: &'c mut Connection,
    collection: &Collection<K>,
) -> Result<&'c mut Option<Session>> {
    connection.handle().keeper(&collection.name)?;
    Ok(connection.session())
}
