//! The steps that a query is made of.

use super::hit::Place;
use crate::query::Limit;

/// A part of a query whose words are known.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One term.
    Leaf(Leaf),
    /// All of them, in the order their sums are added.
    And(Vec<Step>),
    /// Any of them.
    Or(Vec<Step>),
    /// The first; the others add to it.
    Maybe(Vec<Step>),
    /// The first without the second.
    AndNot(Box<Step>, Box<Step>),
    /// Words at their distances.
    Phrase(Words),
    /// Words close together.
    Proximity(Words, u32),
    /// So many of the words.
    Quorum(Vec<Repeated>, u32),
    /// One behind the other.
    Before(Vec<Step>),
    /// Each close to the one before.
    Near {
        /// In the order of the query.
        parts: Vec<Step>,
        /// The order in which their sums are added.
        order: Vec<usize>,
        /// The greatest distance.
        distance: u32,
    },
    /// Nothing is found: a phrase of no word.
    Nothing,
}

/// One term at one place of the query.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// The number of the term.
    pub term: usize,
    /// Its position in the query.
    pub query_position: u32,
    /// Its position among the parts that a NEAR joins.
    pub node_position: u32,
    /// What its share of the sum is multiplied by: 0 where the word stands in the query before.
    pub idf: f32,
    /// The fields and positions that count.
    pub limit: Limit,
    /// As the first of its field.
    pub at_start: bool,
    /// As the last of its field.
    pub at_end: bool,
    /// Whether the term is what a wildcard stands for: how often it stands in a document is then how often it
    /// stands where it counts.
    pub is_union: bool,
}

impl Leaf {
    /// Whether each place of the term counts.
    pub fn is_unlimited(&self) -> bool {
        self.limit == Limit::NONE && !self.at_start && !self.at_end
    }

    /// Whether a place of the term counts.
    pub fn counts(&self, place: Place) -> bool {
        // A limit of positions leaves nothing of `^` and `$`.
        let is_within = match self.limit.last_position {
            0 => (!self.at_start || place.position() == 1) && (!self.at_end || place.is_last()),
            last => place.position() <= last,
        };
        is_within && self.limit.fields.contains(place.field())
    }
}

/// The words of a phrase.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// In the order in which their sums are added: several of one position where it is a wildcard's.
    pub leaves: Vec<Step>,
    /// Their positions in the query, ascending.
    pub positions: Vec<u32>,
}

/// A word of a quorum, and how often it was written.
#[derive(Clone, Debug)]
pub(crate) struct Repeated {
    /// The word where it stands first.
    pub step: Step,
    /// How often.
    pub times: usize,
}
