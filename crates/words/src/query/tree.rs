//! What a query asks for, as a tree.

/// A part of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One word.
    Word(Word),
    /// Words between quotes that stand next to each other, or near enough, or of which enough are there.
    Quoted(Quoted),
    /// All of them.
    And(Vec<Node>),
    /// One of them at least.
    Or(Vec<Node>),
    /// The first; the others add to its weight.
    Maybe(Vec<Node>),
    /// The first, without the second.
    AndNot(Box<Node>, Box<Node>),
    /// One behind the other in one field: `a << b`.
    Before(Vec<Node>),
    /// Each close to the one before it: `a NEAR/3 b`.
    Near {
        /// What is close to each other.
        parts: Vec<Node>,
        /// From the end of one to the start of the next, in words.
        distance: u32,
    },
}

/// One word of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// As it was tokenised: folded, before stemming. It may hold the wildcards `*`, `?` and `%`.
    pub text: String,
    /// Its place among the words of the query, from 1; words that are left out have one too.
    pub position: u32,
    /// `=word`: as it stands, not as it is stemmed.
    pub is_exact: bool,
    /// `^word`: as the first of its field.
    pub at_start: bool,
    /// `word$`: as the last of its field.
    pub at_end: bool,
    /// `word^2.5`: a factor of its idf.
    pub boost: f32,
    /// Where it may stand.
    pub limit: Limit,
}

/// Words between quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Quoted {
    /// The words, in order of their positions.
    pub words: Vec<Word>,
    /// How they belong together.
    pub kind: QuotedKind,
}

/// How words between quotes belong together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QuotedKind {
    /// `"a b"`: at their distances in the query.
    Phrase,
    /// `"a b"~5`: in any order, with fewer than so many others between them.
    Proximity(u32),
    /// `"a b c"/2`: so many of them.
    Quorum(u32),
    /// `"a b c"/0.5`: this share of them.
    QuorumShare(f32),
}

/// The fields, and the positions in them, that a part of a query is limited to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The fields, one bit each, as [`FieldMask`] has them.
    pub fields: FieldMask,
    /// The last position that counts; 0 if all do.
    pub last_position: u32,
}

impl Limit {
    /// No limit at all.
    pub const NONE: Self = Self { fields: FieldMask::ALL, last_position: 0 };
}

/// A set of fields: up to 256 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldMask([u64; 4]);

impl FieldMask {
    /// Every field.
    pub const ALL: Self = Self([u64::MAX; 4]);
    /// No field.
    pub const NONE: Self = Self([0; 4]);

    /// Adds a field.
    pub fn insert(&mut self, field: u8) {
        self.0[usize::from(field) / 64] |= 1 << (field % 64);
    }

    /// Whether the field is among them.
    pub fn contains(&self, field: u8) -> bool {
        self.0[usize::from(field) / 64] >> (field % 64) & 1 == 1
    }

    /// All fields that are not among them.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// The first 32 fields as bits.
    pub fn low_bits(&self) -> u32 {
        self.0[0] as u32
    }
}
