//! Conditions on columns: which rows belong to a table, and which rows a request selects.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::PathTest;
use crate::Value;

/// A condition on columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Compares a column with a literal. NULL satisfies only [`Comparison::NotEqual`].
    Compare {
        /// The column's name.
        column: String,
        /// How.
        comparison: Comparison,
        /// With what.
        literal: Literal,
    },
    /// The value is one of these.
    In(String, Vec<Literal>),
    /// The value lies between the two, both included.
    Between(String, Literal, Literal),
    /// The key of the text, in the order of this number, is one of these ([`crate::register_text_key`]).
    KeyIn(String, u32, Vec<Vec<u8>>),
    /// The key of the text, in the order of this number, lies within these bounds.
    KeyWithin(String, u32, Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The text begins with these letters: the key of each, in the order of this number and with the same letter behind
    /// it, is that of the text's. `None` for the same bytes.
    Begins(String, Option<u32>, String),
    /// One of the values that a path of names leads to, in the documents of a column, satisfies a test. The path is
    /// one that is indexed, in all segments ([`crate::Reader::ready_paths`]).
    Path(String, Vec<String>, PathTest),
    /// Of these paths, whose values are indexed together in all segments, the first ones lead to values in the documents
    /// of a column that satisfy these tests, each its own. All tests but the last are [`PathTest::In`]. Not exact where
    /// documents have too many combinations of values: [`crate::Reader::has_all_combinations`].
    PathsTogether(String, Vec<Vec<String>>, Vec<PathTest>),
    /// One of the texts that any of these paths leads to, in the documents of a column, holds this text: its normalised
    /// text has that of this as a substring ([`crate::PATH_TEXTS`]); a text of nothing is in none. Of those paths together
    /// the texts are indexed, in all segments. Not always exact: [`crate::texts_tell`].
    PathTexts(String, Vec<Vec<String>>, String),
    /// What any of these paths leads to, in the documents of a column, may hold this text, letter by letter, when it is
    /// shown as a text. It holds for every row with such a text there, and for every row with a value there that is no
    /// text: a number, an array. It holds for others too. The texts of those paths together are indexed, in all segments.
    PathMayHold(String, Vec<Vec<String>>, String),
    /// The value is NULL.
    IsNull(String),
    /// The value is not NULL.
    IsNotNull(String),
    /// All hold.
    And(Vec<Filter>),
    /// At least one holds.
    Or(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
}

impl Filter {
    /// The columns that it names, as often as it does.
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
                Self::Not(part) => open.push(part),
            }
        }
        found
    }

    /// The condition that all of these hold; `None` of none.
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
    /// `!=`; true for NULL, as the line protocol has it.
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

/// A constant of a filter: text as it was typed, turned into the column's type by the engine, or
/// a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Literal {
    /// As typed. For date and time columns either ISO text or an integer of epoch seconds.
    Text(String),
    /// A typed value.
    Value(Value),
}
