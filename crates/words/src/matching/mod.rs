//! Matches a query against documents, and computes the hits for ranking.
//!
//! A query becomes steps over terms (keywords, or unions of keywords for a wildcard). For one document, a step gives
//! whether it matches, the sum for BM25, and the hits in order of position. All sums have 32 bits, rounded after each
//! operation, in Sphinx's order of additions: the last bit shows in weights.

mod candidates;
mod contributors;
mod evaluate;
mod near;
mod ordered;
mod phrase;
mod plan;
mod positions;
mod proximity;
mod quorum;
mod quoted;
mod step;
mod term;
mod unit;
mod zones;

pub use candidates::Candidates;
pub use contributors::{Contributor, Contributors};
pub use evaluate::saturated;
pub use plan::{Counts, Expansion, Matcher, PlannedWord, QuotedTerms, Vocabulary};
pub use term::Term;

use crate::{Result, hits::PackedPosition};

/// The term frequencies and places of one document.
pub trait Document {
    /// The term frequency; 0 if the document does not contain the term.
    ///
    /// # Errors
    /// Errors of the index.
    fn frequency(&mut self, term: usize) -> Result<u32>;

    /// Calls `each` for the places of the term in the document, in ascending order.
    ///
    /// # Errors
    /// Errors of the index.
    fn places(&mut self, term: usize, each: impl FnMut(PackedPosition)) -> Result<()>;
}
