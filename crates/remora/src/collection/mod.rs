//! Collections: JSON documents with generated or given ids.

mod changes;
mod cursor;
mod document;
mod facets;
mod fields;
mod find;
mod id;
mod indexes;
mod merge_patch;
mod moment;
mod patch;
mod prepared;
mod writes;

use std::{marker::PhantomData, sync::Arc};

use remora_engine::{
    ColumnDef, ColumnType, Definition, Error as EngineError, Reader, ScanRequest, Schema, Value,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;

pub use document::{Document, Version};
pub use facets::PathFacet;
pub use find::{Find, FoundDocuments};
pub use id::DocumentId;
pub use indexes::{FindPlan, IndexKind, PathIndex};
pub use moment::Moment;

use crate::{
    Error, IntoFilter, Result,
    handle::Handle,
    json::{self, to_document, to_text},
};

/// The names of the columns.
const ID: &str = "id";
const DOC: &str = "doc";
/// The position of `DOC`.
const DOC_PLACE: usize = 1;
/// The rows of a batch when a page is read.
const BATCH_ROWS: usize = 256;

/// A collection of JSON documents. It is cheap to clone and can be used from all threads.
///
/// A document is any value that can be serialized: a struct, a map, a [`serde_json::Value`]; with
/// up to 16 MiB of text and 100 levels of nesting. Its id is a generated number, which increases
/// with time and is never reused, or a number that the caller gives. Writes return when they are
/// durable and visible. In SQL the collection is a table `(id BIGINT, doc JSON)`. A collection of
/// [`crate::Database::keyed_collection`] has text ids that the caller gives.
///
/// ```
/// use remora::Database;
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let feedback = db.collection("feedback")?;
/// let id = feedback.insert(&json!({"author": {"name": "Ann"}, "stars": 4, "tags": ["ui"]}))?;
/// feedback.insert(&json!({"author": {"name": "Bo"}, "stars": "none"}))?;
///
/// let good = feedback.find("stars >= 4 AND tags = 'ui'").sort_by_desc("stars").limit(10).run()?;
/// assert_eq!((good.total, good.documents[0].id), (1, id));
///
/// feedback.merge_patch(id, &json!({"stars": 5, "tags": null}))?;
/// feedback.patch(id, &json!([{"op": "add", "path": "/answered", "value": true}]))?;
/// let (document, version) = feedback.get_versioned(id)?.ok_or("it is there")?;
/// assert_eq!(document, json!({"author": {"name": "Ann"}, "stars": 5, "answered": true}));
/// feedback.replace_if(id, version, &json!({"stars": 1}))?;
/// assert!(feedback.replace_if(id, version, &json!({"stars": 2})).is_err_and(|it| matches!(it, remora::Error::Changed(_))));
/// assert!(feedback.delete(id)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Collection<K: DocumentId = i64> {
    pub(crate) handle: Arc<Handle>,
    pub(crate) name: Arc<str>,
    ids: PhantomData<K>,
}

impl<K: DocumentId> Collection<K> {
    fn of(handle: Arc<Handle>, name: &str) -> Self {
        Self { handle, name: name.into(), ids: PhantomData }
    }

    /// The collection of this name. It is created if it does not exist.
    pub(crate) fn open(handle: Arc<Handle>, name: &str) -> Result<Self> {
        match handle.engine.schema(name) {
            Ok(schema) if is_collection::<K>(&schema) => {}
            Ok(_) => {
                let message = format!(
                    "table {name:?} is no collection with ids of this type: it has other columns than id and doc, or \
                     another key"
                );
                return Err(Error::Exists(message.into()));
            }
            Err(EngineError::NotFound { .. }) => handle.engine.create_table(schema::<K>(name))?,
            Err(error) => return Err(error.into()),
        }
        Ok(Self::of(handle, name))
    }

