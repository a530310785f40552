//! Documents: their limits, and the conversion of values to documents.
//!
//! A document is a JSON value with at most 100 levels of nesting, as in MySQL (a scalar has one
//! level), and at most 16 MiB of text. Its numbers are 64-bit integers or finite doubles.

mod serialize;
mod strict;

use serde_json::Value as Json;

use crate::{Error, Result};

pub(crate) use serialize::{to_document, to_json, to_text};

/// The deepest nesting of a document.
pub(crate) const MAX_DEPTH: usize = 100;
/// The most bytes of a document's text.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// Parses the text of a document, as [`crate::Collection::insert_json`] does: nothing of it is dropped and no integer is
/// changed in silence. Other numbers become the nearest double. Cost: that of reading the text once.
///
/// ```
/// let twice = remora::parse_document(r#"{"author": {"name": "Ann", "name": "Bo"}}"#);
/// let message = twice.map_err(|error| error.to_string());
/// assert!(message.is_err_and(|it| it.contains(r#"the name "name" comes twice in an object: keep one, in author"#)));
/// ```
///
/// # Errors
/// [`Error::Request`], with the line and the column, if the text is not JSON, has a name twice in an
/// object, half of a surrogate pair, a number beyond the range of doubles or an integer beyond 64
/// bits that a double would shorten, or nests deeper than 100 levels; and if it takes more than 16
/// MiB.
pub fn parse_document(text: &str) -> Result<Json> {
    if text.len() > MAX_BYTES {
        return Err(too_long().at(format!("a text of {} bytes", text.len())));
    }
    strict::parse(text)
        .map_err(|error| Error::request(format!("the text is no JSON document: {error}")))
}

/// The text of a document that was checked before.
pub(crate) fn text(document: &Json) -> Result<String> {
    let text = document.to_string();
    if text.len() > MAX_BYTES { Err(too_long()) } else { Ok(text) }
}

/// The nesting of a document: 1 for a scalar.
pub(crate) fn depth(document: &Json) -> usize {
    1 + match document {
        Json::Array(values) => values.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The approximate length of a document's text.
pub(crate) fn size(document: &Json) -> usize {
    match document {
        Json::Array(values) => values.iter().map(|value| size(value) + 1).sum::<usize>() + 2,
        Json::Object(members) => {
            members.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>() + 2
        }
        Json::String(text) => text.len() + 2,
        _ => 4,
    }
}

pub(crate) fn too_deep() -> Error {
    Error::request(format!("the document nests deeper than {MAX_DEPTH} levels, which is the limit"))
}

pub(crate) fn too_long() -> Error {
    Error::request(format!(
        "the document takes more than {} MiB, which is the limit",
        MAX_BYTES >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels - 1), "]".repeat(levels - 1))
    }

    #[test]
    fn depth_is_counted_as_mysql_counts_it() {
        assert_eq!(depth(&parse_document(&nested(100)).unwrap()), 100);
        for levels in [101, 127, 128, 129, 100_000] {
            let error = parse_document(&nested(levels)).unwrap_err().to_string();
            assert!(error.contains("deeper than 100"), "{levels}: {error}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in ["", "{", "NaN", "1e999", "\"\\ud800\"", "[1] 2", "{a:1}", "'a'"] {
            let error = parse_document(text).unwrap_err();
            assert!(matches!(error, Error::Request(_)), "{text}");
            assert!(error.to_string().contains("no JSON document"), "{text}: {error}");
        }
        let long = format!("\"{}\"", "x".repeat(MAX_BYTES));
        assert!(parse_document(&long).unwrap_err().to_string().contains("more than 16 MiB"));
    }
}
