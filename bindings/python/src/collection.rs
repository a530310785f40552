//! Collections of documents.

use std::sync::Arc;

use pyo3::{
    prelude::*,
    types::{PyIterator, PyList, PyString, PyTuple},
};
use remora::Version;
use serde_json::Value as Json;

use crate::{
    errors::{programming, raised},
    filter::{Field, orders, read},
    json::{from_python, to_python},
    opened::Slot,
};

/// A collection of JSON documents: dicts by ids.
#[pyclass(frozen, module = "remora")]
pub(crate) struct Collection {
    slot: Arc<Slot>,
    name: String,
}

/// Documents that were found: pairs of id and document, and how many there are in all.
#[pyclass(frozen, sequence, module = "remora")]
pub(crate) struct Documents {
    /// How many documents satisfy the filter, exactly, whatever the page.
    #[pyo3(get)]
    total: u64,
    pairs: Py<PyList>,
}

impl Collection {
    pub fn new(py: Python<'_>, slot: Arc<Slot>, name: &str) -> PyResult<Self> {
        let opened = slot.opened()?;
        py.detach(|| opened.database()?.collection(name).map_err(raised))?;
        Ok(Self { slot, name: name.to_owned() })
    }

    /// Runs `work` with the collection, without the interpreter.
    fn lend<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(remora::Collection) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        let opened = self.slot.opened()?;
        py.detach(|| {
            let collection = opened.database()?.find_collection(&self.name).map_err(raised)?;
            let gone = || programming(format!("collection {:?} was dropped", self.name));
            work(collection.ok_or_else(gone)?).map_err(raised)
        })
    }
}

#[pymethods]
impl Collection {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Inserts a document; gives its id.
    fn insert(&self, py: Python<'_>, document: &Bound<'_, PyAny>) -> PyResult<i64> {
        let document = from_python(document)?;
        self.lend(py, |it| it.insert(&document))
    }

    /// Inserts documents in one step, all or none; gives their ids.
    fn insert_many(&self, py: Python<'_>, documents: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        let documents = PyIterator::from_object(documents)?.map(|it| from_python(&it?));
        let documents = documents.collect::<PyResult<Vec<Json>>>()?;
        self.lend(py, |it| it.insert_many(documents))
    }

    /// Inserts a document under an id of the caller's, which must not be there.
    fn insert_as(&self, py: Python<'_>, id: i64, document: &Bound<'_, PyAny>) -> PyResult<()> {
        let document = from_python(document)?;
        self.lend(py, |it| it.insert_as(id, &document))
    }

