//! What can be asked and what is answered: the one vocabulary of every wire.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Position, SourcePositions, Value};

/// Which rows a request is about.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The table.
    pub table: String,
    /// The text condition; `None` means every row.
    pub text: Option<TextQuery>,
    /// The condition on columns.
    pub filter: Option<Filter>,
    /// Matches words within this many edits (1 or 2) instead of substrings.
    pub fuzzy: Option<u8>,
}

/// A boolean expression over literal texts.
#[derive(Clone, Debug, PartialEq)]
pub enum TextQuery {
    /// Some text column contains this text, as a substring of the normalised text.
    Term(String),
    /// All hold.
    And(Vec<TextQuery>),
    /// At least one holds.
    Or(Vec<TextQuery>),
    /// It does not hold.
    Not(Box<TextQuery>),
}

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

/// One part of an ordering.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// By what.
    pub by: SortBy,
    /// Largest first. NULL is the smallest.
    pub descending: bool,
}

/// What an ordering is by.
#[derive(Clone, Debug, PartialEq)]
pub enum SortBy {
    /// The primary key.
    Key,
    /// A column.
    Column(String),
    /// The BM25 score.
    Score,
}

/// SEARCH.
#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// Which rows.
    pub selection: Selection,
    /// In which order; empty means by key, descending. Ties are broken by key in the direction of
    /// the last part.
    pub sort: Vec<SortKey>,
    /// How many rows to return.
    pub limit: usize,
    /// How many rows to pass over.
    pub offset: usize,
    /// Start behind the row this cursor of an earlier reply stands for.
    pub after: Option<String>,
    /// Columns to return with each row, from the row store; `*` is all. A page of more than 64 MiB
    /// of them is refused.
    pub fields: Vec<String>,
    /// Marks the matches in the text.
    pub highlight: Option<Highlight>,
}

/// How matches are marked.
#[derive(Clone, Debug, PartialEq)]
pub struct Highlight {
    /// Put before a match.
    pub open: String,
    /// Put behind a match.
    pub close: String,
    /// Characters of a snippet.
    pub snippet_chars: usize,
    /// Most fragments of a snippet.
    pub max_fragments: usize,
}

/// One row of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The primary key's values.
    pub key: KeyValues,
    /// The asked fields, in their order; empty if none was asked.
    pub fields: Vec<Value>,
    /// The marked text; `None` if it was not asked.
    pub snippet: Option<String>,
    /// The score, where the order asks for one.
    pub score: Option<f64>,
}

/// A primary key: one value in almost every table.
pub type KeyValues = smallvec::SmallVec<[Value; 1]>;

/// The answer to SEARCH.
#[derive(Clone, Debug, Default)]
pub struct SearchReply {
    /// How many rows the selection has, exactly.
    pub total: u64,
    /// The rows of this page.
    pub hits: Vec<Hit>,
    /// The names of [`Hit::fields`].
    pub field_names: Vec<String>,
    /// Stands for the last row of this page, if there is one.
    pub cursor: Option<String>,
    /// How it was answered.
    pub report: QueryReport,
}

/// The answer to COUNT.
#[derive(Clone, Debug, Default)]
pub struct CountReply {
    /// How many rows the selection has, exactly.
    pub count: u64,
    /// How it was answered.
    pub report: QueryReport,
}

/// FACET.
#[derive(Clone, Debug, Default)]
pub struct FacetRequest {
    /// Which rows.
    pub selection: Selection,
    /// The column whose values are counted.
    pub column: String,
    /// How many values to return.
    pub limit: usize,
    /// How many values to pass over.
    pub offset: usize,
}

/// The answer to FACET: values by count descending, ties by value ascending.
#[derive(Clone, Debug, Default)]
pub struct FacetReply {
    /// Values of this page with their counts.
    pub values: Vec<(Value, u64)>,
    /// How many distinct values there are in all.
    pub distinct: u64,
    /// How many rows were counted.
    pub matched: u64,
    /// How it was answered.
    pub report: QueryReport,
}

/// True figures of one query, for DEBUG.
#[derive(Clone, Debug, Default)]
pub struct QueryReport {
    /// The position of the snapshot that answered.
    pub position: Position,
    /// How far the sources were in that snapshot.
    pub sources: SourcePositions,
    /// All of it.
    pub total_time: Duration,
    /// Text matching.
    pub index_time: Duration,
    /// Filters.
    pub filter_time: Duration,
    /// Terms of the expression.
    pub terms: u64,
    /// Atoms that the terms were cut into.
    pub atoms: u64,
    /// Documents of each term, added up: one that holds several terms counts for each, and deleted
    /// ones may be among them.
    pub candidates: u64,
    /// After AND.
    pub after_intersection: u64,
    /// After NOT.
    pub after_not: u64,
    /// After filters.
    pub after_filters: u64,
    /// Rows returned.
    pub returned: u64,
    /// Segments asked.
    pub segments: u64,
    /// Texts read back from the row store to verify.
    pub texts_read: u64,
}
