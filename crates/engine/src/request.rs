//! Requests and replies of the engine, the same for every protocol.

use std::{sync::Arc, time::Duration};

use remora_words::{
    WordsError,
    analysis::Analyzer,
    matching::PlannedWord,
    query::{self, Parsed, QueryOptions},
    rank::{IdfKind, Ranker},
};
use serde::{Deserialize, Serialize};

use crate::{
    AllowedIndexes, Filter, FoundBy, KeyValues, KeywordStatistics, PathPlace, PathValue, Position,
    Row, SourcePositions, Value,
};

/// A selection: the rows that a request is about.
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
    /// The indexes that may be used.
    pub indexes: AllowedIndexes,
}

/// A boolean text query.
#[derive(Clone, Debug, PartialEq)]
pub enum TextQuery {
    /// Some text column contains this text as a substring, after normalisation.
    Term(String),
    /// A term with options.
    Piece(Piece),
    /// A keyword query matches the row.
    Keywords(Arc<KeywordQuery>),
    /// AND.
    And(Vec<TextQuery>),
    /// OR.
    Or(Vec<TextQuery>),
    /// NOT.
    Not(Box<TextQuery>),
}

/// A keyword query, in Sphinx's language.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeywordQuery {
    /// The text of the query.
    pub text: String,
    /// The ranker.
    pub ranker: Ranker,
    /// The weights of fields, by their columns' names; 1 for others.
    pub field_weights: Vec<(String, i32)>,
    /// A factor of each row's weight.
    pub table_weight: Option<i32>,
    /// Further factors for rows of tables that are read as one, by the engine's names of those tables; 1 for others.
    /// With a factor other than 1 the weights of all matching rows are computed, even if only the best rows are
    /// needed.
    pub part_weights: Vec<(String, i32)>,
    /// How idf is computed.
    pub idf: IdfKind,
    /// How the text is read.
    pub options: QueryOptions,
    /// For entries of [`ScanRequest::scores`]: if given, the column contains texts with the factors of the ranking
    /// expression for each row, in this form. Ignored elsewhere.
    pub factors: Option<FactorsForm>,
    /// The statistics of the whole table, if the table of the request is a part of it.
    pub statistics: Option<Arc<KeywordStatistics>>,
}

impl KeywordQuery {
    /// Parses the text for a table's words; `fields` are the names of the fields.
    ///
    /// # Errors
    /// [`WordsError::Query`] with Sphinx's message.
    pub fn parse(&self, analyzer: &Analyzer, fields: &[String]) -> Result<Parsed, WordsError> {
        query::parse_with(&self.text, analyzer, fields, &self.options)
    }
}

/// The form of a row's ranking factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactorsForm {
    /// As JSON.
    pub is_json: bool,
    /// Leaves out `atc`, which is expensive: it is 0 instead.
    pub is_without_closeness: bool,
}

/// The parts of a keyword query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeywordReport {
    /// The keywords with their counts of rows and occurrences.
    pub words: Vec<PlannedWord>,
    /// A warning about what was ignored or changed.
    pub warning: Option<String>,
}

/// A search text for certain text indexes, matched in a certain way. Synonyms do not apply to it. If normalisation
/// leaves nothing of it, it matches no row.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The [`crate::TextDef::id`]s of the text indexes to search; empty for all. One of them must match.
    pub texts: Vec<u32>,
    /// The search text.
    pub text: String,
    /// The way it is matched.
    pub matching: PieceMatch,
    /// Compares the original text of one column letter by letter instead of the normalised text: it matches if a
    /// substring of the column has as many letters as `text`, each in the same class as its counterpart. `matching`
    /// must be [`PieceMatch::Substring`], and every searched text index must have the column.
    pub letters: Option<ColumnLetters>,
}

/// A column whose text is compared letter by letter.
#[derive(Clone, Debug)]
pub struct ColumnLetters {
    /// The position of the column.
    pub column: usize,
    /// Which letters are equal.
    pub classes: Arc<dyn LetterClasses>,
    /// Whether the caller tests the rows again. Then no text is read, and there may be false positives where the index
    /// alone cannot decide; under a NOT they would be false negatives.
    pub is_tested_again: bool,
}

impl PartialEq for ColumnLetters {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column
            && self.is_tested_again == other.is_tested_again
            && Arc::ptr_eq(&self.classes, &other.classes)
    }
}

/// An equivalence relation of letters.
pub trait LetterClasses: std::fmt::Debug + Send + Sync {
    /// Whether two letters are equal.
    fn are_equal(&self, a: char, b: char) -> bool;

    /// Appends all letters equal to `letter`, including itself.
    fn equals(&self, letter: char, out: &mut Vec<char>);
}

/// The way a [`Piece`] is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceMatch {
    /// As a substring of the normalised text.
    Substring,
    /// As consecutive whole words, with any separators between them. Characters of scripts without spaces match
    /// anywhere.
    Words,
    /// As [`PieceMatch::Words`], but the last word may be a prefix.
    WordPrefix,
    /// As whole words in any order, the first and the last of which begin at most this many words apart.
    Near(u32),
}

