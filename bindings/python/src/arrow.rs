//! Rows by the Arrow PyCapsule interface, from which pyarrow, pandas, polars and others take them without a copy.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyCapsule};
use remora::arrow::{
    datatypes::Schema,
    error::ArrowError,
    ffi_stream::FFI_ArrowArrayStream,
    record_batch::{RecordBatch, RecordBatchIterator, RecordBatchReader},
};

/// The stream of batches, one of which is there at least: for the columns.
///
/// # Errors
/// `MemoryError` if Python has no room for a capsule.
pub(crate) fn stream(py: Python<'_>, batches: Vec<RecordBatch>) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = batches.first().map(RecordBatch::schema);
    let schema = schema.unwrap_or_else(|| Arc::new(Schema::empty()));
    let batches = batches.into_iter().map(Ok::<_, ArrowError>);
    let reader: Box<dyn RecordBatchReader + Send> =
        Box::new(RecordBatchIterator::new(batches, schema));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// The rows as a `pyarrow.Table`.
///
/// # Errors
/// `ImportError` if pyarrow is not installed.
pub(crate) fn to_pyarrow<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rows.py().import("pyarrow")?.call_method1("table", (rows,))
}

/// The rows as a `pandas.DataFrame`.
///
/// # Errors
/// `ImportError` if pandas or pyarrow is not installed.
pub(crate) fn to_pandas<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rows.py().import("pandas")?;
    to_pyarrow(rows)?.call_method0("to_pandas")
}

/// The rows as a `polars.DataFrame`.
///
/// # Errors
/// `ImportError` if polars is not installed.
pub(crate) fn to_polars<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rows.py().import("polars")?.call_method1("DataFrame", (rows,))
}
