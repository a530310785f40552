//! Changes of all documents that satisfy a filter.

use remora_engine::{Change, Error as EngineError, Reader};
use serde::Serialize;
use serde_json::Value as Json;

use super::{Collection, DocumentId, Moment, merge_patch, parse, row};
use crate::{
    Filter, IntoFilter, Result,
    filter::{Condition, matches},
    handle::{Keeper, MAX_TRIES, batch},
    json::{to_document, to_text},
    overlaid::check_kept_by_engine,
};

/// The most documents of a step.
const STEP_DOCUMENTS: usize = 10_000;
/// The most bytes of texts of a step. The last documents may exceed it.
const STEP_BYTES: usize = 16 << 20;
/// How many documents are read between two looks at the bytes.
const READ_DOCUMENTS: usize = 16;

/// What is done with each document.
enum Work {
    Delete,
    MergePatch(Json),
}

impl<K: DocumentId> Collection<K> {
    /// Deletes the documents that satisfy a filter: a text as described at [`Filter`], or its typed
    /// form. Returns how many.
    ///
    /// Only documents that satisfy it when the call begins, and still do when they are deleted, are
    /// deleted: none that is written or changed later, whatever other writers do meanwhile. Up to
    /// 10,000 documents are deleted in one durable step: all of them or none (all of a collection of which SQL declared keys). More are deleted in such
    /// steps, in the order of their ids; after an error those of earlier steps are gone. A step with
    /// which another writer interferes is repeated. Cost: that of [`Collection::find`], some
    /// microseconds for each document, a sync for each step; the ids of all are in memory.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let notes = db.collection("notes")?;
    /// notes.insert_many([serde_json::json!({"stars": 1}), serde_json::json!({"stars": 5})])?;
    /// assert_eq!((notes.delete_where("stars < 3")?, notes.len()?), (1, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Request`] if the filter is wrong, [`crate::Error::Conflict`] if other writers changed the
    /// documents of a step a hundred times; those of [`Collection::delete`].
    pub fn delete_where(&self, filter: impl IntoFilter) -> Result<u64> {
        self.change_where(filter.into_filter()?, &Work::Delete)
    }

    /// Applies a JSON Merge Patch (RFC 7396) to the documents that satisfy a filter. Returns to how
    /// many.
    ///
    /// Which documents, and in which steps, is as for [`Collection::delete_where`]; a step also ends when
    /// its texts take 16 MiB. A document whose patched form the filter still finds is patched once.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let notes = db.collection("notes")?;
    /// let id = notes.insert_json(r#"{"stars": 1, "new": true}"#)?;
    /// assert_eq!(notes.merge_patch_where("stars < 3", &serde_json::json!({"new": null}))?, 1);
    /// assert_eq!(notes.get_json(id)?.as_deref(), Some(r#"{"stars":1}"#));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::delete_where`]; [`crate::Error::Request`] for a collection of which SQL declared keys, which
    /// UPDATE with JSON_MERGE_PATCH changes, and if a patched document exceeds the
    /// limits of one, [`crate::Error::Exists`] if it has the value of another at a unique path.
    pub fn merge_patch_where<T: Serialize + ?Sized>(
        &self,
        filter: impl IntoFilter,
        patch: &T,
    ) -> Result<u64> {
        self.change_where(filter.into_filter()?, &Work::MergePatch(to_document(patch)?))
    }

    fn change_where(&self, filter: Filter, work: &Work) -> Result<u64> {
        match (work, self.handle.keeper(&self.name)?) {
            (Work::Delete, Keeper::Sql) => return self.delete_found(filter),
            (Work::MergePatch(_), Keeper::Sql) => drop(self.handle.writable(&self.name)?),
            (_, Keeper::Engine) => {}
        }
        let engine = &self.handle.engine;
        let transaction = engine.begin();
        let moment = Moment::of(transaction.reader().clone(), &self.name);
        let ids: Vec<K> = self.find(filter.clone()).at(&moment).ids()?;
        drop(moment);
        let (mut first, mut rest) = (Some(transaction), ids.as_slice());
        let (mut changed, mut tries) = (0, 0);
        while !rest.is_empty() {
            // At the moment of the search the documents need no test.
            let condition = if first.is_some() { None } else { Some(&filter.0) };
            let transaction = first.take().unwrap_or_else(|| engine.begin());
            check_kept_by_engine(&*transaction.reader().schema(&self.name)?)?;
            let (changes, used) = self.step(transaction.reader(), rest, condition, work)?;
            let count = changes.len() as u64;
            match transaction.commit(batch(&self.name, changes)) {
                Ok(_) => {
                    changed += count;
                    rest = rest.get(used..).unwrap_or_default();
                    tries = 0;
                }
                Err(EngineError::Conflict(_)) if tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(changed)
    }

    /// The changes of the first documents that still satisfy the condition, and of how many ids they
    /// are.
    fn step(
        &self,
        reader: &Reader,
        ids: &[K],
        condition: Option<&Condition>,
        work: &Work,
    ) -> Result<(Vec<Change>, usize)> {
        let ids = ids.get(..STEP_DOCUMENTS).unwrap_or(ids);
        let delete = |id: &K| Change::Delete(vec![K::sought(id.given())]);
        if let (Work::Delete, None) = (work, condition) {
            return Ok((ids.iter().map(delete).collect(), ids.len()));
        }
        let moment = Moment::<K>::of(reader.clone(), &self.name);
        let (mut changes, mut used, mut bytes) = (Vec::new(), 0, 0);
        for some in ids.chunks(READ_DOCUMENTS) {
            moment.texts(some, &mut |place, text| {
                let Some(id) = some.get(place) else { return Ok(()) };
                let mut document = parse(id.given(), text)?;
                if condition.is_some_and(|condition| !matches(condition, &document)) {
                    return Ok(());
                }
                changes.push(match work {
                    Work::Delete => delete(id),
                    Work::MergePatch(patch) => {
                        merge_patch::merge(&mut document, patch.clone());
                        let text = to_text(&document);
                        let text = text.map_err(|error| error.at(format!("document {id}")))?;
                        bytes += text.len();
                        Change::Put(row(K::sought(id.given()), text))
                    }
                });
                Ok(())
            })?;
            used += some.len();
            if bytes >= STEP_BYTES {
                break;
            }
        }
        Ok((changes, used))
    }
}