/// One part of an ordering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SortKey {
    /// The value to sort by.
    pub by: SortBy,
    /// Whether the greatest value comes first. NULL is the smallest.
    pub descending: bool,
}

/// The value that an ordering sorts by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    /// The primary key.
    Key,
    /// A column.
    Column(String),
    /// The texts of a column, by their sort keys in the text order of this number ([`crate::register_text_key`]).
    TextKey(String, u32),
    /// The BM25 score.
    Score,
}

/// A SEARCH request.
#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// The rows.
    pub selection: Selection,
    /// The order; empty means by key, descending. Ties are broken by key in the direction of the last part.
    pub sort: Vec<SortKey>,
    /// How many rows to return.
    pub limit: usize,
    /// How many rows to skip.
    pub offset: usize,
    /// The cursor of an earlier reply: the page starts after its row.
    pub after: Option<String>,
    /// Columns to return with each row, from the row store; `*` for all. A page with more than 64 MiB of them is
    /// an error.
    pub fields: Vec<String>,
    /// Highlights the matches in the text.
    pub highlight: Option<Highlight>,
}

/// The form of highlighted matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Highlight {
    /// Put before a match.
    pub open: String,
    /// Put after a match.
    pub close: String,
    /// Characters of a snippet.
    pub snippet_chars: usize,
    /// The most fragments of a snippet.
    pub max_fragments: usize,
}

/// One row of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The primary key's values.
    pub key: KeyValues,
    /// The requested fields, in order; empty if none were requested.
    pub fields: Vec<Value>,
    /// The highlighted text; `None` if it was not requested.
    pub snippet: Option<String>,
    /// The score, if the order is by score.
    pub score: Option<f64>,
}

/// The answer to SEARCH.
#[derive(Clone, Debug, Default)]
pub struct SearchReply {
    /// The exact number of rows of the selection.
    pub total: u64,
    /// The rows of this page.
    pub hits: Vec<Hit>,
    /// The names of [`Hit::fields`].
    pub field_names: Vec<String>,
    /// The cursor of the last row of this page, if there is one.
    pub cursor: Option<String>,
    /// The report of the execution.
    pub report: QueryReport,
}

/// The answer to COUNT.
#[derive(Clone, Debug, Default)]
pub struct CountReply {
    /// The exact number of rows of the selection.
    pub count: u64,
    /// The report of the execution.
    pub report: QueryReport,
}

/// A FACET request.
#[derive(Clone, Debug, Default)]
pub struct FacetRequest {
    /// The rows.
    pub selection: Selection,
    /// The column whose values are counted.
    pub column: String,
    /// How many values to return.
    pub limit: usize,
    /// How many values to skip.
    pub offset: usize,
    /// Whether only the values are needed: the counts may then be any numbers above 0.
    pub values_only: bool,
}

/// A request for the distinct values of a column, or of several together, in order, each with its number of rows.
#[derive(Clone, Debug, Default)]
pub struct ValuesRequest {
    /// The rows.
    pub selection: Selection,
    /// The columns, each with the number of its text order (see [`SortBy::TextKey`]); `None` for byte order.
    pub columns: Vec<(String, Option<u32>)>,
    /// Whether the greatest value comes first, of all columns.
    pub descending: bool,
    /// How many values, or combinations of values, to return.
    pub limit: usize,
    /// Whether only the values are needed: the counts may then be any numbers above 0.
    pub values_only: bool,
    /// Columns whose least value (with `true`: greatest) among the rows of each value is wanted.
    pub ends: Vec<(String, bool)>,
}

/// A distinct value of a column, or combination of values of several.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRow {
    /// The value of each column.
    pub values: Vec<Value>,
    /// How many rows have them.
    pub count: u64,
    /// The values requested by [`ValuesRequest::ends`]; NULL if its rows have no value.
    pub ends: Vec<Value>,
}

/// The answer to [`ValuesRequest`].
#[derive(Clone, Debug)]
pub struct ValuesReply {
    /// The first values.
    pub values: Vec<ValueRow>,
    /// The index that was scanned.
    pub found_by: FoundBy,
    /// The report of the execution.
    pub report: QueryReport,
}

/// The answer to FACET: values by count descending, ties by value ascending.
#[derive(Clone, Debug, Default)]
pub struct FacetReply {
    /// Values of this page with their counts.
    pub values: Vec<(Value, u64)>,
    /// The total number of distinct values.
    pub distinct: u64,
    /// How many rows were counted.
    pub matched: u64,
    /// The report of the execution.
    pub report: QueryReport,
}

