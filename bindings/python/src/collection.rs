//! Collections of documents.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use pyo3::{
    exceptions::PyKeyError,
    prelude::*,
    types::{PyIterator, PyList, PyString, PyTuple, PyType},
};
use remora::Version;
use serde_json::Value as Json;

use crate::{
    documents::{Documents, pairs},
    errors::{programming, raised},
    filter::{Field, orders, read},
    json::{from_python, to_python},
    opened::Slot,
    session::{SharedSession, has_transaction},
    stored::{DocumentPlace, Id, Kind, Stored, at_moment, in_place_with_id, with},
    text::utf8,
};

/// How many ids or documents are read ahead when they are iterated.
const PAGE: usize = 256;
/// What several changes of a transaction are undone to.
const SAVEPOINT: &str = "remora_documents";

/// A collection of JSON documents: dicts by ids.
#[pyclass(frozen, mapping, module = "remora")]
pub(crate) struct Collection {
    slot: Arc<Slot>,
    session: Arc<SharedSession>,
    name: String,
    /// Whether the ids are texts of the caller's.
    is_keyed: bool,
}

/// The ids or the documents of a collection, in the order of ids. Each page of them is read when it is needed.
#[pyclass(frozen, module = "remora")]
pub(crate) struct DocumentsIterator {
    collection: Py<Collection>,
    items: Items,
    place: Mutex<Place>,
}

/// What an iterator gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    Ids,
    Documents,
    Pairs,
}

/// Where an iterator is.
struct Place {
    last: Option<Id>,
    ahead: VecDeque<(Id, Json)>,
    is_at_end: bool,
}

impl Collection {
    pub fn new(
        py: Python<'_>,
        (slot, session): (&Arc<Slot>, &Arc<SharedSession>),
        name: &str,
        is_keyed: bool,
    ) -> PyResult<Self> {
        let opened = slot.opened()?;
        py.detach(|| {
            let database = opened.database()?;
            let is_there = match is_keyed {
                true => database.find_keyed_collection(name).map(|found| found.is_some()),
                false => database.find_collection(name).map(|found| found.is_some()),
            };
            if is_there.map_err(raised)? {
                return Ok(());
            }
            session.commit_open()?;
            match is_keyed {
                true => database.keyed_collection(name).map(drop).map_err(raised),
                false => database.collection(name).map(drop).map_err(raised),
            }
        })?;
        let (slot, session) = (Arc::clone(slot), Arc::clone(session));
        Ok(Self { slot, session, name: name.to_owned(), is_keyed })
    }

    /// Runs `work` with the collection, without the interpreter, outside of transactions.
    fn lend<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Stored) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        let opened = self.slot.opened()?;
        py.detach(|| work(self.find_stored(opened.database()?)?).map_err(raised))
    }

    /// Runs `work` with the collection's documents, without the interpreter: in the transaction of the connection, if it
    /// has one.
    fn lend_place<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(DocumentPlace<'_>) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        let opened = self.slot.opened()?;
        py.detach(|| {
            let stored = self.find_stored(opened.database()?)?;
            if !self.session.has_transaction() {
                return work(DocumentPlace::Database(stored)).map_err(raised);
            }
            // Another thread may have ended the transaction until the session was free.
            self.session.lend_detached(|connection| match has_transaction(connection) {
                true => work(DocumentPlace::Transaction(stored, connection)),
                false => work(DocumentPlace::Database(stored)),
            })
        })
    }

    /// Runs `work`, which changes the definition, with the collection, without the interpreter: what is open is committed
    /// before.
    fn lend_definition<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Stored) -> remora::Result<T> + Send,
    ) -> PyResult<T> {
        let opened = self.slot.opened()?;
        py.detach(|| {
            let stored = self.find_stored(opened.database()?)?;
            self.session.commit_open()?;
            work(stored).map_err(raised)
        })
    }

    fn find_stored(&self, database: &remora::Database) -> PyResult<Stored> {
        let found = match self.is_keyed {
            true => database.find_keyed_collection(&self.name).map(|it| it.map(Stored::Keyed)),
            false => database.find_collection(&self.name).map(|it| it.map(Stored::Numbered)),
        };
        let gone = || programming(format!("collection {:?} was dropped", self.name));
        found.map_err(raised)?.ok_or_else(gone)
    }

    /// The collection of the library.
    pub fn stored(&self, py: Python<'_>) -> PyResult<Stored> {
        self.lend(py, Ok)
    }

    /// The collection of the library, which must give the ids.
    pub fn numbered(&self, py: Python<'_>) -> PyResult<remora::Collection> {
        self.require_numbered()?;
        self.lend(py, |stored| match stored {
            Stored::Numbered(collection) => Ok(collection),
            Stored::Keyed(_) => Err(remora::Error::Closed),
        })
    }

    /// Refuses a collection that gives no ids.
    fn require_numbered(&self) -> PyResult<()> {
        match self.is_keyed {
            true => Err(programming(
                "the ids of this collection are yours: use insert_as, upsert or c[id] = …",
            )),
            false => Ok(()),
        }
    }

    /// An id of this collection.
    pub fn id(&self, from: &Bound<'_, PyAny>) -> PyResult<Id> {
        Id::read(from, self.is_keyed)
    }

    /// The document with an id that may be of any type.
    fn document(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<Json>> {
        let Some(id) = Id::find(id, self.is_keyed)? else { return Ok(None) };
        self.lend_place(py, |place| in_place_with_id!(place, &id, (it, id) => it.get(id)))
    }

    fn iterate(slf: &Bound<'_, Self>, items: Items) -> DocumentsIterator {
        let place = Place { last: None, ahead: VecDeque::new(), is_at_end: false };
        DocumentsIterator { collection: slf.clone().unbind(), items, place: Mutex::new(place) }
    }

    /// The next ids behind one; their documents are null if only ids are wanted.
    fn next_page(
        &self,
        py: Python<'_>,
        last: Option<&Id>,
        items: Items,
    ) -> PyResult<VecDeque<(Id, Json)>> {
        self.lend_place(
            py,
            |place| at_moment!(place, (_it, moment) => next_page(&moment, last, items)),
        )
    }
}

