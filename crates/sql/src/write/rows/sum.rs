//! `column + number` in SET, as for counters and balances, evaluated without a plan.

use std::ops::Range;

use remora_engine::{Decimal, Value};

use super::{
    literal::{CellExpr, Parameters, plain},
    target::TargetTable,
};
use crate::{SqlType, meaning::decimal::Dec, parse::Tokens};

/// A column, to which a number may be added.
pub(super) struct ColumnSum {
    column: usize,
    /// Whether it is subtracted, and the number.
    added: Option<(bool, Value)>,
}

impl ColumnSum {
    /// Parses these tokens as a sum; `None` if they are anything else. `alias` is the permitted qualifier of the
    /// column.
    pub(super) fn of(
        tokens: &Tokens<'_>,
        range: Range<usize>,
        parameters: &Parameters<'_>,
        alias: &str,
        target: &TargetTable,
    ) -> Option<Self> {
        let mut tokens = tokens.within(range.clone());
        let mut name = tokens.accept_name()?;
        if tokens.take(".") {
            let table = std::mem::replace(&mut name, tokens.accept_name()?);
            if table != alias {
                return None;
            }
        }
        let column = target.table.column(&name)?;
        let kind = &target.table.columns.get(column)?.kind;
        let is_year = matches!(kind.sql, SqlType::Year | SqlType::Bit(_));
        if is_year || !(kind.is_integer() || matches!(kind.sql, SqlType::Decimal(..))) {
            return None;
        }
        if tokens.place() == range.end {
            return Some(Self { column, added: None });
        }
        let subtracted = tokens.take("-");
        if !subtracted && !tokens.take("+") {
            return None;
        }
        let CellExpr::Value(added) = plain(&mut tokens, parameters)? else { return None };
        (tokens.place() == range.end).then_some(Self { column, added: Some((subtracted, added)) })
    }

    /// The column.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// The value in a row; `None` if planning might report an error or a warning.
    pub(super) fn value(&self, row: &[Value]) -> Option<Value> {
        let value = row.get(self.column)?;
        let Some((subtracted, added)) = &self.added else { return Some(value.clone()) };
        if value.is_null() || added.is_null() {
            return Some(Value::Null);
        }
        match (value, added) {
            (Value::Int(_) | Value::Uint(_), Value::Int(_) | Value::Uint(_)) => {
                let (a, b) = (integer(value)?, integer(added)?);
                let sum = if *subtracted { a.checked_sub(b)? } else { a.checked_add(b)? };
                let unsigned = matches!((value, added), (Value::Uint(_), _) | (_, Value::Uint(_)));
                match unsigned {
                    true => u64::try_from(sum).ok().map(Value::Uint),
                    false => i64::try_from(sum).ok().map(Value::Int),
                }
            }
            (_, Value::Int(_) | Value::Uint(_) | Value::Decimal(_)) => {
                let (a, b) = (exact(value)?, exact(added)?);
                let sum = if *subtracted { a.minus(b)? } else { a.plus(b)? };
                Some(Value::Decimal(Decimal::from_scaled(sum.units.to_i128()?, sum.scale)))
            }
            _ => {
                let (a, b) = (exact(value)?.to_double(), double(added)?);
                let sum = if *subtracted { a - b } else { a + b };
                sum.is_finite().then_some(Value::Float(sum))
            }
        }
    }
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some((*number).into()),
        Value::Uint(number) => Some((*number).into()),
        _ => None,
    }
}

fn exact(value: &Value) -> Option<Dec> {
    match value {
        Value::Decimal(number) => {
            let (parsed, read) = Dec::parse_prefix(number.as_str());
            (read == number.as_str().len()).then_some(parsed)
        }
        value => integer(value).map(Dec::whole),
    }
}

/// A number as a double, also from a text that is exactly a number.
fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Text(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
            let all_digits =
                |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            (all_digits(whole) && all_digits(fraction)).then(|| text.parse().ok())?
        }
        _ => None,
    }
}
