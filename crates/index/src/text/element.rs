//! The parts of a search text that are looked up in the index: sets of terms at fixed distances.

use std::sync::Arc;

/// A term set at a distance from the pattern's first atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// The distance from the first atom, in ordinals.
    pub distance: u32,
    /// Whether a single space must (`true`) or must not (`false`) precede the atom.
    pub space: Option<bool>,
    /// The terms.
    pub terms: TermMatch,
}

impl Element {
    /// The ordinal of the pattern's first atom, if a term of this element at `position` belongs to a match.
    #[inline]
    pub fn begin(&self, position: u32) -> Option<u32> {
        if self.space.is_some_and(|space| space != (position & 1 == 1)) {
            return None;
        }
        (position / 2).checked_sub(self.distance)
    }
}

/// A set of terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TermMatch {
    /// Exactly this term.
    Exact(String),
    /// Terms with this prefix.
    Prefix(String),
    /// Terms with this suffix.
    Suffix(String),
    /// Terms that contain this.
    Contains(String),
    /// This word, alone or with the character that directly follows it and is indexed with it.
    Word(String),
    /// These terms, ascending, each with the number of occurrences of the piece in it.
    Terms(Arc<[(u32, u32)]>),
}
