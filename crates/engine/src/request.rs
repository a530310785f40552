//! Requests and replies of the engine, the same for every protocol.

use std::{sync::Arc, time::Duration};

use remora_words::{
    matching::PlannedWord,
    rank::{IdfKind, Ranker},
};

use crate::{
    AllowedIndexes, Filter, FoundBy, KeyValues, KeywordStatistics, PathValue, Position,
    SourcePositions, Value,
};

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
    /// The indexes that may be used.
    pub indexes: AllowedIndexes,
}

/// A boolean expression over literal texts.
#[derive(Clone, Debug, PartialEq)]
pub enum TextQuery {
    /// Some text column contains this text, as a substring of the normalised text.
    Term(String),
    /// Certain texts hold this.
    Piece(Piece),
    /// A query by the table's keywords finds the row.
    Keywords(Arc<KeywordQuery>),
    /// All hold.
    And(Vec<TextQuery>),
    /// At least one holds.
    Or(Vec<TextQuery>),
    /// It does not hold.
    Not(Box<TextQuery>),
}

/// A query by keywords, in Sphinx's language.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeywordQuery {
    /// Its text.
    pub text: String,
    /// How rows are weighed.
    pub ranker: Ranker,
    /// The weights of fields by the names of their columns; 1 for others.
    pub field_weights: Vec<(String, i32)>,
    /// What a row's weight is multiplied by.
    pub table_weight: Option<i32>,
    /// What a row's weight is multiplied by beside that, by the engine's names of the tables as one that it is of; 1 for
    /// others. With one that is not 1 all rows that are found are weighed, where only the best are asked for too.
    pub part_weights: Vec<(String, i32)>,
    /// How idf is computed.
    pub idf: IdfKind,
    /// Where it stands among [`ScanRequest::scores`]: whether the column is to be of texts, which tell the factors
    /// that a ranking expression weighs each row by, and how. Others take no notice of it.
    pub factors: Option<FactorsForm>,
    /// The numbers of the whole table that it is planned by, where the table that is asked is a part of it.
    pub statistics: Option<Arc<KeywordStatistics>>,
}

/// How the factors of a row are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactorsForm {
    /// As JSON.
    pub is_json: bool,
    /// Without `atc`, which is dear: 0 stands in its place.
    pub is_without_closeness: bool,
}

/// What a query by keywords was made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeywordReport {
    /// Its keywords, with the rows they stand in and how often.
    pub words: Vec<PlannedWord>,
    /// What was passed over or changed.
    pub warning: Option<String>,
}

/// A text to be found in certain text indexes, in a certain way. Synonyms do not apply to it; one
/// that nothing is left of after normalisation holds for no row.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The [`crate::TextDef::id`]s of the text indexes of which one must hold it; empty is all.
    pub texts: Vec<u32>,
    /// What is to be found.
    pub text: String,
    /// How.
    pub matching: PieceMatch,
    /// Asks the text of one column as it stands instead of the normalised text: some stretch of it
    /// has the letters of `text`, each equal to the other by these classes. `matching` is then
    /// [`PieceMatch::Substring`], and every text index that is asked has the column.
    pub letters: Option<ColumnLetters>,
}

/// The text of a column, compared letter by letter.
#[derive(Clone, Debug)]
pub struct ColumnLetters {
    /// The position of the column.
    pub column: usize,
    /// Which letters are equal.
    pub classes: Arc<dyn LetterClasses>,
}

impl PartialEq for ColumnLetters {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column && Arc::ptr_eq(&self.classes, &other.classes)
    }
}

/// Which letters are equal to each other: an equivalence.
pub trait LetterClasses: std::fmt::Debug + Send + Sync {
    /// Whether the two are equal.
    fn are_equal(&self, a: char, b: char) -> bool;

    /// Appends all letters that are equal to `letter`, itself among them.
    fn equals(&self, letter: char, out: &mut Vec<char>);
}

/// How a [`Piece`] is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceMatch {
    /// As a substring of the normalised text.
    Substring,
    /// As whole words behind each other, whatever separators stand between them. Characters of
    /// scripts without spaces are found wherever they stand.
    Words,
    /// As [`PieceMatch::Words`], but the last may be the beginning of a longer one.
    WordPrefix,
    /// As whole words in any order, the first and the last of which begin at most so many words
    /// apart.
    Near(u32),
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
    /// The texts of a column by their keys in the order of this number ([`crate::register_text_key`]).
    TextKey(String, u32),
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
    /// Whether the values alone are wanted: their counts may be any numbers above 0.
    pub values_only: bool,
}

/// The values of a column in their order, each once, with the number of its rows.
#[derive(Clone, Debug, Default)]
pub struct ValuesRequest {
    /// Which rows.
    pub selection: Selection,
    /// The column.
    pub column: String,
    /// The number of the order of its texts; `None` by their bytes.
    pub keyed: Option<u32>,
    /// Greatest first.
    pub descending: bool,
    /// How many values to return.
    pub limit: usize,
    /// Whether the values alone are wanted: their counts may be any numbers above 0.
    pub values_only: bool,
    /// Of which columns the least value of each value's rows is wanted, or the greatest.
    pub ends: Vec<(String, bool)>,
}

/// One of the values of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRow {
    /// The value.
    pub value: Value,
    /// How many rows have it.
    pub count: u64,
    /// What was asked for by [`ValuesRequest::ends`]; NULL where its rows have no value.
    pub ends: Vec<Value>,
}

/// The answer to [`ValuesRequest`].
#[derive(Clone, Debug)]
pub struct ValuesReply {
    /// The first values.
    pub values: Vec<ValueRow>,
    /// The index that has the values in their order.
    pub found_by: FoundBy,
    /// How it was answered.
    pub report: QueryReport,
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

/// A scan: columns of every row that matches.
#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    /// The table.
    pub table: String,
    /// The text condition.
    pub text: Option<TextQuery>,
    /// The condition on columns.
    pub filter: Option<Filter>,
    /// The columns to read, by their positions in the schema.
    pub columns: Vec<usize>,
    /// Text conditions whose score each row is to have, as columns of doubles behind the others: 0
    /// for a row that a condition does not hold for. Those that tell factors have columns of texts, empty for such a row.
    pub scores: Vec<TextQuery>,
    /// Most rows of a batch; one with many megabytes of strings is given out sooner.
    pub batch_rows: usize,
    /// A batch with this many bytes of strings is given out sooner; 16 MiB is the most, and is meant by `None`.
    pub batch_bytes: Option<usize>,
    /// Whether the rows come in key order; otherwise they do within each segment only.
    pub in_key_order: bool,
    /// Most rows in all.
    pub limit: Option<u64>,
    /// The indexes that may be used.
    pub indexes: AllowedIndexes,
}

/// The first rows in the order of what a path into their documents leads to, or several paths that are indexed together.
#[derive(Clone, Debug, Default)]
pub struct PathOrder {
    /// The table.
    pub table: String,
    /// A column of documents.
    pub column: String,
    /// The paths of an index, each as its names from the outside in.
    pub paths: Vec<Vec<String>>,
    /// What the first of several paths lead to in the rows that are asked for; the order is that of the others.
    pub equal: Vec<PathValue>,
    /// The condition on rows.
    pub filter: Option<Filter>,
    /// Greatest first.
    pub descending: bool,
    /// How many.
    pub limit: usize,
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
    /// What was passed over or changed of a query by keywords.
    pub warning: Option<String>,
}
