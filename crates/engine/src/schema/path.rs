//! Indexed paths into the JSON documents of a column.
//!
//! Texts of paths are not stored as a hidden column: that would store them a second time beside the document, rewrite
//! every row at the declaration, and index while writers wait. They are extracted where the document is parsed for path
//! values, go into a text index of the segment, and a merge adds them if a segment lacks them, like values. Each text
//! is a separate text of the document there, so no search crosses two texts and no separator is needed.
//!
//! Values of several paths are not a secondary index over hidden columns, for the same reasons and because a column has
//! one value, while a path through arrays has several. Their combinations are stored in one index of values, in the
//! order of the first path, then of the second: conditions on the first paths and on the next one are a range there
//! (`encode/joint.rs`). Documents with very many combinations are candidates of every answer, and must be read.

use std::ops::Bound;

use remora_index::text::{Normalization, Pattern, Width};
use serde::{Deserialize, Serialize};

/// How the texts that paths lead to are normalised where they are searched.
pub const PATH_TEXTS: Normalization =
    Normalization { nfkc: true, width: Width::Keep, fold_case: true, fold_accents: false };

/// The first of the numbers by which segments know texts of paths; those of text indexes are below, those of words have
/// the highest bit.
pub(crate) const FIRST_PATH_TEXTS: u32 = 1 << 30;

/// A path that is indexed: each segment has the values that it leads to, in their order; or several paths, whose texts
/// are searched. A segment that was made before gets them from a merge in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathDef {
    /// The position in `columns` of a column of JSON.
    pub column: usize,
    /// The names from the outside in; none is the document itself. Where there is an array, a name that is the number
    /// of one of its elements leads to that element, and any other name to what it leads to in each element that is no
    /// array.
    pub names: Vec<String>,
    /// Further paths, which are indexed together with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Vec<String>>,
    /// The texts that the paths lead to are searched, those within an array there too. Of other values the index knows
    /// only which documents have some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub texts: bool,
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
        Self { column, names, further: Vec::new(), texts: false, unique: false, kept: false }
    }

    /// The texts that these paths lead to; `None` of no path.
    pub fn of_texts(column: usize, paths: Vec<Vec<String>>) -> Option<Self> {
        let mut paths = paths.into_iter();
        let first = paths.next()?;
        Some(Self { further: paths.collect(), texts: true, ..Self::new(column, first) })
    }

    /// The values that these paths lead to, together: in the order of the first, then of the second, and so on; `None` of
    /// no path.
    pub fn together(column: usize, paths: Vec<Vec<String>>) -> Option<Self> {
        Some(Self { texts: false, ..Self::of_texts(column, paths)? })
    }

    /// Its paths, each as its names from the outside in.
    pub fn paths(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(self.names.as_slice()).chain(self.further.iter().map(Vec::as_slice))
    }

    /// Whether it is of the values of several paths.
    pub fn is_joint(&self) -> bool {
        !self.further.is_empty() && !self.texts
    }

    /// Whether it is of the values of one path.
    pub fn is_plain(&self) -> bool {
        self.further.is_empty() && !self.texts
    }

    /// Whether both are of the same: of texts the order of the paths does not matter.
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

/// What an index of texts has in the place of all values of a document at a path that are no texts: a code point that
/// is no character, so texts have it by mistake only.
pub(crate) const NO_TEXT: &str = "\u{ffff}";

/// Whether an index of texts tells exactly which of them hold a text. Of one that ends with a single space, and of the
/// code point U+FFFF alone, [`crate::Filter::PathTexts`] finds rows that do not hold it among those that do.
pub fn texts_tell(text: &str) -> bool {
    let tells = |pattern: &Pattern| !pattern.needs_texts() && pattern.text() != NO_TEXT;
    Pattern::new(text, &PATH_TEXTS).is_none_or(|pattern| tells(&pattern))
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
