//! Which documents a query matches, and the hits by which they are weighed.
//!
//! A query becomes steps over terms (keywords, or unions of keywords for a wildcard). For one document, a step gives
//! whether it matches, the sum for BM25, and the hits in order of position. All sums have 32 bits, rounded after each
//! operation, in Sphinx's order of additions: the last bit shows in weights.

mod candidates;
mod contributors;
mod evaluate;
mod hit;
mod near;
mod ordered;
mod phrase;
mod plan;
mod positions;
mod proximity;
mod step;

pub use candidates::Candidates;
pub use contributors::{Contributor, Contributors};
pub use evaluate::{Found, saturated};
pub use hit::{Hit, MAX_POSITION, Place};
pub use plan::{Counts, Expansion, Matcher, PlannedWord, Term, Vocabulary};

use crate::Result;

/// The terms of one document, as an index has them.
pub trait Document {
    /// How often the term stands in the document; 0 if it does not.
    ///
    /// # Errors
    /// What the index says.
    fn frequency(&mut self, term: usize) -> Result<u32>;

    /// Calls `each` for the places of the term in the document, in ascending order.
    ///
    /// # Errors
    /// What the index says.
    fn places(&mut self, term: usize, each: impl FnMut(Place)) -> Result<()>;
}