fn next_page<K: Kind>(
    moment: &remora::Moment<K>,
    last: Option<&Id>,
    items: Items,
) -> remora::Result<VecDeque<(Id, Json)>> {
    let last = last.and_then(K::of_id);
    let last = last.as_ref().map(remora::DocumentId::given);
    if items == Items::Ids {
        let ids = moment.ids_after(last, PAGE)?;
        return Ok(ids.into_iter().map(|id| (id.into_id(), Json::Null)).collect());
    }
    let page = moment.page(last, PAGE)?;
    Ok(page.into_iter().map(|found| (found.id.into_id(), found.doc)).collect())
}

/// What a search asks for.
struct Search {
    filter: Option<remora::Filter>,
    sort: Vec<(String, bool)>,
    limit: usize,
    offset: usize,
    after: Option<String>,
    fields: Option<Vec<remora::Field>>,
    facets: Vec<remora::Field>,
}

/// The result of a search of a collection of either kind.
struct FoundPage {
    total: u64,
    cursor: Option<String>,
    facets: Vec<remora::PathFacet>,
    documents: Vec<(Id, Json)>,
}

impl Search {
    fn run<K: Kind>(
        self,
        collection: &remora::Collection<K>,
        moment: &remora::Moment<K>,
    ) -> remora::Result<FoundPage> {
        let mut search =
            find(collection, self.filter).at(moment).limit(self.limit).offset(self.offset);
        for (path, descending) in &self.sort {
            search = if *descending { search.sort_by_desc(path) } else { search.sort_by(path) };
        }
        if let Some(cursor) = &self.after {
            search = search.after(cursor);
        }
        if let Some(fields) = self.fields {
            search = search.fields(fields);
        }
        let found = self.facets.into_iter().fold(search, remora::Find::facet).run()?;
        let documents = found.documents.into_iter();
        Ok(FoundPage {
            total: found.total,
            cursor: found.cursor,
            facets: found.facets,
            documents: documents.map(|document| (document.id.into_id(), document.doc)).collect(),
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
        self.require_numbered()?;
        self.lend_place(py, |place| match place {
            DocumentPlace::Database(Stored::Numbered(it)) => it.insert(&document),
            DocumentPlace::Transaction(Stored::Numbered(it), connection) => {
                connection.documents(&it)?.insert(&document)
            }
            _ => Err(remora::Error::Closed),
        })
    }

    /// Inserts documents in one step, all or none; gives their ids.
    fn insert_many(&self, py: Python<'_>, documents: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        let documents = PyIterator::from_object(documents)?.map(|it| from_python(&it?));
        let documents = documents.collect::<PyResult<Vec<Json>>>()?;
        self.require_numbered()?;
        self.lend_place(py, |place| match place {
            DocumentPlace::Database(Stored::Numbered(it)) => it.insert_many(documents),
            DocumentPlace::Transaction(Stored::Numbered(it), connection) => {
                connection.documents(&it)?.insert_many(documents)
            }
            _ => Err(remora::Error::Closed),
        })
    }

    /// Inserts a document under an id of the caller's, which must not be there.
    fn insert_as(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, document) = (self.id(id)?, from_python(document)?);
        self.lend_place(
            py,
            |place| in_place_with_id!(place, &id, (it, id) => it.insert_as(id, &document)),
        )
    }

    /// The document with this id; `default` if there is none.
    #[pyo3(signature = (id, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let id = self.id(id)?;
        let found =
            self.lend_place(py, |place| in_place_with_id!(place, &id, (it, id) => it.get(id)))?;
        found.map_or(Ok(default), |document| to_python(py, &document).map(Some))
    }

