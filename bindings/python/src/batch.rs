//! Batches: changes of several tables and collections in one durable step.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;
use remora::Version;

use crate::{
    collection::{Collection, required},
    errors::{programming, raised},
    from_python::key,
    json::from_python,
    opened::Slot,
    process::OfProcess,
    stored::{Stored, with, with_id},
    table::{Table, documents_of},
};

/// Changes of several tables and collections that are done together, or not at all.
#[pyclass(frozen, module = "remora")]
pub(crate) struct Batch {
    slot: Arc<Slot>,
    state: Mutex<State>,
}

/// What a batch has so far.
struct State {
    /// Nothing once it was committed, or a change was refused.
    batch: OfProcess<remora::Batch>,
    is_committed: bool,
}

impl State {
    /// The error of a batch that has ended.
    fn ended(&self) -> PyErr {
        programming(match self.is_committed {
            true => "the batch was committed: begin another one",
            false => {
                "a change of the batch was refused, so nothing of it is done: begin another one"
            }
        })
    }
}

impl Batch {
    pub fn new(slot: Arc<Slot>) -> PyResult<Self> {
        let batch = slot.opened()?.database()?.batch();
        let state = State { batch: OfProcess::new(batch), is_committed: false };
        Ok(Self { slot, state: Mutex::new(state) })
    }

    /// Adds changes by `work`, without the interpreter. An error ends the batch: some of the changes may be in it.
    fn add_by<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut remora::Batch) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        self.slot.opened()?;
        py.detach(|| {
            let mut state = self.state.lock();
            let Some(batch) = state.batch.get_mut()? else { return Err(state.ended()) };
            let done = work(batch);
            if done.is_err() {
                state.batch.take()?;
            }
            done.map_err(raised)
        })
    }

    /// Adds changes of a collection.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        work: impl FnOnce(&mut remora::Batch, &Stored) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        let stored = collection.get().stored(py)?;
        self.add_by(py, |batch| work(batch, &stored))
    }
}

#[pymethods]
impl Batch {
    /// Inserts rows, a dict or several. None of their keys may be there.
    fn add(
        &self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let rows = documents_of(rows)?;
        let table = table.get().stored(py)?;
        self.add_by(py, |batch| rows.iter().try_for_each(|row| batch.insert(&table, row)))
    }

    /// Writes rows, a dict or several, whether their keys are there or not.
    fn upsert(
        &self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let rows = documents_of(rows)?;
        let table = table.get().stored(py)?;
        self.add_by(py, |batch| rows.iter().try_for_each(|row| batch.upsert(&table, row)))
    }

    /// Deletes the row with this key, if there is one.
    fn delete(
        &self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let key = self::key(key)?;
        let table = table.get().stored(py)?;
        self.add_by(py, |batch| batch.delete(&table, key))
    }

    /// Inserts a document; gives the id that it will have.
    fn insert_document(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<i64> {
        let document = from_python(document)?;
        let collection = collection.get().numbered(py)?;
        self.add_by(py, |batch| batch.insert_document(&collection, &document))
    }

    /// Inserts a document under an id of the caller's, which must not be there.
    fn insert_document_as(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        id: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, document) = (collection.get().id(id)?, from_python(document)?);
        self.change(py, collection, |batch, stored| {
            with_id!(stored, &id, (it, id) => batch.insert_document_as(it, id, &document))
        })
    }

    /// Writes a document whether there is one with the id or not.
    fn upsert_document(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        id: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, document) = (collection.get().id(id)?, from_python(document)?);
        self.change(py, collection, |batch, stored| {
            with_id!(stored, &id, (it, id) => batch.upsert_document(it, id, &document))
        })
    }

    /// Replaces a document that is there at the commit.
    fn replace_document(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        id: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, document) = (collection.get().id(id)?, from_python(document)?);
        self.change(py, collection, |batch, stored| {
            with_id!(stored, &id, (it, id) => batch.replace_document(it, id, &document))
        })
    }

    /// Replaces a document that has this version at the commit; gives the version that it will have.
    fn replace_document_if(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        id: &Bound<'_, PyAny>,
        version: u64,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (id, document) = (collection.get().id(id)?, from_python(document)?);
        let version = Version(version);
        let new = self.change(py, collection, |batch, stored| {
            with_id!(stored, &id, (it, id) => batch.replace_document_if(it, id, version, &document))
        })?;
        Ok(new.0)
    }

    /// Applies a JSON Patch (RFC 6902) to a document that is there at the commit.
    fn patch_document(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        id: &Bound<'_, PyAny>,
        patch: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, patch) = (collection.get().id(id)?, from_python(patch)?);
        self.change(
            py,
            collection,
            |batch, stored| with_id!(stored, &id, (it, id) => batch.patch_document(it, id, &patch)),
        )
    }

    /// Applies a JSON Merge Patch (RFC 7396) to a document that is there at the commit.
    fn merge_patch_document(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        id: &Bound<'_, PyAny>,
        patch: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, patch) = (collection.get().id(id)?, from_python(patch)?);
        self.change(py, collection, |batch, stored| {
            with_id!(stored, &id, (it, id) => batch.merge_patch_document(it, id, &patch))
        })
    }

    /// Deletes a document, if it is there.
    fn delete_document(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        id: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let id = collection.get().id(id)?;
        self.change(
            py,
            collection,
            |batch, stored| with_id!(stored, &id, (it, id) => batch.delete_document(it, id)),
        )
    }

    /// Deletes the documents that satisfy a filter at the commit.
    fn delete_found_documents(
        &self,
        py: Python<'_>,
        collection: &Bound<'_, Collection>,
        filter: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let filter = required(filter)?;
        self.change(
            py,
            collection,
            |batch, stored| with!(stored, it => batch.delete_found_documents(it, filter)),
        )
    }

    /// Does all changes, or none if one of them cannot be done.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.slot.opened()?;
        py.detach(|| {
            let mut state = self.state.lock();
            let Some(batch) = state.batch.take()? else { return Err(state.ended()) };
            batch.commit().map_err(raised)?;
            state.is_committed = true;
            Ok(())
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Commits, unless an exception leaves the block: then nothing is done.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !kind.is_none() {
            py.detach(|| self.state.lock().batch.take().map(drop))
        } else if py.detach(|| self.state.lock().is_committed) {
            Ok(())
        } else {
            self.commit(py)
        }
    }
}
