//! Python's values become the database's.

use std::sync::Arc;

use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{
        PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList,
        PyMemoryView, PyString, PyTime, PyTuple, PyType,
    },
};
use remora::{Date, DateTime, Decimal, Value};

use crate::{
    errors::{data, programming},
    json,
    text::utf8,
};

/// Most digits of a decimal, and of an integer that has no other type.
const MAX_DIGITS: u8 = 65;
/// Most digits behind the point.
const MAX_SCALE: u8 = 38;

/// What a list is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// A vector of 32-bit floats.
    Vectors,
    /// A JSON array.
    Json,
}

/// The value of a Python value.
///
/// # Errors
/// `ProgrammingError` if it is of a type that has none, `DataError` if it is beyond every range.
pub(crate) fn value(from: &Bound<'_, PyAny>, lists: Lists) -> PyResult<Value> {
    if from.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = from.cast::<PyString>() {
        return Ok(Value::Text(utf8(text)?.into()));
    }
    // A truth is an integer of Python's.
    if let Ok(truth) = from.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if from.is_instance_of::<PyInt>() {
        return whole(from);
    }
    if let Ok(number) = from.cast::<PyFloat>() {
        return float(number.value());
    }
    if let Ok(bytes) = from.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().into()));
    }
    other(from, lists)
}

fn whole(from: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = from.extract::<i64>() {
        return Ok(Value::Int(number));
    }
    if let Ok(number) = from.extract::<u64>() {
        return Ok(Value::Uint(number));
    }
    let text = from.str()?;
    let number = Decimal::parse(&utf8(&text)?, MAX_DIGITS, 0);
    number
        .map(Value::Decimal)
        .ok_or_else(|| data(format!("an integer has more than {MAX_DIGITS} digits")))
}

fn float(number: f64) -> PyResult<Value> {
    match number.is_finite() {
        true => Ok(Value::Float(number)),
        false => Err(data(format!("{number} is no finite number, which no column holds"))),
    }
}

/// What is rarer, and looked at last.
fn other(from: &Bound<'_, PyAny>, lists: Lists) -> PyResult<Value> {
    let py = from.py();
    if let Some(moment) = time(from)? {
        return Ok(moment);
    }
    if from.is_instance_of::<PyByteArray>() || from.is_instance_of::<PyMemoryView>() {
        let bytes = py.get_type::<PyBytes>().call1((from,))?;
        return Ok(Value::Bytes(bytes.cast::<PyBytes>()?.as_bytes().into()));
    }
    if from.is_instance(decimal_type(py)?)? {
        return decimal(from);
    }
    if from.is_instance_of::<PyDict>() {
        return json_value(from);
    }
    if from.is_instance_of::<PyList>() || from.is_instance_of::<PyTuple>() {
        return match lists {
            Lists::Vectors => vector(from),
            Lists::Json => json_value(from),
        };
    }
    if from.is_instance(json_type(py)?)? {
        return json_value(&from.getattr(intern!(py, "value"))?);
    }
    // Numpy's numbers and arrays, array.array: what they are without them.
    if let Ok(plain) = from.call_method0(intern!(py, "tolist"))
        && !plain.get_type().is(from.get_type())
    {
        return value(&plain, lists);
    }
    let kind = from.get_type().name()?;
    Err(programming(format!("a value of type {kind} has none in a database")))
}

fn json_value(from: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(Value::Json(json::from_python(from)?.to_string().into()))
}

fn decimal(from: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = from.py();
    // Without an exponent.
    let text = from.call_method1(intern!(py, "__format__"), ("f",))?;
    let text = text.cast::<PyString>()?.to_cow()?.into_owned();
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let number = match u8::try_from(scale) {
        Ok(scale) if scale <= MAX_SCALE => Decimal::parse(&text, MAX_DIGITS, scale),
        _ => None,
    };
    number.map(Value::Decimal).ok_or_else(|| {
        data(format!(
            "{text} is no decimal of up to {MAX_DIGITS} digits, {MAX_SCALE} of them after the point"
        ))
    })
}

