//! The engines that Remora is compared with, behind one trait.

#[cfg(feature = "rivals")]
mod cache;
mod client;
#[cfg(feature = "rivals")]
mod groonga;
mod mygramdb;
#[cfg(feature = "rivals")]
mod mysql;
#[cfg(feature = "rivals")]
mod sqlite;
#[cfg(feature = "rivals")]
mod tantivy;

use anyhow::Result;
#[cfg(feature = "rivals")]
use remora_engine::Piece;
use remora_engine::TextQuery;
use serde::{Deserialize, Serialize};

pub use client::{LineClient, count_request, numbers, ranked_request, search_request};
pub use mygramdb::MygramDb;

#[cfg(feature = "rivals")]
use cache::cached;

use crate::{corpus::Corpus, measure::MeasuredProcess};

/// An engine with the corpus.
pub trait Peer {
    /// The name and version of the engine, and how it is queried.
    fn name(&self) -> &str;
    /// Whether it runs in this process (no round trip).
    fn in_process(&self) -> bool;
    /// The process whose CPU time is measured.
    fn processor(&self) -> MeasuredProcess;
    /// The newest ids that match, at most [`crate::oracle::NEWEST`], descending.
    fn search(&mut self, query: &TextQuery) -> Result<Vec<u64>>;
    /// The number of rows that match.
    fn count(&mut self, query: &TextQuery) -> Result<u64>;
    /// A remark on its answers to this query, if something is special about them.
    fn note(&self, _query: &TextQuery) -> Option<&'static str> {
        None
    }
}

/// The cost of a load, stored with the loaded data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    /// Wall time, in seconds.
    pub wall_s: f64,
    /// CPU time, in seconds, where it was measured.
    pub cpu_s: Option<f64>,
    /// Bytes of the files after the load.
    pub disk_bytes: u64,
}

/// A rival that can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rival {
    /// MySQL 9.7: FULLTEXT with the ngram parser, and LIKE.
    Mysql,
    /// SQLite's FTS5 with the trigram tokenizer.
    Sqlite,
    /// Groonga's TokenBigramSplitSymbolAlphaDigit.
    Groonga,
    /// tantivy, word by word.
    Tantivy,
}

impl Rival {
    /// Starts the rival over the corpus. Loads the corpus first unless it is in the cache. MySQL
    /// yields two peers on one server.
    #[cfg(feature = "rivals")]
    pub fn open(self, corpus: &Corpus) -> Result<(Load, Vec<Box<dyn Peer>>)> {
        Ok(match self {
            Self::Mysql => mysql::open(corpus)?,
            Self::Sqlite => one(sqlite::Sqlite::open(corpus)?),
            Self::Groonga => one(groonga::Groonga::open(corpus)?),
            Self::Tantivy => one(tantivy::Tantivy::open(corpus)?),
        })
    }

    /// Fails with a message on how to build with rivals.
    #[cfg(not(feature = "rivals"))]
    pub fn open(self, _corpus: &Corpus) -> Result<(Load, Vec<Box<dyn Peer>>)> {
        anyhow::bail!("this build has no rivals: cargo run --release -p bench --features rivals")
    }
}

#[cfg(feature = "rivals")]
fn one<P: Peer + 'static>((load, peer): (Load, P)) -> (Load, Vec<Box<dyn Peer>>) {
    (load, vec![Box::new(peer)])
}

/// The syntax in which an engine writes conditions.
#[cfg(feature = "rivals")]
struct Syntax<'s> {
    term: &'s dyn Fn(&str) -> String,
    and: &'s str,
    or: &'s str,
    not: &'s str,
}

#[cfg(feature = "rivals")]
impl Syntax<'_> {
    fn render(&self, query: &TextQuery) -> String {
        let joined = |parts: &[TextQuery], sign: &str| {
            let parts: Vec<String> = parts.iter().map(|part| self.render(part)).collect();
            format!("({})", parts.join(sign))
        };
        match query {
            TextQuery::Term(text) | TextQuery::Piece(Piece { text, .. }) => (self.term)(text),
            TextQuery::Keywords(query) => (self.term)(&query.text),
            TextQuery::And(parts) => joined(parts, self.and),
            TextQuery::Or(parts) => joined(parts, self.or),
            TextQuery::Not(part) => format!("{}{}", self.not, self.render(part)),
        }
    }
}

/// The terms of a query.
#[cfg(feature = "rivals")]
fn terms(query: &TextQuery) -> Vec<&str> {
    match query {
        TextQuery::Term(text) | TextQuery::Piece(Piece { text, .. }) => vec![text],
        TextQuery::Keywords(query) => vec![&query.text],
        TextQuery::And(parts) | TextQuery::Or(parts) => parts.iter().flat_map(terms).collect(),
        TextQuery::Not(part) => terms(part),
    }
}
