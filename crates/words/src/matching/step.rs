//! The steps of a planned query.

use std::sync::Arc;

use crate::hits::PackedPosition;
use crate::query::Limit;

/// A node of the query with its words looked up.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Every document.
    Every,
    /// One term.
    Leaf(TermStep),
    /// AND, in the order in which sums are added.
    And(Vec<Step>),
    /// OR.
    Or(Vec<Step>),
    /// MAYBE: the first operand must match, the others only contribute.
    Maybe(Vec<Step>),
    /// The first operand and not the second.
    AndNot(Box<Step>, Box<Step>),
    /// A phrase.
    Phrase(PhraseWords),
    /// Proximity.
    Proximity(PhraseWords, u32),
    /// A quorum: at least so many of the words.
    Quorum(Vec<QuorumWord>, u32),
    /// Operands in this order.
    Before(Vec<Step>),
    /// SENTENCE and PARAGRAPH: operands between the same two marks.
    Unit(Vec<Step>, TermStep),
    /// ZONESPAN: terms in one zone together, in the order in which sums are added.
    InOneZone(Vec<TermStep>),
    /// NOTNEAR: the places of the first operand that none of the others is so close to.
    NotNear(Box<Step>, Vec<Step>, u32),
    /// NEAR: each operand close to the one before.
    Near {
        /// The operands, in the order of the query.
        parts: Vec<Step>,
        /// The order in which their sums are added.
        order: Vec<usize>,
        /// The greatest distance.
        distance: u32,
    },
    /// Never matches: a phrase without words.
    Nothing,
}

/// A term at one position of the query.
#[derive(Clone, Debug)]
pub(crate) struct TermStep {
    /// The number of the term.
    pub term: usize,
    /// The position of the term in the query.
    pub query_position: u32,
    /// The factor of its contribution to the sum; 0 if the word occurred in the query before.
    pub idf: f32,
    /// The fields and positions that count.
    pub limit: Limit,
    /// Only the first keyword of a field counts.
    pub at_start: bool,
    /// Only the last keyword of a field counts.
    pub at_end: bool,
    /// Whether the term is the expansion of a wildcard. Its term frequency then counts only allowed places.
    pub is_union: bool,
    /// Only places in one of these zones count, and then at each position.
    pub zones: Option<Arc<[ZoneTerms]>>,
}

/// The terms that mark the beginnings and the ends of a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneTerms {
    /// The number of the term of beginnings.
    pub begin: usize,
    /// The number of the term of ends.
    pub end: usize,
}

impl TermStep {
    /// Whether each place of the term counts.
    pub fn is_unlimited(&self) -> bool {
        self.limit == Limit::NONE && !self.at_start && !self.at_end && self.zones.is_none()
    }

    /// Whether a place of the term counts, if it is in one of its zones.
    pub fn counts(&self, place: PackedPosition) -> bool {
        if self.zones.is_some() {
            return self.limit.fields.contains(place.field());
        }
        // A limit of positions overrides `^` and `$`.
        let is_within = match self.limit.last_position {
            0 => (!self.at_start || place.position() == 1) && (!self.at_end || place.is_last()),
            last => place.position() <= last,
        };
        is_within && self.limit.fields.contains(place.field())
    }
}

/// The words of a phrase.
#[derive(Clone, Debug)]
pub(crate) struct PhraseWords {
    /// The words, in the order in which their sums are added. A wildcard has several at one
    /// position.
    pub leaves: Vec<Step>,
    /// Their positions in the query, ascending.
    pub positions: Vec<u32>,
}

/// A word of a quorum, and how often it was written.
#[derive(Clone, Debug)]
pub(crate) struct QuorumWord {
    /// The word at its first occurrence.
    pub step: Step,
    /// The number of times it was written.
    pub times: usize,
}