/// 32-bit floats one behind the other, the least byte first, as SQL's VECTOR has them.
fn vector(from: &Bound<'_, PyAny>) -> PyResult<Value> {
    let mut bytes = Vec::new();
    for element in from.try_iter()? {
        let number: f64 = element?.extract().map_err(|_| {
            programming("a list is a vector, of numbers alone: other lists are remora.Json(…)")
        })?;
        let single = number as f32;
        if !single.is_finite() {
            return Err(data(format!("{number} is no finite 32-bit float, as vectors have them")));
        }
        bytes.extend_from_slice(&single.to_le_bytes());
    }
    Ok(Value::Bytes(bytes.into()))
}

/// Dates, moments and spans of time.
fn time(from: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let py = from.py();
    // A datetime is a date of Python's.
    if from.is_instance_of::<PyDateTime>() {
        refuse_zone(from)?;
        let micros = clock(from)?;
        let date = date(from)?;
        return Ok(Some(Value::DateTime(DateTime { date, micros: micros.unsigned_abs() })));
    }
    if from.is_instance_of::<PyDate>() {
        return date(from).map(|date| Some(Value::Date(date)));
    }
    if from.is_instance_of::<PyTime>() {
        refuse_zone(from)?;
        return clock(from).map(|micros| Some(Value::Time(micros)));
    }
    if from.is_instance_of::<PyDelta>() {
        let part = |name| from.getattr(name)?.extract::<i64>();
        let days = part(intern!(py, "days"))?;
        let seconds = part(intern!(py, "seconds"))?;
        let micros = part(intern!(py, "microseconds"))?;
        return Ok(Some(Value::Time((days * 86_400 + seconds) * 1_000_000 + micros)));
    }
    Ok(None)
}

fn refuse_zone(from: &Bound<'_, PyAny>) -> PyResult<()> {
    if from.getattr(intern!(from.py(), "tzinfo"))?.is_none() {
        return Ok(());
    }
    Err(programming(format!(
        "{from} has a zone, which DATETIME and TIME have not: give the clock of the session's time_zone, without tzinfo"
    )))
}

fn date(from: &Bound<'_, PyAny>) -> PyResult<Date> {
    let py = from.py();
    Ok(Date {
        year: from.getattr(intern!(py, "year"))?.extract()?,
        month: from.getattr(intern!(py, "month"))?.extract()?,
        day: from.getattr(intern!(py, "day"))?.extract()?,
    })
}

/// The time of day in microseconds.
fn clock(from: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = from.py();
    let part = |name| from.getattr(name)?.extract::<i64>();
    let minutes = part(intern!(py, "hour"))? * 60 + part(intern!(py, "minute"))?;
    let seconds = minutes * 60 + part(intern!(py, "second"))?;
    Ok(seconds * 1_000_000 + part(intern!(py, "microsecond"))?)
}

/// `decimal.Decimal`.
pub(crate) fn decimal_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TYPE.import(py, "decimal", "Decimal")
}

/// `remora.Json`.
fn json_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TYPE.import(py, "remora._types", "Json")
}

/// The values of a key: one, or a tuple of one for each of its columns.
///
/// # Errors
/// Those of [`value`].
pub(crate) fn key(from: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    match from.cast::<PyTuple>() {
        Ok(parts) => parts.iter().map(|part| value(&part, Lists::Json)).collect(),
        Err(_) => Ok(vec![value(from, Lists::Json)?]),
    }
}

/// A row of a table: its columns' names and values.
///
/// # Errors
/// Those of [`value`]; `ProgrammingError` if it is no dict of texts.
pub(crate) fn row(from: &Bound<'_, PyAny>, lists: Lists) -> PyResult<Vec<(String, Value)>> {
    let fields = from
        .cast::<PyDict>()
        .map_err(|_| programming("a row is a dict of its columns and values"))?;
    let field = |(name, field): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name = name.cast::<PyString>().map_err(|_| programming("a column's name is a str"))?;
        Ok((utf8(name)?.into_owned(), value(&field, lists)?))
    };
    fields.iter().map(field).collect()
}

/// A value of a row as the library reads it from a struct: JSON.
pub(crate) fn as_json(value: &Value) -> PyResult<serde_json::Value> {
    use serde_json::Value as Json;
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Int(number) => (*number).into(),
        Value::Uint(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Bytes(bytes) => bytes.to_vec().into(),
        Value::Json(text) => serde_json::from_str(text).map_err(|error| data(error.to_string()))?,
        Value::Text(text) => Json::String(str::to_owned(&Arc::clone(text))),
        other => Json::String(other.to_string()),
    })
}