/// A scan request: columns of every matching row.
#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    /// The table.
    pub table: String,
    /// The text condition.
    pub text: Option<TextQuery>,
    /// The condition on columns.
    pub filter: Option<Filter>,
    /// The columns to read, by their places in the schema.
    pub columns: Vec<usize>,
    /// Text conditions whose scores are returned as further columns of doubles: 0 for a row that does not match.
    /// Conditions with factors return columns of texts, empty for such a row.
    pub scores: Vec<TextQuery>,
    /// The most rows of a batch. A batch with many megabytes of strings is returned earlier.
    pub batch_rows: usize,
    /// A batch with this many bytes of strings is returned early. `None` means 16 MiB, which is the maximum.
    pub batch_bytes: Option<usize>,
    /// Whether all rows are in key order; otherwise only those of each segment are.
    pub in_key_order: bool,
    /// The most rows in all.
    pub limit: Option<u64>,
    /// The rows that are needed. Others may be left out; if the table cannot tell which those are, it leaves out none.
    pub best: Option<BestRows>,
    /// The indexes that may be used.
    pub indexes: AllowedIndexes,
}

/// The first rows in an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestRows {
    /// The order. Rows that are equal in it are in the order of their keys.
    pub sort: Vec<SortKey>,
    /// The index in [`ScanRequest::scores`] of the condition whose scores the order uses.
    pub score: usize,
    /// How many rows, at most [`crate::MAX_BEST_ROWS`].
    pub rows: usize,
}

/// A request for the first rows in the order of the values at a path, or at several paths that are indexed
/// together.
#[derive(Clone, Debug, Default)]
pub struct PathOrder {
    /// The table.
    pub table: String,
    /// A column of documents.
    pub column: String,
    /// The paths of an index, each as its names from the outside in.
    pub paths: Vec<Vec<String>>,
    /// The required values at the first of several paths; the order is by the remaining ones.
    pub equal: Vec<PathValue>,
    /// The condition on rows.
    pub filter: Option<Filter>,
    /// For each path that the order is by, whether its greatest values come first.
    pub descending: Vec<bool>,
    /// The row behind which the first row is; `None` for the first of all.
    pub after: Option<PathStart>,
    /// How many rows to return.
    pub limit: usize,
}

/// A row in an order of paths: its place, whether the row exists or not.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStart {
    /// Its values at the paths that the order is by.
    pub values: Vec<PathPlace>,
    /// Its key.
    pub key: KeyValues,
}

/// A request for the first rows in the order that SQL gives to the JSON values at a path: null, numbers, texts by
/// bytes, false, true. Objects alone lead to a value, no arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScalarOrder {
    /// The table.
    pub table: String,
    /// A column of documents.
    pub column: String,
    /// The path as its names from the outside in. All segments must have an index of it alone.
    pub path: Vec<String>,
    /// The condition on rows.
    pub filter: Option<Filter>,
    /// Whether the greatest values come first.
    pub descending: bool,
    /// Whether the values are ordered as texts, as if spaces followed them. There may be no others at the path.
    pub only_texts: bool,
    /// The columns of the rows to return, by their positions.
    pub columns: Vec<usize>,
    /// The most rows to return.
    pub limit: usize,
}

/// The first rows in the order of the values at a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScalarRows {
    /// The requested columns of the rows. If they are fewer than the request's limit, no other row has a value.
    pub rows: Vec<Row>,
    /// The number of rows read.
    pub examined: u64,
    /// The position of the path in [`crate::Schema::paths`].
    pub path: usize,
}

/// A request for the most frequent values at a path of documents.
#[derive(Clone, Debug, Default)]
pub struct PathFacetRequest {
    /// The table.
    pub table: String,
    /// A column of documents.
    pub column: String,
    /// The path as its names from the outside in. All segments must have an index of it alone.
    pub path: Vec<String>,
    /// The condition on rows.
    pub filter: Option<Filter>,
    /// The most values to return.
    pub limit: usize,
}

/// The values at a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathFacetReply {
    /// Scalars with the numbers of rows that have them, the most frequent first, then in the order of values. Whole
    /// numbers within 64 bits are integers.
    pub values: Vec<(PathValue, u64)>,
    /// The number of distinct scalars.
    pub distinct: u64,
}

/// Measurements of one query, for DEBUG.
#[derive(Clone, Debug, Default)]
pub struct QueryReport {
    /// The position of the snapshot that answered.
    pub position: Position,
    /// The positions of the sources in that snapshot.
    pub sources: SourcePositions,
    /// The total time.
    pub total_time: Duration,
    /// The time of text matching.
    pub index_time: Duration,
    /// The time of filtering.
    pub filter_time: Duration,
    /// The number of terms of the expression.
    pub terms: u64,
    /// The number of atoms of the terms.
    pub atoms: u64,
    /// The sum of the document frequencies of the terms; may include deleted documents.
    pub candidates: u64,
    /// The number of rows after AND.
    pub after_intersection: u64,
    /// The number of rows after NOT.
    pub after_not: u64,
    /// The number of rows after filters.
    pub after_filters: u64,
    /// The number of rows returned.
    pub returned: u64,
    /// The number of segments searched.
    pub segments: u64,
    /// The number of texts read from the row store for verification.
    pub texts_read: u64,
    /// A warning about what was ignored or changed in a keyword query.
    pub warning: Option<String>,
    /// The sum of the numbers of rows that contain each keyword of keyword queries, as they were planned; `None`
    /// without such a query, and where it is not known, as of a table with rows on other servers.
    pub keyword_documents: Option<u64>,
}
