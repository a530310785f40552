//! Converts values to the types of their columns.

use remora_index::paths::PathKeys;

use super::{
    document::Document,
    literal::{parse_literal, single},
    row_paths::path_values,
};
use crate::{
    ColumnDef, ColumnType, DateTime, Decimal, Error, RequestPart, Result, Row, Schema, Value,
    value::{TIME_LIMIT_MICROS, TIMESTAMP_RANGE_MICROS},
};

/// The most characters of a value that an error message shows.
const SHOWN_CHARS: usize = 60;
/// Buffers are reserved for the values of at most this many paths.
const MAX_RESERVED_PATHS: usize = 8;

/// A row with its values as the engine stores them.
///
/// # Errors
/// [`crate::Error::Request`] if a value does not fit its column.
pub fn fitted_row(schema: &Schema, row: &[Value]) -> Result<Row> {
    schema.columns.iter().zip(row).map(|(column, value)| fit(column, value)).collect()
}

/// The value as the column stores it: integers checked against the width, text parsed as the column's type, decimals
/// rounded to the scale. An error of [`RequestPart::Row`] names column and value.
pub(crate) fn fit(column: &ColumnDef, value: &Value) -> Result<Value> {
    let mut fitted = value.clone();
    fit_in_place(column, &mut fitted)?;
    Ok(fitted)
}

/// A row whose values fit its table.
pub(crate) struct FittedRow {
    /// The row.
    pub row: Row,
    /// The values of the row at the table's paths.
    pub paths: PathKeys,
}

/// Makes every value of a row fit its column. Values that already fit are not copied, and each document is parsed
/// once.
pub(crate) fn fit_row(schema: &Schema, mut row: Row) -> Result<FittedRow> {
    if row.len() != schema.columns.len() {
        let message = format!(
            "a row of {} values for table {:?}, which has {} columns: give one for each",
            row.len(),
            schema.name,
            schema.columns.len()
        );
        return Err(Error::request(RequestPart::Row, message));
    }
    for (place, (column, value)) in schema.columns.iter().zip(&mut row).enumerate() {
        let is_parsed_below = || schema.paths.iter().any(|path| path.column == place);
        if !(matches!((column.kind, &*value), (ColumnType::Json, Value::Json(_)))
            && is_parsed_below())
        {
            fit_in_place(column, value)?;
        }
    }
    let mut paths = PathKeys::default();
    if !schema.paths.is_empty() {
        paths.reserve(schema.paths.len().min(MAX_RESERVED_PATHS));
    }
    if let Some(place) = path_values(&schema.paths, &row, &mut paths)
        && let (Some(column), Some(value)) = (schema.columns.get(place), row.get(place))
    {
        return Err(misfit(column, value));
    }
    Ok(FittedRow { row, paths })
}

/// Converts a value to its column's type, unless it has it already.
pub(crate) fn fit_in_place(column: &ColumnDef, value: &mut Value) -> Result<()> {
    if value.is_null() {
        if column.nullable {
            return Ok(());
        }
        let message = format!("column {:?} must not be NULL: give a value", column.name);
        return Err(Error::request(RequestPart::Row, message));
    }
    if is_of(column.kind, value) && in_range(column.kind, value) {
        return Ok(());
    }
    match convert(column.kind, value).filter(|fitted| in_range(column.kind, fitted)) {
        Some(fitted) => {
            *value = fitted;
            Ok(())
        }
        None => Err(misfit(column, value)),
    }
}

/// Whether the value already has the form that the column stores.
fn is_of(kind: ColumnType, value: &Value) -> bool {
    match (kind, value) {
        (ColumnType::Int(_), Value::Int(_))
        | (ColumnType::Uint(_), Value::Uint(_))
        | (ColumnType::Bool, Value::Bool(_))
        | (ColumnType::Text, Value::Text(_))
        | (ColumnType::Json, Value::Json(_))
        | (ColumnType::Bytes, Value::Bytes(_))
        | (ColumnType::Date, Value::Date(_))
        | (ColumnType::Time, Value::Time(_))
        | (ColumnType::DateTime, Value::DateTime(_))
        | (ColumnType::Timestamp, Value::Timestamp(_)) => true,
        (ColumnType::Double, Value::Float(number)) => number.to_bits() != (-0.0_f64).to_bits(),
        (ColumnType::Decimal(precision, scale), Value::Decimal(number)) => {
            number.has_form(precision, scale)
        }
        // A 32-bit float is always converted, because its stored form depends on rounding.
        _ => false,
    }
}

