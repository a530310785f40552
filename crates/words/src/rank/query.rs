//! What is known of a query as a whole.

use super::factors::QueryWord;

/// What rankers know of a query. Only expressions ask for what stands behind `last_position`.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The weight of each field.
    pub field_weights: Vec<i32>,
    /// The distinct keywords of the query.
    pub keywords: usize,
    /// Whether a keyword stands in the query twice.
    pub has_repeats: bool,
    /// The greatest position of a word in the query.
    pub last_position: u32,
    /// What stands at each position of the query, from 0 on.
    pub words: Vec<QueryWord>,
    /// The name of each field.
    pub field_names: Vec<String>,
    /// The keywords of each field in all live documents.
    pub totals: Vec<u64>,
    /// Live documents.
    pub documents: u64,
}

impl Query {
    /// Whether it is one word.
    pub(super) fn is_single(&self) -> bool {
        self.keywords == 1 && !self.has_repeats
    }
}
