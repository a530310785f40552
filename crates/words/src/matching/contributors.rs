//! What the words of a query can add to a document's weight, before any of their places is read.

use super::step::{Leaf, Repeated, Step};

/// A word at one place of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contributor {
    /// The number of its term.
    pub term: usize,
    /// What its share of the sum is multiplied by.
    pub idf: f32,
}

/// The words of a query that can add to weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Contributors {
    /// One for each place of the query at which a word stands.
    pub words: Vec<Contributor>,
    /// Whether a document that is found has all of them.
    pub is_all: bool,
    /// Whether each of them counts wherever it stands, so that one with a negative idf lowers the sum.
    pub is_certain: bool,
    /// Of words close together how many they are: each group of them in a document is a run of its own, and runs may
    /// go on in the next one. Else no word stands in a run more often than in the query.
    pub window: Option<u32>,
}

impl Contributors {
    /// Those of a step; `None` where one word may stand in a run more often than the query has it.
    pub(super) fn of(step: &Step) -> Option<Self> {
        let mut words = Vec::new();
        if let Step::Proximity(near, _) = step {
            let is_all = collect(&Step::And(near.leaves.clone()), &mut words)?;
            let window = Some(near.positions.len() as u32);
            return Some(Self { words, is_all, is_certain: is_all, window });
        }
        let is_all = collect(step, &mut words)?;
        let is_plain =
            |part: &Step| matches!(part, Step::Leaf(leaf) if leaf.is_unlimited() && !leaf.is_union);
        let is_certain = is_all || matches!(step, Step::Or(parts) if parts.iter().all(is_plain));
        Some(Self { words, is_all, is_certain, window: None })
    }
}

/// Appends the words of a step, and tells whether each is in every document that it finds.
fn collect(step: &Step, words: &mut Vec<Contributor>) -> Option<bool> {
    let mut each = |steps: &[Step]| {
        let all: Option<Vec<bool>> = steps.iter().map(|step| collect(step, words)).collect();
        Some(all?.into_iter().all(|is_all| is_all))
    };
    match step {
        Step::Leaf(Leaf { term, idf, is_union, .. }) => {
            // What a wildcard stands for may count less often than it stands there: it must not be told to lower
            // a sum by more than it does.
            let idf = if *is_union { idf.max(0.0) } else { *idf };
            words.push(Contributor { term: *term, idf });
            Some(true)
        }
        Step::And(parts) => each(parts),
        Step::Phrase(phrase) => each(&phrase.leaves),
        Step::Or(parts) | Step::Maybe(parts) => {
            each(parts)?;
            Some(parts.len() == 1)
        }
        Step::Quorum(parts, _) => {
            for Repeated { step, times } in parts {
                for _ in 0..*times {
                    collect(step, words)?;
                }
            }
            Some(false)
        }
        Step::AndNot(wanted, _) => collect(wanted, words),
        Step::Nothing => Some(true),
        Step::Proximity(..) | Step::Before(_) | Step::Near { .. } => None,
    }
}