/// Whether a value of the right variant is in the range of the column's type.
fn in_range(kind: ColumnType, value: &Value) -> bool {
    match (kind, value) {
        (ColumnType::Int(bits), Value::Int(number)) => {
            let spare = 64_u32.saturating_sub(u32::from(bits)).min(63);
            *number == number << spare >> spare
        }
        (ColumnType::Uint(bits), Value::Uint(number)) => {
            number.checked_shr(u32::from(bits)).unwrap_or(0) == 0
        }
        (ColumnType::Float | ColumnType::Double, Value::Float(number)) => number.is_finite(),
        (ColumnType::Date, Value::Date(date)) => date.is_valid(),
        (ColumnType::DateTime, Value::DateTime(moment)) => moment.is_valid(),
        (ColumnType::Time, Value::Time(micros)) => {
            (-TIME_LIMIT_MICROS..=TIME_LIMIT_MICROS).contains(micros)
        }
        (ColumnType::Timestamp, Value::Timestamp(micros)) => {
            TIMESTAMP_RANGE_MICROS.contains(micros)
        }
        (ColumnType::Json, Value::Json(text)) => Document::parse(text).is_some(),
        _ => true,
    }
}

/// The value in the column's type, if the conversion loses nothing but digits beyond a scale.
fn convert(kind: ColumnType, value: &Value) -> Option<Value> {
    match (kind, value) {
        (_, Value::Text(text)) => parse_literal(kind, text),
        (ColumnType::Int(_), Value::Uint(number)) => i64::try_from(*number).ok().map(Value::Int),
        (ColumnType::Uint(_), Value::Int(number)) => u64::try_from(*number).ok().map(Value::Uint),
        (ColumnType::Int(_), Value::Bool(truth)) => Some(Value::Int(i64::from(*truth))),
        (ColumnType::Uint(_), Value::Bool(truth)) => Some(Value::Uint(u64::from(*truth))),
        (ColumnType::Bool, Value::Int(0) | Value::Uint(0)) => Some(Value::Bool(false)),
        (ColumnType::Bool, Value::Int(1) | Value::Uint(1)) => Some(Value::Bool(true)),
        (ColumnType::Double, _) => number_of(value).map(|number| Value::Float(number + 0.0)),
        (ColumnType::Float, _) => number_of(value).and_then(single).map(Value::Float),
        (ColumnType::Decimal(precision, scale), _) => {
            decimal_of(value, precision, scale).map(Value::Decimal)
        }
        (ColumnType::Text, Value::Json(text)) => Some(Value::Text(text.clone())),
        (ColumnType::DateTime, Value::Date(date)) => {
            Some(Value::DateTime(DateTime { date: *date, micros: 0 }))
        }
        (ColumnType::Timestamp, Value::DateTime(moment)) => {
            moment.to_timestamp().map(Value::Timestamp)
        }
        (ColumnType::DateTime, Value::Timestamp(micros)) => {
            DateTime::from_timestamp(*micros).map(Value::DateTime)
        }
        (
            ColumnType::Date | ColumnType::DateTime | ColumnType::Timestamp | ColumnType::Time,
            Value::Int(_) | Value::Uint(_),
        ) => parse_literal(kind, &value.to_string()),
        _ => None,
    }
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Decimal(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

fn decimal_of(value: &Value, precision: u8, scale: u8) -> Option<Decimal> {
    match value {
        Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Decimal(_) => {
            Decimal::parse(&value.to_string(), precision, scale)
        }
        _ => None,
    }
}

/// The error for a value that does not fit its column.
fn misfit(column: &ColumnDef, value: &Value) -> Error {
    let shown = value.to_string();
    let cut: String = shown.chars().take(SHOWN_CHARS).collect();
    let dots = if cut.len() < shown.len() { "…" } else { "" };
    let message = format!(
        "{cut:?}{dots} does not fit column {:?}, which holds {}",
        column.name,
        describe(column.kind)
    );
    Error::request(RequestPart::Row, message)
}

fn describe(kind: ColumnType) -> String {
    match kind {
        ColumnType::Int(bits) => format!("signed integers of {bits} bits"),
        ColumnType::Uint(bits) => format!("unsigned integers of {bits} bits"),
        ColumnType::Float => "finite 32-bit floats".to_owned(),
        ColumnType::Double => "finite 64-bit floats".to_owned(),
        ColumnType::Decimal(precision, scale) => {
            format!("decimals of {precision} digits, {scale} of them after the point")
        }
        ColumnType::Bool => "true and false".to_owned(),
        ColumnType::Text => "text".to_owned(),
        ColumnType::Bytes => "bytes".to_owned(),
        ColumnType::Date => "dates like 2024-01-31".to_owned(),
        ColumnType::Time => "times up to 838:59:59".to_owned(),
        ColumnType::DateTime => "dates and times like 2024-01-31 12:00:00".to_owned(),
        ColumnType::Timestamp => "moments like 2024-01-31 12:00:00Z".to_owned(),
        ColumnType::Json => "JSON documents".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encode::strategies::{column, typed_values};

    fn fitted(kind: ColumnType, value: Value) -> String {
        match fit(&column(1, kind), &value) {
            Ok(value) => format!("{value:?}"),
            Err(_) => "refused".to_owned(),
        }
    }

    proptest! {
        #[test]
        fn fitting_values_stay_unchanged((kind, values) in typed_values(1)) {
            prop_assert_eq!(&fit(&column(1, kind), &values[0]).unwrap(), &values[0]);
        }
    }

    #[test]
    fn integers_keep_to_their_width() {
        assert_eq!(fitted(ColumnType::Int(8), Value::Int(-128)), "Int(-128)");
        assert_eq!(fitted(ColumnType::Int(8), Value::Int(128)), "refused");
        assert_eq!(fitted(ColumnType::Int(64), Value::Int(i64::MIN)), "Int(-9223372036854775808)");
        assert_eq!(fitted(ColumnType::Int(64), Value::Uint(u64::MAX)), "refused");
        assert_eq!(fitted(ColumnType::Uint(24), Value::Int(16_777_215)), "Uint(16777215)");
        assert_eq!(fitted(ColumnType::Uint(24), Value::Int(16_777_216)), "refused");
        assert_eq!(
            fitted(ColumnType::Uint(64), Value::Uint(u64::MAX)),
            "Uint(18446744073709551615)"
        );
        assert_eq!(fitted(ColumnType::Int(16), Value::Text("-7".into())), "Int(-7)");
        assert_eq!(fitted(ColumnType::Int(16), Value::Text("70000".into())), "refused");
    }

    #[test]
    fn lossless_type_conversions_are_done() {
        assert_eq!(fitted(ColumnType::Double, Value::Int(3)), "Float(3.0)");
        assert_eq!(fitted(ColumnType::Double, Value::Float(-0.0)), "Float(0.0)");
        assert_eq!(fitted(ColumnType::Double, Value::Float(f64::NAN)), "refused");
        assert_eq!(fitted(ColumnType::Float, Value::Float(0.1_f32.into())), "Float(0.1)");
        assert_eq!(fitted(ColumnType::Decimal(5, 2), Value::Int(3)), "Decimal(Decimal(\"3.00\"))");
        assert_eq!(fitted(ColumnType::Decimal(5, 2), Value::Int(1_000)), "refused");
        assert_eq!(
            fitted(ColumnType::Json, Value::Text("{\"a\":1}".into())),
            "Json(\"{\\\"a\\\":1}\")"
        );
        assert_eq!(fitted(ColumnType::Json, Value::Text("{".into())), "refused");
        assert_eq!(fitted(ColumnType::Bool, Value::Int(2)), "refused");
        assert_eq!(
            fitted(ColumnType::Date, Value::Int(1_706_702_400)),
            "Date(Date { year: 2024, month: 1, day: 31 })"
        );
        assert_eq!(fitted(ColumnType::Time, Value::Time(i64::MAX)), "refused");
    }

    #[test]
    fn errors_name_the_column_and_the_value() {
        let mut column = column(1, ColumnType::Int(8));
        column.name = "age".to_owned();
        let error = fit(&column, &Value::Text("old".into())).unwrap_err().to_string();
        assert_eq!(
            error,
            "\"old\" does not fit column \"age\", which holds signed integers of 8 bits"
        );
        column.nullable = false;
        let error = fit(&column, &Value::Null).unwrap_err().to_string();
        assert_eq!(error, "column \"age\" must not be NULL: give a value");
    }
}
