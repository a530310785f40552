//! The shape of a query: a tree over the numbers of its words that decides whether a text matches.

use super::terms::Terms;
use crate::{
    analysis::Analyzer,
    query::{Node, Quoted, QuotedKind, Word as QueryWord},
};

/// A query over word numbers.
#[derive(Debug)]
pub(super) enum Shape {
    Word(SnippetWord),
    Phrase(Vec<SnippetWord>),
    /// A phrase with everything between its words.
    Span(Vec<SnippetWord>),
    Proximity(Vec<SnippetWord>, u32),
    Quorum(Vec<SnippetWord>, usize),
    And(Vec<Shape>),
    Or(Vec<Shape>),
    Maybe(Vec<Shape>),
    AndNot(Box<Shape>, Box<Shape>),
    /// The parts in this order.
    Before(Vec<Shape>),
    /// The parts in any order, each at most this many words after another.
    Near(Vec<Shape>, u32),
}

/// A word of the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnippetWord {
    /// Its number; `None` for a word that matches no text.
    pub term: Option<u32>,
    /// The position of the word in the query.
    pub position: u32,
    pub at_start: bool,
    pub at_end: bool,
    /// The greatest position that counts; 0 for no limit.
    pub last_position: u32,
}

impl Shape {
    /// The shape of a parsed query. Adds its words to `terms`.
    pub(super) fn new(node: &Node, terms: &mut Terms, analyzer: &Analyzer) -> Self {
        let mut leaf = |word: &QueryWord| SnippetWord {
            term: terms.add_word(word, analyzer),
            position: word.position,
            at_start: word.at_start,
            at_end: word.at_end,
            last_position: word.limit.last_position,
        };
        match node {
            Node::Every => Self::And(Vec::new()),
            Node::Word(word) => Self::Word(leaf(word)),
            Node::Quoted(Quoted { words, kind }) => {
                let leaves: Vec<SnippetWord> = words.iter().map(leaf).collect();
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
            Node::And(parts) | Node::Unit(parts, _) => Self::And(Self::all(parts, terms, analyzer)),
            Node::Or(parts) => Self::Or(Self::all(parts, terms, analyzer)),
            Node::Maybe(parts) => Self::Maybe(Self::all(parts, terms, analyzer)),
            Node::Before(parts) => Self::Before(Self::all(parts, terms, analyzer)),
            Node::Near { parts, distance } => {
                Self::Near(Self::all(parts, terms, analyzer), *distance)
            }
            Node::NotNear { wanted, .. } => Self::new(wanted, terms, analyzer),
            Node::AndNot(left, right) => {
                let left = Self::new(left, terms, analyzer);
                Self::AndNot(Box::new(left), Box::new(Self::new(right, terms, analyzer)))
            }
        }
    }

    /// The parts of a query that may match in one text of a row found by the query: any part that is not excluded.
    pub(super) fn of_search(node: &Node, terms: &mut Terms, analyzer: &Analyzer) -> Self {
        let mut all = |parts: &[Node]| {
            Self::Or(parts.iter().map(|part| Self::of_search(part, terms, analyzer)).collect())
        };
        match node {
            Node::And(parts) | Node::Or(parts) | Node::Maybe(parts) | Node::Unit(parts, _) => {
                all(parts)
            }
            Node::AndNot(part, _) => Self::of_search(part, terms, analyzer),
            Node::Quoted(Quoted {
                words,
                kind: QuotedKind::Quorum(_) | QuotedKind::QuorumShare(_),
            }) => {
                let words: Vec<Node> = words.iter().cloned().map(Node::Word).collect();
                all(&words)
            }
            _ => Self::new(node, terms, analyzer),
        }
    }

    /// The number of parts joined by `<<` and `NEAR`.
    pub(super) fn joined(&self) -> usize {
        let all = |parts: &[Self]| parts.iter().map(Self::joined).sum::<usize>();
        match self {
            Self::Word(_) | Self::Phrase(_) | Self::Span(_) => 0,
            Self::Proximity(..) | Self::Quorum(..) => 0,
            Self::And(parts) | Self::Or(parts) | Self::Maybe(parts) => all(parts),
            Self::Before(parts) | Self::Near(parts, _) => parts.len() + all(parts),
            Self::AndNot(part, without) => part.joined() + without.joined(),
        }
    }

    fn all(parts: &[Node], terms: &mut Terms, analyzer: &Analyzer) -> Vec<Self> {
        parts.iter().map(|part| Self::new(part, terms, analyzer)).collect()
    }
}