    /// The document with this id and the version that `replace_if` takes; `None` if there is none.
    fn get_versioned<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, u64)>> {
        let id = self.id(id)?;
        let found = self.lend_place(
            py,
            |place| in_place_with_id!(place, &id, (it, id) => it.get_versioned(id)),
        )?;
        found.map(|(document, version)| Ok((to_python(py, &document)?, version.0))).transpose()
    }

    /// Documents that satisfy a filter, by id unless it is said.
    #[pyo3(signature = (
        filter = None, *, sort = None, limit = None, offset = 0, after = None, fields = None, facets = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named ones of Python's")]
    fn find(
        &self,
        py: Python<'_>,
        filter: Option<&Bound<'_, PyAny>>,
        sort: Option<&Bound<'_, PyAny>>,
        limit: Option<usize>,
        offset: usize,
        after: Option<String>,
        fields: Option<&Bound<'_, PyAny>>,
        facets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Documents> {
        let (filter, sort, limit) = (read(filter)?, orders(sort)?, limit.unwrap_or(usize::MAX));
        let fields = fields.map(one_or_several).transpose()?;
        let facets = facets.map(one_or_several).transpose()?.unwrap_or_default();
        let search = Search { filter, sort, limit, offset, after, fields, facets };
        let found = self
            .lend_place(py, |place| at_moment!(place, (it, moment) => search.run(it, &moment)))?;
        let pairs = pairs(py, &found.documents)?.unbind();
        Ok(Documents { total: found.total, cursor: found.cursor, facets: found.facets, pairs })
    }

    /// How many documents there are, or satisfy a filter, exactly.
    #[pyo3(signature = (filter = None))]
    fn count(&self, py: Python<'_>, filter: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let filter = read(filter)?;
        self.lend_place(
            py,
            |place| at_moment!(place, (it, moment) => find(it, filter).at(&moment).count()),
        )
    }

    /// How a search is answered: the indexes that it uses, and whether they answer alone.
    #[pyo3(signature = (filter = None))]
    fn explain(
        &self,
        py: Python<'_>,
        filter: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<String>, bool)> {
        let filter = read(filter)?;
        let plan = self.lend(py, |stored| with!(&stored, it => find(it, filter).explain()))?;
        Ok((plan.indexes, plan.is_exact))
    }

    /// Up to so many pairs of id and document in the order of ids, behind the id `after`.
    #[pyo3(signature = (after = None, limit = 100))]
    fn page<'py>(
        &self,
        py: Python<'py>,
        after: Option<&Bound<'py, PyAny>>,
        limit: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let after = after.map(|after| self.id(after)).transpose()?;
        let documents = self.lend_place(
            py,
            |place| at_moment!(place, (_it, moment) => page(&moment, after.as_ref(), limit)),
        )?;
        pairs(py, &documents)
    }

    /// Replaces a document that is there.
    fn replace(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, document) = (self.id(id)?, from_python(document)?);
        self.lend_place(
            py,
            |place| in_place_with_id!(place, &id, (it, id) => it.replace(id, &document)),
        )
    }

    /// Replaces a document that is still what it was; gives its version now.
    fn replace_if(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        version: u64,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (id, document) = (self.id(id)?, from_python(document)?);
        self.lend_place(py, |place| {
            in_place_with_id!(place, &id, (it, id) => Ok(it.replace_if(id, Version(version), &document)?.0))
        })
    }

    /// Writes a document whether there is one with the id or not.
    fn upsert(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (id, document) = (self.id(id)?, from_python(document)?);
        self.lend_place(
            py,
            |place| in_place_with_id!(place, &id, (it, id) => it.upsert(id, &document)),
        )
    }

    /// Applies a JSON Patch (RFC 6902); gives the document as it is then.
    fn patch<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
        patch: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (id, patch) = (self.id(id)?, from_python(patch)?);
        let patched = self.lend_place(
            py,
            |place| in_place_with_id!(place, &id, (it, id) => it.patch(id, &patch)),
        )?;
        to_python(py, &patched)
    }

    /// Applies a JSON Merge Patch (RFC 7396); gives the document as it is then.
    fn merge_patch<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
        patch: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (id, patch) = (self.id(id)?, from_python(patch)?);
        let patched = self.lend_place(
            py,
            |place| in_place_with_id!(place, &id, (it, id) => it.merge_patch(id, &patch)),
        )?;
        to_python(py, &patched)
    }

    /// Deletes a document; says whether there was one.
    fn delete(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = self.id(id)?;
        self.lend_place(py, |place| in_place_with_id!(place, &id, (it, id) => it.delete(id)))
    }

    /// Deletes the documents that satisfy a filter; says how many.
    fn delete_where(&self, py: Python<'_>, filter: &Bound<'_, PyAny>) -> PyResult<u64> {
        let filter = required(filter)?;
        self.lend_place(py, |place| match place {
            DocumentPlace::Database(stored) => with!(&stored, it => it.delete_where(filter)),
            DocumentPlace::Transaction(stored, connection) => {
                with!(&stored, it => connection.documents(it)?.delete_found(filter))
            }
        })
    }

    /// Applies a JSON Merge Patch to the documents that satisfy a filter; says to how many.
    fn merge_patch_where(
        &self,
        py: Python<'_>,
        filter: &Bound<'_, PyAny>,
        patch: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (filter, patch) = (required(filter)?, from_python(patch)?);
        self.lend_place(py, |place| match place {
            DocumentPlace::Database(stored) => {
                with!(&stored, it => it.merge_patch_where(filter, &patch))
            }
            DocumentPlace::Transaction(stored, connection) => {
                with!(&stored, it => merge_patch_found(connection, it, filter, &patch))
            }
        })
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
        self.lend_definition(py, |stored| with!(&stored, it => it.index(paths)))
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
        self.lend_definition(py, |stored| with!(&stored, it => it.index_unique(paths)))
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
        self.lend_definition(py, |stored| with!(&stored, it => it.drop_index(paths)))
    }

    /// Indexes what stands in the texts that paths lead to, for `MATCHES`; says whether they were not indexed before.
    #[pyo3(signature = (*paths))]
    fn index_text(&self, py: Python<'_>, paths: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let paths = fields_of(paths, None)?;
        self.lend_definition(py, |stored| with!(&stored, it => it.index_text(paths)))
    }

    /// Drops the index of the texts of paths; says whether there was one.
    #[pyo3(signature = (*paths))]
    fn drop_index_text(&self, py: Python<'_>, paths: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let paths = fields_of(paths, None)?;
        self.lend_definition(py, |stored| with!(&stored, it => it.drop_index_text(paths)))
    }

    /// The indexed paths, and whether searches use each by now.
    fn indexes(&self, py: Python<'_>) -> PyResult<Vec<(String, bool)>> {
        let indexes = self.lend(py, |stored| with!(&stored, it => it.indexes()))?;
        Ok(indexes.iter().map(|index| (index.to_string(), index.is_ready)).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let count =
            self.lend_place(py, |place| at_moment!(place, (_it, moment) => moment.len()))?;
        Ok(usize::try_from(count)?)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.document(py, id)? {
            Some(document) => to_python(py, &document),
            None => Err(PyKeyError::new_err(id.clone().unbind())),
        }
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.upsert(py, id, document)
    }

    fn __delitem__(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let found = Id::find(id, self.is_keyed)?;
        let is_deleted = match &found {
            Some(found) => self.lend_place(
                py,
                |place| in_place_with_id!(place, found, (it, id) => it.delete(id)),
            )?,
            None => false,
        };
        if is_deleted { Ok(()) } else { Err(PyKeyError::new_err(id.clone().unbind())) }
    }

    fn __contains__(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(id) = Id::find(id, self.is_keyed)? else { return Ok(false) };
        self.lend_place(
            py,
            |place| in_place_with_id!(place, &id, (it, id) => Ok(it.get_json(id)?.is_some())),
        )
    }

    fn __iter__(slf: &Bound<'_, Self>) -> DocumentsIterator {
        Self::iterate(slf, Items::Ids)
    }

    /// `Collection[int]` of annotations.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _ids: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    /// The ids in their order, read as they are needed.
    fn keys(slf: &Bound<'_, Self>) -> DocumentsIterator {
        Self::iterate(slf, Items::Ids)
    }

    /// The documents in the order of their ids, read as they are needed.
    fn values(slf: &Bound<'_, Self>) -> DocumentsIterator {
        Self::iterate(slf, Items::Documents)
    }

    /// Pairs of id and document in the order of ids, read as they are needed.
    fn items(slf: &Bound<'_, Self>) -> DocumentsIterator {
        Self::iterate(slf, Items::Pairs)
    }

    fn __repr__(&self) -> String {
        format!("<remora.Collection {:?}>", self.name)
    }
}

