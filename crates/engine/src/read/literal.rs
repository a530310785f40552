//! Converts literals of a filter to cells of the column they are compared with.

use remora_index::{TextOrder, column::Cell};

use crate::{
    ColumnDef, ColumnType, Decimal, Error, Literal, RequestPart, Result, Value,
    encode::{encode_cell, parse_literal},
    value::MAX_SCALE,
};

/// The most integer digits of a literal: as many as a column can have.
const MAX_INTEGER_DIGITS: u8 = 65;
/// From here on all doubles are integers (2^53).
const WHOLE_FROM: f64 = 9_007_199_254_740_992.0;
/// Greater than any integer of a column.
const BEYOND_INTEGERS: f64 = 1e20;
/// Characters of a literal that an error message shows.
const SHOWN_CHARS: usize = 60;

/// A column cell that owns its bytes. `Null` sorts first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OwnedCell {
    /// No value.
    Null,
    /// A value of an ordinal column.
    Ordinal(u64),
    /// A value of a byte column.
    Bytes(Vec<u8>),
}

impl OwnedCell {
    /// A copy.
    pub fn new(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Ordinal(ordinal) => Self::Ordinal(ordinal),
            Cell::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }

    /// The cell used in comparisons: the sort key of a text if there is a text order.
    pub fn keyed(cell: Cell<'_>, order: Option<TextOrder>) -> Self {
        match (cell, order) {
            (Cell::Bytes(text), Some(order)) => {
                let mut key = Vec::new();
                order.write_key(text, &mut key);
                Self::Bytes(key)
            }
            (cell, _) => Self::new(cell),
        }
    }

    /// The cell, borrowed.
    pub fn as_cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Ordinal(ordinal) => Cell::Ordinal(*ordinal),
            Self::Bytes(bytes) => Cell::Bytes(bytes),
        }
    }

    /// The ordinal; 0 for other cells.
    pub fn ordinal(&self) -> u64 {
        if let Self::Ordinal(ordinal) = self { *ordinal } else { 0 }
    }

    /// The bytes; empty for other cells.
    pub fn into_bytes(self) -> Vec<u8> {
        if let Self::Bytes(bytes) = self { bytes } else { Vec::new() }
    }
}

/// The position of a literal among the values of a column: the least value not below it and the greatest value not
/// above it. They are equal if the column can hold the literal. One is missing if there is no value on that side.
pub(super) struct LiteralBounds {
    /// The least value that is not below.
    pub from: Option<OwnedCell>,
    /// The greatest value that is not above.
    pub to: Option<OwnedCell>,
}

impl LiteralBounds {
    fn at(cell: OwnedCell) -> Self {
        Self { from: Some(cell.clone()), to: Some(cell) }
    }

    /// Whether the column can hold the literal.
    pub fn is_exact(&self) -> bool {
        self.from.is_some() && self.from == self.to
    }

    /// The literal as a cell, if the column can hold it.
    pub fn exact(self) -> Option<OwnedCell> {
        if self.is_exact() { self.from } else { None }
    }
}

/// Whether the literal is NULL.
pub(super) fn is_null(literal: &Literal) -> bool {
    matches!(literal, Literal::Value(Value::Null))
}

/// The position of the literal among the column's values; an error if it has another type. Columns of integers and
/// decimals accept every number: 5.5 is between 5 and 6.
pub(super) fn bounds(column: &ColumnDef, literal: &Literal) -> Result<LiteralBounds> {
    let text = match literal {
        Literal::Value(value) if is_of(column.kind, value) => {
            return Ok(LiteralBounds::at(cell(column.kind, value)));
        }
        Literal::Value(value) => written(column.kind, value),
        Literal::Text(text) => text.clone(),
    };
    let found = match column.kind {
        ColumnType::Int(_) | ColumnType::Uint(_) => {
            exact(column.kind, &text).or_else(|| around_whole(column.kind, &text))
        }
        ColumnType::Decimal(precision, scale) => {
            around_decimal(column.kind, precision, scale, &text)
        }
        kind => exact(kind, &text),
    };
    found.ok_or_else(|| {
        let shown: String = text.chars().take(SHOWN_CHARS).collect();
        let (name, kind) = (&column.name, column.kind);
        let message = format!("'{shown}' is not a value of column '{name}', which is {kind:?}");
        Error::request(RequestPart::Filter, message)
    })
}

