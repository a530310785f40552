//! The interface of a search engine under test: queries and answers.

use std::rc::Rc;

use super::corpus::Corpus;

/// A search engine over one corpus.
pub trait Engine {
    /// The result of a query, or its error text without the table's name.
    fn search(&self, query: &str, options: &Options) -> Result<Found, String>;

    /// Compares the engine's own ways to answer, in which even what Sphinx leaves undefined must be equal.
    fn check(&self, _query: &str, _options: &Options) -> Result<(), String> {
        Ok(())
    }
}

/// Makes one engine for each corpus.
pub type Make = dyn Fn(&[Rc<Corpus>]) -> Vec<Box<dyn Engine>>;

/// The options of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub ranker: Ranker,
    /// By name; a field without one has 1.
    pub field_weights: Vec<(String, u32)>,
    /// The factor of the final weight.
    pub index_weight: Option<u32>,
    pub idf: Idf,
    pub offset: u32,
    pub limit: u32,
    pub max_matches: u32,
    /// The number of rows after which to stop; 0 means no limit.
    pub cutoff: u32,
    pub sort: Sort,
}

impl Default for Options {
    /// All rows, by weight.
    fn default() -> Self {
        Self {
            ranker: Ranker::ProximityBm25,
            field_weights: Vec::new(),
            index_weight: None,
            idf: Idf::default(),
            offset: 0,
            limit: 100_000,
            max_matches: 100_000,
            cutoff: 0,
            sort: Sort::Relevance,
        }
    }
}

/// The ranker.
#[derive(Clone, Debug, PartialEq)]
pub enum Ranker {
    ProximityBm25,
    Bm25,
    None,
    WordCount,
    Proximity,
    MatchAny,
    FieldMask,
    Sph04,
    Expression(String),
}

/// The formula of the inverse document frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idf {
    /// `idf=plain`, else normalized.
    pub plain: bool,
    /// `tfidf_normalized`: divided by the number of the query's keywords.
    pub divided: bool,
    /// Use document counts of all shards together.
    pub local_df: bool,
}

impl Default for Idf {
    fn default() -> Self {
        Self { plain: false, divided: true, local_df: false }
    }
}

/// The order of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Sort {
    /// Weight descending, then id ascending.
    Relevance,
    /// A clause such as `@id desc`.
    Extended(String),
}

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Ids and weights, the latter modulo 2^32.
    pub rows: Vec<(u64, u32)>,
    /// The number of rows within `max_matches`.
    pub total: u64,
    pub total_found: u64,
    /// Keywords with their numbers of documents and of hits.
    pub words: Vec<(String, u64, u64)>,
    pub warning: Option<String>,
}
