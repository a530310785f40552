//! MySQL's JSON: converts its binary form to the exact text that a SELECT returns.

mod binary;
mod difference;
mod text;

use std::{borrow::Cow, sync::Arc};

pub(crate) use difference::Differences;

use super::Malformed;

/// The deepest nesting in MySQL, and one level for the root.
const MAX_DEPTH: usize = 101;

/// A document or a part of it.
#[derive(Clone, Debug, PartialEq)]
enum Json<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'a, str>),
    /// A value of an SQL type: the type's number and its bytes.
    Opaque(u8, &'a [u8]),
    Array(Vec<Json<'a>>),
    /// In the server's key order: by length, then by bytes.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// The text of a binary document.
pub(crate) fn json_text(bytes: &[u8]) -> Result<Arc<str>, Malformed> {
    text::print(&binary::parse(bytes)?)
}

/// Whether it is a valid document except for texts that are not valid Unicode.
pub(crate) fn json_is_no_text(bytes: &[u8]) -> bool {
    binary::is_no_text(bytes)
}

/// The text of a binary document after a partial update's differences.
pub(crate) fn updated_json_text(
    before: &[u8],
    differences: Differences<'_>,
) -> Result<Arc<str>, Malformed> {
    let mut document = binary::parse(before)?;
    differences.apply(&mut document)?;
    text::print(&document)
}
