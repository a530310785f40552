//! Changes of all documents that satisfy a filter.

use remora_engine::{Change, Error as EngineError, InterruptCheck, Reader};
use serde::Serialize;
use serde_json::Value as Json;

use super::{Collection, DocumentId, Moment, merge_patch, parse, row};
use crate::{
    Filter, IntoFilter, Result,
    filter::{Condition, matches},
    handle::{Keeper, MAX_TRIES, batch},
    json::{to_document, to_text},
    keyed::View,
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
    /// 10,000 documents are deleted in one durable step: all of them or none. More are deleted in such
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
        self.change_where(filter.into_filter()?, &Work::Delete, None)
    }

    /// Deletes the documents that satisfy a filter at a moment and still do when they are deleted, as
    /// [`Collection::delete_where`] does. What ends reads of the moment ([`Moment::within`], [`Moment::until`]) also ends
    /// this, between two steps or in one that is not committed yet. Cost: that of [`Collection::delete_where`].
    ///
    /// ```
    /// # let notes = remora::Database::in_memory()?.collection("notes")?;
    /// notes.insert_many([serde_json::json!({"stars": 1}), serde_json::json!({"stars": 5})])?;
    /// let limited = notes.now().within(std::time::Duration::from_secs(60));
    /// assert_eq!(notes.delete_where_at(&limited, "stars < 3")?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::delete_where`]; [`crate::Error::Busy`] if it was ended: what earlier steps deleted is gone.
    pub fn delete_where_at(&self, moment: &Moment<K>, filter: impl IntoFilter) -> Result<u64> {
        self.change_where(filter.into_filter()?, &Work::Delete, Some(moment))
    }

    /// Applies a JSON Merge Patch (RFC 7396) to the documents that satisfy a filter. Returns to how
    /// many.
    ///
    /// Which documents, and in which steps, is as for [`Collection::delete_where`]; a step also ends when
    /// its texts take 16 MiB. A document whose patched form the filter still finds is patched once. Cost: that of
    /// [`Collection::delete_where`], and a read and a write of each document.
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
    /// Those of [`Collection::delete_where`]; [`crate::Error::Request`] if a patched document exceeds the
    /// limits of one, [`crate::Error::Exists`] if it has the value of another at a unique path; what SQL reports of the keys and
    /// conditions that it declared.
    pub fn merge_patch_where<T: Serialize + ?Sized>(
        &self,
        filter: impl IntoFilter,
        patch: &T,
    ) -> Result<u64> {
        self.change_where(filter.into_filter()?, &Work::MergePatch(to_document(patch)?), None)
    }

    /// Applies a JSON Merge Patch to the documents that satisfy a filter at a moment and still do when they are patched, as
    /// [`Collection::merge_patch_where`] does, and ends as [`Collection::delete_where_at`] does. Cost: that of
    /// [`Collection::merge_patch_where`].
    ///
    /// ```
    /// # let notes = remora::Database::in_memory()?.collection("notes")?;
    /// notes.insert_many([serde_json::json!({"stars": 1}), serde_json::json!({"stars": 5})])?;
    /// let limited = notes.now().within(std::time::Duration::from_secs(60));
    /// let patch = serde_json::json!({"poor": true});
    /// assert_eq!(notes.merge_patch_where_at(&limited, "stars < 3", &patch)?, 1);
    /// assert_eq!(notes.find("poor = true").count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::merge_patch_where`]; [`crate::Error::Busy`] if it was ended: what earlier steps patched stays so.
    pub fn merge_patch_where_at<T: Serialize + ?Sized>(
        &self,
        moment: &Moment<K>,
        filter: impl IntoFilter,
        patch: &T,
    ) -> Result<u64> {
        let work = Work::MergePatch(to_document(patch)?);
        self.change_where(filter.into_filter()?, &work, Some(moment))
    }

    fn change_where(&self, filter: Filter, work: &Work, moment: Option<&Moment<K>>) -> Result<u64> {
        if self.handle.keeper(&self.name)? == Keeper::Sql {
            return self.change_where_by_sql(&filter, work, moment);
        }
        let ending = moment.map_or(InterruptCheck::NEVER, |moment| moment.ending().clone());
        let engine = &self.handle.engine;
        let transaction = engine.begin();
        let own = Moment::of(transaction.reader().clone(), &self.name);
        let ids: Vec<K> = self.find(filter.clone()).at(moment.unwrap_or(&own)).ids()?;
        drop(own);
        let mut first = Some(transaction).filter(|_| moment.is_none());
        let mut rest = ids.as_slice();
        let (mut changed, mut tries) = (0, 0);
        while !rest.is_empty() {
            ending.check()?;
            // At the moment of the search the documents need no test.
            let condition = if first.is_some() { None } else { Some(&filter.0) };
            let transaction = first.take().unwrap_or_else(|| engine.begin());
            check_kept_by_engine(&*transaction.reader().schema(&self.name)?)?;
            let (changes, used) =
                self.step(transaction.reader(), rest, (condition, work), &ending)?;
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

    /// The same for a collection of which SQL keeps what it declared: each step is a transaction of a session.
    fn change_where_by_sql(
        &self,
        filter: &Filter,
        work: &Work,
        moment: Option<&Moment<K>>,
    ) -> Result<u64> {
        let ending = moment.map_or(InterruptCheck::NEVER, |moment| moment.ending().clone());
        let find = self.find(filter.clone());
        let find = if let Some(moment) = moment { find.at(moment) } else { find };
        let ids: Vec<K> = find.ids()?;
        let (mut rest, mut changed) = (ids.as_slice(), 0);
        while !rest.is_empty() {
            let (count, used) = self.handle.transact(Keeper::Sql, &[], &mut |rows| {
                let View { reader, .. } = rows.view(&self.name)?;
                let (changes, used) = self.step(&reader, rest, (Some(&filter.0), work), &ending)?;
                let count = changes.len() as u64;
                if count > 0 {
                    rows.write(&self.name, changes)?;
                }
                Ok((count, used))
            })?;
            changed += count;
            rest = rest.get(used..).unwrap_or_default();
        }
        Ok(changed)
    }

    /// The changes of the first documents that still satisfy the condition, and of how many ids they
    /// are.
    fn step(
        &self,
        reader: &Reader,
        ids: &[K],
        (condition, work): (Option<&Condition>, &Work),
        ending: &InterruptCheck,
    ) -> Result<(Vec<Change>, usize)> {
        let ids = ids.get(..STEP_DOCUMENTS).unwrap_or(ids);
        let delete = |id: &K| Change::Delete(vec![K::sought(id.given())]);
        if let (Work::Delete, None) = (work, condition) {
            return Ok((ids.iter().map(delete).collect(), ids.len()));
        }
        let moment = Moment::<K>::of(reader.clone(), &self.name);
        let (mut changes, mut used, mut bytes) = (Vec::new(), 0, 0);
        for some in ids.chunks(READ_DOCUMENTS) {
            ending.check()?;
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
