//! What a statement answered.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::{
    prelude::*,
    types::{PyCapsule, PyList, PyTuple},
};
use remora::{Outcome, Row, Rows, Type};

use crate::{
    arrow,
    errors::raised,
    to_python::{kind_name, value},
};

/// What a statement answered: rows that are fetched one behind the other, or how many it changed.
#[pyclass(frozen, module = "remora._remora")]
pub(crate) struct Answer {
    rows: Option<Rows>,
    outcome: Outcome,
    /// How many rows were fetched.
    fetched: AtomicUsize,
}

impl Answer {
    pub fn new(answer: remora::Answer) -> Self {
        Self { rows: answer.rows, outcome: answer.outcome, fetched: AtomicUsize::new(0) }
    }

    /// The next rows, up to so many.
    fn next(&self, count: usize) -> impl Iterator<Item = &Row> {
        let rows = self.rows.iter().flatten();
        let length = self.rows.as_ref().map_or(0, Rows::len);
        let from = self.fetched.load(Ordering::Relaxed);
        let count = count.min(length - from.min(length));
        self.fetched.store(from + count, Ordering::Relaxed);
        rows.skip(from).take(count)
    }
}

#[pymethods]
impl Answer {
    /// Whether it has rows, or is of a statement without any.
    #[getter]
    fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// How many rows it has, or were changed.
    #[getter]
    fn row_count(&self) -> u64 {
        self.rows.as_ref().map_or(self.outcome.rows_changed, |rows| rows.len() as u64)
    }

    /// How many rows were fetched.
    #[getter]
    fn fetched(&self) -> usize {
        self.fetched.load(Ordering::Relaxed)
    }

    /// The first AUTO_INCREMENT value that was given; 0 if none was.
    #[getter]
    fn last_insert_id(&self) -> u64 {
        self.outcome.last_insert_id
    }

    /// How many warnings there were.
    #[getter]
    fn warnings(&self) -> u16 {
        self.outcome.warnings
    }

    /// The columns as `Cursor.description` has them; `None` without rows.
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(rows) = &self.rows else { return Ok(None) };
        let column = |column: &remora::Column| {
            let (precision, scale) = match column.kind {
                Type::Decimal(precision, scale) => (Some(precision), Some(scale)),
                _ => (None, None),
            };
            let none = || None::<usize>;
            let kind = kind_name(column.kind);
            (column.name.as_str(), kind, none(), none(), precision, scale, true).into_pyobject(py)
        };
        let columns = rows.columns().iter().map(column).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, columns).map(Some)
    }

    /// The next row; `None` behind the last.
    fn fetch_one<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.next(1).next().map(|row| tuple(py, row)).transpose()
    }

    /// The next rows, up to so many; all that are left without a number.
    #[pyo3(signature = (count = None))]
    fn fetch<'py>(&self, py: Python<'py>, count: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for row in self.next(count.unwrap_or(usize::MAX)) {
            list.append(tuple(py, row)?)?;
        }
        Ok(list)
    }

    /// All rows by the Arrow PyCapsule interface, fetched ones too.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets who cannot cast give what there is.
        let _ = requested_schema;
        let empty = Rows::default();
        let rows = self.rows.as_ref().unwrap_or(&empty);
        let batches = py.detach(|| rows.to_arrow()).map_err(raised)?;
        arrow::stream(py, batches)
    }

    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        arrow::to_pyarrow(slf.as_any())
    }

    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        arrow::to_pandas(slf.as_any())
    }

    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        arrow::to_polars(slf.as_any())
    }
}

fn tuple<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyTuple>> {
    let pairs = row.values().iter().zip(row.columns());
    let values =
        pairs.map(|(it, column)| value(py, it, column.kind)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, values)
}
