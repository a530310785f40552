//! A collection as it was at one moment.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use remora_engine::{Deadline, KeyValues, Reader, ScanRequest, Value};

use super::{BATCH_ROWS, DOC_PLACE, DocumentId, PathIndex, indexes::paths_of, other_row};
use crate::Result;

/// A collection as it was at one moment: several questions have answers that fit together, whatever is written
/// meanwhile. What it reads is kept on the disk as long as it lives.
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
    pub(super) fn of(reader: Reader, collection: &Arc<str>) -> Self {
        Self { reader, collection: Arc::clone(collection), ids: PhantomData }
    }

    /// The same moment for questions that may take this long together, from now: later they end with
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
            Some(deadline) => {
                Self { reader: self.reader.with_interrupt(Arc::new(deadline)), ..self }
            }
            None => self,
        }
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(super) fn is_of(&self, collection: &str) -> bool {
        *self.collection == *collection
    }

    /// How many documents there were. Cost: none is read.
    ///
    /// # Errors
    /// Those of [`crate::Collection::len`].
    pub fn len(&self) -> Result<u64> {
        Ok(self.reader.row_count(&self.collection)?)
    }

    /// Whether there was none.
    ///
    /// # Errors
    /// Those of [`crate::Collection::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The indexes, as [`crate::Collection::indexes`] tells them.
    ///
    /// # Errors
    /// Those of [`crate::Collection::indexes`].
    pub fn indexes(&self) -> Result<Vec<PathIndex>> {
        paths_of(&self.reader, &self.collection)
    }

    /// The ids of up to so many documents in their order, without the first so many. Cost: ids alone are read, those
    /// before too.
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

    /// Those of the ids that are documents', each once, sorted.
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

    /// Visits the texts of documents: each with the place of its id among `ids`, in any order. Ids that are none's
    /// are passed over. The first error of `visit` ends it.
    ///
    /// # Errors
    /// Those of [`crate::Collection::get`], and that of `visit`.
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
        // Ours ends the reading of rows; theirs would lose what it was.
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
