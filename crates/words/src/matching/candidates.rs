//! The candidate documents of a query, as set operations on the posting lists of its terms.

use super::step::{PhraseWords, QuorumWord, Step, TermStep};

/// A set of documents, by the terms they contain.
#[derive(Clone, Debug, PartialEq)]
pub enum Candidates {
    /// Every document.
    Every,
    /// Documents that contain the term.
    Term(usize),
    /// Documents that are in every one of the sets.
    All(Vec<Candidates>),
    /// Documents that are in at least one of the sets.
    Any(Vec<Candidates>),
    /// Documents that are in at least so many of the sets.
    AtLeast(Vec<Candidates>, usize),
    /// The first without the second.
    Without(Box<Candidates>, Box<Candidates>),
}

impl Candidates {
    /// The candidates of a step, and whether every candidate matches.
    pub(super) fn of(step: &Step) -> (Self, bool) {
        match step {
            Step::Every => (Self::Every, true),
            Step::Leaf(leaf) => Self::of_leaf(leaf),
            Step::And(parts) => Self::of_all(parts),
            Step::Or(parts) => {
                let (any, exact): (Vec<_>, Vec<bool>) = parts.iter().map(Self::of).unzip();
                (Self::Any(any), exact.into_iter().all(|exact| exact))
            }
            Step::Maybe(parts) => parts.first().map_or((Self::Any(Vec::new()), true), Self::of),
            Step::AndNot(wanted, unwanted) => {
                let ((wanted, is_exact), (unwanted, is_certain)) =
                    (Self::of(wanted), Self::of(unwanted));
                match is_certain {
                    true => (Self::Without(Box::new(wanted), Box::new(unwanted)), is_exact),
                    false => (wanted, false),
                }
            }
            Step::Phrase(words) | Step::Proximity(words, _) => Self::of_words(words),
            Step::Quorum(words, least) => {
                let of = |word: &QuorumWord| Self::of(&word.step);
                let (parts, exact): (Vec<_>, Vec<bool>) = words.iter().map(of).unzip();
                // A word that is written twice may count twice in a quorum.
                let is_counted = words.iter().all(|word| word.times == 1);
                let is_exact = exact.into_iter().all(|exact| exact);
                match (*least as usize, is_counted) {
                    (0 | 1, _) => (Self::Any(parts), is_exact),
                    (least, true) => (Self::AtLeast(parts, least), is_exact),
                    (_, false) => (Self::Any(parts), false),
                }
            }
            Step::Before(parts) | Step::Unit(parts, _) | Step::Near { parts, .. } => {
                (Self::of_all(parts).0, false)
            }
            Step::InOneZone(leaves) => {
                let terms = leaves.iter().map(|leaf| Self::Term(leaf.term));
                (Self::All(terms.collect()), false)
            }
            Step::NotNear(wanted, ..) => (Self::of(wanted).0, false),
            Step::Nothing => (Self::Any(Vec::new()), true),
        }
    }

    fn of_leaf(leaf: &TermStep) -> (Self, bool) {
        (Self::Term(leaf.term), leaf.is_unlimited())
    }

    fn of_words(words: &PhraseWords) -> (Self, bool) {
        (Self::of_all(&words.leaves).0, false)
    }

    fn of_all(parts: &[Step]) -> (Self, bool) {
        let (all, exact): (Vec<_>, Vec<bool>) = parts.iter().map(Self::of).unzip();
        (Self::All(all), exact.into_iter().all(|exact| exact))
    }
}
