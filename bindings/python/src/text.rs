//! Texts of Python, which may have halves of surrogate pairs that no text of the database has.

use std::borrow::Cow;

use pyo3::{prelude::*, types::PyString};

use crate::errors::data;

/// The text in UTF-8.
///
/// # Errors
/// `DataError` if it has half of a surrogate pair.
pub(crate) fn utf8<'t>(text: &'t Bound<'_, PyString>) -> PyResult<Cow<'t, str>> {
    text.to_cow()
        .map_err(|_| data("a text has half of a surrogate pair, which no text of a database has"))
}
