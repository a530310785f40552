//! The parsed tree before conversion: with parts that match nothing, and with NOT as written.

use super::tree::{FieldMask, Quoted, QuotedKind, TextUnit, Word, Zones};

/// A parsed part of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Raw {
    /// A stop word.
    Empty,
    /// Every document.
    Every,
    /// A word.
    Word(Word),
    /// Words within quotes.
    Quoted(Quoted),
    /// Parts joined by an operator.
    Joined(QueryOperator, Vec<Raw>),
    /// The operand must not match.
    Not(Box<Raw>),
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum QueryOperator {
    And,
    /// Parts without an operator between them, with `boolean_mode=or`.
    Any,
    Or,
    Maybe,
    Before,
    Near(u32),
    NotNear(u32),
    Unit(TextUnit),
}

impl Raw {
    /// Joins two parts. If the left one has the same operator, the right one is added to it.
    pub(super) fn join(operator: QueryOperator, left: Self, right: Self) -> Self {
        match left {
            Self::Joined(other, mut parts) if other == operator => {
                parts.push(right);
                Self::Joined(operator, parts)
            }
            left => Self::Joined(operator, vec![left, right]),
        }
    }

    /// Removes parts that match nothing; `None` if nothing is left.
    pub(super) fn swept(self) -> Option<Self> {
        match self {
            Self::Empty => None,
            Self::Quoted(Quoted { words, .. }) if words.is_empty() => None,
            Self::Quoted(quoted) if quoted.words.len() == 1 => match quoted.kind {
                QuotedKind::Quorum(count) if count > 1 => Some(Self::Quoted(quoted)),
                _ => quoted.words.into_iter().next().map(Self::Word),
            },
            Self::Joined(QueryOperator::NotNear(_), parts)
                if parts.first() == Some(&Self::Empty) =>
            {
                None
            }
            Self::Joined(operator, parts) => {
                let has_stop_words = parts.contains(&Self::Empty);
                let mut parts: Vec<Self> = parts.into_iter().filter_map(Self::swept).collect();
                match parts.len() {
                    // A NOT whose other operands are only stop words is removed with them.
                    1 if has_stop_words && matches!(parts[0], Self::Not(_)) => None,
                    0 | 1 => parts.pop(),
                    _ => Some(Self::Joined(operator, parts)),
                }
            }
            Self::Not(part) => part.swept().map(|part| Self::Not(Box::new(part))),
            other => Some(other),
        }
    }

    /// The zones that limit the part as a whole, which are those of its last operand; of more than two operands, those of
    /// the last one that has any.
    fn zones(&self) -> Option<&Zones> {
        match self {
            Self::Empty | Self::Every => None,
            Self::Word(word) => word.zones.as_deref(),
            Self::Quoted(quoted) => quoted.words.first()?.zones.as_deref(),
            Self::Not(part) => part.zones(),
            Self::Joined(_, parts) => {
                let mut more = parts.iter().skip(2).rev();
                more.find_map(Self::zones).or_else(|| parts.get(1)?.zones())
            }
        }
    }

    /// Whether its words must be in one zone together.
    pub(super) fn is_in_zone_span(&self) -> bool {
        self.zones().is_some_and(|zones| zones.is_span)
    }

    /// Empties the parts with words that are limited to no field.
    pub(super) fn with_fields(self) -> Self {
        let has_fields = |word: &Word| word.limit.fields != FieldMask::NONE;
        match self {
            Self::Word(word) if !has_fields(&word) => Self::Empty,
            Self::Quoted(quoted) if !quoted.words.iter().all(has_fields) => Self::Empty,
            Self::Joined(operator, parts) => {
                Self::Joined(operator, parts.into_iter().map(Self::with_fields).collect())
            }
            Self::Not(part) => Self::Not(Box::new(part.with_fields())),
            other => other,
        }
    }
}
