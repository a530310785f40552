//! Collections: JSON documents by ids that are generated or given.

mod find;
mod id;
mod indexes;
mod merge_patch;
mod moment;
mod patch;

use std::{marker::PhantomData, sync::Arc};

use remora_engine::{
    Change, ColumnDef, ColumnType, Definition, Error as EngineError, Reader, ScanRequest, Schema,
    Value,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

pub use find::{Find, FoundDocuments};
pub use id::DocumentId;
pub use indexes::{FindPlan, IndexKind, PathIndex};
pub use moment::Moment;

use crate::{
    Error, IntoFilter, Result,
    handle::Handle,
    json::{self, to_document, to_text},
};

/// The columns.
const ID: &str = "id";
const DOC: &str = "doc";
/// The position of the second.
const DOC_PLACE: usize = 1;
/// Rows of a batch of a page.
const BATCH_ROWS: usize = 256;

/// A collection of JSON documents. Cheap to clone, for all threads.
///
/// A document is anything that serialises: a struct, a map, a [`serde_json::Value`]; up to 16 MiB
/// of text, nested up to 100 deep. Its id is a number that grows with time and never comes twice,
/// or one that the caller gives. A write returns when it is durable and visible. SQL sees the collection as a table
/// `(id BIGINT, doc JSON)`. One of [`crate::Database::keyed_collection`] has texts of the caller's as ids.
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

/// A document and its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<K: DocumentId = i64> {
    /// The id.
    pub id: K,
    /// The document.
    pub doc: Json,
}

/// What a document was when it was read: the hash of its text. SQL that writes a document gives its text another
/// form, and so another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub u64);

impl<K: DocumentId> Document<K> {
    /// The document as a struct.
    ///
    /// # Errors
    /// [`Error::Request`] with the id and what does not fit.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.doc)
            .map_err(|error| Error::request(format!("document {}: {error}", self.id)))
    }
}

impl<K: DocumentId> Collection<K> {
    fn of(handle: Arc<Handle>, name: &str) -> Self {
        Self { handle, name: name.into(), ids: PhantomData }
    }

    /// The collection of this name, which is made if there is none.
    pub(crate) fn open(handle: Arc<Handle>, name: &str) -> Result<Self> {
        match handle.engine.schema(name) {
            Ok(schema) if is_collection::<K>(&schema) => {}
            Ok(_) => {
                let message = format!(
                    "table {name:?} is no collection with ids of this type: it has other columns than id and doc, or \
                     SQL defined it"
                );
                return Err(Error::Exists(message.into()));
            }
            Err(EngineError::NotFound { .. }) => handle.engine.create_table(schema::<K>(name))?,
            Err(error) => return Err(error.into()),
        }
        Ok(Self::of(handle, name))
    }

