//! What a document weighs: Sphinx's rankers, to the integer.

mod expression;
mod factors;
mod formula;
mod idf;
mod query;
mod runs;
mod scorer;

use std::sync::Arc;

pub use expression::{
    Attribute, AttributeKind, Attributes, Expression, MAX_DEPTH as MAX_EXPRESSION_DEPTH,
    MAX_LENGTH as MAX_EXPRESSION_LENGTH,
};
pub use factors::{Factors, FieldFactors, QueryWord, WordFactors};
pub use formula::Row;
pub use idf::{IdfKind, idf};
pub use query::Query;
pub use scorer::{Most, Needs, Scorer};

/// How documents are weighed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ranker {
    /// The longest runs of words in each field's order, then BM25.
    #[default]
    ProximityBm25,
    /// The fields that match, then BM25.
    Bm25,
    /// Every document weighs 1.
    None,
    /// The occurrences in each field.
    WordCount,
    /// The longest runs alone.
    Proximity,
    /// The words that match in each field, then the longest run.
    MatchAny,
    /// The fields that match, one bit each.
    FieldMask,
    /// As `ProximityBm25`, and more for a field that begins with the query or is the query.
    Sph04,
    /// By an expression over the factors of a document and the columns of its row.
    Expression(Arc<Expression>),
    /// As `Expression`, but a word that stands in the query twice counts where it stands first. Sphinx carries `atc`,
    /// `lccs` and `wlccs` over from the documents before, which is not done here.
    Export(Arc<Expression>),
}

impl Ranker {
    /// Its name, and the expression that it computes if it is of those.
    pub fn name(&self) -> (&'static str, Option<&Expression>) {
        match self {
            Self::ProximityBm25 => ("proximity_bm25", None),
            Self::Bm25 => ("bm25", None),
            Self::None => ("none", None),
            Self::WordCount => ("wordcount", None),
            Self::Proximity => ("proximity", None),
            Self::MatchAny => ("matchany", None),
            Self::FieldMask => ("fieldmask", None),
            Self::Sph04 => ("sph04", None),
            Self::Expression(expression) => ("expr", Some(expression)),
            Self::Export(expression) => ("export", Some(expression)),
        }
    }

    /// The ranker of that name, if it is one without an expression.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "proximity_bm25" => Self::ProximityBm25,
            "bm25" => Self::Bm25,
            "none" => Self::None,
            "wordcount" => Self::WordCount,
            "proximity" => Self::Proximity,
            "matchany" => Self::MatchAny,
            "fieldmask" => Self::FieldMask,
            "sph04" => Self::Sph04,
            _ => return None,
        })
    }
}
