//! JSON values that columns of numbers, dates and times are given. Scalars are converted as CAST does it; all else is error
//! 3156. Columns of other types take the document's text.

use remora_engine::Value;
use remora_mysql::ErrorCode;

use super::{Converter, TargetColumn};
use crate::{
    Result, SqlType,
    meaning::{
        json::Json,
        number::{double_prefix, integer_prefix},
        temporal::{parse_moment, parse_time},
    },
};

/// What a column takes of a JSON value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonTarget {
    Integer,
    Double,
    Decimal,
    Date,
    DateTime,
    Time,
}

impl JsonTarget {
    /// Of a column; `None` if it takes the document's text.
    fn of(slot: TargetColumn<'_>) -> Option<Self> {
        Some(match slot.kind.sql {
            _ if slot.kind.integer_bits().is_some() => Self::Integer,
            SqlType::Float | SqlType::Double => Self::Double,
            SqlType::Decimal(..) => Self::Decimal,
            SqlType::Date => Self::Date,
            SqlType::DateTime(_) | SqlType::Timestamp(_) => Self::DateTime,
            SqlType::Time(_) => Self::Time,
            _ => return None,
        })
    }

    /// Its name in errors.
    fn name(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Double => "DOUBLE",
            Self::Decimal => "DECIMAL",
            Self::Date => "DATE",
            Self::DateTime => "DATETIME/TIMESTAMP",
            Self::Time => "TIME",
        }
    }

    /// The value for a column whose row is stored although its JSON value does not fit. Dates become NULL.
    fn instead(self, text: &str) -> Value {
        match self {
            Self::Integer => {
                let (number, _) = integer_prefix(text);
                Value::Int(i64::try_from(number).unwrap_or(if number < 0 {
                    i64::MIN
                } else {
                    i64::MAX
                }))
            }
            Self::Double | Self::Decimal => Value::Float(double_prefix(text).0),
            Self::Date | Self::DateTime | Self::Time => Value::Null,
        }
    }
}

/// Whether a column takes JSON values as scalars.
pub(super) fn is_scalar(slot: TargetColumn<'_>) -> bool {
    JsonTarget::of(slot).is_some()
}

impl Converter {
    /// A JSON value as the column takes it: a number, or a text that is one or a date.
    pub(super) fn scalar_of_json(&self, slot: TargetColumn<'_>, document: &str) -> Result<Value> {
        let Some(target) = JsonTarget::of(slot) else {
            return Ok(Value::Json(document.into()));
        };
        let is_number =
            matches!(target, JsonTarget::Integer | JsonTarget::Double | JsonTarget::Decimal);
        let text = match Json::parse(document) {
            Ok(Json::Bool(truth)) if is_number => return Ok(Value::Int(i64::from(truth))),
            Ok(Json::Int(number)) if is_number => return Ok(Value::Int(number)),
            Ok(Json::Uint(number)) if is_number => return Ok(Value::Uint(number)),
            Ok(Json::Double(number)) if target == JsonTarget::Integer => {
                return self.integer_of_json(slot, number.round_ties_even());
            }
            Ok(Json::Double(number)) if is_number => return Ok(Value::Float(number)),
            Ok(Json::Text(text)) => text,
            _ => return self.no_scalar(slot, target, ""),
        };
        let is_complete = match target {
            JsonTarget::Integer => !text.is_empty() && text.parse::<i128>().is_ok(),
            JsonTarget::Double | JsonTarget::Decimal => {
                text.bytes().any(|byte| byte.is_ascii_digit()) && double_prefix(&text).1
            }
            JsonTarget::Date | JsonTarget::DateTime => {
                parse_moment(&text).is_some_and(|parsed| parsed.complete)
            }
            JsonTarget::Time => parse_time(&text).is_some_and(|parsed| parsed.complete),
        };
        match is_complete {
            true => Ok(Value::Text(text.into())),
            false => self.no_scalar(slot, target, &text),
        }
    }

    /// A whole double; error 3155 beyond 64 bits.
    fn integer_of_json(&self, slot: TargetColumn<'_>, number: f64) -> Result<Value> {
        const MOST: f64 = 18_446_744_073_709_551_616.0;
        if (-MOST / 2.0..MOST).contains(&number) {
            let whole = number as i128;
            return Ok(i64::try_from(whole).map_or(Value::Uint(whole as u64), Value::Int));
        }
        let (name, row) = (slot.name, slot.row);
        let message =
            format!("Out of range JSON value for CAST to INTEGER from column {name} at row {row}");
        let instead = if number < 0.0 { Value::Int(i64::MIN) } else { Value::Uint(u64::MAX) };
        self.complain(ErrorCode::JsonCastRange, message, instead)
    }

    /// Error 3156.
    fn no_scalar(&self, slot: TargetColumn<'_>, target: JsonTarget, text: &str) -> Result<Value> {
        let (kind, name, row) = (target.name(), slot.name, slot.row);
        let message =
            format!("Invalid JSON value for CAST to {kind} from column {name} at row {row}");
        self.complain(ErrorCode::InvalidJsonCast, message, target.instead(text))
    }
}
