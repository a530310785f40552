//! Conditions, as `remora.field("stars") >= 4` writes them.

use pyo3::{exceptions::PyTypeError, prelude::*, pyclass::CompareOp, types::PyString};
use remora::{IntoFilter, Value};

use crate::{
    errors::{programming, raised},
    from_python::{Lists, value},
    text::utf8,
};

/// A condition on a column of a table, or on what a path leads to in documents. `&`, `|` and `~` combine them.
#[pyclass(frozen, module = "remora")]
pub(crate) struct Filter {
    filter: remora::Filter,
}

/// A column, or a path into documents.
#[pyclass(frozen, module = "remora")]
pub(crate) struct Field {
    field: remora::Field,
}

/// The column of this name, or the path whose names stand between points.
#[pyfunction]
pub(crate) fn field(path: &str) -> Field {
    Field { field: remora::field(path) }
}

/// The path of these names, which may have points in them.
#[pyfunction]
#[pyo3(signature = (*names))]
pub(crate) fn path(names: Vec<String>) -> PyResult<Field> {
    if names.is_empty() {
        return Err(programming("a path has a name at least"));
    }
    Ok(Field { field: remora::path(names.iter().map(String::as_str)) })
}

impl Field {
    pub fn field(&self) -> remora::Field {
        self.field.clone()
    }
}

#[pymethods]
impl Field {
    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Filter> {
        let (field, other) = (self.field.clone(), scalar(other)?);
        let filter = match operator {
            CompareOp::Eq if other.is_null() => field.is_null(),
            CompareOp::Ne if other.is_null() => !field.is_null(),
            CompareOp::Eq => field.equals(other),
            CompareOp::Ne => field.differs_from(other),
            CompareOp::Lt => field.less_than(other),
            CompareOp::Le => field.at_most(other),
            CompareOp::Gt => field.greater_than(other),
            CompareOp::Ge => field.at_least(other),
        };
        Ok(Filter { filter })
    }

    /// Between the two, both included.
    fn between(&self, least: &Bound<'_, PyAny>, greatest: &Bound<'_, PyAny>) -> PyResult<Filter> {
        let filter = self.field.clone().between(scalar(least)?, scalar(greatest)?);
        Ok(Filter { filter })
    }

    /// One of these.
    fn is_in(&self, values: &Bound<'_, PyAny>) -> PyResult<Filter> {
        let values = values.try_iter()?.map(|it| scalar(&it?)).collect::<PyResult<Vec<_>>>()?;
        Ok(Filter { filter: self.field.clone().is_in(values) })
    }

    /// It is a text that begins with this one.
    fn begins_with(&self, text: &str) -> Filter {
        Filter { filter: self.field.clone().begins_with(text) }
    }

    /// One and the same element of the array there satisfies a filter, whose paths begin at the element.
    fn has(&self, element: &Bound<'_, PyAny>) -> PyResult<Filter> {
        let element = read(Some(element))?.ok_or_else(|| programming("has() needs a filter"))?;
        Ok(Filter { filter: self.field.clone().has(element) })
    }

    /// One of the texts there has this text in it, whatever the case of its letters.
    fn matches(&self, text: &str) -> Filter {
        Filter { filter: self.field.clone().matches(text) }
    }

    /// It is there.
    fn exists(&self) -> Filter {
        Filter { filter: self.field.clone().exists() }
    }

    /// A column's NULL, a document's null.
    fn is_null(&self) -> Filter {
        Filter { filter: self.field.clone().is_null() }
    }

    fn __repr__(&self) -> String {
        format!("remora.field({:?})", self.field.to_string())
    }
}

#[pymethods]
impl Filter {
    fn __and__(&self, other: &Filter) -> Filter {
        Filter { filter: self.filter.clone() & other.filter.clone() }
    }

    fn __or__(&self, other: &Filter) -> Filter {
        Filter { filter: self.filter.clone() | other.filter.clone() }
    }

    fn __invert__(&self) -> Filter {
        Filter { filter: !self.filter.clone() }
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err("a filter is no truth: combine filters with &, | and ~"))
    }
}

fn scalar(from: &Bound<'_, PyAny>) -> PyResult<Value> {
    value(from, Lists::Json)
}

/// What a call takes as a filter: a text, or a typed one. `None` is no condition.
///
/// # Errors
/// `ProgrammingError` says what is wrong with it.
pub(crate) fn read(from: Option<&Bound<'_, PyAny>>) -> PyResult<Option<remora::Filter>> {
    let Some(from) = from.filter(|it| !it.is_none()) else { return Ok(None) };
    if let Ok(text) = from.cast::<PyString>() {
        return (&*utf8(text)?).into_filter().map(Some).map_err(raised);
    }
    match from.cast::<Filter>() {
        Ok(filter) => Ok(Some(filter.get().filter.clone())),
        Err(_) => Err(programming("a filter is a str, or made of remora.field(…)")),
    }
}

/// The names of an order: one, or a sequence; `-` before a name is greatest first.
///
/// # Errors
/// `ProgrammingError` if they are no texts.
pub(crate) fn orders(from: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, bool)>> {
    let read = |name: &str| match name.strip_prefix('-') {
        Some(name) => (name.to_owned(), true),
        None => (name.to_owned(), false),
    };
    names(from).map(|names| names.iter().map(|name| read(name)).collect())
}

/// Names: one, or a sequence of them; none of `None`.
///
/// # Errors
/// `ProgrammingError` if they are no texts.
pub(crate) fn names(from: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(from) = from.filter(|it| !it.is_none()) else { return Ok(Vec::new()) };
    if let Ok(name) = from.cast::<PyString>() {
        return Ok(vec![utf8(name)?.into_owned()]);
    }
    from.extract().map_err(|_| programming("names are a str, or a list of them"))
}