    /// The collection of this name; `None` if it does not exist.
    pub(crate) fn find_named(handle: &Arc<Handle>, name: &str) -> Result<Option<Self>> {
        match handle.engine.schema(name) {
            Ok(schema) if is_collection::<K>(&schema) => {
                Ok(Some(Self::of(Arc::clone(handle), name)))
            }
            Ok(_) | Err(EngineError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a collection. The name must be unused.
    pub(crate) fn create(handle: &Arc<Handle>, name: &str) -> Result<Self> {
        let vacant = Definition::Vacant(name.to_owned());
        handle.engine.define(vec![vacant, Definition::Create(schema::<K>(name))], Vec::new())?;
        Ok(Self::of(Arc::clone(handle), name))
    }

    /// The name of the collection.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// assert_eq!(db.collection("books")?.name(), "books");
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Inserts a document with an id that the caller gives. Cost: some microseconds, and a sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.keyed_collection("books")?;
    /// books.insert_as("978-3-16", &serde_json::json!({"title": "Reef"}))?;
    /// let again = books.insert_as("978-3-16", &serde_json::json!({"title": "Reefs"}));
    /// assert!(matches!(again, Err(remora::Error::Exists(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert`], and [`Error::Exists`] if a document with the id exists.
    pub fn insert_as<T: Serialize + ?Sized>(&self, id: K::Given<'_>, document: &T) -> Result<()> {
        self.insert_in(&mut self.rows(), id, to_text(document)?)
    }

    /// Inserts or replaces documents in one durable step: all of them or none. If an id occurs
    /// several times, the last document wins. Cost: some microseconds for each, and one sync.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.keyed_collection("books")?;
    /// let found = [("isbn-1", serde_json::json!({"title": "Reef"})), ("isbn-2", serde_json::json!({}))];
    /// books.upsert_many(found)?;
    /// assert_eq!(books.get_json("isbn-2")?.as_deref(), Some("{}"));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::upsert`]; [`Error::Request`] for more than a million documents.
    pub fn upsert_many<'i, T: Serialize>(
        &self,
        documents: impl IntoIterator<Item = (K::Given<'i>, T)>,
    ) -> Result<()> {
        self.upsert_many_in(&mut self.rows(), documents)
    }

    /// Inserts a document, or replaces the document with this id. Cost: some microseconds, and a sync; reads nothing.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.keyed_collection("books")?;
    /// books.upsert("978-3-16", &serde_json::json!({"title": "Reef"}))?;
    /// books.upsert("978-3-16", &serde_json::json!({"title": "Reefs"}))?;
    /// assert_eq!(books.get_json("978-3-16")?.as_deref(), Some(r#"{"title":"Reefs"}"#));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert`].
    pub fn upsert<T: Serialize + ?Sized>(&self, id: K::Given<'_>, document: &T) -> Result<()> {
        self.upsert_in(&mut self.rows(), id, to_text(document)?)
    }

    /// Replaces a document. Cost: a look-up of the id, and a sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"title": "Reef"}))?;
    /// books.replace(id, &serde_json::json!({"title": "Reefs"}))?;
    /// let other = books.replace(id + 1, &serde_json::json!({}));
    /// assert!(matches!(other, Err(remora::Error::NotFound(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert`], and [`Error::NotFound`] if no document has the id.
    pub fn replace<T: Serialize + ?Sized>(&self, id: K::Given<'_>, document: &T) -> Result<()> {
        self.replace_in(&mut self.rows(), id, to_text(document)?)
    }

    /// Replaces a document if it still has this version. Returns its new version. Cost: a read of the document, and a
    /// sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"stock": 3}))?;
    /// let (_, read) = books.get_versioned(id)?.ok_or("it is gone")?;
    /// books.upsert(id, &serde_json::json!({"stock": 2}))?; // By somebody else.
    /// let late = books.replace_if(id, read, &serde_json::json!({"stock": 4}));
    /// assert!(matches!(late, Err(remora::Error::Changed(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::replace`], and [`Error::Changed`] if the version is another by now.
    pub fn replace_if<T: Serialize + ?Sized>(
        &self,
        id: K::Given<'_>,
        version: Version,
        document: &T,
    ) -> Result<Version> {
        self.replace_if_in(&mut self.rows(), id, version, to_text(document)?)
    }

    /// Applies a JSON Merge Patch (RFC 7396). Returns the resulting document. Cost: a read of the document, parsing,
    /// and a sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"title": "Reef", "stock": 3}))?;
    /// let patched = books.merge_patch(id, &serde_json::json!({"stock": null, "sold": true}))?;
    /// assert_eq!(patched, serde_json::json!({"title": "Reef", "sold": true}));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::replace`].
    pub fn merge_patch<T: Serialize + ?Sized>(&self, id: K::Given<'_>, patch: &T) -> Result<Json> {
        self.merge_patch_in(&mut self.rows(), id, &to_document(patch)?)
    }

    /// Applies a JSON Patch (RFC 6902): all its operations or none. Returns the resulting document. Cost: a read of the
    /// document, parsing, and a sync.
    ///
    /// ```
    /// # use serde_json::json;
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&json!({"stock": 3}))?;
    /// let sell = json!([
    ///     {"op": "test", "path": "/stock", "value": 3},
    ///     {"op": "replace", "path": "/stock", "value": 2},
    /// ]);
    /// assert_eq!(books.patch(id, &sell)?, json!({"stock": 2}));
    /// assert!(matches!(books.patch(id, &sell), Err(remora::Error::Changed(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::replace`]; [`Error::Request`] with the operation that cannot be
    /// applied, [`Error::Changed`] with the `test` that fails.
    pub fn patch<T: Serialize + ?Sized>(&self, id: K::Given<'_>, patch: &T) -> Result<Json> {
        self.patch_in(&mut self.rows(), id, &to_document(patch)?)
    }

    /// Changes a document in place and returns the result. If another writer changes the document
    /// in the meantime, `change` is called again with its new state. Cost: a read of the document, parsing, and a sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"stock": 3}))?;
    /// let now = books.update(id, |book| {
    ///     let stock = book["stock"].as_i64().unwrap_or(0);
    ///     book["stock"] = (stock - 1).into();
    ///     Ok(())
    /// })?;
    /// assert_eq!(now["stock"], 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::replace`], the error of `change`, and [`Error::Conflict`] if another
    /// writer was faster a hundred times.
    pub fn update(
        &self,
        id: K::Given<'_>,
        mut change: impl FnMut(&mut Json) -> Result<()>,
    ) -> Result<Json> {
        self.update_in(&mut self.rows(), id, &mut change)
    }

    /// Deletes a document. Returns whether it existed. Cost: a look-up of the id, and a sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"title": "Reef"}))?;
    /// assert_eq!((books.delete(id)?, books.delete(id)?), (true, false));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`], and those of [`Collection::insert`] about writing.
    pub fn delete(&self, id: K::Given<'_>) -> Result<bool> {
        self.delete_in(&mut self.rows(), id)
    }

    /// Deletes the documents that satisfy a filter, in one durable step: all of them or none. Returns
    /// their number. Documents that others change meanwhile are deleted only if they still satisfy it. Cost: that of
    /// [`Collection::find`], and one sync; the ids of all are in memory.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let votes = db.collection("votes")?;
    /// votes.insert_json(r#"{"for": 7}"#)?;
    /// assert_eq!((votes.delete_found("for = 7")?, votes.delete_found("for = 7")?), (1, 0));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Find::run`], and those of [`Collection::insert`] about writing; [`Error::Request`]
    /// for more than a million documents.
    pub fn delete_found(&self, filter: impl IntoFilter) -> Result<u64> {
        let filter = filter.into_filter()?;
        let keeper = self.handle.keeper(&self.name)?;
        self.handle.transact(keeper, &[], &mut |rows| self.delete_found_in(rows, &filter))
    }

    /// The document with this id; `None` if there is none. Cost: a read of the row store, and
    /// parsing.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"title": "Reef"}))?;
    /// assert_eq!(books.get(id)?, Some(serde_json::json!({"title": "Reef"})));
    /// assert_eq!(books.get(id + 1)?, None);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if the collection was dropped; [`Error::Corrupt`], [`Error::Io`] or
    /// [`Error::Closed`] if it cannot be read.
    pub fn get(&self, id: K::Given<'_>) -> Result<Option<Json>> {
        self.read_text(id, |text| parse(id, text))
    }

    /// Reads the text of the document with this id, where it is stored.
    fn read_text<T>(
        &self,
        id: K::Given<'_>,
        read: impl Fn(&str) -> Result<T>,
    ) -> Result<Option<T>> {
        let (engine, key) = (&self.handle.engine, [K::sought(id)]);
        let mut done = None;
        engine.visit_json(&self.name, &key, DOC_PLACE, &mut |text| done = Some(text.map(&read)))?;
        match done {
            None => Ok(None),
            Some(read) => read.ok_or_else(other_row)?.map(Some),
        }
    }

    /// The text of the document with this id, as compact JSON. Cost: a read of the row store,
    /// without parsing.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let votes = db.collection("votes")?;
    /// let id = votes.insert_json(r#"{ "for": 7 }"#)?;
    /// assert_eq!(votes.get_json(id)?.as_deref(), Some(r#"{"for":7}"#));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn get_json(&self, id: K::Given<'_>) -> Result<Option<String>> {
        self.read_text(id, |text| Ok(text.to_owned()))
    }

    /// The document with this id, deserialized. Cost: that of [`Collection::get`], and less, since no tree of values is
    /// built.
    ///
    /// ```
    /// # let birds = remora::Database::in_memory()?.collection("birds")?;
    /// #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
    /// struct Bird {
    ///     name: String,
    /// }
    /// let id = birds.insert(&Bird { name: "Heron".to_owned() })?;
    /// assert_eq!(birds.get_as::<Bird>(id)?, Some(Bird { name: "Heron".to_owned() }));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`], and [`Error::Request`] if it cannot be deserialized as `T`.
    pub fn get_as<T: DeserializeOwned>(&self, id: K::Given<'_>) -> Result<Option<T>> {
        self.read_text(id, |text| parse_as(id, text))
    }

    /// The document with this id and its version, for [`Collection::replace_if`]. Cost: that of [`Collection::get`].
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"stock": 3}))?;
    /// let (mut book, version) = books.get_versioned(id)?.ok_or("it is gone")?;
    /// book["stock"] = 2.into();
    /// books.replace_if(id, version, &book)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn get_versioned(&self, id: K::Given<'_>) -> Result<Option<(Json, Version)>> {
        self.read_text(id, |text| Ok((parse(id, text)?, Version::of(text))))
    }

    /// The exact number of documents. Cost: reads no document.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.insert_many([serde_json::json!({}), serde_json::json!({})])?;
    /// assert_eq!(books.len()?, 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if the collection was dropped, [`Error::Closed`] if the database was closed.
    pub fn len(&self) -> Result<u64> {
        Ok(self.handle.engine.reader().row_count(&self.name)?)
    }

    /// Whether the collection is empty. Cost: reads no document.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// assert!(books.is_empty()?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// At most `limit` documents in the order of ids, after the id `after`. `None` starts at the
    /// beginning, and the last id of a page is where the next page starts. Ids are generated before
    /// documents are written. So with concurrent inserts, a document may become visible whose id
    /// lies before pages that were already read. Cost: a read of the row store for each document, and parsing.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.keyed_collection("books")?;
    /// books.upsert_many(["a", "b", "c"].map(|id| (id, serde_json::json!({}))))?;
    /// let (mut read, mut last) = (0, None::<String>);
    /// loop {
    ///     let page = books.page(last.as_deref(), 2)?;
    ///     let Some(end) = page.last() else { break };
    ///     (read, last) = (read + page.len(), Some(end.id.clone()));
    /// }
    /// assert_eq!(read, 3);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn page(&self, after: Option<K::Given<'_>>, limit: usize) -> Result<Vec<Document<K>>> {
        self.now().page(after, limit)
    }

    /// At most `limit` ids in their order, after the id `after`, as [`Collection::page`] has the documents. Cost: some
    /// 100 ns for each; reads no document.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.keyed_collection("books")?;
    /// books.upsert_many(["a", "b", "c"].map(|id| (id, 1)))?;
    /// assert_eq!(books.ids(Some("a"), 10)?, ["b", "c"]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn ids(&self, after: Option<K::Given<'_>>, limit: usize) -> Result<Vec<K>> {
        self.now().ids_after(after, limit)
    }

    /// The collection as of now, unaffected by later writes.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let before = books.now();
    /// books.insert(&serde_json::json!({"title": "Reef"}))?;
    /// assert_eq!((before.len()?, books.now().len()?), (0, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn now(&self) -> Moment<K> {
        Moment::of(self.handle.engine.reader(), &self.name)
    }

    /// A search for documents that satisfy a filter: a text as described at [`crate::Filter`], or
    /// [`field`](crate::field)`("stars").at_least(4)`.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.insert(&serde_json::json!({"title": "Reef", "tags": ["sea"], "year": 1999}))?;
    /// assert_eq!(books.find("tags = 'sea' AND year < 2000").count()?, 1);
    /// assert_eq!(books.find(remora::field("year").at_least(2000)).count()?, 0);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn find(&self, filter: impl IntoFilter) -> Find<K> {
        self.all().filter(filter)
    }

    /// A search of all documents, which can be filtered, sorted and counted.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.insert_many([1987, 2015].map(|year| serde_json::json!({"year": year})))?;
    /// let newest = books.all().sort_by_desc("year").limit(1).run()?;
    /// assert_eq!((newest.total, &newest.documents[0].doc["year"]), (2, &2015.into()));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn all(&self) -> Find<K> {
        Find::new(Arc::clone(&self.handle), Arc::clone(&self.name))
    }
}

