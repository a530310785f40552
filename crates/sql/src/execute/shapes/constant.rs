//! The literals of a statement as values of a column. Only exact values that need no conversion are handled; with any
//! other literal the statement takes the general path.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use remora_engine::{ColumnType, Date, DateTime, Decimal, Value};
use remora_mysql::{Collation, unquoted};

use super::{
    parameterize::{Constants, FIRST_MADE, Literal, LiteralKind, MadeValue, literals_of},
    shape::LiteralGroup,
};
use crate::{
    SqlType,
    catalog::ColumnSpec,
    meaning::{
        encoding::from_hex,
        temporal::{Moment, days_in_month, only_moment},
    },
};

/// The value of a literal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant<'a> {
    Null,
    Integer(i128),
    /// Digits with a decimal point.
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    /// Bytes that are not text.
    Bytes(Cow<'a, [u8]>),
    /// A date or a moment that a client sent as a typed parameter.
    Moment(DateTime),
    /// Anything that cannot be compared here.
    Other,
}

/// A literal fitted to the type of the column that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fitted {
    /// Equal to this value.
    Value(Value),
    /// Smaller than every value of the column.
    Below,
    /// Greater than every value of the column.
    Above,
    /// NULL: no comparison with it is true.
    Null,
}

/// How a column's values compare with literals, for the types supported here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparable {
    /// Integers in this range, signed or unsigned.
    Integer {
        least: i128,
        greatest: i128,
        unsigned: bool,
    },
    /// Text that compares by bytes.
    Text,
    /// Bytes that are not text.
    Bytes,
    Decimal,
    Double,
    Date,
    DateTime,
    /// A TIMESTAMP; literals are dates and times in the session's time zone.
    Timestamp,
}

impl Comparable {
    /// How a column of this type compares; `None` if that is not supported here.
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
            ColumnType::Bytes if spec.kind.is_bytes() => Some(Self::Bytes),
            _ => None,
        }
    }

    /// The same for conditions, which support more types than keys.
    pub fn of_condition(kind: ColumnType, spec: &ColumnSpec) -> Option<Self> {
        Self::of(kind, spec).or(match kind {
            ColumnType::Decimal(..) => Some(Self::Decimal),
            ColumnType::Date => Some(Self::Date),
            ColumnType::DateTime => Some(Self::DateTime),
            ColumnType::Timestamp => Some(Self::Timestamp),
            ColumnType::Double if spec.kind.sql == SqlType::Double => Some(Self::Double),
            _ => None,
        })
    }

    /// Fits a literal to the column in a session with this time zone; `None` if that needs a conversion.
    pub fn fit_in(self, constant: &Constant<'_>, zone: &TimeZone) -> Option<Fitted> {
        let moment = match (self, constant) {
            (Self::Timestamp, Constant::Text(text)) => plain_moment(text)?,
            (Self::Timestamp, Constant::Moment(moment)) => *moment,
            _ => return self.fit(constant),
        };
        let DateTime { date, micros } = moment;
        let micros = i64::try_from(micros).ok()?;
        let shown = Moment { year: date.year, month: date.month, day: date.day, micros };
        Some(Fitted::Value(Value::Timestamp(only_moment(shown, zone)?)))
    }

    /// Fits a literal to the column; `None` if that needs a conversion or the time zone.
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
            (Self::Bytes, Constant::Bytes(bytes)) => {
                Some(Fitted::Value(Value::Bytes(bytes.as_ref().into())))
            }
            // Text that is not ASCII would first have to be encoded in the client's character set.
            (Self::Bytes, Constant::Text(text)) if text.is_ascii() => {
                Some(Fitted::Value(Value::Bytes(text.as_bytes().into())))
            }
            (Self::Bytes | Self::Timestamp, _) => None,
            (Self::Double, Constant::Integer(number)) if number.unsigned_abs() <= MAX_EXACT => {
                Some(Fitted::Value(Value::Float(*number as f64)))
            }
            (Self::Double, Constant::Number(text)) => {
                Some(Fitted::Value(Value::Float(text.parse().ok()?)))
            }
            (Self::Double, _) => None,
            (Self::Decimal, Constant::Integer(number)) => {
                Some(Fitted::Value(Value::Decimal(Decimal::from_scaled(*number, 0))))
            }
            (Self::Decimal, Constant::Number(text)) => {
                let scale = text.len() - text.find('.')? - 1;
                let number = Decimal::parse(text, MAX_DIGITS, u8::try_from(scale).ok()?)?;
                Some(Fitted::Value(Value::Decimal(number)))
            }
            (Self::Decimal, _) => None,
            (Self::Date | Self::DateTime, constant) => {
                let moment = match constant {
                    Constant::Text(text) => plain_moment(text)?,
                    Constant::Moment(moment) => *moment,
                    _ => return None,
                };
                match (self, moment.micros) {
                    (Self::DateTime, _) => Some(Fitted::Value(Value::DateTime(moment))),
                    (_, 0) => Some(Fitted::Value(Value::Date(moment.date))),
                    // A date compares as its midnight.
                    _ => None,
                }
            }
        }
    }
}

