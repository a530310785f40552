//! What the literals of a statement say, and what that is as a value of a column.
//!
//! Only what is exact without a conversion is turned into a value here; for anything else the
//! statement goes the general way.

use std::borrow::Cow;

use remora_engine::{ColumnType, Value};
use remora_mysql::{Collation, unquoted};

use super::{
    lift::{Constants, Literal, LiteralKind, literals_of},
    shape::Group,
};
use crate::catalog::ColumnSpec;

/// What a literal says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant<'a> {
    Null,
    Integer(i128),
    Text(Cow<'a, str>),
    /// Something that is not compared here.
    Other,
}

/// What a constant is as a value of a column that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fitted {
    /// This value.
    Value(Value),
    /// Smaller than every value of the column.
    Below,
    /// Greater than every value of the column.
    Above,
    /// NULL: no comparison with it holds.
    Null,
}

/// How a column's values are compared with constants, as far as that is done here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparable {
    /// Integers between these two, unsigned or not.
    Integer { least: i128, greatest: i128, unsigned: bool },
    /// Text, by its bytes.
    Text,
}

impl Comparable {
    /// How a column of this type is compared; `None` if not here.
    pub fn of(kind: ColumnType, spec: &ColumnSpec) -> Option<Self> {
        let shift = |bits: u8| 1i128 << u32::from(bits.min(64));
        match kind {
            ColumnType::Int(bits) => Some(Self::Integer {
                least: -(shift(bits) / 2),
                greatest: shift(bits) / 2 - 1,
                unsigned: false,
            }),
            ColumnType::Uint(bits) if spec.kind.integer_bits().is_some() => {
                Some(Self::Integer { least: 0, greatest: shift(bits) - 1, unsigned: true })
            }
            ColumnType::Text if spec.kind.collation == Collation::UTF8MB4_0900_BIN => {
                (!spec.kind.has_labels()).then_some(Self::Text)
            }
            _ => None,
        }
    }

    /// The constant as a value of the column; `None` where that takes a conversion.
    pub fn fit(self, constant: &Constant<'_>) -> Option<Fitted> {
        match (self, constant) {
            (_, Constant::Null) => Some(Fitted::Null),
            (_, Constant::Other) => None,
            (Self::Integer { least, greatest, unsigned }, constant) => {
                let number = match constant {
                    Constant::Integer(number) => *number,
                    Constant::Text(text) => canonical_integer(text)?,
                    _ => return None,
                };
                Some(match number {
                    number if number < least => Fitted::Below,
                    number if number > greatest => Fitted::Above,
                    number if unsigned => Fitted::Value(Value::Uint(u64::try_from(number).ok()?)),
                    number => Fitted::Value(Value::Int(i64::try_from(number).ok()?)),
                })
            }
            (Self::Text, Constant::Text(text)) => {
                Some(Fitted::Value(Value::Text(text.as_ref().into())))
            }
            (Self::Text, _) => None,
        }
    }
}

/// An integer as it is written by machines: nothing that a conversion would have to say about it.
fn canonical_integer(text: &str) -> Option<i128> {
    // Longer ones are compared as floats, which tell fewer of them apart.
    const MAX_DIGITS: usize = 15;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all = digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = all && (digits == "0" && text == "0" || !digits.starts_with('0'));
    (canonical && (1..=MAX_DIGITS).contains(&digits.len())).then(|| text.parse().ok())?
}

impl<'a> Constants<'a> {
    /// The literals of a group.
    pub fn group(&self, group: Group) -> &'a [Literal] {
        literals_of(self.literals, self.ends, group)
    }

    /// The only literal of a group.
    pub fn one(&self, group: Group) -> Constant<'a> {
        match self.group(group) {
            [literal] => self.constant(literal),
            _ => Constant::Other,
        }
    }

    /// A number of rows; `None` if it is not one.
    pub fn rows(&self, group: Option<Group>) -> Option<u64> {
        match self.one(group?) {
            Constant::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// What a literal says.
    pub fn constant(&self, literal: &Literal) -> Constant<'a> {
        let bytes = || self.text.get(literal.start..literal.end).unwrap_or_default();
        match literal.kind {
            LiteralKind::Integer => integer(bytes()).map_or(Constant::Other, Constant::Integer),
            LiteralKind::Negative => {
                integer(bytes()).map_or(Constant::Other, |number| Constant::Integer(-number))
            }
            LiteralKind::Text => self.text_constant(bytes()),
            LiteralKind::Inexact => Constant::Other,
            LiteralKind::Parameter => match self.parameters.get(literal.start) {
                Some(Value::Null) => Constant::Null,
                Some(Value::Int(number)) => Constant::Integer((*number).into()),
                Some(Value::Uint(number)) => Constant::Integer((*number).into()),
                Some(Value::Text(text)) => Constant::Text(Cow::Borrowed(text)),
                _ => Constant::Other,
            },
        }
    }

    fn text_constant(&self, quoted: &'a [u8]) -> Constant<'a> {
        let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        let quote = quoted.first().copied().unwrap_or(b'\'');
        if memchr::memchr2(quote, b'\\', inner).is_none() {
            return std::str::from_utf8(inner)
                .map_or(Constant::Other, |text| Constant::Text(Cow::Borrowed(text)));
        }
        let unquoted = String::from_utf8(unquoted(quoted, self.mode));
        unquoted.map_or(Constant::Other, |text| Constant::Text(Cow::Owned(text)))
    }
}

fn integer(digits: &[u8]) -> Option<i128> {
    // More digits are decimals, beyond every integer type.
    const MAX_DIGITS: usize = 30;
    if digits.len() > MAX_DIGITS {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + i128::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_integers_are_integers() {
        assert_eq!(canonical_integer("12"), Some(12));
        assert_eq!(canonical_integer("-12"), Some(-12));
        assert_eq!(canonical_integer("0"), Some(0));
        for text in ["", "-", "-0", "012", "12a", " 12", "1.0", "1e3", "9999999999999999"] {
            assert_eq!(canonical_integer(text), None, "{text}");
        }
    }

    #[test]
    fn constants_beyond_a_column_are_below_or_above_it() {
        let byte = Comparable::Integer { least: -128, greatest: 127, unsigned: false };
        let fit = |number| byte.fit(&Constant::Integer(number)).unwrap();
        assert_eq!(fit(127), Fitted::Value(Value::Int(127)));
        assert_eq!(fit(128), Fitted::Above);
        assert_eq!(fit(-129), Fitted::Below);
        assert_eq!(byte.fit(&Constant::Text("5".into())), Some(Fitted::Value(Value::Int(5))));
        assert_eq!(byte.fit(&Constant::Text("5.0".into())), None);
        assert_eq!(byte.fit(&Constant::Null), Some(Fitted::Null));
        assert_eq!(Comparable::Text.fit(&Constant::Integer(1)), None);
    }
}