impl Collection {
    /// Inserts a document and returns its generated id. Cost: some microseconds, and a sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// #[derive(serde::Serialize)]
    /// struct Book<'b> {
    ///     title: &'b str,
    /// }
    /// let (first, second) = (books.insert(&Book { title: "Reef" })?, books.insert(&Book { title: "Ice" })?);
    /// assert!(first < second);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Request`]: it is not a valid document: it is nested more than 100 levels, exceeds
    ///   16 MiB, or has NaN, a key that is not a text, or a number beyond 64 bits.
    /// - [`Error::Exists`]: another document has the same value at a unique path
    ///   ([`Collection::index_unique`]).
    /// - [`Error::NotFound`]: the collection was dropped.
    /// - [`Error::Full`], [`Error::ReadOnly`], [`Error::Busy`] or [`Error::Closed`]: it cannot be written.
    pub fn insert<T: Serialize + ?Sized>(&self, document: &T) -> Result<i64> {
        self.insert_made_in(&mut self.rows(), to_text(document)?)
    }

    /// Inserts a document given as JSON text and returns its generated id. Cost: that of [`Collection::insert`], and
    /// parsing.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert_json(r#"{"title": "Reef", "year": 1999}"#)?;
    /// assert_eq!(books.get_json(id)?.as_deref(), Some(r#"{"title":"Reef","year":1999}"#));
    /// assert!(matches!(books.insert_json("{title}"), Err(remora::Error::Request(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert`], and of [`parse_document`](crate::parse_document).
    pub fn insert_json(&self, text: &str) -> Result<i64> {
        self.insert_made_in(&mut self.rows(), json::text(&json::parse_document(text)?)?)
    }

