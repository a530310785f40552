//! What a matcher looks up in documents.

/// A term that a matcher looks up in documents: a keyword, or several that count as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The keywords.
    pub keywords: Vec<String>,
    /// The number of documents that contain any of them.
    pub documents: u64,
    /// Whether it is the expansion of a wildcard. Then only places that the query allows count as occurrences.
    pub is_union: bool,
}
