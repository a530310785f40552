//! Which words of a text a query marks: those that make it match, and none if it does not.

use rustc_hash::FxHashSet;

use super::terms::Terms;
use crate::{
    analysis::Analyzer,
    query::{Node, Quoted, QuotedKind, Word as QueryWord},
};

/// How many places are looked at in one text at most; a query that needs more marks nothing.
pub(super) const MAX_STEPS: u64 = 20_000_000;

/// A query over the numbers of its words.
#[derive(Debug)]
pub(super) enum Shape {
    Word(Leaf),
    Phrase(Vec<Leaf>),
    /// A phrase with all that stands between its words.
    Span(Vec<Leaf>),
    Proximity(Vec<Leaf>, u32),
    Quorum(Vec<Leaf>, usize),
    And(Vec<Shape>),
    Or(Vec<Shape>),
    Maybe(Vec<Shape>),
    AndNot(Box<Shape>, Box<Shape>),
    /// Each at most so many words behind the one before, or anywhere behind it.
    Before(Vec<Shape>),
    Near(Vec<Shape>, u32),
}

/// A word of the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// Its number; `None` for a word that no text has.
    pub term: Option<u32>,
    /// Its position in the query.
    pub position: u32,
    pub at_start: bool,
    pub at_end: bool,
    /// The last position that counts; 0: all do.
    pub last_position: u32,
}

impl Shape {
    /// The shape of a parsed query; its words are added to `terms`.
    pub(super) fn new(node: &Node, terms: &mut Terms, analyzer: &Analyzer) -> Self {
        let mut leaf = |word: &QueryWord| Leaf {
            term: terms.add_word(word, analyzer),
            position: word.position,
            at_start: word.at_start,
            at_end: word.at_end,
            last_position: word.limit.last_position,
        };
        match node {
            Node::Word(word) => Self::Word(leaf(word)),
            Node::Quoted(Quoted { words, kind }) => {
                let leaves: Vec<Leaf> = words.iter().map(leaf).collect();
                match *kind {
                    QuotedKind::Phrase => Self::Phrase(leaves),
                    QuotedKind::Proximity(distance) => Self::Proximity(leaves, distance),
                    QuotedKind::Quorum(count) => Self::Quorum(leaves, count as usize),
                    QuotedKind::QuorumShare(share) => {
                        let count = (share * leaves.len() as f32).round().max(1.0);
                        Self::Quorum(leaves, count as usize)
                    }
                }
            }
            Node::And(parts) => Self::And(Self::all(parts, terms, analyzer)),
            Node::Or(parts) => Self::Or(Self::all(parts, terms, analyzer)),
            Node::Maybe(parts) => Self::Maybe(Self::all(parts, terms, analyzer)),
            Node::Before(parts) => Self::Before(Self::all(parts, terms, analyzer)),
            Node::Near { parts, distance } => {
                Self::Near(Self::all(parts, terms, analyzer), *distance)
            }
            Node::AndNot(left, right) => {
                let left = Self::new(left, terms, analyzer);
                Self::AndNot(Box::new(left), Box::new(Self::new(right, terms, analyzer)))
            }
        }
    }

    fn all(parts: &[Node], terms: &mut Terms, analyzer: &Analyzer) -> Vec<Self> {
        parts.iter().map(|part| Self::new(part, terms, analyzer)).collect()
    }
}

/// Where the words of a query stand in a text.
pub(super) struct Places {
    /// For each of the query's words the numbers of the text's words, ascending.
    pub of_term: Vec<Vec<u32>>,
    /// The position of each word of the text.
    pub positions: Vec<u32>,
    pub steps: u64,
}