#[pymethods]
impl DocumentsIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = self.next(py)?;
        let Some((id, document)) = next else { return Ok(None) };
        Ok(Some(match self.items {
            Items::Ids => id.to_python(py)?,
            Items::Documents => to_python(py, &document)?,
            Items::Pairs => {
                (id.to_python(py)?, to_python(py, &document)?).into_pyobject(py)?.into_any()
            }
        }))
    }
}

impl DocumentsIterator {
    fn next(&self, py: Python<'_>) -> PyResult<Option<(Id, Json)>> {
        let last = {
            // Held for no longer than a look: another thread may want the interpreter meanwhile.
            let mut place = self.place.lock();
            match place.ahead.pop_front() {
                Some(next) => return Ok(Some(next)),
                None if place.is_at_end => return Ok(None),
                None => place.last.clone(),
            }
        };
        let mut page = self.collection.get().next_page(py, last.as_ref(), self.items)?;
        let mut place = self.place.lock();
        place.last = page.back().map(|(id, _)| id.clone()).or(last);
        place.is_at_end = page.len() < PAGE;
        let next = page.pop_front();
        place.ahead = page;
        Ok(next)
    }
}

fn find<K: Kind>(
    collection: &remora::Collection<K>,
    filter: Option<remora::Filter>,
) -> remora::Find<K> {
    match filter {
        Some(filter) => collection.find(filter),
        None => collection.all(),
    }
}

