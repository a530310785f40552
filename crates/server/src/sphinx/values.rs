//! Converts SQL cells to SphinxAPI values. NULL becomes 0 or an empty text.

use std::borrow::Cow;

use remora_protocol::sphinx::{AttributeKind, Value};
use remora_sql::Cell;

/// A cell as an attribute's value.
pub(super) fn value(kind: AttributeKind, cell: Cell<'_>) -> Value {
    match kind {
        // 32-bit numbers wrap around, as in Sphinx.
        AttributeKind::Number | AttributeKind::Timestamp | AttributeKind::Bool => {
            Value::Number(integer(cell) as u32)
        }
        AttributeKind::BigInt => Value::BigInt(integer(cell)),
        AttributeKind::Float => Value::Float(real(cell) as f32),
        AttributeKind::Text => Value::Text(text(cell).into_owned().into_bytes()),
        AttributeKind::Set => {
            Value::Set(numbers(&text(cell)).map(|number| number as u32).collect())
        }
        AttributeKind::WideSet => Value::WideSet(numbers(&text(cell)).collect()),
    }
}

/// The numbers of a set, separated by commas.
fn numbers(shown: &str) -> impl Iterator<Item = i64> {
    shown.split(',').filter_map(|number| number.parse().ok())
}

/// A cell as an integer, truncated.
pub(super) fn integer(cell: Cell<'_>) -> i64 {
    match cell {
        Cell::Int(number) => number,
        Cell::Uint(number) => number as i64,
        Cell::Decimal(number) => {
            let digits = number.as_str();
            let integer = digits.split('.').next().unwrap_or_default();
            integer.parse().unwrap_or_default()
        }
        other => real(other) as i64,
    }
}

fn real(cell: Cell<'_>) -> f64 {
    match cell {
        Cell::Int(number) => number as f64,
        Cell::Uint(number) => number as f64,
        Cell::Float(number) => f64::from(number),
        Cell::Double(number) => number,
        Cell::Decimal(number) => number.as_str().parse().unwrap_or_default(),
        Cell::Text(text) => text.parse().unwrap_or_default(),
        Cell::Null | Cell::Bytes(_) | Cell::Date(_) | Cell::Time(_) | Cell::DateTime(_) => 0.0,
    }
}

/// A cell as text.
pub(super) fn text(cell: Cell<'_>) -> Cow<'_, str> {
    match cell {
        Cell::Text(text) => text.into(),
        Cell::Bytes(bytes) => String::from_utf8_lossy(bytes),
        Cell::Int(number) => number.to_string().into(),
        Cell::Uint(number) => number.to_string().into(),
        Cell::Float(number) => number.to_string().into(),
        Cell::Double(number) => number.to_string().into(),
        Cell::Decimal(number) => number.as_str().into(),
        Cell::Null | Cell::Date(_) | Cell::Time(_) | Cell::DateTime(_) => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_values_of_their_attribute() {
        let number = |cell| value(AttributeKind::Number, cell);
        assert_eq!(number(Cell::Int(-1)), Value::Number(u32::MAX));
        assert_eq!(number(Cell::Text("7")), Value::Number(7));
        assert_eq!(number(Cell::Null), Value::Number(0));
        let decimal = remora_engine::Decimal::parse("-12.75", 10, 2).unwrap();
        let wide = value(AttributeKind::BigInt, Cell::Decimal(&decimal));
        assert_eq!(wide, Value::BigInt(-12));
        assert_eq!(value(AttributeKind::Float, Cell::Decimal(&decimal)), Value::Float(-12.75));
        assert_eq!(value(AttributeKind::Text, Cell::Null), Value::Text(Vec::new()));
        assert_eq!(value(AttributeKind::Text, Cell::Uint(5)), Value::Text(b"5".to_vec()));
        let set = value(AttributeKind::Set, Cell::Text("3,4294967295"));
        assert_eq!(set, Value::Set(vec![3, u32::MAX]));
        let wide = value(AttributeKind::WideSet, Cell::Text("-5,9000000000"));
        assert_eq!(wide, Value::WideSet(vec![-5, 9_000_000_000]));
        assert_eq!(value(AttributeKind::Set, Cell::Text("")), Value::Set(Vec::new()));
    }
}
