//! LIMIT and ORDER BY in the form that plans accept.

use datafusion::sql::sqlparser::ast::{
    Expr, LimitClause, Offset, OffsetRows, OrderBy, OrderByExpr, OrderByKind, Query, SetExpr,
    Value, ValueWithSpan,
};
use remora_mysql::ErrorCode;

use crate::{Error, Result};

/// Turns `LIMIT a, b` into OFFSET and LIMIT with numbers that plans can hold.
pub(super) fn normalise(query: &mut Query) -> Result<()> {
    let Some(clause) = query.limit_clause.take() else { return Ok(()) };
    let (offset, limit) = parts(clause)?;
    query.limit_clause = Some(clause_of(offset, limit));
    Ok(())
}

/// Removes the LIMIT of a query with SQL_CALC_FOUND_ROWS and returns it. Adds the session's limit to a query without
/// LIMIT.
pub(super) fn take_window(query: &mut Query, most: u64) -> Result<Option<(u64, u64)>> {
    let counts = first_select_counts(&mut query.body);
    if counts {
        let window = match query.limit_clause.take() {
            Some(clause) => parts(clause)?,
            None => (0, most),
        };
        return Ok(Some(window));
    }
    if query.limit_clause.is_none() && most != u64::MAX {
        query.limit_clause = Some(clause_of(0, most));
    }
    Ok(None)
}

fn first_select_counts(body: &mut SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => {
            let modifiers = select.select_modifiers.take();
            modifiers.is_some_and(|modifiers| modifiers.sql_calc_found_rows)
        }
        SetExpr::Query(query) => first_select_counts(&mut query.body),
        SetExpr::SetOperation { left, .. } => first_select_counts(left),
        _ => false,
    }
}

/// The offset and the limit.
pub(super) fn parts(clause: LimitClause) -> Result<(u64, u64)> {
    match clause {
        LimitClause::LimitOffset { limit, offset, .. } => {
            let offset = offset.map_or(Ok(0), |offset| number(&offset.value))?;
            Ok((offset, limit.map_or(Ok(u64::MAX), |limit| number(&limit))?))
        }
        LimitClause::OffsetCommaLimit { offset, limit } => Ok((number(&offset)?, number(&limit)?)),
    }
}

fn number(expr: &Expr) -> Result<u64> {
    let wrong = || {
        let message = format!("Undeclared variable or wrong number in LIMIT: {expr}");
        Error::new(ErrorCode::ParseError, message)
    };
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            digits.parse().map_err(|_| wrong())
        }
        // Some drivers send the numbers of prepared statements as text.
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(digits), .. }) => {
            digits.parse().map_err(|_| wrong())
        }
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Ok(0),
        _ => Err(wrong()),
    }
}

pub(super) fn clause_of(offset: u64, limit: u64) -> LimitClause {
    let number = |number: u64| {
        let number = number.min(i64::MAX as u64);
        Expr::Value(ValueWithSpan::from(Value::Number(number.to_string(), false)))
    };
    let offset = (offset > 0).then(|| Offset { value: number(offset), rows: OffsetRows::None });
    let limit = (limit < i64::MAX as u64).then(|| number(limit));
    LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() }
}

/// Sets ORDER BY.
pub(super) fn set_order(query: &mut Query, order: Vec<OrderByExpr>) {
    query.order_by = match order.is_empty() {
        true => None,
        false => Some(OrderBy { kind: OrderByKind::Expressions(order), interpolate: None }),
    };
}