    /// Inserts documents in one durable step: all of them or none. Returns their ids in order. Cost: some microseconds
    /// for each, and one sync.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let ids = books.insert_many(["Reef", "Ice"].map(|title| serde_json::json!({"title": title})))?;
    /// assert_eq!(books.get(ids[1])?, Some(serde_json::json!({"title": "Ice"})));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::insert`]; [`Error::Request`] for more than a million documents.
    pub fn insert_many<T: Serialize>(
        &self,
        documents: impl IntoIterator<Item = T>,
    ) -> Result<Vec<i64>> {
        self.insert_many_in(&mut self.rows(), documents)
    }

    /// Reserves consecutive ids that nobody else gets, and returns the first. For programs that
    /// write documents through an engine of their own ([`crate::Database::over`]). Cost: less than a microsecond; a
    /// sync once in many calls.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let first = books.reserve_ids(3)?; // And the two numbers behind it.
    /// books.insert_as(first + 2, &serde_json::json!({"title": "Reef"}))?;
    /// assert!(books.insert(&serde_json::json!({}))? > first + 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if no ids are left; [`Error::Full`], [`Error::ReadOnly`], [`Error::Busy`]
    /// or [`Error::Closed`] if it cannot be written.
    pub fn reserve_ids(&self, count: usize) -> Result<i64> {
        self.handle.ids.take(&self.handle.engine, &self.name, count)
    }
}

