//! Documents that were found in a collection.

use pyo3::{
    prelude::*,
    types::{PyDict, PyIterator, PyList, PyType},
};
use serde_json::Value as Json;

use crate::{json::to_python, stored::Id};

/// Documents that were found: pairs of id and document, and how many there are in all.
#[pyclass(frozen, sequence, module = "remora")]
pub(crate) struct Documents {
    /// How many documents satisfy the filter, exactly, whatever the page.
    #[pyo3(get)]
    pub(crate) total: u64,
    /// What `after` takes for the next page; `None` where the page is empty.
    #[pyo3(get)]
    pub(crate) cursor: Option<String>,
    pub(crate) facets: Vec<remora::PathFacet>,
    pub(crate) pairs: Py<PyList>,
}

#[pymethods]
impl Documents {
    /// The most frequent values at each facet's path, with how many documents have them.
    #[getter]
    fn facets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facets = PyDict::new(py);
        for facet in &self.facets {
            let values =
                facet.values.iter().map(|(value, count)| Ok((to_python(py, value)?, count)));
            let values = PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
            facets.set_item(facet.path.to_string(), values)?;
        }
        Ok(facets)
    }

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

    /// `Documents[int]` of annotations.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _ids: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
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

/// Pairs of id and document.
pub(crate) fn pairs<'py>(
    py: Python<'py>,
    documents: &[(Id, Json)],
) -> PyResult<Bound<'py, PyList>> {
    let pairs = documents.iter().map(|(id, doc)| Ok((id.to_python(py)?, to_python(py, doc)?)));
    PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
}