    /// The document with this id; `None` if there is none.
    fn get<'py>(&self, py: Python<'py>, id: i64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.lend(py, |it| it.get(id))?;
        found.map(|document| to_python(py, &document)).transpose()
    }

    /// The document with this id and the version that `replace_if` takes; `None` if there is none.
    fn get_versioned<'py>(
        &self,
        py: Python<'py>,
        id: i64,
    ) -> PyResult<Option<(Bound<'py, PyAny>, u64)>> {
        let found = self.lend(py, |it| it.get_versioned(id))?;
        found.map(|(document, version)| Ok((to_python(py, &document)?, version.0))).transpose()
    }

    /// Documents that satisfy a filter, by id unless it is said.
    #[pyo3(signature = (filter = None, *, sort = None, limit = None, offset = 0))]
    fn find(
        &self,
        py: Python<'_>,
        filter: Option<&Bound<'_, PyAny>>,
        sort: Option<&Bound<'_, PyAny>>,
        limit: Option<usize>,
        offset: usize,
    ) -> PyResult<Documents> {
        let (filter, sort) = (read(filter)?, orders(sort)?);
        let found = self.lend(py, |it| {
            let find = find(&it, filter).limit(limit.unwrap_or(usize::MAX)).offset(offset);
            let find = sort.iter().fold(find, |find, (path, descending)| match descending {
                true => find.sort_by_desc(path),
                false => find.sort_by(path),
            });
            find.run()
        })?;
        Ok(Documents { total: found.total, pairs: pairs(py, &found.documents)?.unbind() })
    }

    /// How many documents there are, or satisfy a filter, exactly.
    #[pyo3(signature = (filter = None))]
    fn count(&self, py: Python<'_>, filter: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let filter = read(filter)?;
        self.lend(py, |it| find(&it, filter).count())
    }

    /// How a search is answered: the indexes that it uses, and whether they answer alone.
    #[pyo3(signature = (filter = None))]
    fn explain(
        &self,
        py: Python<'_>,
        filter: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<String>, bool)> {
        let filter = read(filter)?;
        let plan = self.lend(py, |it| find(&it, filter).explain())?;
        Ok((plan.indexes, plan.is_exact))
    }

    /// Up to so many pairs of id and document in the order of ids, behind the id `after`.
    #[pyo3(signature = (after = None, limit = 100))]
    fn page<'py>(
        &self,
        py: Python<'py>,
        after: Option<i64>,
        limit: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let documents = self.lend(py, |it| it.page(after, limit))?;
        pairs(py, &documents)
    }

    /// Replaces a document that is there.
    fn replace(&self, py: Python<'_>, id: i64, document: &Bound<'_, PyAny>) -> PyResult<()> {
        let document = from_python(document)?;
        self.lend(py, |it| it.replace(id, &document))
    }

    /// Replaces a document that is still what it was; gives its version now.
    fn replace_if(
        &self,
        py: Python<'_>,
        id: i64,
        version: u64,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let document = from_python(document)?;
        self.lend(py, |it| Ok(it.replace_if(id, Version(version), &document)?.0))
    }

    /// Writes a document whether there is one with the id or not.
    fn upsert(&self, py: Python<'_>, id: i64, document: &Bound<'_, PyAny>) -> PyResult<()> {
        let document = from_python(document)?;
        self.lend(py, |it| it.upsert(id, &document))
    }

    /// Applies a JSON Patch (RFC 6902); gives the document as it is then.
    fn patch<'py>(
        &self,
        py: Python<'py>,
        id: i64,
        patch: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patch = from_python(patch)?;
        to_python(py, &self.lend(py, |it| it.patch(id, &patch))?)
    }

    /// Applies a JSON Merge Patch (RFC 7396); gives the document as it is then.
    fn merge_patch<'py>(
        &self,
        py: Python<'py>,
        id: i64,
        patch: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patch = from_python(patch)?;
        to_python(py, &self.lend(py, |it| it.merge_patch(id, &patch))?)
    }

    /// Deletes a document; says whether there was one.
    fn delete(&self, py: Python<'_>, id: i64) -> PyResult<bool> {
        self.lend(py, |it| it.delete(id))
    }

    /// Indexes what a path leads to, or several together; says whether it was not indexed before.
    #[pyo3(signature = (*paths, path=None))]
    fn index(
        &self,
        py: Python<'_>,
        paths: &Bound<'_, PyTuple>,
        path: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let paths = fields_of(paths, path)?;
        self.lend(py, |it| it.index(paths))
    }

    /// Indexes what a path leads to, or several together, and lets no two documents have the same value there, or the
    /// same values; says whether they were not unique before.
    #[pyo3(signature = (*paths, path=None))]
    fn index_unique(
        &self,
        py: Python<'_>,
        paths: &Bound<'_, PyTuple>,
        path: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let paths = fields_of(paths, path)?;
        self.lend(py, |it| it.index_unique(paths))
    }

    /// Drops the index of a path, or of several together; says whether there was one.
    #[pyo3(signature = (*paths, path=None))]
    fn drop_index(
        &self,
        py: Python<'_>,
        paths: &Bound<'_, PyTuple>,
        path: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let paths = fields_of(paths, path)?;
        self.lend(py, |it| it.drop_index(paths))
    }

    /// Indexes what stands in the texts that paths lead to, for `MATCHES`; says whether they were not indexed before.
    #[pyo3(signature = (*paths))]
    fn index_text(&self, py: Python<'_>, paths: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let paths = fields_of(paths, None)?;
        self.lend(py, |it| it.index_text(paths))
    }

    /// Drops the index of the texts of paths; says whether there was one.
    #[pyo3(signature = (*paths))]
    fn drop_index_text(&self, py: Python<'_>, paths: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let paths = fields_of(paths, None)?;
        self.lend(py, |it| it.drop_index_text(paths))
    }

    /// The indexed paths, and whether searches use each by now.
    fn indexes(&self, py: Python<'_>) -> PyResult<Vec<(String, bool)>> {
        let indexes = self.lend(py, |it| it.indexes())?;
        Ok(indexes.iter().map(|index| (index.to_string(), index.is_ready)).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let count = self.lend(py, |it| it.len())?;
        Ok(usize::try_from(count)?)
    }

    fn __repr__(&self) -> String {
        format!("<remora.Collection {:?}>", self.name)
    }
}

#[pymethods]
impl Documents {
    /// The ids alone.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.pairs.bind(py).iter().map(|pair| pair.get_item(0)).collect()
    }

    /// The documents alone.
    #[getter]
    fn documents<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.pairs.bind(py).iter().map(|pair| pair.get_item(1)).collect()
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.pairs.bind(py).len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        place: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.pairs.bind(py).as_any().get_item(place)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.pairs.bind(py).try_iter()
    }
}

fn find(collection: &remora::Collection, filter: Option<remora::Filter>) -> remora::Find {
    match filter {
        Some(filter) => collection.find(filter),
        None => collection.all(),
    }
}

fn pairs<'py>(py: Python<'py>, documents: &[remora::Document]) -> PyResult<Bound<'py, PyList>> {
    let pairs = documents.iter().map(|found| Ok((found.id, to_python(py, &found.doc)?)));
    PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
}

/// Paths: one after the other, in one list or tuple, or as `path=`.
fn fields_of(
    given: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<remora::Field>> {
    match (given.len(), named) {
        (0, Some(named)) => one_or_several(named),
        (1, None) => one_or_several(&given.get_item(0)?),
        (_, None) => given.iter().map(|path| field_of(&path)).collect(),
        (_, Some(_)) => Err(programming("paths are given one after the other, or as path=")),
    }
}

fn one_or_several(from: &Bound<'_, PyAny>) -> PyResult<Vec<remora::Field>> {
    if from.is_instance_of::<PyList>() || from.is_instance_of::<PyTuple>() {
        return from.try_iter()?.map(|path| field_of(&path?)).collect();
    }
    Ok(vec![field_of(from)?])
}

/// A path: a text with points between its names, or `remora.path(…)`.
fn field_of(from: &Bound<'_, PyAny>) -> PyResult<remora::Field> {
    if let Ok(text) = from.cast::<PyString>() {
        return Ok(remora::field(&text.to_cow()?));
    }
    let field =
        from.cast::<Field>().map_err(|_| programming("a path is a str, or remora.path(…)"))?;
    Ok(field.get().field())
}
