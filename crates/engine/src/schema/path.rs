//! Paths into the JSON documents of a column, by which documents are found.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

/// A path that is indexed: each segment has the values that it leads to, in their order. A segment that was made
/// before gets them from a merge in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathDef {
    /// The position in `columns` of a column of JSON.
    pub column: usize,
    /// The names from the outside in; none is the document itself. Where there is an array, a name that is the number
    /// of one of its elements leads to that element, and any other name to what it leads to in each element that is no
    /// array.
    pub names: Vec<String>,
    /// No two rows have the same number, text or truth there, nor the same one within arrays there. Nothing, null,
    /// arrays and objects are not compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// It stays although SQL drops a key that leads along it. Nothing here asks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl PathDef {
    /// A path that is neither unique nor kept.
    pub fn new(column: usize, names: Vec<String>) -> Self {
        Self { column, names, unique: false, kept: false }
    }

    /// Whether both lead to the same.
    pub fn is_along(&self, other: &Self) -> bool {
        self.column == other.column && self.names == other.names
    }
}

/// A scalar of a document. Values of one type have an order: numbers that of their exact values, texts that of their
/// bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathValue {
    /// `null`
    Null,
    /// `false` or `true`
    Bool(bool),
    /// A number.
    Int(i64),
    /// A number.
    Uint(u64),
    /// A number. Infinities are above and below all others; what is no number is equal to nothing.
    Float(f64),
    /// A text.
    Text(String),
}

/// A condition on the values that a path leads to. Where that is an array its elements are values too. It holds if it
/// holds for one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathTest {
    /// There is one, null and empty arrays too.
    Exists,
    /// It is one of these.
    In(Vec<PathValue>),
    /// It is of the type of the bounds and lies within them. Bounds of two types, or none, leave nothing.
    Within(Bound<PathValue>, Bound<PathValue>),
    /// It is a text that begins with this.
    Begins(String),
    /// It is an array within an array.
    Nested,
}
