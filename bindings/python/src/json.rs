//! JSON: Python's values of it and the library's.

use pyo3::{
    IntoPyObject,
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};
use serde_json::{Map, Number, Value as Json};

use crate::errors::{data, programming};

/// Deepest nesting of a document: the library's own limit, which is met here before the stack is.
const MAX_DEPTH: usize = 100;

/// The JSON that a value of Python's is.
///
/// # Errors
/// `ProgrammingError` if it is of a type that JSON has not, `DataError` if a number is none of JSON's or it nests
/// deeper than 100.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Json> {
    read(value, 1)
}

fn read(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Json> {
    if depth > MAX_DEPTH {
        return Err(data(format!("the document nests deeper than {MAX_DEPTH} levels")));
    }
    if value.is_none() {
        return Ok(Json::Null);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Json::Bool(truth.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Json::String(text.to_cow()?.into_owned()));
    }
    if value.is_instance_of::<PyInt>() {
        return whole(value).map(Json::Number);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = Number::from_f64(number.value());
        return number.map(Json::Number).ok_or_else(|| data(format!("JSON has no number {value}")));
    }
    if let Ok(members) = value.cast::<PyDict>() {
        let mut read_members = Map::new();
        for (name, member) in members {
            let name = name.cast::<PyString>().map_err(|_| {
                programming(format!("the keys of a document are texts, which {name} is not"))
            })?;
            read_members.insert(name.to_cow()?.into_owned(), read(&member, depth + 1)?);
        }
        return Ok(Json::Object(read_members));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let elements = value.try_iter()?.map(|element| read(&element?, depth + 1));
        return elements.collect::<PyResult<_>>().map(Json::Array);
    }
    let kind = value.get_type().name()?;
    Err(programming(format!(
        "a document takes no {kind}: JSON has dict, list, str, int, float, bool and None"
    )))
}

fn whole(value: &Bound<'_, PyAny>) -> PyResult<Number> {
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    let number = value.extract::<u64>();
    number.map(Number::from).map_err(|_| data("an integer of a document has more than 64 bits"))
}

/// Python's value of a document.
pub(crate) fn to_python<'py>(py: Python<'py>, document: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match document {
        Json::Null => py.None().into_bound(py),
        Json::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (_, Some(number)) => number.into_pyobject(py)?.into_any(),
            _ => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Array(elements) => {
            let list = PyList::empty(py);
            for element in elements {
                list.append(to_python(py, element)?)?;
            }
            list.into_any()
        }
        Json::Object(members) => {
            let dict = PyDict::new(py);
            for (name, member) in members {
                dict.set_item(name, to_python(py, member)?)?;
            }
            dict.into_any()
        }
    })
}