fn page<K: Kind>(
    moment: &remora::Moment<K>,
    after: Option<&Id>,
    limit: usize,
) -> remora::Result<Vec<(Id, Json)>> {
    let after = after.and_then(K::of_id);
    let page = moment.page(after.as_ref().map(remora::DocumentId::given), limit)?;
    Ok(page.into_iter().map(|found| (found.id.into_id(), found.doc)).collect())
}

/// Applies a merge patch to what a filter finds in the transaction: to all, or to none.
fn merge_patch_found<K: Kind>(
    connection: &mut remora::Connection,
    collection: &remora::Collection<K>,
    filter: remora::Filter,
    patch: &Json,
) -> remora::Result<u64> {
    let found = connection.documents(collection)?.find(filter)?;
    connection.execute(&format!("SAVEPOINT {SAVEPOINT}"), [])?;
    let patched = found.iter().try_for_each(|document| {
        connection.documents(collection)?.merge_patch(document.id.given(), patch).map(drop)
    });
    let end = match patched.is_ok() {
        true => "RELEASE SAVEPOINT",
        false => "ROLLBACK TO SAVEPOINT",
    };
    let ended = connection.execute(&format!("{end} {SAVEPOINT}"), []);
    // What was wrong first is told, also where the rest fails because of it.
    patched?;
    ended?;
    Ok(found.len() as u64)
}

/// A filter that must be given.
pub(crate) fn required(from: &Bound<'_, PyAny>) -> PyResult<remora::Filter> {
    read(Some(from))?.ok_or_else(|| programming("a filter must be given"))
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
        return Ok(remora::field(&utf8(text)?));
    }
    let field =
        from.cast::<Field>().map_err(|_| programming("a path is a str, or remora.path(…)"))?;
    Ok(field.get().field())
}
