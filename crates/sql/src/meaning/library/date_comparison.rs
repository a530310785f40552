//! Numbers beside dates, times and years. A literal that is compared with a column becomes a value of the column's type
//! if it can be one (20240102, 030405, 24). All other numbers are compared as numbers, and dates become numbers.
//!
//! Texts beside dates: a literal that is no date is an error where it stands alone, and the date of zeros in a list or as
//! a bound of BETWEEN.

use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, lit},
};

use super::{
    super::{
        call::Call,
        function::Dialect,
        number::integer_prefix,
        temporal::{moment_of_number, parse_moment, time_of_number},
        types::ExprType,
        value::SqlValue,
    },
    calls::called,
};
use crate::{Result, SqlType};

/// Whether these two sides, one of which is a date or time, are compared as numbers.
pub(super) fn are_numbers(a: &Expr, a_type: &ExprType, b: &Expr, b_type: &ExprType) -> bool {
    let (value, kind, number) = match (a_type.is_number(), b_type.is_number()) {
        (false, true) => (a, a_type, b),
        (true, false) => (b, b_type, a),
        _ => return false,
    };
    let is_column = matches!(value, Expr::Column(_));
    kind.is_temporal() && !(is_column && integer_of(number).is_some_and(|it| fits(kind, it)))
}

/// Whether a list beside a date or time has both numbers and texts: then no number is read as a date.
pub(super) fn are_mixed(kind: &ExprType, list: &[ExprType]) -> bool {
    kind.is_temporal()
        && list.iter().any(ExprType::is_number)
        && list.iter().any(ExprType::is_string)
}

/// The values of a list beside a date, if a text among them is no date: such texts are taken as the date of zeros.
pub(super) fn with_zeros(
    kind: &ExprType,
    list: &[Expr],
    types: &[ExprType],
    dialect: Dialect,
) -> Option<(Vec<Expr>, Vec<ExprType>)> {
    let is_no_date = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            parse_moment(text).is_none()
        }
        _ => false,
    };
    if !kind.has_date() || !list.iter().any(is_no_date) {
        return None;
    }
    let taken = list.iter().zip(types).map(|(expr, kind)| match is_no_date(expr) {
        true => (called("date_or_zero", vec![expr.clone()], dialect), ExprType::date_time(6)),
        false => (expr.clone(), kind.clone()),
    });
    Some(taken.unzip())
}

/// The date of zeros, with a warning that the text is no date.
pub(super) fn date_or_zero<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let found = args.first().and_then(|value| value.moment(call));
    let found = found.or_else(|| parse_moment("0000-00-00").map(|zero| zero.moment));
    Ok(SqlValue::or_null(found, |moment| SqlValue::DateTime(moment, 6)))
}

/// Whether an integer is a date, or a time, if that is the type.
fn fits(kind: &ExprType, number: i64) -> bool {
    match kind.has_date() {
        true => moment_of_number(number).is_some(),
        false => time_of_number(number).is_some(),
    }
}

/// The integer part of a literal number that is no double.
fn integer_of(expr: &Expr) -> Option<i64> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::Int64(Some(number)) => Some(*number),
        ScalarValue::UInt64(Some(number)) => i64::try_from(*number).ok(),
        ScalarValue::Decimal128(Some(number), _, scale) => {
            let unit = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            i64::try_from(number.checked_div(unit)?).ok()
        }
        _ => None,
    }
}

/// A literal of one or two digits beside a YEAR column, as the year that it is there: 24 is 2024, and 70 is 1970.
pub(super) fn year(expr: &Expr, beside: &Expr, kind: &ExprType) -> Option<Expr> {
    if kind.kind != SqlType::Year || !matches!(beside, Expr::Column(_)) {
        return None;
    }
    let number = match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            let (number, is_whole) = integer_prefix(text);
            // The texts 0 and 00 are the year 2000, the number 0 is the year 0000.
            if number == 0 && is_whole && text.trim().len() <= 2 {
                return Some(lit(2_000));
            }
            i64::try_from(number).ok().filter(|_| is_whole)?
        }
        expr => integer_of(expr)?,
    };
    match number {
        1..=69 => Some(lit(2_000 + number)),
        70..=99 => Some(lit(1_900 + number)),
        _ => None,
    }
}
