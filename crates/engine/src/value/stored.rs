//! The form of a value inside a stored definition: exact for every value.

use serde::{Deserialize, Serialize};

use super::{Date, DateTime, Decimal, Value};

/// A value by its variant. Floats are stored as bits, because JSON would round them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredValue {
    Null,
    Int(i64),
    Uint(u64),
    FloatBits(u64),
    Decimal(String),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
    Date(u16, u8, u8),
    Time(i64),
    DateTime(u16, u8, u8, u64),
    Timestamp(i64),
    Json(String),
}

impl From<Value> for StoredValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(number) => Self::Int(number),
            Value::Uint(number) => Self::Uint(number),
            Value::Float(number) => Self::FloatBits(number.to_bits()),
            Value::Decimal(number) => Self::Decimal(number.to_string()),
            Value::Bool(truth) => Self::Bool(truth),
            Value::Text(text) => Self::Text(text.to_string()),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Date(date) => Self::Date(date.year, date.month, date.day),
            Value::Time(micros) => Self::Time(micros),
            Value::DateTime(DateTime { date, micros }) => {
                Self::DateTime(date.year, date.month, date.day, micros)
            }
            Value::Timestamp(micros) => Self::Timestamp(micros),
            Value::Json(text) => Self::Json(text.to_string()),
        }
    }
}

impl TryFrom<StoredValue> for Value {
    type Error = &'static str;

    fn try_from(stored: StoredValue) -> Result<Self, Self::Error> {
        Ok(match stored {
            StoredValue::Null => Self::Null,
            StoredValue::Int(number) => Self::Int(number),
            StoredValue::Uint(number) => Self::Uint(number),
            StoredValue::FloatBits(bits) => {
                let number = Some(f64::from_bits(bits)).filter(|number| !number.is_nan());
                Self::Float(number.ok_or("a float is not a number")?)
            }
            StoredValue::Decimal(text) => {
                Self::Decimal(Decimal::from_canonical(&text).ok_or("a decimal is malformed")?)
            }
            StoredValue::Bool(truth) => Self::Bool(truth),
            StoredValue::Text(text) => Self::Text(text.into()),
            StoredValue::Bytes(bytes) => Self::Bytes(bytes.into()),
            StoredValue::Date(year, month, day) => {
                let date = Some(Date { year, month, day }).filter(Date::is_valid);
                Self::Date(date.ok_or("a date is malformed")?)
            }
            StoredValue::Time(micros) => Self::Time(micros),
            StoredValue::DateTime(year, month, day, micros) => {
                let moment = DateTime { date: Date { year, month, day }, micros };
                let moment = Some(moment).filter(DateTime::is_valid);
                Self::DateTime(moment.ok_or("a date and time is malformed")?)
            }
            StoredValue::Timestamp(micros) => Self::Timestamp(micros),
            StoredValue::Json(text) => Self::Json(text.into()),
        })
    }
}
