//! The tree of an expression.

use super::{functions::Function, value_kind::ValueKind};

/// The type of a column in expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// An integer of at most 32 bits.
    Integer,
    /// A longer integer.
    BigInteger,
    /// A real.
    Real,
}

/// The value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attribute {
    /// Of [`AttributeKind::Integer`] or [`AttributeKind::BigInteger`].
    Integer(i64),
    /// Of [`AttributeKind::Real`].
    Real(f32),
}

/// The columns that an expression may use.
pub trait Attributes {
    /// The number under which the value is read, and its type; `None` if there is no numeric column with this name.
    /// The name is in lower case.
    fn find(&self, name: &str) -> Option<(usize, AttributeKind)>;
}

/// No columns.
impl Attributes for () {
    fn find(&self, _name: &str) -> Option<(usize, AttributeKind)> {
        None
    }
}

/// A factor without parameters of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rank) enum Factor {
    Bm25,
    MaxLcs,
    FieldMask,
    QueryWordCount,
    DocWordCount,
    Lcs,
    UserWeight,
    HitCount,
    WordCount,
    TfIdf,
    MinIdf,
    MaxIdf,
    SumIdf,
    MinHitPosition,
    MinBestSpanPosition,
    ExactHit,
    ExactOrder,
    MinGaps,
    Lccs,
    Wlccs,
    Closeness,
    MaxWindowHits,
    Bm25a,
}

impl Factor {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "bm25" => Self::Bm25,
            "max_lcs" => Self::MaxLcs,
            "field_mask" => Self::FieldMask,
            "query_word_count" => Self::QueryWordCount,
            "doc_word_count" => Self::DocWordCount,
            "lcs" => Self::Lcs,
            "user_weight" => Self::UserWeight,
            "hit_count" => Self::HitCount,
            "word_count" => Self::WordCount,
            "tf_idf" => Self::TfIdf,
            "min_idf" => Self::MinIdf,
            "max_idf" => Self::MaxIdf,
            "sum_idf" => Self::SumIdf,
            "min_hit_pos" => Self::MinHitPosition,
            "min_best_span_pos" => Self::MinBestSpanPosition,
            "exact_hit" => Self::ExactHit,
            "exact_order" => Self::ExactOrder,
            "min_gaps" => Self::MinGaps,
            "lccs" => Self::Lccs,
            "wlccs" => Self::Wlccs,
            "atc" => Self::Closeness,
            _ => return None,
        })
    }

    pub(super) fn kind(self) -> ValueKind {
        match self {
            Self::TfIdf
            | Self::MinIdf
            | Self::MaxIdf
            | Self::SumIdf
            | Self::Wlccs
            | Self::Closeness
            | Self::Bm25a => ValueKind::Real,
            _ => ValueKind::Integer,
        }
    }

    /// Whether it can be computed without hits.
    pub(super) fn is_without_hits(self) -> bool {
        matches!(self, Self::Bm25 | Self::MaxLcs | Self::QueryWordCount)
    }

    /// Whether it must be within an aggregate; some factors of fields need not.
    pub(super) fn is_of_field(self) -> bool {
        !matches!(
            self,
            Self::Bm25
                | Self::MaxLcs
                | Self::FieldMask
                | Self::QueryWordCount
                | Self::DocWordCount
                | Self::Bm25a
                | Self::ExactOrder
                | Self::MinGaps
                | Self::Closeness
        )
    }
}

/// Arithmetic operators, whose constants are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Arithmetic {
    /// Whether it is an addition or subtraction.
    pub fn is_sum(self) -> bool {
        matches!(self, Self::Add | Self::Subtract)
    }
}

/// Operators that compute in the widest type of their operands and return integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    Greater,
    AtMost,
    AtLeast,
    Equal,
    NotEqual,
    And,
    Or,
}

/// Integer and bit operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bits {
    And,
    Or,
    Remainder,
}

/// How the values of matched fields are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Sum,
    Top,
}

/// The constants of an `in()`, sorted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constants {
    Integers(Vec<i32>),
    BigIntegers(Vec<i64>),
    Reals(Vec<f32>),
}

/// What a node computes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Integer(i64),
    Real(f32),
    Attribute(usize),
    Unknown(String),
    Text,
    Map(Vec<(String, i32)>),
    /// The weight itself; no expression may use it.
    Weight,
    Factor(Factor),
    Negate,
    Not(ValueKind),
    Arithmetic(Arithmetic),
    Bits(Bits),
    Comparison(Comparison, ValueKind),
    Function(Function, ValueKind),
    In(Constants),
    Aggregate(Aggregate),
    MaxWindowHits(i32),
    Bm25a(f32, f32),
    Bm25f {
        /// The number of this `bm25f` within the expression.
        number: usize,
        parameters: (f32, f32),
        weights: Vec<(String, i32)>,
    },
}

/// A node with its type and operands. A chain such as `a + b + c` may have ten thousands of operands, each of which is a
/// level of the tree: nothing may walk down a tree by recursion unless its height is known to be small.
#[derive(Clone)]
pub(super) struct ExpressionNode {
    pub what: What,
    pub kind: ValueKind,
    pub parts: Vec<ExpressionNode>,
    /// The depth of its tree: 1 without operands.
    pub height: usize,
    /// How deeply it is nested as it is written, where `a + b - c` and `a * b / c` count like `a + b`.
    pub depth: usize,
}

impl ExpressionNode {
    pub fn new(what: What, kind: ValueKind, parts: Vec<ExpressionNode>) -> Self {
        let of_parts = |of: fn(&ExpressionNode) -> usize| parts.iter().map(of).max().unwrap_or(0);
        let depth = match (&what, parts.as_slice()) {
            (What::Arithmetic(_), [left, right]) if matches!(left.what, What::Arithmetic(_)) => {
                left.depth.max(1 + right.depth)
            }
            _ => 1 + of_parts(|part| part.depth),
        };
        let height = 1 + of_parts(|part| part.height);
        Self { what, kind, parts, height, depth }
    }

    pub fn leaf(what: What, kind: ValueKind) -> Self {
        Self::new(what, kind, Vec::new())
    }

    /// Counts its height anew, after its parts have changed.
    pub fn measure(&mut self) {
        self.height = 1 + self.parts.iter().map(|part| part.height).max().unwrap_or(0);
    }

    pub fn integer(value: i64) -> Self {
        Self::leaf(What::Integer(value), ValueKind::of_integer(value))
    }

    pub fn real(value: f32) -> Self {
        Self::leaf(What::Real(value), ValueKind::Real)
    }

    pub fn is_constant(&self) -> bool {
        matches!(self.what, What::Integer(_) | What::Real(_))
    }

    /// The value of a constant as a real.
    pub fn constant(&self) -> Option<f32> {
        match self.what {
            What::Integer(value) => Some(value as f32),
            What::Real(value) => Some(value),
            _ => None,
        }
    }
}

impl Drop for ExpressionNode {
    fn drop(&mut self) {
        let mut left = std::mem::take(&mut self.parts);
        while let Some(mut node) = left.pop() {
            left.append(&mut node.parts);
        }
    }
}
