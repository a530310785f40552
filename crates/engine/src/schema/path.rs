//! Indexed paths into the JSON documents of a column.
//!
//! Texts at paths are not stored as a hidden column: that would store them a second time beside the document, rewrite
//! every row when the path is declared, and index while writers wait. They are extracted when the document is parsed
//! for path values, and go into a text index of the segment; a merge adds them to segments that lack them, like
//! values. Each text is a separate text of the document there, so no search crosses two texts and no separator is
//! needed.
//!
//! Values of several paths are not a secondary index over hidden columns, for the same reasons and because a column
//! has one value, while a path through arrays has several. Their combinations are stored in one index of values,
//! sorted by the first path, then by the second: conditions on the first paths and on the next one are a range there
//! (`encode/joint.rs`). Documents with too many combinations are candidates of every answer, and must be read.

use std::ops::Bound;

use remora_index::text::{Normalization, Pattern, Width};
use serde::{Deserialize, Serialize};

/// How texts at paths are normalised for searches.
pub const PATH_TEXTS: Normalization =
    Normalization { nfkc: true, width: Width::Keep, fold_case: true, fold_accents: false };

/// In segments, numbers from this one on belong to texts at paths. Text indexes have lower numbers; keywords have the
/// highest bit set.
pub(crate) const FIRST_PATH_TEXTS: u32 = 1 << 30;

/// An indexed path: each segment stores its values, sorted. Several paths share an index of their
/// combinations of values, or of their texts for searches. Background merges add the index to older
/// segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathDef {
    /// The place in `columns` of a JSON column.
    pub column: usize,
    /// The member names from the outside in; without names the path is the document itself. At an array, a name that
    /// is the index of an element leads to that element; any other name leads to its values in all elements that are
    /// not arrays.
    pub names: Vec<String>,
    /// Further paths, indexed together with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Vec<String>>,
    /// Whether the texts at the paths are indexed for searches, including those within an array
    /// there. Of other values, the index records only which documents have some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub texts: bool,
    /// Whether no two rows may have the same number, text or boolean there, also as an element of
    /// an array there. Missing values, null, arrays and objects are not compared. Of several paths, no two rows may
    /// have the same combination of values; a row without a value to compare at one of them is not compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// Whether the path stays when SQL drops a key that uses it. The engine ignores this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl PathDef {
    /// A path that is neither unique nor kept.
    pub fn new(column: usize, names: Vec<String>) -> Self {
        Self { column, names, further: Vec::new(), texts: false, unique: false, kept: false }
    }

    /// Indexes the texts at these paths; `None` without paths.
    pub fn of_texts(column: usize, paths: Vec<Vec<String>>) -> Option<Self> {
        let mut paths = paths.into_iter();
        let first = paths.next()?;
        Some(Self { further: paths.collect(), texts: true, ..Self::new(column, first) })
    }

    /// Indexes the combinations of values at these paths, sorted by the first, then by the second, and so on; `None`
    /// without paths.
    pub fn together(column: usize, paths: Vec<Vec<String>>) -> Option<Self> {
        Some(Self { texts: false, ..Self::of_texts(column, paths)? })
    }

    /// The paths, each as its member names.
    pub fn paths(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(self.names.as_slice()).chain(self.further.iter().map(Vec::as_slice))
    }

    /// Whether this is an index of combinations of values of several paths.
    pub fn is_joint(&self) -> bool {
        !self.further.is_empty() && !self.texts
    }

    /// Whether this is an index of the values of a single path.
    pub fn is_plain(&self) -> bool {
        self.further.is_empty() && !self.texts
    }

    /// Whether both describe the same index. For texts, the order of paths does not matter.
    pub fn is_along(&self, other: &Self) -> bool {
        let has_all = |one: &Self, other: &Self| {
            other.paths().all(|path| one.paths().any(|mine| mine == path))
        };
        let is_same = match self.texts {
            true => has_all(self, other) && has_all(other, self),
            false => self.paths().eq(other.paths()),
        };
        self.column == other.column && self.texts == other.texts && is_same
    }
}

/// The term that stands, in an index of texts, for all values of a document at a path that are not
/// texts. It is a code point that is not a character, so only malformed text contains it.
pub(crate) const NO_TEXT: &str = "\u{ffff}";

/// Whether an index of texts decides exactly which of them contain this text. For a text that ends
/// with a single space, and for the code point U+FFFF alone, [`crate::Filter::PathTexts`] also
/// finds rows that do not contain it.
pub fn texts_tell(text: &str) -> bool {
    let tells = |pattern: &Pattern| !pattern.needs_texts() && pattern.text() != NO_TEXT;
    Pattern::new(text, &PATH_TEXTS).is_none_or(|pattern| tells(&pattern))
}

/// A scalar of a document. Values of one type are ordered: numbers by their exact values, texts by their bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathValue {
    /// `null`
    Null,
    /// `false` or `true`
    Bool(bool),
    /// An integer that fits into 64 signed bits.
    Int(i64),
    /// An integer above those that fits into 64 unsigned bits.
    Uint(u64),
    /// Any other number. Infinities sort above and below all others; NaN equals nothing.
    Float(f64),
    /// A text.
    Text(String),
}

/// What an order by paths sees of a document at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathPlace {
    /// There is no value.
    Missing,
    /// The value is a scalar.
    Scalar(PathValue),
    /// The value is an array. All are equal.
    Array,
    /// The value is an object. All are equal.
    Object,
}

/// A condition on the values at a path. At an array its elements are values too. It holds if it holds for one of the
/// values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathTest {
    /// There is a value, even if it is null or an empty array.
    Exists,
    /// The value is one of these.
    In(Vec<PathValue>),
    /// The value has the type of the bounds and is within them. Bounds of two types, or no bounds, match nothing.
    Within(Bound<PathValue>, Bound<PathValue>),
    /// The value is a text that begins with this.
    Begins(String),
    /// The value is neither null nor an array, or it is an array within an array. So an array is only by what it has.
    Filled,
    /// The value is an array within an array.
    Nested,
    /// The value is an array or an object.
    Container,
}
