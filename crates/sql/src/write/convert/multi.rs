//! Converts to sets of integers: from a list, an array, a text with commas, or one number.

use remora_engine::Value;
use remora_mysql::ErrorCode;

use super::{Converter, TargetColumn, text_of};
use crate::{
    Error, Result,
    multi::{MAX_NUMBERS, Multi, held},
};

impl Converter {
    /// Converts a value to a set. If not strict, items that are not numbers are dropped, and numbers out of range are
    /// clamped.
    pub(super) fn fit_multi(
        &self,
        slot: TargetColumn<'_>,
        multi: Multi,
        value: &Value,
    ) -> Result<Value> {
        let (least, most) = multi.bounds();
        let (mut numbers, mut is_whole, mut is_within) = (Vec::new(), true, true);
        for number in numbers_of(value) {
            let Some(number) = number else {
                is_whole = false;
                continue;
            };
            let kept = number.clamp(least, most);
            is_within &= kept == number;
            numbers.push(i64::try_from(kept).unwrap_or(i64::MAX));
        }
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() > MAX_NUMBERS {
            let TargetColumn { name, row, .. } = slot;
            let message = format!(
                "Data too long for column '{name}' at row {row}: a set has at most {MAX_NUMBERS} numbers"
            );
            return Err(Error::new(ErrorCode::DataTooLong, message));
        }
        let made = Value::Json(held(numbers).into());
        if !is_whole {
            return self.incorrect(slot, slot.kind.name(), value, made);
        }
        if !is_within {
            let (name, row) = (slot.name, slot.row);
            let shown = super::shown(value);
            let message = format!("Out of range value for column '{name}' at row {row}: '{shown}'");
            return self.complain(ErrorCode::OutOfRange, message, made);
        }
        Ok(made)
    }
}

/// The numbers in a value; `None` for each item that is not a number.
fn numbers_of(value: &Value) -> Vec<Option<i128>> {
    match value {
        Value::Int(number) => vec![Some((*number).into())],
        Value::Uint(number) => vec![Some((*number).into())],
        Value::Bool(truth) => vec![Some((*truth).into())],
        Value::Decimal(_) | Value::Float(_) => vec![whole(&text_of(value))],
        Value::Json(text) | Value::Text(text) => of_text(text),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).map_or(vec![None], of_text),
        _ => vec![None],
    }
}

/// Parses `1,2`, `[1, 2]` or an empty text.
fn of_text(text: &str) -> Vec<Option<i128>> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.unwrap_or(text).trim();
    if inner.is_empty() {
        return Vec::new();
    }
    inner.split(',').map(whole).collect()
}

/// Parses an integer, which may have zeros after a decimal point.
fn whole(digits: &str) -> Option<i128> {
    let digits = digits.trim();
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_zero = !fraction.is_empty() && fraction.bytes().all(|digit| digit == b'0');
    integer.parse().ok().filter(|_| is_zero)
}
