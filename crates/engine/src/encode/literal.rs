//! Parses text typed in a filter or a file into values.

use std::sync::Arc;

use crate::{
    ColumnType, Date, DateTime, Decimal, Value,
    value::{parse_date, parse_date_time, parse_epoch, parse_time, parse_timestamp},
};

/// Parses text typed in a filter or a file as a value of the column's type; `None` if it is not one.
///
/// Integers of any width are parsed as 64 bits, so that a filter may contain a number that its column cannot hold;
/// [`super::fit`] checks widths. Dates and times are ISO text or epoch seconds (`Time`: seconds); bytes are `0x` and
/// hexadecimal digits, or else the text's own bytes. There is no literal for NULL: `NULL` is a text.
pub(crate) fn parse_literal(kind: ColumnType, text: &str) -> Option<Value> {
    match kind {
        ColumnType::Int(_) => text.parse().ok().map(Value::Int),
        ColumnType::Uint(_) => text.parse().ok().map(Value::Uint),
        ColumnType::Float => parse_float(text).and_then(single).map(Value::Float),
        ColumnType::Double => parse_float(text).map(Value::Float),
        ColumnType::Decimal(precision, scale) => {
            Decimal::parse(text, precision, scale).map(Value::Decimal)
        }
        ColumnType::Bool => parse_bool(text).map(Value::Bool),
        ColumnType::Text => Some(Value::Text(text.into())),
        ColumnType::Json => Some(Value::Json(text.into())),
        ColumnType::Bytes => Some(Value::Bytes(parse_bytes(text))),
        ColumnType::Date => parse_date(text).or_else(|| epoch_date(text)).map(Value::Date),
        ColumnType::Time => parse_time(text).map(Value::Time),
        ColumnType::DateTime => {
            let parsed = parse_date_time(text);
            parsed.or_else(|| DateTime::from_timestamp(parse_epoch(text)?)).map(Value::DateTime)
        }
        ColumnType::Timestamp => {
            parse_timestamp(text).or_else(|| parse_epoch(text)).map(Value::Timestamp)
        }
    }
}

/// The 64-bit float for a 32-bit one: the shortest decimal that identifies it, so that 0.1 stays 0.1. `None` if it is
/// too large.
pub(super) fn single(number: f64) -> Option<f64> {
    let narrow = number as f32 + 0.0;
    narrow.is_finite().then(|| narrow.to_string().parse().ok())?
}

fn parse_float(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    // The standard library also parses "inf" and "nan".
    number.is_finite().then_some(number + 0.0)
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn epoch_date(text: &str) -> Option<Date> {
    Some(DateTime::from_timestamp(parse_epoch(text)?)?.date)
}

fn parse_bytes(text: &str) -> Arc<[u8]> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len().is_multiple_of(2));
    let bytes = digits.and_then(|digits| {
        digits.as_bytes().chunks_exact(2).map(hexadecimal_byte).collect::<Option<Arc<[u8]>>>()
    });
    bytes.unwrap_or_else(|| text.as_bytes().into())
}

fn hexadecimal_byte(pair: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let value = digit(pair.first()?)? * 16 + digit(pair.get(1)?)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encode::strategies::typed_values;

    fn shown(kind: ColumnType, text: &str) -> String {
        parse_literal(kind, text).map_or("none".to_owned(), |value| value.to_string())
    }

    proptest! {
        #[test]
        fn printed_values_parse_back((kind, values) in typed_values(1)) {
            let value = &values[0];
            if !value.is_null() {
                prop_assert_eq!(parse_literal(kind, &value.to_string()), Some(value.clone()));
            }
        }

        #[test]
        fn any_text_is_refused_or_read((kind, _) in typed_values(0), text in ".{0,40}") {
            let _ = parse_literal(kind, &text);
        }
    }

    #[test]
    fn literals_are_read_strictly() {
        assert_eq!(shown(ColumnType::Int(8), "300"), "300");
        assert_eq!(shown(ColumnType::Int(64), "5.0"), "none");
        assert_eq!(shown(ColumnType::Uint(64), "-1"), "none");
        assert_eq!(shown(ColumnType::Double, "5.0"), "5");
        assert_eq!(shown(ColumnType::Double, "inf"), "none");
        assert_eq!(shown(ColumnType::Double, "NaN"), "none");
        assert_eq!(shown(ColumnType::Float, "0.1"), "0.1");
        assert_eq!(shown(ColumnType::Float, "16777217"), "16777216");
        assert_eq!(shown(ColumnType::Float, "1e39"), "none");
        assert_eq!(shown(ColumnType::Decimal(5, 2), "5"), "5.00");
        assert_eq!(shown(ColumnType::Bool, "TRUE"), "true");
        assert_eq!(shown(ColumnType::Bool, "yes"), "none");
        assert_eq!(shown(ColumnType::Bytes, "0x4a"), "0x4A");
        assert_eq!(shown(ColumnType::Bytes, "0x4"), "0x307834");
    }

    #[test]
    fn dates_are_read_as_text_and_as_epoch_seconds() {
        assert_eq!(shown(ColumnType::Date, "1706702400"), "2024-01-31");
        assert_eq!(shown(ColumnType::Date, "2024-01-31"), "2024-01-31");
        assert_eq!(shown(ColumnType::DateTime, "1706702400"), "2024-01-31 12:00:00");
        assert_eq!(shown(ColumnType::DateTime, "2024-01-31T12:00:00"), "2024-01-31 12:00:00");
        assert_eq!(shown(ColumnType::Timestamp, "-1"), "1969-12-31 23:59:59");
        assert_eq!(shown(ColumnType::Time, "3600"), "01:00:00");
    }
}