impl Places {
    /// The numbers of the words that the query marks, ascending; `None` if the text does not match.
    pub(super) fn marked(&mut self, shape: &Shape) -> Option<Vec<u32>> {
        let found = match shape {
            Shape::Word(leaf) => self.word(*leaf),
            Shape::Phrase(leaves) => self.phrase(leaves),
            Shape::Span(leaves) => {
                let found = self.phrase(leaves);
                let each = found.chunks(leaves.len().max(1));
                each.filter_map(|one| Some(*one.first()?..=*one.last()?)).flatten().collect()
            }
            Shape::Proximity(leaves, distance) => self.proximity(leaves, *distance),
            Shape::Quorum(leaves, count) => self.quorum(leaves, *count),
            Shape::And(parts) => {
                let all: Option<Vec<_>> = parts.iter().map(|part| self.marked(part)).collect();
                all?.concat()
            }
            Shape::Or(parts) => {
                let any: Vec<_> = parts.iter().filter_map(|part| self.marked(part)).collect();
                any.concat()
            }
            Shape::Maybe(parts) => {
                let mut parts = parts.iter();
                let mut all = self.marked(parts.next()?)?;
                all.extend(parts.filter_map(|part| self.marked(part)).flatten());
                all
            }
            Shape::AndNot(left, right) => {
                let found = self.marked(left)?;
                if self.marked(right).is_some() { Vec::new() } else { found }
            }
            Shape::Before(parts) => self.ordered(parts)?,
            Shape::Near(parts, distance) => self.near(parts, *distance)?,
        };
        let mut found = found;
        self.steps += found.len() as u64;
        if found.is_empty() || self.steps > MAX_STEPS {
            return None;
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    fn position(&self, number: u32) -> u32 {
        self.positions.get(number as usize).copied().unwrap_or(0)
    }

    fn word(&mut self, leaf: Leaf) -> Vec<u32> {
        let Some(places) = leaf.term.and_then(|term| self.of_term.get(term as usize)) else {
            return Vec::new();
        };
        self.steps += 1 + places.len() as u64;
        if self.steps > MAX_STEPS {
            return Vec::new();
        }
        let end = self.positions.last().copied().unwrap_or(0);
        let counts = |number: &u32| {
            let position = self.position(*number);
            (!leaf.at_start || position == 1)
                && (!leaf.at_end || position == end)
                && (leaf.last_position == 0 || position <= leaf.last_position)
        };
        places.iter().copied().filter(counts).collect()
    }

    /// The words of every phrase, those that overlap too.
    fn phrase(&mut self, leaves: &[Leaf]) -> Vec<u32> {
        let Some((first, rest)) = leaves.split_first() else { return Vec::new() };
        let places: Vec<Vec<u32>> = rest.iter().map(|leaf| self.word(*leaf)).collect();
        let mut found = Vec::new();
        'starts: for start in self.word(*first) {
            let origin = self.position(start);
            let size = found.len();
            found.push(start);
            for (leaf, places) in rest.iter().zip(&places) {
                self.steps += 1;
                let wanted = origin + (leaf.position.saturating_sub(first.position));
                let at = places.binary_search_by_key(&wanted, |number| self.position(*number));
                let Some(number) = at.ok().and_then(|at| places.get(at)) else {
                    found.truncate(size);
                    if self.steps > MAX_STEPS {
                        return Vec::new();
                    }
                    continue 'starts;
                };
                found.push(*number);
            }
        }
        found
    }

    /// The words of every narrow enough window that has all.
    fn proximity(&mut self, leaves: &[Leaf], distance: u32) -> Vec<u32> {
        let mut places = Vec::new();
        for (leaf, word) in leaves.iter().zip(0_usize..) {
            places.extend(self.word(*leaf).into_iter().map(|number| (number, word)));
        }
        places.sort_unstable();
        let span = match (leaves.first(), leaves.last()) {
            (Some(first), Some(last)) => last.position.saturating_sub(first.position),
            _ => 0,
        };
        let widest = span.saturating_add(distance);
        let (mut counts, mut missing, mut start) = (vec![0_u32; leaves.len()], leaves.len(), 0);
        let (mut found, mut told) = (Vec::new(), 0);
        for (end, (number, word)) in places.iter().enumerate() {
            missing -= usize::from(counts[*word] == 0);
            counts[*word] += 1;
            while self.position(*number) - self.position(places[start].0) >= widest.max(1) {
                let left = places[start].1;
                counts[left] -= 1;
                missing += usize::from(counts[left] == 0);
                start += 1;
            }
            if missing == 0 {
                found.extend(places[start.max(told)..=end].iter().map(|place| place.0));
                told = end + 1;
            }
        }
        found
    }

    fn quorum(&mut self, leaves: &[Leaf], count: usize) -> Vec<u32> {
        let places: Vec<Vec<u32>> = leaves.iter().map(|leaf| self.word(*leaf)).collect();
        let there = places.iter().filter(|places| !places.is_empty()).count();
        if there < count.min(leaves.len()) { Vec::new() } else { places.concat() }
    }

    /// The words of each part that have the part before in front and the next one behind them.
    fn ordered(&mut self, parts: &[Shape]) -> Option<Vec<u32>> {
        let mut all: Vec<Vec<u32>> = Vec::new();
        for part in parts {
            let mut found = self.marked(part)?;
            let after = all.last().and_then(|before| before.first().copied());
            found.retain(|number| after.is_none_or(|after| *number > after));
            if found.is_empty() {
                return None;
            }
            all.push(found);
        }
        for at in (1..all.len()).rev() {
            let last = all[at].last().copied()?;
            all[at - 1].retain(|number| *number < last);
        }
        Some(all.concat())
    }

    /// The words of each part that are near to one of the next part or of the one before.
    fn near(&mut self, parts: &[Shape], distance: u32) -> Option<Vec<u32>> {
        let all: Option<Vec<Vec<u32>>> = parts.iter().map(|part| self.marked(part)).collect();
        let all = all?;
        let mut found = FxHashSet::default();
        for pair in all.windows(2) {
            let size = found.len();
            for (one, other) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
                found.extend(one.iter().copied().filter(|number| {
                    let here = self.position(*number);
                    let at = other.partition_point(|other| other < number);
                    let beside = other.iter().skip(at.saturating_sub(1)).take(2);
                    let mut distances = beside.map(|other| self.position(*other).abs_diff(here));
                    distances.any(|apart| apart > 0 && apart <= distance)
                }));
            }
            if found.len() == size {
                return None;
            }
        }
        Some(found.into_iter().collect())
    }
}
