//! JSON: Python's values of it and the library's.

use std::{borrow::Cow, fmt};

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
    read(value, &Place::Document)
}

/// A place within a document.
enum Place<'p> {
    Document,
    Member(&'p Place<'p>, &'p str, usize),
    Element(&'p Place<'p>, usize, usize),
}

impl Place<'_> {
    /// How deep it lies, from 1 on.
    fn depth(&self) -> usize {
        match self {
            Place::Document => 1,
            Place::Member(.., depth) | Place::Element(.., depth) => *depth,
        }
    }

    /// A message about it.
    fn tell(&self, message: &str) -> String {
        match self {
            Place::Document => message.to_owned(),
            place => format!("{place}: {message}"),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Document => Ok(()),
            Place::Member(Place::Document, name, _) => f.write_str(name),
            Place::Member(outer, name, _) => write!(f, "{outer}.{name}"),
            Place::Element(outer, number, _) => write!(f, "{outer}[{number}]"),
        }
    }
}

fn read(value: &Bound<'_, PyAny>, place: &Place<'_>) -> PyResult<Json> {
    let depth = place.depth();
    if depth > MAX_DEPTH {
        return Err(data(
            place.tell(&format!("the document nests deeper than {MAX_DEPTH} levels")),
        ));
    }
    if value.is_none() {
        return Ok(Json::Null);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Json::Bool(truth.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Json::String(text_at(text, place)?));
    }
    if value.is_instance_of::<PyInt>() {
        return whole(value, place).map(Json::Number);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = Number::from_f64(number.value());
        let refused = || data(place.tell(&format!("JSON has no number {value}")));
        return number.map(Json::Number).ok_or_else(refused);
    }
    if let Ok(members) = value.cast::<PyDict>() {
        let mut read_members = Map::new();
        for (name, member) in members {
            let name = name.cast::<PyString>().map_err(|_| {
                let message = format!("the keys of a document are texts, which {name} is not");
                programming(place.tell(&message))
            })?;
            let name = text_at(name, place)?;
            let member = read(&member, &Place::Member(place, &name, depth + 1))?;
            read_members.insert(name, member);
        }
        return Ok(Json::Object(read_members));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let elements = value.try_iter()?.enumerate();
        let elements = elements
            .map(|(number, element)| read(&element?, &Place::Element(place, number, depth + 1)));
        return elements.collect::<PyResult<_>>().map(Json::Array);
    }
    let kind = value.get_type().name()?;
    let message =
        format!("a document takes no {kind}: JSON has dict, list, str, int, float, bool and None");
    Err(programming(place.tell(&message)))
}

fn text_at(text: &Bound<'_, PyString>, place: &Place<'_>) -> PyResult<String> {
    let message = "a text has half of a surrogate pair, which JSON has not";
    text.to_cow().map(Cow::into_owned).map_err(|_| data(place.tell(message)))
}

fn whole(value: &Bound<'_, PyAny>, place: &Place<'_>) -> PyResult<Number> {
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    let refused = |_| data(place.tell("an integer of a document has more than 64 bits"));
    value.extract::<u64>().map(Number::from).map_err(refused)
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