/// The value as text. Doubles beyond 2^53 are written in full, because their shortest text denotes another
/// integer.
fn written(kind: ColumnType, value: &Value) -> String {
    match (kind, value) {
        (ColumnType::Int(_) | ColumnType::Uint(_), Value::Float(number))
            if (WHOLE_FROM..BEYOND_INTEGERS).contains(&number.abs()) =>
        {
            format!("{number:.0}")
        }
        _ => value.to_string(),
    }
}

fn exact(kind: ColumnType, text: &str) -> Option<LiteralBounds> {
    Some(LiteralBounds::at(cell(kind, &parse_literal(kind, text)?)))
}

/// Whether a number is negative, its integer digits and its fraction digits.
fn digits(text: &str) -> Option<(bool, String, String)> {
    let number = Decimal::parse(text, MAX_INTEGER_DIGITS + MAX_SCALE, MAX_SCALE)?;
    let (negative, whole, fraction) = number.parts();
    Some((negative, whole.to_owned(), fraction.trim_end_matches('0').to_owned()))
}

fn around_whole(kind: ColumnType, text: &str) -> Option<LiteralBounds> {
    let (negative, whole, fraction) = digits(text)?;
    // A number with more digits is beyond every column.
    let truncated: i128 = whole.parse().unwrap_or(i128::MAX / 2);
    let between = i128::from(!fraction.is_empty());
    let (floor, ceiling) = match negative {
        true => (-truncated - between, -truncated),
        false => (truncated, truncated + between),
    };
    let (least, greatest) = match kind {
        ColumnType::Int(_) => (i128::from(i64::MIN), i128::from(i64::MAX)),
        _ => (0, i128::from(u64::MAX)),
    };
    let at = |number: i128| match kind {
        ColumnType::Int(_) => cell(kind, &Value::Int(number as i64)),
        _ => cell(kind, &Value::Uint(number as u64)),
    };
    Some(LiteralBounds {
        from: (ceiling <= greatest).then(|| at(ceiling.max(least))),
        to: (floor >= least).then(|| at(floor.min(greatest))),
    })
}

fn around_decimal(kind: ColumnType, precision: u8, scale: u8, text: &str) -> Option<LiteralBounds> {
    let (negative, whole, fraction) = digits(text)?;
    let sign = if negative { "-" } else { "" };
    let (kept, cut) = fraction.split_at_checked(usize::from(scale)).unwrap_or((&fraction, ""));
    let at = |text: String| {
        let value = Decimal::parse(&text, precision, scale)?;
        Some(cell(kind, &Value::Decimal(value)))
    };
    let inner = at(format!("{sign}{whole}.{kept}"));
    // An additional digit nine makes the conversion round away from zero, to the next decimal of this scale.
    let outer = match cut {
        "" => inner.clone(),
        _ => at(format!("{sign}{whole}.{kept:0<width$}9", width = usize::from(scale))),
    };
    let outermost = || {
        let integer_digits = usize::from(precision.saturating_sub(scale));
        let scale = usize::from(scale);
        at(format!("{sign}{:9<integer_digits$}.{:9<scale$}", "", ""))
    };
    let inner = inner.or_else(outermost);
    Some(match negative {
        true => LiteralBounds { from: inner, to: outer },
        false => LiteralBounds { from: outer, to: inner },
    })
}

fn cell(kind: ColumnType, value: &Value) -> OwnedCell {
    let mut scratch = Vec::new();
    OwnedCell::new(encode_cell(kind, value, &mut scratch))
}

