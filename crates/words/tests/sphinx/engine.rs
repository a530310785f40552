//! What is asked and answered, whoever answers.

use std::rc::Rc;

use crate::corpus::Corpus;

/// Something that searches one corpus.
pub trait Engine {
    /// What a query finds, or the text of its error without the table's name.
    fn search(&self, query: &str, options: &Options) -> Result<Found, String>;
}

/// Makes one engine for each corpus.
pub type Make = dyn Fn(&[Rc<Corpus>]) -> Vec<Box<dyn Engine>>;

/// How a query is to be answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub ranker: Ranker,
    /// By name; a field without one has 1.
    pub field_weights: Vec<(String, u32)>,
    /// What the final weight is multiplied by.
    pub index_weight: Option<u32>,
    pub idf: Idf,
    pub offset: u32,
    pub limit: u32,
    pub max_matches: u32,
    /// After how many rows to stop looking; 0 is never.
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

/// How a document's weight is made.
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

/// How rare words weigh more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idf {
    /// `idf=plain`, else normalized.
    pub plain: bool,
    /// `tfidf_normalized`: divided by the number of the query's keywords.
    pub divided: bool,
    /// Numbers of documents of all shards together.
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

/// What a query found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Ids and weights, the latter modulo 2^32.
    pub rows: Vec<(u64, u32)>,
    /// Rows that `max_matches` leaves.
    pub total: u64,
    pub total_found: u64,
    /// Keywords with their numbers of documents and of hits.
    pub words: Vec<(String, u64, u64)>,
    pub warning: Option<String>,
}
