//! Conditions on columns: which rows belong to a table, and which rows a request selects.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::PathTest;
use crate::{RowSet, Value};

/// A condition on columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Compares a column with a literal. NULL satisfies only [`Comparison::NotEqual`].
    Compare {
        /// The column's name.
        column: String,
        /// The comparison.
        comparison: Comparison,
        /// The constant.
        literal: Literal,
    },
    /// The value is one of these.
    In(String, Vec<Literal>),
    /// The value is between the two, inclusive.
    Between(String, Literal, Literal),
    /// The sort key of the text in this text order is one of these ([`crate::register_text_key`]).
    KeyIn(String, u32, Vec<Vec<u8>>),
    /// The sort key of the text in this text order is within these bounds.
    KeyWithin(String, u32, Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The text begins with these letters, compared in this text order: the sort key of each letter, together with
    /// the letter after it, equals that of the text. `None` compares bytes.
    Begins(String, Option<u32>, String),
    /// A value at this path in the documents of a column satisfies the test. The path is indexed in all segments
    /// ([`crate::Reader::ready_paths`]).
    Path(String, Vec<String>, PathTest),
    /// Values at the first of these paths in the documents of a column satisfy the tests, one test per path. The
    /// paths are indexed together in all segments. All tests but the last are [`PathTest::In`]. Not exact for
    /// documents with too many combinations of values: [`crate::Reader::has_all_combinations`].
    PathsTogether(String, Vec<Vec<String>>, Vec<PathTest>),
    /// A text at one of these paths in the documents of a column contains this text as a substring, after
    /// normalisation ([`crate::PATH_TEXTS`]). A text that is empty after normalisation matches nothing. The texts of
    /// these paths are indexed together in all segments. Not always exact: [`crate::texts_tell`].
    PathTexts(String, Vec<Vec<String>>, String),
    /// A value at one of these paths in the documents of a column may contain this text, compared
    /// letter by letter, when the value is shown as text. True for every row with such a text, and
    /// for every row with a value there that is not a text, such as a number or an array. Also true
    /// for some other rows. The texts of these paths are indexed together in all segments.
    PathMayHold(String, Vec<Vec<String>>, String),
    /// True for every row that satisfies the condition, and perhaps for others: as far as it can be told from the
    /// prefixes of values that secondary indexes have of columns which segments do not hold ([`IndexColumn::prefix`]).
    /// Without such an index it is true for all rows, and so is its negation.
    ///
    /// [`IndexColumn::prefix`]: crate::IndexColumn::prefix
    Prefix(Box<Filter>),
    /// The row is one of these, which were chosen in the snapshot that is read ([`crate::Reader::choose_rows`]).
    #[serde(skip)]
    Rows(RowSet),
    /// The value is NULL.
    IsNull(String),
    /// The value is not NULL.
    IsNotNull(String),
    /// All of them hold.
    And(Vec<Filter>),
    /// At least one of them holds.
    Or(Vec<Filter>),
    /// The complement: true where the condition does not hold, also because of NULL.
    Not(Box<Filter>),
}

/// The most values of all IN lists of a selection's condition.
pub const MAX_LISTED_VALUES: usize = 1_000_000;

impl PathTest {
    fn listed_values(&self) -> usize {
        if let Self::In(values) = self { values.len() } else { 0 }
    }
}

impl Filter {
    /// The names of the columns that the condition uses, with duplicates.
    pub fn columns(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(filter) = open.pop() {
            match filter {
                Self::Compare { column, .. }
                | Self::In(column, _)
                | Self::Between(column, ..)
                | Self::KeyIn(column, ..)
                | Self::KeyWithin(column, ..)
                | Self::Begins(column, ..)
                | Self::Path(column, ..)
                | Self::PathsTogether(column, ..)
                | Self::PathTexts(column, ..)
                | Self::PathMayHold(column, ..)
                | Self::IsNull(column)
                | Self::IsNotNull(column) => found.push(column.as_str()),
                Self::And(parts) | Self::Or(parts) => open.extend(parts),
                Self::Not(part) | Self::Prefix(part) => open.push(part),
                Self::Rows(_) => {}
            }
        }
        found
    }

    /// The number of values in its lists, of which a selection may have [`MAX_LISTED_VALUES`].
    pub fn listed_values(&self) -> usize {
        let (mut count, mut open) = (0, vec![self]);
        while let Some(filter) = open.pop() {
            count += match filter {
                Self::In(_, values) => values.len(),
                Self::KeyIn(_, _, keys) => keys.len(),
                Self::Path(_, _, test) => test.listed_values(),
                Self::PathsTogether(_, _, tests) => tests.iter().map(PathTest::listed_values).sum(),
                Self::And(parts) | Self::Or(parts) => {
                    open.extend(parts);
                    0
                }
                Self::Not(part) | Self::Prefix(part) => {
                    open.push(part);
                    0
                }
                _ => 0,
            };
        }
        count
    }

    /// The conjunction of these conditions; `None` for none.
    pub fn all_of(mut filters: Vec<Self>) -> Option<Self> {
        match filters.len() {
            0 | 1 => filters.pop(),
            _ => Some(Self::And(filters)),
        }
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`; true for NULL, as in the line protocol.
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

/// A constant of a condition: typed text that the engine converts to the column's type, or a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Literal {
    /// Typed text; for date and time columns ISO text, or epoch seconds as an integer.
    Text(String),
    /// A typed value.
    Value(Value),
}
