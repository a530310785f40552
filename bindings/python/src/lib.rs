//! Remora inside a Python program: the module `remora._remora`, over which the package `remora` is written.
//!
//! From the bottom: `errors` (Python's exceptions), `process` (what a forked child must not touch), `json`,
//! `from_python` and `to_python` (values), `parameters` (values by name), `filter`; `arrow` and `answer` (rows);
//! `opened` (databases that are open in this process), `signals` (Ctrl+C), `session`; `table`, `stored` (collections by
//! the type of their ids), `documents` (that were found), `collection`, `batch`, `connection`.
//!
//! The interpreter is let go of (`Python::detach`) before anything of the engine is called, so that other threads run
//! meanwhile, and locks are taken only after that.

mod answer;
mod arrow;
mod batch;
mod collection;
mod connection;
mod documents;
mod errors;
mod filter;
mod from_python;
mod json;
mod opened;
mod parameters;
mod process;
mod session;
mod signals;
mod stored;
mod table;
mod text;
mod to_python;

/// The engine of the package `remora`.
#[pyo3::pymodule]
mod _remora {
    #[pymodule_export]
    use crate::{
        answer::Answer,
        batch::Batch,
        collection::{Collection, DocumentsIterator},
        connection::Connection,
        documents::Documents,
        filter::{Field, Filter, field, path},
        table::{Found, Table},
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::errors::add_numbers(module)
    }
}
