//! Converts rows to Arrow.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BinaryBuilder, Date32Array, Decimal128Array, DurationMicrosecondArray,
        Float32Array, Float64Array, Int64Array, NullArray, StringBuilder,
        TimestampMicrosecondArray, UInt64Array,
    },
    datatypes::{DataType, Field, Schema, TimeUnit},
    error::ArrowError,
    record_batch::RecordBatch,
};
use remora_engine::{DateTime, Value};

use super::{Column, Row, Type};
use crate::{Error, Result};

/// The most rows of a batch.
const BATCH_ROWS: usize = 8_192;
/// The most digits of a 128-bit decimal.
const MAX_DIGITS: u8 = 38;
const DAY_MICROS: i64 = 86_400_000_000;

/// Converts rows to batches. Without rows there is one empty batch, which has the columns.
pub(crate) fn batches(columns: &[Column], rows: &[&Row]) -> Result<Vec<RecordBatch>> {
    let fields = columns.iter();
    let fields: Vec<Field> =
        fields.map(|column| Field::new(&column.name, data_type(column.kind), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    if rows.is_empty() {
        return Ok(vec![RecordBatch::new_empty(schema)]);
    }
    let batch = |rows: &[&Row]| {
        let arrays = columns.iter().enumerate().map(|(place, column)| array(column, place, rows));
        RecordBatch::try_new(Arc::clone(&schema), arrays.collect::<Result<_>>()?).map_err(of_arrow)
    };
    rows.chunks(BATCH_ROWS).map(batch).collect()
}

fn of_arrow(error: ArrowError) -> Error {
    Error::request(format!("the rows cannot be converted to Arrow: {error}"))
}

fn data_type(kind: Type) -> DataType {
    match kind {
        Type::Null => DataType::Null,
        Type::Int => DataType::Int64,
        Type::Uint => DataType::UInt64,
        Type::Float => DataType::Float32,
        Type::Double => DataType::Float64,
        Type::Decimal(digits, scale) if digits <= MAX_DIGITS => {
            DataType::Decimal128(digits.max(1), i8::try_from(scale).unwrap_or(0))
        }
        Type::Decimal(..) | Type::Text | Type::Json => DataType::Utf8,
        Type::Bool => DataType::Boolean,
        Type::Bytes | Type::Vector => DataType::Binary,
        Type::Date => DataType::Date32,
        Type::Time => DataType::Duration(TimeUnit::Microsecond),
        Type::DateTime | Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
    }
}

fn array(column: &Column, place: usize, rows: &[&Row]) -> Result<ArrayRef> {
    let values = || rows.iter().map(|row| row.values().get(place).unwrap_or(&Value::Null));
    macro_rules! numbers {
        ($array:ty, $read:expr) => {{
            let read = |value| number(value, column, $read);
            let values: Vec<_> = values().map(read).collect::<Result<_>>()?;
            Arc::new(<$array>::from(values))
        }};
    }
    Ok(match data_type(column.kind) {
        DataType::Null => Arc::new(NullArray::new(rows.len())),
        DataType::Int64 => numbers!(Int64Array, whole),
        DataType::UInt64 => numbers!(UInt64Array, whole),
        DataType::Float32 => numbers!(Float32Array, |value| float(value).map(|it| it as f32)),
        DataType::Float64 => numbers!(Float64Array, float),
        DataType::Boolean => {
            numbers!(arrow::array::BooleanArray, |value| whole::<i64>(value).map(|it| it != 0))
        }
        DataType::Date32 => numbers!(Date32Array, days),
        DataType::Duration(_) => numbers!(DurationMicrosecondArray, |value| match value {
            Value::Time(micros) => Some(*micros),
            _ => None,
        }),
        DataType::Timestamp(..) => numbers!(TimestampMicrosecondArray, micros),
        DataType::Decimal128(digits, scale) => {
            let unsigned = u8::try_from(scale).unwrap_or(0);
            let read = |value: &Value| match value {
                Value::Decimal(number) => number.to_scaled(unsigned),
                _ => None,
            };
            let values: Vec<_> =
                values().map(|value| number(value, column, read)).collect::<Result<_>>()?;
            let array = Decimal128Array::from(values).with_precision_and_scale(digits, scale);
            Arc::new(array.map_err(of_arrow)?)
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            values().for_each(|value| builder.append_option(bytes(value)));
            Arc::new(builder.finish())
        }
        _ => {
            let mut builder = StringBuilder::new();
            values().for_each(|value| match value {
                Value::Null => builder.append_null(),
                Value::Text(text) | Value::Json(text) => builder.append_value(text),
                other => builder.append_value(other.to_string()),
            });
            Arc::new(builder.finish())
        }
    })
}

/// The Arrow value of a value that is not NULL, or an error if there is none.
fn number<T>(
    value: &Value,
    column: &Column,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>> {
    if value.is_null() {
        return Ok(None);
    }
    let wrong = || {
        let name = &column.name;
        Error::request(format!(
            "column {name:?} has {value}, which Arrow has no value for: select CAST({name} AS CHAR)"
        ))
    };
    read(value).map(Some).ok_or_else(wrong)
}

fn whole<T: TryFrom<i128>>(value: &Value) -> Option<T> {
    let number = match value {
        Value::Int(number) => i128::from(*number),
        Value::Uint(number) => i128::from(*number),
        Value::Bool(truth) => i128::from(*truth),
        _ => return None,
    };
    T::try_from(number).ok()
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Text(text) => Some(text.as_bytes()),
        _ => None,
    }
}

fn micros(value: &Value) -> Option<i64> {
    match value {
        Value::DateTime(moment) => moment.to_timestamp(),
        Value::Timestamp(micros) => Some(*micros),
        _ => None,
    }
}

fn days(value: &Value) -> Option<i32> {
    let Value::Date(date) = value else { return None };
    let micros = DateTime { date: *date, micros: 0 }.to_timestamp()?;
    i32::try_from(micros.div_euclid(DAY_MICROS)).ok()
}
