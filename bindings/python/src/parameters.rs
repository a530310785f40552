//! The values of a statement: a sequence for its `?`, or a mapping for `:name` and `%(name)s`.

use std::borrow::Cow;

use pyo3::{
    prelude::*,
    types::{PyByteArray, PyBytes, PyDict, PyList, PyMapping, PyString, PyTuple},
};
use remora::Value;

use crate::{
    errors::programming,
    from_python::{Lists, value},
};

/// A statement whose parameters have places.
pub(crate) struct Statement<'t> {
    /// The text with `?` alone.
    pub text: Cow<'t, str>,
    /// The name of each place, if they have names.
    names: Option<Vec<&'t str>>,
}

impl<'t> Statement<'t> {
    /// The statement of a text, whose parameters these are the first of.
    pub fn new(text: &'t str, parameters: Option<&Bound<'_, PyAny>>) -> Self {
        if !parameters.is_some_and(is_mapping) {
            return Self { text: Cow::Borrowed(text), names: None };
        }
        let (text, names) = places(text);
        Self { text: Cow::Owned(text), names: Some(names) }
    }

    /// A value for each place.
    ///
    /// # Errors
    /// `ProgrammingError` if they are neither a sequence nor a mapping, or a name has no value; those of the values.
    pub fn values(&self, parameters: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Value>> {
        let Some(parameters) = parameters.filter(|it| !it.is_none()) else { return Ok(Vec::new()) };
        if let Some(names) = &self.names {
            let named = |name: &&str| {
                let given = parameters.get_item(name);
                let given =
                    given.map_err(|_| programming(format!("parameter {name:?} has no value")))?;
                value(&given, Lists::Vectors)
            };
            return names.iter().map(named).collect();
        }
        if let Ok(tuple) = parameters.cast::<PyTuple>() {
            return tuple.iter().map(|it| value(&it, Lists::Vectors)).collect();
        }
        if let Ok(list) = parameters.cast::<PyList>() {
            return list.iter().map(|it| value(&it, Lists::Vectors)).collect();
        }
        let is_text = parameters.is_instance_of::<PyString>()
            || parameters.is_instance_of::<PyBytes>()
            || parameters.is_instance_of::<PyByteArray>();
        if is_text || is_mapping(parameters) || parameters.len().is_err() {
            return Err(programming(
                "the parameters are a sequence, as (value,) is, or, for all executions, a mapping of names",
            ));
        }
        parameters.try_iter()?.map(|it| value(&it?, Lists::Vectors)).collect()
    }
}

fn is_mapping(parameters: &Bound<'_, PyAny>) -> bool {
    parameters.is_instance_of::<PyDict>()
        || (!parameters.is_instance_of::<PyTuple>() && parameters.cast::<PyMapping>().is_ok())
}

/// Puts `?` where a text has `:name` or `%(name)s`, outside of quotes and comments; the names in their order.
fn places(text: &str) -> (String, Vec<&str>) {
    let (mut made, mut names) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((name, length)) = named(rest) {
            made.push('?');
            names.push(name);
            rest = rest.get(length..).unwrap_or("");
            continue;
        }
        let length = passed_over(rest);
        let (passed, behind) = rest.split_at(length);
        made.push_str(passed);
        rest = behind;
    }
    (made, names)
}

/// The name of a parameter that a text begins with, and how many bytes that takes.
fn named(text: &str) -> Option<(&str, usize)> {
    if let Some(inner) = text.strip_prefix("%(") {
        let (name, _) = inner.split_once(")s")?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte != b'(' && byte != b'\n');
        return is_name.then_some((name, name.len() + 4));
    }
    let inner = text.strip_prefix(':')?;
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let length = inner.bytes().take_while(|byte| is_of_name(*byte)).count();
    let name = inner.get(..length)?;
    let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    begins.then_some((name, length + 1))
}

/// How many bytes at the beginning of a text are no parameter: a quoted text, a comment, a word or one sign.
fn passed_over(text: &str) -> usize {
    let bytes = text.as_bytes();
    let until = |end: &str, from: usize| {
        let found = text.get(from..).and_then(|behind| behind.find(end));
        found.map_or(text.len(), |found| from + found + end.len())
    };
    match bytes {
        [quote @ (b'\'' | b'"' | b'`'), ..] => quoted(bytes, *quote),
        [b'/', b'*', ..] => until("*/", 2),
        [b'-', b'-', b' ' | b'\t' | b'\n', ..] | [b'#', ..] => until("\n", 1),
        // `a:b` and `::` are none of ours.
        [b':', b':' | b'=', ..] => 2,
        [first, ..] if first.is_ascii_alphanumeric() || *first == b'_' => {
            let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            bytes.iter().position(|byte| !is_of_word(byte)).unwrap_or(bytes.len())
        }
        _ => text.chars().next().map_or(1, char::len_utf8),
    }
}

/// The length of a quoted text, with its quotes. A quote is doubled in it, or, but in names, stands behind a backslash.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut place = 1;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'\\' if quote != b'`' => place += 2,
            _ if *byte != quote => place += 1,
            _ if bytes.get(place + 1) == Some(&quote) => place += 2,
            _ => return place + 1,
        }
    }
    bytes.len()
}