fn schema<K: DocumentId>(name: &str) -> Schema {
    let column = |id, name: &str, kind, indexed| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed,
        declared: None,
    };
    let columns = vec![column(1, ID, K::kind(), true), column(2, DOC, ColumnType::Json, false)];
    Schema::over(name, columns, vec![0])
}

/// Whether a table has the columns and the key of a collection. Besides, SQL may have declared keys, whose expressions
/// are in hidden columns, and conditions.
fn is_collection<K: DocumentId>(found: &Schema) -> bool {
    let wanted = schema::<K>(&found.name);
    let given = found.given_columns();
    let mut columns = found.columns.iter().take(given).zip(&wanted.columns);
    let is_same = |(found, wanted): (&ColumnDef, &ColumnDef)| {
        let types = found.kind == wanted.kind && found.nullable == wanted.nullable;
        types && found.name == wanted.name && found.indexed == wanted.indexed
    };
    given == wanted.columns.len()
        && columns.all(is_same)
        && found.primary_key == wanted.primary_key
        && found.texts.is_empty()
        && found.words.is_none()
        && found.required.is_none()
        && found.documents().is_none()
        && !found.is_distributed()
}

/// The row of a document.
pub(crate) fn row(id: Value, text: String) -> Vec<Value> {
    vec![id, Value::Json(text.into())]
}