    /// The collection of this name, if there is one.
    pub(crate) fn find_named(handle: &Arc<Handle>, name: &str) -> Result<Option<Self>> {
        match handle.engine.schema(name) {
            Ok(schema) if is_collection::<K>(&schema) => {
                Ok(Some(Self::of(Arc::clone(handle), name)))
            }
            Ok(_) | Err(EngineError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a collection of a name that nothing has.
    pub(crate) fn create(handle: &Arc<Handle>, name: &str) -> Result<Self> {
        let vacant = Definition::Vacant(name.to_owned());
        handle.engine.define(vec![vacant, Definition::Create(schema::<K>(name))], Vec::new())?;
        Ok(Self::of(Arc::clone(handle), name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Inserts a document under an id of the caller's.
    ///
    /// # Errors
    /// Those of [`Collection::insert`], and [`Error::Exists`] if there is a document with the id.
    pub fn insert_as<T: Serialize + ?Sized>(&self, id: K::Given<'_>, document: &T) -> Result<()> {
        let text = to_text(document)?;
        self.write(vec![Change::Insert(row(K::value(id)?, text))])
    }

    /// Writes documents, each whether there is one with its id or not, in one durable step: all of them or none. Of
    /// several with one id the last stands.
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
    /// Those of [`Collection::upsert`]; [`Error::Request`] if there are more than a million.
    pub fn upsert_many<'i, T: Serialize>(
        &self,
        documents: impl IntoIterator<Item = (K::Given<'i>, T)>,
    ) -> Result<()> {
        let put = |(id, document): (K::Given<'i>, T)| {
            Ok(Change::Put(row(K::value(id)?, to_text(&document)?)))
        };
        let changes: Vec<Change> = documents.into_iter().map(put).collect::<Result<_>>()?;
        match changes.is_empty() {
            true => Ok(()),
            false => self.write(changes),
        }
    }

    /// Writes a document whether there is one with the id or not.
    ///
    /// # Errors
    /// Those of [`Collection::insert`].
    pub fn upsert<T: Serialize + ?Sized>(&self, id: K::Given<'_>, document: &T) -> Result<()> {
        let text = to_text(document)?;
        self.write(vec![Change::Put(row(K::value(id)?, text))])
    }

    /// Replaces a document.
    ///
    /// # Errors
    /// Those of [`Collection::insert`], and [`Error::NotFound`] if there is none with the id.
    pub fn replace<T: Serialize + ?Sized>(&self, id: K::Given<'_>, document: &T) -> Result<()> {
        let text = to_text(document)?;
        let key = K::value(id)?;
        self.handle.writable(&self.name)?;
        let put = || Change::Put(row(key.clone(), text.clone()));
        let is_there = self.handle.change_unread(&self.name, std::slice::from_ref(&key), put)?;
        self.found(id, is_there)
    }

    /// Replaces a document that is still what it was; gives the version that it has now.
    ///
    /// # Errors
    /// Those of [`Collection::replace`], and [`Error::Changed`] if it has changed since it was read.
    pub fn replace_if<T: Serialize + ?Sized>(
        &self,
        id: K::Given<'_>,
        version: Version,
        document: &T,
    ) -> Result<Version> {
        let text = to_text(document)?;
        let new = version_of(&text);
        self.change(id, |old| {
            if version_of(old) != version {
                let message =
                    format!("document {id:?} of {:?} has changed since it was read", self.name);
                return Err(Error::Changed(message.into()));
            }
            Ok(text.clone())
        })?;
        Ok(new)
    }

    /// Applies a JSON Merge Patch (RFC 7396); gives the document as it is then.
    ///
    /// # Errors
    /// Those of [`Collection::replace`].
    pub fn merge_patch<T: Serialize + ?Sized>(&self, id: K::Given<'_>, patch: &T) -> Result<Json> {
        let patch = to_document(patch)?;
        self.update(id, |document| {
            merge_patch::merge(document, patch.clone());
            Ok(())
        })
    }

    /// Applies a JSON Patch (RFC 6902), all its operations or none; gives the document as it is then.
    ///
    /// # Errors
    /// Those of [`Collection::replace`]; [`Error::Request`] names the operation that cannot be done,
    /// [`Error::Changed`] the `test` that does not hold.
    pub fn patch<T: Serialize + ?Sized>(&self, id: K::Given<'_>, patch: &T) -> Result<Json> {
        let patch = to_document(patch)?;
        self.update(id, |document| patch::apply(document, &patch))
    }

    /// Changes a document in place; gives it as it is then. Where somebody else is faster, `change`
    /// is called again with what the document is by then.
    ///
    /// # Errors
    /// Those of [`Collection::replace`], that of `change`, and [`Error::Conflict`] if somebody else was
    /// faster a hundred times.
    pub fn update(
        &self,
        id: K::Given<'_>,
        mut change: impl FnMut(&mut Json) -> Result<()>,
    ) -> Result<Json> {
        let mut changed = Json::Null;
        self.change(id, |old| {
            changed = parse(id, old)?;
            change(&mut changed)?;
            to_text(&changed)
        })?;
        Ok(changed)
    }

    /// Gives a document's text another one.
    fn change(
        &self,
        id: K::Given<'_>,
        mut change: impl FnMut(&str) -> Result<String>,
    ) -> Result<()> {
        self.handle.writable(&self.name)?;
        let key = K::value(id)?;
        let changed =
            self.handle.change(&self.name, std::slice::from_ref(&key), |found| match found {
                Some(found) => Ok(Some(Change::Put(row(key.clone(), change(text_of(&found)?)?)))),
                None => Ok(None),
            })?;
        self.found(id, changed)
    }

    /// The error for a document that is not there.
    fn found(&self, id: K::Given<'_>, is_there: bool) -> Result<()> {
        match is_there {
            true => Ok(()),
            false => {
                let message = format!("there is no document {id:?} in {:?}", self.name);
                Err(Error::NotFound(message.into()))
            }
        }
    }

    /// Deletes a document; says whether there was one.
    ///
    /// # Errors
    /// Those of [`Collection::get`], and of [`Collection::insert`] where it cannot be written.
    pub fn delete(&self, id: K::Given<'_>) -> Result<bool> {
        self.handle.writable(&self.name)?;
        self.handle.delete(&self.name, &[K::sought(id)])
    }

    /// The document with this id. Cost: a read of the row store, and parsing.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the collection was dropped, [`Error::Corrupt`], [`Error::Io`] or
    /// [`Error::Closed`] if it cannot be read. That there is no such document is none.
    pub fn get(&self, id: K::Given<'_>) -> Result<Option<Json>> {
        let row = self.handle.engine.get(&self.name, &[K::sought(id)])?;
        row.map(|row| parse(id, text_of(&row)?)).transpose()
    }

    /// The text of the document with this id: compact JSON. Cost: a read of the row store, no parsing.
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
        let row = self.handle.engine.get(&self.name, &[K::sought(id)])?;
        row.map(|row| text_of(&row).map(str::to_owned)).transpose()
    }

    /// The document with this id as a struct.
    ///
    /// # Errors
    /// Those of [`Collection::get`], and [`Error::Request`] if it is none of `T`.
    pub fn get_as<T: DeserializeOwned>(&self, id: K::Given<'_>) -> Result<Option<T>> {
        let Some(doc) = self.get(id)? else { return Ok(None) };
        T::deserialize(doc)
            .map(Some)
            .map_err(|error| Error::request(format!("document {id:?}: {error}")))
    }

    /// The document with this id, and the version that [`Collection::replace_if`] takes.
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn get_versioned(&self, id: K::Given<'_>) -> Result<Option<(Json, Version)>> {
        let Some(row) = self.handle.engine.get(&self.name, &[K::sought(id)])? else {
            return Ok(None);
        };
        let text = text_of(&row)?;
        Ok(Some((parse(id, text)?, version_of(text))))
    }

    /// How many documents there are, exactly. Cost: none is read.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the collection was dropped, [`Error::Closed`] if the database was closed.
    pub fn len(&self) -> Result<u64> {
        Ok(self.handle.engine.reader().row_count(&self.name)?)
    }

    /// Whether there is none.
    ///
    /// # Errors
    /// Those of [`Collection::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Up to so many documents in the order of ids, behind the document `after`: `None` begins, and
    /// the last id of a page is where the next one begins. Ids are given before documents are written: where several
    /// threads insert, one may come to be seen behind a page that has greater ids.
    ///
    /// # Errors
    /// Those of [`Collection::get`].
    pub fn page(&self, after: Option<K::Given<'_>>, limit: usize) -> Result<Vec<Document<K>>> {
        let after = after.map(K::sought);
        let reader = self.handle.engine.reader();
        let after = after.as_ref().map(std::slice::from_ref);
        let keys = reader.keys_after(&self.name, after, limit)?;
        let mut documents = Vec::with_capacity(keys.len());
        for key in &keys {
            documents.push(read(&reader.get(&self.name, key)?.ok_or_else(other_row)?)?);
        }
        Ok(documents)
    }

    /// The collection as it is now, whatever is written later.
    pub fn now(&self) -> Moment<K> {
        Moment::of(self.handle.engine.reader(), &self.name)
    }

    /// Documents that satisfy a filter: a text as [`crate::Filter`] describes, or
    /// [`field`](crate::field)`("stars").at_least(4)`.
    pub fn find(&self, filter: impl IntoFilter) -> Find<K> {
        self.all().filter(filter)
    }

    /// All documents, to be filtered, sorted and counted.
    pub fn all(&self) -> Find<K> {
        Find::new(Arc::clone(&self.handle), Arc::clone(&self.name))
    }

    fn write(&self, changes: Vec<Change>) -> Result<()> {
        self.handle.writable(&self.name)?;
        self.handle.write(&self.name, changes)
    }
}

impl Collection {
    /// Inserts a document; gives its id. Cost: some microseconds, and a sync.
    ///
    /// # Errors
    /// - [`Error::Request`]: it is no JSON document: it nests deeper than 100, takes more than 16
    ///   MiB, or has NaN, a key that is no text or a number beyond 64 bits.
    /// - [`Error::Exists`]: another document has a value that it has at a path that is unique
    ///   ([`Collection::index_unique`]).
    /// - [`Error::NotFound`]: the collection was dropped.
    /// - [`Error::Full`], [`Error::ReadOnly`], [`Error::Busy`] or [`Error::Closed`]: it cannot be written.
    pub fn insert<T: Serialize + ?Sized>(&self, document: &T) -> Result<i64> {
        self.insert_text(to_text(document)?)
    }

    /// Inserts the document that a text is; gives its id.
    ///
    /// # Errors
    /// Those of [`Collection::insert`]; [`Error::Request`] if the text is no JSON or has half of a surrogate pair.
    pub fn insert_json(&self, text: &str) -> Result<i64> {
        self.insert_text(json::text(&json::parse(text)?)?)
    }

    fn insert_text(&self, text: String) -> Result<i64> {
        let id = self.handle.ids.take(&self.handle.engine, &self.name, 1)?;
        self.write(vec![Change::Insert(row(Value::Int(id), text))])?;
        Ok(id)
    }

    /// Inserts documents in one durable step: all of them or none. Gives their ids, in order.
    ///
    /// # Errors
    /// Those of [`Collection::insert`]; [`Error::Request`] if there are more than a million.
    pub fn insert_many<T: Serialize>(
        &self,
        documents: impl IntoIterator<Item = T>,
    ) -> Result<Vec<i64>> {
        let texts: Result<Vec<String>> =
            documents.into_iter().map(|document| to_text(&document)).collect();
        let texts = texts?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let first = self.handle.ids.take(&self.handle.engine, &self.name, texts.len())?;
        let ids: Vec<i64> = (first..).take(texts.len()).collect();
        let rows =
            ids.iter().zip(texts).map(|(id, text)| Change::Insert(row(Value::Int(*id), text)));
        self.write(rows.collect())?;
        Ok(ids)
    }

    /// Ids that nobody else is given, one above the other: the first of so many. For those who write documents through
    /// an engine that they have open ([`crate::Database::over`]).
    ///
    /// # Errors
    /// [`Error::Request`] if there are no more, [`Error::Full`], [`Error::ReadOnly`], [`Error::Busy`] or
    /// [`Error::Closed`] if it cannot be written.
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
    Schema {
        name: name.to_owned(),
        columns: vec![column(1, ID, K::kind(), true), column(2, DOC, ColumnType::Json, false)],
        primary_key: vec![0],
        texts: Vec::new(),
        indexes: Vec::new(),
        required: None,
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    }
}

fn is_collection<K: DocumentId>(found: &Schema) -> bool {
    found.declared.is_none() && found.means(&schema::<K>(&found.name))
}

/// The row that has a document's text.
pub(crate) fn row(id: Value, text: String) -> Vec<Value> {
    vec![id, Value::Json(text.into())]
}

/// Visits the documents that a scan of both columns finds.
fn each_document<K: DocumentId>(
    reader: &Reader,
    request: ScanRequest,
    visit: &mut dyn FnMut(Document<K>),
) -> Result<()> {
    for batch in reader.scan(request)? {
        let batch = batch?;
        for place in 0..batch.rows {
            let values: Vec<Value> =
                batch.columns.iter().map(|column| column.value(place)).collect();
            visit(read(&values)?);
        }
    }
    Ok(())
}

/// The document of a row.
fn read<K: DocumentId>(row: &[Value]) -> Result<Document<K>> {
    let [id, Value::Json(text)] = row else { return Err(other_row()) };
    let id = K::of(id).ok_or_else(other_row)?;
    let doc = parse(id.given(), text)?;
    Ok(Document { id, doc })
}

fn text_of(row: &[Value]) -> Result<&str> {
    match row {
        [_, Value::Json(text)] => Ok(text),
        _ => Err(other_row()),
    }
}

fn other_row() -> Error {
    Error::request("the collection was replaced by a table that SQL defined: use SQL for it")
}

fn parse(id: impl std::fmt::Debug, text: &str) -> Result<Json> {
    serde_json::from_str(text)
        .map_err(|error| Error::Corrupt(format!("document {id:?} is no JSON: {error}").into()))
}

fn version_of(text: &str) -> Version {
    Version(xxh3_64(text.as_bytes()))
}
