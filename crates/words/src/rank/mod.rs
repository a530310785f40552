//! The weight of a document: Sphinx's rankers, with the same integers.

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
pub use scorer::{HitBounds, Needs, Scorer};

/// How documents are weighed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ranker {
    /// The longest runs of words in each field, then BM25.
    #[default]
    ProximityBm25,
    /// The matched fields, then BM25.
    Bm25,
    /// The weight is always 1.
    None,
    /// The number of occurrences in each field.
    WordCount,
    /// Only the longest runs.
    Proximity,
    /// The matched words in each field, then the longest run.
    MatchAny,
    /// The matched fields as a bit mask.
    FieldMask,
    /// Like `ProximityBm25`, with a bonus for fields that begin with the query or equal it.
    Sph04,
    /// An expression over the factors of a document and the columns of its row.
    Expression(Arc<Expression>),
    /// Like `Expression`, but a word that the query repeats counts only at its first position in the query. Unlike in
    /// Sphinx, `atc`, `lccs` and `wlccs` are not carried over from earlier documents.
    Export(Arc<Expression>),
}

impl Ranker {
    /// The name of the ranker, and its expression if it has one.
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

    /// The ranker with this name, if it has no expression.
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
