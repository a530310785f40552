//! How a query is read, beside its text.

use crate::settings::WordExpansion;

/// What a search may say about its query, beside the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryOptions {
    /// `expand_keywords`; `None` for what the table's setting says.
    pub expand_keywords: Option<WordExpansion>,
    /// `expansion_limit`: the most keywords that a word with wildcards stands for, those in the most documents; 0 for
    /// all.
    pub expansion_limit: u32,
    /// `boolean_mode=or`: of parts without an operator between them, one suffices.
    pub is_any: bool,
    /// `morphology=none`: each word means itself as written, if the table indexes words as written.
    pub is_unstemmed: bool,
    /// `not_terms_only_allowed`: a query of nothing but exclusions finds all other documents.
    pub takes_only_not: bool,
}
