//! Properties of a whole query.

use super::factors::QueryWord;

/// The properties of a query that rankers use. Only expressions use the fields after `last_position`.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The weight of each field.
    pub field_weights: Vec<i32>,
    /// The number of distinct keywords.
    pub keywords: usize,
    /// Whether a keyword occurs in the query twice.
    pub has_repeats: bool,
    /// The greatest position of a word.
    pub last_position: u32,
    /// The word at each position, from 0 on.
    pub words: Vec<QueryWord>,
    /// The name of each field.
    pub field_names: Vec<String>,
    /// The number of keywords of each field in all live documents.
    pub totals: Vec<u64>,
    /// The number of live documents.
    pub documents: u64,
}

impl Query {
    /// Whether the query is a single word.
    pub(super) fn is_single(&self) -> bool {
        self.keywords == 1 && !self.has_repeats
    }
}