/// The most digits of a DECIMAL.
const MAX_DIGITS: u8 = 65;
/// The limit up to which every integer has an exact double.
const MAX_EXACT: u128 = 1 << 53;

/// Parses `2026-11-24` or `2026-11-24 10:38:54.25`: an existing day in exactly the form in which MySQL shows it.
fn plain_moment(text: &str) -> Option<DateTime> {
    let number = |range: std::ops::Range<usize>| -> Option<u64> {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let mark = |at: usize, mark: u8| (text.as_bytes().get(at) == Some(&mark)).then_some(());
    mark(4, b'-')?;
    mark(7, b'-')?;
    let year = u16::try_from(number(0..4)?).ok().filter(|year| *year > 0)?;
    let month = u8::try_from(number(5..7)?).ok().filter(|month| (1..=12).contains(month))?;
    let day = u8::try_from(number(8..10)?).ok()?;
    if day == 0 || day > days_in_month(year, month) {
        return None;
    }
    let date = Date { year, month, day };
    if text.len() == 10 {
        return Some(DateTime { date, micros: 0 });
    }
    mark(10, b' ')?;
    mark(13, b':')?;
    mark(16, b':')?;
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = match text.get(19..)?.strip_prefix('.') {
        None if text.len() == 19 => 0,
        Some(digits) if (1..=6).contains(&digits.len()) => {
            number(20..text.len())? * 10_u64.pow(6 - digits.len() as u32)
        }
        _ => return None,
    };
    let seconds = (hour * 60 + minute) * 60 + second;
    Some(DateTime { date, micros: seconds * 1_000_000 + micros })
}

/// Parses an integer in canonical form: no sign, zero or space that a conversion would have to handle.
fn canonical_integer(text: &str) -> Option<i128> {
    // Longer ones compare as floats, which have fewer distinct values.
    const MAX_DIGITS: usize = 15;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all = digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = all && (digits == "0" && text == "0" || !digits.starts_with('0'));
    (canonical && (1..=MAX_DIGITS).contains(&digits.len())).then(|| text.parse().ok())?
}

impl<'a> Constants<'a> {
    /// The literals of a group.
    pub fn group(&self, group: LiteralGroup) -> &'a [Literal] {
        literals_of(self.literals, self.ends, group)
    }

    /// The only literal of a group, or a value made of literals.
    pub fn one(&self, group: LiteralGroup) -> Constant<'a> {
        if let Some(place) = group.checked_sub(FIRST_MADE) {
            return match self.made.get(place).cloned().flatten() {
                Some(MadeValue::Integer(number)) => Constant::Integer(number.into()),
                Some(MadeValue::Text(text)) => Constant::Text(text.into()),
                None => Constant::Other,
            };
        }
        match self.group(group) {
            [literal] => self.constant(literal),
            _ => Constant::Other,
        }
    }

    /// A number of rows, as in LIMIT; `None` if the literal is not one.
    pub fn rows(&self, group: Option<LiteralGroup>) -> Option<u64> {
        match self.one(group?) {
            Constant::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// The value of a literal.
    pub fn constant(&self, literal: &Literal) -> Constant<'a> {
        let bytes = || self.text.get(literal.start..literal.end).unwrap_or_default();
        match literal.kind {
            LiteralKind::Integer => integer(bytes()).map_or(Constant::Other, Constant::Integer),
            LiteralKind::Negative => {
                integer(bytes()).map_or(Constant::Other, |number| Constant::Integer(-number))
            }
            LiteralKind::Text => self.text_constant(bytes()),
            LiteralKind::Inexact => match std::str::from_utf8(bytes()) {
                Ok(digits) if digits.bytes().all(|it| it.is_ascii_digit() || it == b'.') => {
                    Constant::Number(Cow::Borrowed(digits))
                }
                _ => Constant::Other,
            },
            LiteralKind::Hex => match hex_bytes(bytes()) {
                Some(bytes) => Constant::Bytes(Cow::Owned(bytes)),
                None => Constant::Other,
            },
            LiteralKind::Parameter => match self.parameters.get(literal.start) {
                Some(Value::Null) => Constant::Null,
                Some(Value::Int(number)) => Constant::Integer((*number).into()),
                Some(Value::Uint(number)) => Constant::Integer((*number).into()),
                Some(Value::Text(text)) => Constant::Text(Cow::Borrowed(text)),
                Some(Value::Bytes(bytes)) => Constant::Bytes(Cow::Borrowed(bytes)),
                Some(Value::Date(date)) => Constant::Moment(DateTime { date: *date, micros: 0 }),
                Some(Value::DateTime(moment)) => Constant::Moment(*moment),
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

/// The bytes of `x'1f'` or `0x1f`.
fn hex_bytes(literal: &[u8]) -> Option<Vec<u8>> {
    let digits = literal.get(2..)?;
    from_hex(std::str::from_utf8(digits.strip_suffix(b"'").unwrap_or(digits)).ok()?)
}

fn integer(digits: &[u8]) -> Option<i128> {
    // More digits exceed every integer type and become a DECIMAL.
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
    fn only_days_that_there_are_in_their_usual_form_are_moments() {
        let moment = |text: &str| plain_moment(text).map(|it| (it.date.day, it.micros));
        assert_eq!(moment("2024-02-29"), Some((29, 0)));
        assert_eq!(moment("2024-12-31 00:00:01"), Some((31, 1_000_000)));
        assert_eq!(moment("2024-12-31 23:59:59.25"), Some((31, 86_399_250_000)));
        for text in [
            "2023-02-29",
            "0000-01-01",
            "2024-13-01",
            "2024-01-00",
            "2024-1-01",
            "24-01-01",
            "2024-01-01 ",
            "2024-01-01T00:00:00",
            "2024-01-01 24:00:00",
            "2024-01-01 00:00",
            "2024-01-01 00:00:00.",
            "2024-01-01 00:00:00.1234567",
            "2024-01-0é",
            "+024-01-01",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    #[test]
    fn what_clocks_show_twice_or_never_is_no_one_moment() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let fit = |text: &str| Comparable::Timestamp.fit_in(&Constant::Text(text.into()), &berlin);
        let moment = |micros| Some(Fitted::Value(Value::Timestamp(micros)));
        assert_eq!(fit("2020-07-01 12:00:00.5"), moment(1_593_597_600_500_000));
        assert_eq!(fit("2020-10-25 02:30:00"), None);
        assert_eq!(fit("2020-03-29 02:30:00"), None);
        assert_eq!(Comparable::Timestamp.fit(&Constant::Text("2020-07-01".into())), None);
    }

    #[test]
    fn bytes_are_hexadecimal_or_plain() {
        let fit = |constant: &Constant<'_>| Comparable::Bytes.fit(constant);
        let bytes = |bytes: &[u8]| Some(Fitted::Value(Value::Bytes(bytes.into())));
        assert_eq!(hex_bytes(b"x'00fF'").as_deref(), Some(&[0, 255][..]));
        assert_eq!(hex_bytes(b"0xabc").as_deref(), Some(&[10, 188][..]));
        assert_eq!(fit(&Constant::Bytes([0, 255][..].into())), bytes(&[0, 255]));
        assert_eq!(fit(&Constant::Text("ab".into())), bytes(b"ab"));
        assert_eq!(fit(&Constant::Text("é".into())), None);
        assert_eq!(fit(&Constant::Integer(1)), None);
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