/// Whether the value is one that a column of this type holds.
fn is_of(kind: ColumnType, value: &Value) -> bool {
    matches!(
        (kind, value),
        (ColumnType::Int(_), Value::Int(_))
            | (ColumnType::Uint(_), Value::Uint(_))
            | (ColumnType::Float | ColumnType::Double, Value::Float(_))
            | (ColumnType::Bool, Value::Bool(_))
            | (ColumnType::Text, Value::Text(_))
            | (ColumnType::Bytes, Value::Bytes(_))
            | (ColumnType::Date, Value::Date(_))
            | (ColumnType::Time, Value::Time(_))
            | (ColumnType::DateTime, Value::DateTime(_))
            | (ColumnType::Timestamp, Value::Timestamp(_))
            | (ColumnType::Json, Value::Json(_))
    )
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn column(kind: ColumnType) -> ColumnDef {
        ColumnDef {
            id: 1,
            name: "column".into(),
            kind,
            nullable: true,
            indexed: true,
            declared: None,
        }
    }

    fn found(kind: ColumnType, literal: &str) -> Option<LiteralBounds> {
        bounds(&column(kind), &Literal::Text(literal.to_owned())).ok()
    }

    /// How a value of the column compares with the literal, by its bounds.
    fn ordering(kind: ColumnType, value: &Value, literal: &str) -> Ordering {
        let bounds = found(kind, literal).unwrap();
        let value = Some(cell(kind, value));
        if bounds.is_exact() {
            return value.cmp(&bounds.from);
        }
        let above = bounds.from.is_some() && value >= bounds.from;
        assert_ne!(above, bounds.to.is_some() && value <= bounds.to);
        if above { Ordering::Greater } else { Ordering::Less }
    }

    proptest! {
        #[test]
        fn numbers_compare_as_numbers(value in -300..300_i64, delta in -1500..1500_i64) {
            let text = thousandths(value * 1000 + delta);
            let expected = 0.cmp(&delta);
            prop_assert_eq!(ordering(ColumnType::Int(16), &Value::Int(value), &text), expected);
            if let Ok(value) = u64::try_from(value) {
                let value = Value::Uint(value);
                prop_assert_eq!(ordering(ColumnType::Uint(16), &value, &text), expected);
            }
            let delta = delta / 100;
            let text = thousandths(value * 10 + delta);
            let decimal = Value::Decimal(Decimal::from_scaled(value.into(), 2));
            let ordering = ordering(ColumnType::Decimal(3, 2), &decimal, &text);
            prop_assert_eq!(ordering, 0.cmp(&delta));
        }
    }

    fn thousandths(number: i64) -> String {
        let sign = if number < 0 { "-" } else { "" };
        let number = number.abs();
        format!("{sign}{}.{:03}", number / 1000, number % 1000)
    }

    #[test]
    fn integral_doubles_equal_integers() {
        for number in [1_i64 << 53, (1 << 60) + (1 << 8), -(1 << 62), i64::MIN] {
            let literal = Literal::Value(Value::Float(number as f64));
            let kind = ColumnType::Int(64);
            let found = bounds(&column(kind), &literal).unwrap().exact();
            assert_eq!(found, Some(cell(kind, &Value::Int(number))), "{number}");
        }
        let literal = Literal::Value(Value::Float(2_f64.powi(63)));
        let found = bounds(&column(ColumnType::Uint(64)), &literal).unwrap().exact();
        assert_eq!(found, Some(cell(ColumnType::Uint(64), &Value::Uint(1 << 63))));
        let above = bounds(&column(ColumnType::Int(64)), &literal).unwrap();
        assert!(above.from.is_none());
    }

    #[test]
    fn a_text_that_is_not_a_number_is_refused() {
        for text in ["", "x", "1x", "1.2.3", "--1", "NaN"] {
            assert!(found(ColumnType::Int(32), text).is_none(), "{text}");
            assert!(found(ColumnType::Decimal(9, 2), text).is_none(), "{text}");
        }
        assert!(found(ColumnType::Int(32), "1e3").is_some());
        assert!(found(ColumnType::Uint(8), "-7").unwrap().to.is_none());
    }
}
