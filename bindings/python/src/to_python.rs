//! The database's values become Python's.

use pyo3::{
    prelude::*,
    types::{PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyFloat, PyList, PyString, PyTzInfo},
};
use remora::{DateTime, Type, Value};

use crate::{errors::InternalError, from_python::decimal_type, json};

const DAY_SECONDS: i64 = 86_400;
const SECOND_MICROS: i64 = 1_000_000;

/// The value of a column of this type. A date that the calendar has not, such as that of zeros, is its text.
pub(crate) fn value<'py>(
    py: Python<'py>,
    value: &Value,
    kind: Type,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Int(number) if kind == Type::Bool => {
            PyBool::new(py, *number != 0).to_owned().into_any()
        }
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Uint(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Decimal(number) => decimal_type(py)?.call1((number.as_str(),))?,
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) if kind == Type::Vector => vector(py, bytes)?,
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Date(date) => match PyDate::new(py, date.year.into(), date.month, date.day) {
            Ok(date) => date.into_any(),
            Err(_) => PyString::new(py, &date.to_string()).into_any(),
        },
        Value::Time(micros) => span(py, *micros)?,
        Value::DateTime(moment) => moment_of(py, moment, None)?,
        Value::Timestamp(micros) => match DateTime::from_timestamp(*micros) {
            Some(moment) => {
                let utc = PyTzInfo::utc(py)?.to_owned();
                moment_of(py, &moment, Some(&utc))?
            }
            None => micros.into_pyobject(py)?.into_any(),
        },
        Value::Json(text) => {
            let document = serde_json::from_str(text).map_err(|error| {
                InternalError::new_err(format!("a column of JSON holds none: {error}"))
            })?;
            json::to_python(py, &document)?
        }
    })
}

fn vector<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (floats, _) = bytes.as_chunks::<4>();
    let floats = floats.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes)));
    Ok(PyList::new(py, floats.collect::<Vec<_>>())?.into_any())
}

fn span(py: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    let (seconds, micros) = (micros.div_euclid(SECOND_MICROS), micros.rem_euclid(SECOND_MICROS));
    let (days, seconds) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    // TIME has 34 days at most.
    Ok(PyDelta::new(py, days as i32, seconds as i32, micros as i32, false)?.into_any())
}

fn moment_of<'py>(
    py: Python<'py>,
    moment: &DateTime,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (seconds, micros) = (moment.micros / 1_000_000, moment.micros % 1_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let date = moment.date;
    let made = PyDateTime::new(
        py,
        date.year.into(),
        date.month,
        date.day,
        hour as u8,
        minute as u8,
        second as u8,
        micros as u32,
        zone,
    );
    match made {
        Ok(made) => Ok(made.into_any()),
        Err(_) => Ok(PyString::new(py, &moment.to_string()).into_any()),
    }
}

/// What a column's type is called.
pub(crate) fn kind_name(kind: Type) -> &'static str {
    match kind {
        Type::Null => "null",
        Type::Int => "int",
        Type::Uint => "uint",
        Type::Float => "float",
        Type::Double => "double",
        Type::Decimal(..) => "decimal",
        Type::Bool => "bool",
        Type::Text => "text",
        Type::Bytes => "bytes",
        Type::Date => "date",
        Type::Time => "time",
        Type::DateTime => "datetime",
        Type::Timestamp => "timestamp",
        Type::Json => "json",
        Type::Vector => "vector",
        _ => "other",
    }
}
