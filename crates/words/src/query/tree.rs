//! The tree of a query.

use std::sync::Arc;

/// A part of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Every document. It stands only before an exclusion.
    Every,
    /// A word.
    Word(Word),
    /// Words within quotes: a phrase, words near each other, or a minimum number of words.
    Quoted(Quoted),
    /// All of them match.
    And(Vec<Node>),
    /// At least one of them matches.
    Or(Vec<Node>),
    /// The first matches; the others only add weight.
    Maybe(Vec<Node>),
    /// The first matches and the second does not.
    AndNot(Box<Node>, Box<Node>),
    /// They match one after the other in one field: `a << b`.
    Before(Vec<Node>),
    /// They match between the same two marks: `a SENTENCE b`.
    Unit(Vec<Node>, TextUnit),
    /// The first matches at places that none of the others is close to: `a NOTNEAR/3 b`.
    NotNear {
        /// What matches.
        wanted: Box<Node>,
        /// What must not be close.
        unwanted: Vec<Node>,
        /// The greatest distance in words, on either side, that counts as close.
        distance: u32,
    },
    /// Each is close to the one before it: `a NEAR/3 b`.
    Near {
        /// The operands.
        parts: Vec<Node>,
        /// The greatest distance from the end of one to the start of the next, in words.
        distance: u32,
    },
}

/// A part of a text, between two of its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextUnit {
    /// A sentence.
    Sentence,
    /// A paragraph.
    Paragraph,
}

/// The zones in one of which a word must be: `ZONE:h1`, `ZONE:(h1,h2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zones {
    /// Their names in lower case.
    pub names: Vec<String>,
    /// `ZONESPAN:h1`: words without an operator between them must be in one zone together.
    pub is_span: bool,
}

/// A word of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The word as tokenized: folded, before stemming. May contain the wildcards `*`, `?` and `%`.
    pub text: String,
    /// The position of the word in the query, from 1; stop words count.
    pub position: u32,
    /// `=word`: matches only this form, not its stem.
    pub is_exact: bool,
    /// `^word`: must be the first of its field.
    pub at_start: bool,
    /// `word$`: must be the last of its field.
    pub at_end: bool,
    /// `word^2.5`: a factor of its idf.
    pub boost: f32,
    /// The fields and positions in which it may match.
    pub limit: Limit,
    /// The zones in which it may match, and then at each position; `None` for no limit.
    pub zones: Option<Arc<Zones>>,
    /// Other words that may stand at its place. They have none themselves.
    pub others: Vec<Word>,
    /// If it has wildcards, the most keywords that it stands for, those with the most documents; 0 for no limit.
    pub most_expansions: u32,
}

/// Words within quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Quoted {
    /// The words, in order of their positions.
    pub words: Vec<Word>,
    /// How they must match.
    pub kind: QuotedKind,
}

/// How words within quotes must match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QuotedKind {
    /// `"a b"`: at the same distances as in the query.
    Phrase,
    /// `"a b"~5`: in any order, with fewer than this many other words between them.
    Proximity(u32),
    /// `"a b c"/2`: at least this many of them.
    Quorum(u32),
    /// `"a b c"/0.5`: at least this share of them.
    QuorumShare(f32),
}

/// The fields and positions in which a part of a query may match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The fields.
    pub fields: FieldMask,
    /// The greatest position that counts; 0 for no limit.
    pub last_position: u32,
}

impl Limit {
    /// No limit.
    pub const NONE: Self = Self { fields: FieldMask::ALL, last_position: 0 };
}

/// A set of up to 256 fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldMask([u64; 4]);

impl FieldMask {
    /// All fields.
    pub const ALL: Self = Self([u64::MAX; 4]);
    /// No field.
    pub const NONE: Self = Self([0; 4]);

    /// Adds a field.
    pub fn insert(&mut self, field: u8) {
        self.0[usize::from(field) / 64] |= 1 << (field % 64);
    }

    /// Whether the set contains the field.
    pub fn contains(&self, field: u8) -> bool {
        self.0[usize::from(field) / 64] >> (field % 64) & 1 == 1
    }

    /// All fields that are not in the set.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// The first 32 fields as bits.
    pub fn low_bits(&self) -> u32 {
        self.0[0] as u32
    }
}
