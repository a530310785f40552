//! The types of values in an expression.

/// The type of a node's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// 32 bits.
    Integer,
    /// 64 bits.
    BigInteger,
    /// 32 bits.
    Real,
    /// A name that is not a column: the type is unknown.
    Unknown,
    /// Quoted text.
    Text,
    /// Names with numbers.
    Map,
}

impl ValueKind {
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Integer | Self::BigInteger)
    }

    pub fn is_number(self) -> bool {
        self.is_integer() || self == Self::Real
    }

    /// The type in which two operands are computed.
    pub fn widest(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, number) | (number, Self::Unknown) if number.is_number() => number,
            (Self::Integer, Self::Integer) => Self::Integer,
            (one, two) if one.is_integer() && two.is_integer() => Self::BigInteger,
            _ => Self::Real,
        }
    }

    pub fn of_integer(value: i64) -> Self {
        if i32::try_from(value).is_ok() { Self::Integer } else { Self::BigInteger }
    }
}
