//! A collection as of one moment.

use std::{
    marker::PhantomData,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use remora_engine::{
    Deadline, Ending, Error as EngineError, Interrupt, InterruptCheck, KeyValues, Reader,
    ScanRequest, Value,
};
use serde_json::Value as Json;

use super::{
    BATCH_ROWS, DOC_PLACE, Document, DocumentId, PathIndex, indexes::paths_of, other_row, parse,
    read, text_of,
};
use crate::Result;

/// A collection as of one moment: several reads see the same state, whatever is written in the
/// meantime. While it exists, the files that it reads are kept on disk.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let votes = db.collection("votes")?;
/// let id = votes.insert_json(r#"{"for": 7}"#)?;
/// let before = votes.now();
/// votes.delete(id)?;
/// assert_eq!((before.len()?, votes.len()?), (1, 0));
/// assert_eq!(votes.find("for = 7").at(&before).ids()?, [id]);
/// let mut texts = Vec::new();
/// before.texts(&[id, 5], &mut |place, text| Ok(texts.push((place, text.to_owned()))))?;
/// assert_eq!(texts, [(0, r#"{"for":7}"#.to_owned())]);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone)]
pub struct Moment<K: DocumentId = i64> {
    reader: Reader,
    collection: Arc<str>,
    ids: PhantomData<K>,
}

impl<K: DocumentId> Moment<K> {
    pub(crate) fn of(reader: Reader, collection: &Arc<str>) -> Self {
        Self { reader, collection: Arc::clone(collection), ids: PhantomData }
    }

    /// The same moment for reads that may take this long together, from now: later they end with
    /// [`crate::Error::Busy`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let db = remora::Database::in_memory()?;
    /// let votes = db.collection("votes")?;
    /// votes.insert_json(r#"{"for": 7}"#)?;
    /// let hurried = votes.now().within(Duration::ZERO);
    /// assert!(matches!(votes.find("for = 7").at(&hurried).ids(), Err(remora::Error::Busy(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        match Deadline::after(limit) {
            Some(deadline) => self.ending_with(Arc::new(deadline)),
            None => self,
        }
    }

    /// The same moment for reads that end with [`crate::Error::Busy`] once this flag is set, by any thread.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    ///
    /// let db = remora::Database::in_memory()?;
    /// let votes = db.collection("votes")?;
    /// votes.insert_json(r#"{"for": 7}"#)?;
    /// let stop = Arc::new(AtomicBool::new(false));
    /// let now = votes.now().until(Arc::clone(&stop));
    /// assert_eq!(votes.find("for = 7").at(&now).ids()?.len(), 1);
    /// stop.store(true, Ordering::Relaxed);
    /// assert!(matches!(votes.delete_where_at(&now, "for = 7"), Err(remora::Error::Busy(_))));
    /// assert_eq!(votes.len()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    #[must_use]
    pub fn until(self, stop: Arc<AtomicBool>) -> Self {
        self.ending_with(stop)
    }

    /// The same moment, which this ends too.
    fn ending_with(self, interrupt: Arc<dyn Interrupt>) -> Self {
        let either = Either { before: self.reader.ending().clone(), interrupt };
        Self { reader: self.reader.with_interrupt(Arc::new(either)), ..self }
    }

    /// What ends its reads.
    pub(super) fn ending(&self) -> &InterruptCheck {
        self.reader.ending()
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(super) fn is_of(&self, collection: &str) -> bool {
        *self.collection == *collection
    }

    /// The document with this id; `None` if there was none. Cost: a read of the row store, and parsing.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let id = books.insert(&serde_json::json!({"stock": 3}))?;
    /// let before = books.now();
    /// books.replace(id, &serde_json::json!({"stock": 2}))?;
    /// assert_eq!(before.get(id)?, Some(serde_json::json!({"stock": 3})));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::get`].
    pub fn get(&self, id: K::Given<'_>) -> Result<Option<Json>> {
        let row = self.reader.get(&self.collection, &[K::sought(id)])?;
        row.map(|row| parse(id, text_of(&row)?)).transpose()
    }

    /// The number of documents. Cost: reads no document.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let before = books.now();
    /// books.insert(&serde_json::json!({"stock": 3}))?;
    /// assert_eq!((before.len()?, books.len()?), (0, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::len`].
    pub fn len(&self) -> Result<u64> {
        Ok(self.reader.row_count(&self.collection)?)
    }

    /// Whether the collection was empty. Cost: reads no document.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// assert!(books.now().is_empty()?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The indexes, as by [`crate::Collection::indexes`]. Cost: a look-up in memory.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let before = books.now();
    /// books.index("year")?;
    /// assert_eq!((before.indexes()?.len(), books.now().indexes()?.len()), (0, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::indexes`].
    pub fn indexes(&self) -> Result<Vec<PathIndex>> {
        paths_of(&self.reader, &self.collection)
    }

    /// At most `limit` ids in their order, after skipping `offset` of them. Cost: reads only ids,
    /// including the skipped ones.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.keyed_collection("books")?;
    /// books.upsert_many(["a", "b", "c"].map(|id| (id, serde_json::json!({}))))?;
    /// assert_eq!(books.now().ids(1, 10)?, ["b", "c"]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::get`].
    pub fn ids(&self, offset: u64, limit: usize) -> Result<Vec<K>> {
        let (mut passed, mut ids) = (0, Vec::new());
        let request = ScanRequest {
            table: self.collection.to_string(),
            columns: vec![0],
            batch_rows: BATCH_ROWS,
            in_key_order: true,
            limit: Some(offset.saturating_add(limit as u64)),
            ..ScanRequest::default()
        };
        for batch in self.reader.scan(request)? {
            self.reader.ending().check()?;
            let batch = batch?;
            for place in 0..batch.rows {
                passed += 1;
                if passed <= offset {
                    continue;
                }
                let id = batch.columns.first().map(|column| column.value(place));
                ids.push(id.and_then(|id| K::of(&id)).ok_or_else(other_row)?);
            }
        }
        Ok(ids)
    }

    /// At most `limit` ids in their order, after the id `after`, as by [`crate::Collection::ids`]. Cost: some 100 ns
    /// for each; reads no document.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.keyed_collection("books")?;
    /// books.upsert_many(["a", "b", "c"].map(|id| (id, 1)))?;
    /// let moment = books.now();
    /// books.delete("b")?;
    /// assert_eq!(moment.ids_after(Some("a"), 10)?, ["b", "c"]);
    /// assert_eq!(moment.page(None, 1)?[0].id, "a");
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::get`].
    pub fn ids_after(&self, after: Option<K::Given<'_>>, limit: usize) -> Result<Vec<K>> {
        let keys = self.keys_after(after, limit)?;
        keys.iter().map(|key| key.first().and_then(K::of).ok_or_else(other_row)).collect()
    }

    /// At most `limit` documents in the order of ids, after the id `after`, as by [`crate::Collection::page`]. Cost: a
    /// read of the row store for each document, and parsing.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.keyed_collection("books")?;
    /// books.upsert_many(["a", "b", "c"].map(|id| (id, serde_json::json!({}))))?;
    /// let moment = books.now();
    /// books.delete("b")?;
    /// assert_eq!(moment.page(Some("a"), 1)?[0].id, "b");
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::get`].
    pub fn page(&self, after: Option<K::Given<'_>>, limit: usize) -> Result<Vec<Document<K>>> {
        let keys = self.keys_after(after, limit)?;
        let mut documents = Vec::with_capacity(keys.len());
        for key in &keys {
            documents.push(read(&self.reader.get(&self.collection, key)?.ok_or_else(other_row)?)?);
        }
        Ok(documents)
    }

    fn keys_after(&self, after: Option<K::Given<'_>>, limit: usize) -> Result<Vec<KeyValues>> {
        let after = after.map(K::sought);
        let after = after.as_ref().map(std::slice::from_ref);
        Ok(self.reader.keys_after(&self.collection, after, limit)?)
    }

    /// Those of the ids that have documents, without duplicates, sorted. Cost: a look-up of each id; reads no document.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.keyed_collection("books")?;
    /// books.insert_as("a", &serde_json::json!({}))?;
    /// let asked = ["z", "a", "a"].map(str::to_owned);
    /// assert_eq!(books.now().known(&asked)?, ["a"]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::get`].
    pub fn known(&self, ids: &[K]) -> Result<Vec<K>> {
        let mut known = Vec::new();
        self.rows(ids, &[0], &mut |place, _| {
            known.extend(ids.get(place).cloned());
            Ok(())
        })?;
        known.sort_unstable();
        known.dedup();
        Ok(known)
    }

    /// Calls `visit` with the text of each document and the position of its id in `ids`, in any
    /// order. Ids without documents are skipped. The first error of `visit` ends it. Cost: a read of the row store for
    /// each document, without parsing.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let ids = books.insert_many([1, 2].map(|n| serde_json::json!({"n": n})))?;
    /// let mut bytes = 0;
    /// books.now().texts(&ids, &mut |_, text| {
    ///     bytes += text.len();
    ///     Ok(())
    /// })?;
    /// assert_eq!(bytes, r#"{"n":1}{"n":2}"#.len());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`crate::Collection::get`], and the error of `visit`.
    pub fn texts(&self, ids: &[K], visit: &mut dyn FnMut(usize, &str) -> Result<()>) -> Result<()> {
        self.rows(ids, &[DOC_PLACE], &mut |place, row| match row {
            [Value::Json(text)] => visit(place, text),
            _ => Err(other_row()),
        })
    }

    fn rows(
        &self,
        ids: &[K],
        columns: &[usize],
        visit: &mut dyn FnMut(usize, &[Value]) -> Result<()>,
    ) -> Result<()> {
        let key = |id: &K| KeyValues::from_iter([K::sought(id.given())]);
        // The engine's error type would lose our error, so it is kept here.
        let mut failed = None;
        for (batch, ids) in ids.chunks(BATCH_ROWS).enumerate() {
            self.reader.ending().check()?;
            let keys: Vec<KeyValues> = ids.iter().map(key).collect();
            self.reader.get_many(&self.collection, &keys, columns, &mut |place, row| {
                if failed.is_none() {
                    failed = visit(batch * BATCH_ROWS + place, row).err();
                }
                Ok(())
            })?;
            if failed.is_some() {
                break;
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Two interrupts as one.
struct Either {
    before: InterruptCheck,
    interrupt: Arc<dyn Interrupt>,
}

impl Interrupt for Either {
    fn ending(&self) -> Option<Ending> {
        let ended = || match self.before.check() {
            Err(EngineError::Ended(ending)) => Some(ending),
            _ => None,
        };
        self.interrupt.ending().or_else(ended)
    }
}