/// Visits the documents that a scan of both columns returns. The first error of `visit` ends it.
fn each_document<K: DocumentId>(
    reader: &Reader,
    request: ScanRequest,
    visit: &mut dyn FnMut(Document<K>) -> Result<()>,
) -> Result<()> {
    for batch in reader.scan(request)? {
        reader.ending().check()?;
        let batch = batch?;
        for place in 0..batch.rows {
            let values: Vec<Value> =
                batch.columns.iter().map(|column| column.value(place)).collect();
            visit(read(&values)?)?;
        }
    }
    Ok(())
}

/// The document of a row.
fn read<K: DocumentId>(row: &[Value]) -> Result<Document<K>> {
    // Keys of SQL have hidden columns behind these.
    let [id, Value::Json(text), ..] = row else { return Err(other_row()) };
    let id = K::of(id).ok_or_else(other_row)?;
    let doc = parse(id.given(), text)?;
    Ok(Document { id, doc })
}

/// The text of a document's row.
pub(crate) fn text_of(row: &[Value]) -> Result<&str> {
    match row {
        [_, Value::Json(text), ..] => Ok(text),
        _ => Err(other_row()),
    }
}

fn other_row() -> Error {
    Error::request("the collection was replaced by a table that SQL defined: use SQL for it")
}

/// The stored document with this id, deserialized.
pub(crate) fn parse_as<T: DeserializeOwned>(id: impl std::fmt::Debug, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| match parse(&id, text) {
        Ok(_) => Error::request(format!("document {id:?}: {error}")),
        Err(damaged) => damaged,
    })
}

/// The stored document with this id.
pub(crate) fn parse(id: impl std::fmt::Debug, text: &str) -> Result<Json> {
    serde_json::from_str(text)
        .map_err(|error| Error::Corrupt(format!("document {id:?} is no JSON: {error}").into()))
}
