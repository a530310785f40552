//! Upper bounds on what a query's words can add to a document's weight, before any position is read.

use super::{
    step::{PhraseWords, QuorumWord, Step, TermStep},
    term::Term,
};

/// A word at one place of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contributor {
    /// The term.
    pub term: usize,
    /// The factor of its contribution to the sum.
    pub idf: f32,
    /// The position of the word in the query.
    pub position: u32,
}

/// The words of a query that can add to weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Contributors {
    /// One for each position of the query with a word.
    pub words: Vec<Contributor>,
    /// Whether every matching document contains all of them.
    pub is_all: bool,
    /// Whether every occurrence of each word counts, so that a negative idf certainly lowers the sum.
    pub is_certain: bool,
    /// For words that must be close together (proximity), their number: each group of them in a document is a
    /// run of its own, and a run may continue in the next group. 1 for phrases whose matches may continue in
    /// each other: then a run has no more words than the total of their occurrences. `None` otherwise: then a
    /// word is in a run at most as often as in the query.
    pub window: Option<u32>,
    /// Whether each hit is one of these words at its position of the query, so that runs consist of nothing
    /// else.
    pub are_hits: bool,
}

impl Contributors {
    /// The words of a step; `None` if a word may be in a run more often than in the query, and
    /// [`Contributors::window`] does not describe how.
    pub(super) fn of(step: &Step, terms: &[Term]) -> Option<Self> {
        let mut words = Vec::new();
        if let Step::Proximity(near, _) = step {
            let is_all = collect(&Step::And(near.leaves.clone()), &mut words)?;
            let window = Some(near.positions.len() as u32);
            return Some(Self { words, is_all, is_certain: is_all, window, are_hits: false });
        }
        // Hits of exclusions deeper in the tree count too, some of them twice.
        let wanted = if let Step::AndNot(wanted, _) = step { wanted } else { step };
        let is_all = collect(wanted, &mut words)?;
        let is_plain =
            |part: &Step| matches!(part, Step::Leaf(leaf) if leaf.is_unlimited() && !leaf.is_union);
        let is_certain = is_all || matches!(step, Step::Or(parts) if parts.iter().all(is_plain));
        let window = may_chain(wanted, terms).then_some(1);
        let are_hits = window.is_none() && are_words(wanted);
        Some(Self { words, is_all, is_certain, window, are_hits })
    }
}

/// Whether each hit of a step is a word.
fn are_words(step: &Step) -> bool {
    match step {
        Step::Leaf(_) | Step::Nothing => true,
        Step::And(parts) | Step::Or(parts) => parts.iter().all(are_words),
        Step::Quorum(parts, _) => parts.iter().all(|part| are_words(&part.step)),
        _ => false,
    }
}

/// Whether a run may continue from one match of a phrase to the next: if the last word of one phrase is the
/// first word of another or of itself.
fn may_chain(step: &Step, terms: &[Term]) -> bool {
    let mut phrases = Vec::new();
    phrases_of(step, &mut phrases);
    match phrases.as_slice() {
        [] => false,
        [only] => !ends_otherwise(only, terms),
        _ => true,
    }
}

fn phrases_of<'s>(step: &'s Step, out: &mut Vec<&'s PhraseWords>) {
    match step {
        Step::Phrase(phrase) if phrase.leaves.len() > 1 => out.push(phrase),
        Step::And(parts) | Step::Or(parts) | Step::Maybe(parts) | Step::Unit(parts, _) => {
            parts.iter().for_each(|part| phrases_of(part, out));
        }
        Step::AndNot(wanted, _) => phrases_of(wanted, out),
        Step::Quorum(parts, _) => parts.iter().for_each(|part| phrases_of(&part.step, out)),
        _ => {}
    }
}

/// Whether the last word of a phrase certainly differs from its first. Keywords of only letters and digits are
/// never at the same place; a form kept beside its stem, or a blended word, has other characters.
fn ends_otherwise(phrase: &PhraseWords, terms: &[Term]) -> bool {
    let at = |position: Option<&u32>| -> Option<Vec<&str>> {
        let mut keywords = Vec::new();
        for leaf in &phrase.leaves {
            let Step::Leaf(leaf) = leaf else { return None };
            if Some(&leaf.query_position) == position {
                let term = terms.get(leaf.term).filter(|term| !term.is_union)?;
                keywords.extend(term.keywords.iter().map(String::as_str));
            }
        }
        let is_plain = |keyword: &&str| keyword.chars().all(char::is_alphanumeric);
        (!keywords.is_empty() && keywords.iter().all(is_plain)).then_some(keywords)
    };
    match (at(phrase.positions.first()), at(phrase.positions.last())) {
        (Some(first), Some(last)) => !first.iter().any(|keyword| last.contains(keyword)),
        _ => false,
    }
}

fn of_leaf(leaf: &TermStep) -> Contributor {
    // Fewer occurrences of a wildcard may count than it has, so a negative idf must not lower the bound.
    let idf = if leaf.is_union { leaf.idf.max(0.0) } else { leaf.idf };
    Contributor { term: leaf.term, idf, position: leaf.query_position }
}

/// Appends the words of a step; true if every document it matches contains each of them.
fn collect(step: &Step, words: &mut Vec<Contributor>) -> Option<bool> {
    let mut each = |steps: &[Step]| {
        let all: Option<Vec<bool>> = steps.iter().map(|step| collect(step, words)).collect();
        Some(all?.into_iter().all(|is_all| is_all))
    };
    match step {
        Step::Leaf(leaf) => {
            words.push(of_leaf(leaf));
            Some(true)
        }
        Step::InOneZone(leaves) => {
            words.extend(leaves.iter().map(of_leaf));
            Some(true)
        }
        Step::And(parts) | Step::Unit(parts, _) => each(parts),
        Step::Phrase(phrase) => each(&phrase.leaves),
        Step::Or(parts) | Step::Maybe(parts) => {
            each(parts)?;
            Some(parts.len() == 1)
        }
        Step::Quorum(parts, _) => {
            for QuorumWord { step, times } in parts {
                for _ in 0..*times {
                    collect(step, words)?;
                }
            }
            Some(false)
        }
        Step::Nothing => Some(true),
        Step::Every
        | Step::AndNot(..)
        | Step::NotNear(..)
        | Step::Proximity(..)
        | Step::Before(_)
        | Step::Near { .. } => None,
    }
}
