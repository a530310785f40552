//! LIMIT and ORDER BY in the form that plans accept.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, LimitClause, Offset, OffsetRows, OrderBy, OrderByExpr, OrderByKind, Query, Select,
    SetExpr, TableFactor, Value, ValueWithSpan, Visitor,
};
use remora_mysql::ErrorCode;

use super::VisibleCte;
use crate::{Error, Result, parse::Visit};

/// Turns `LIMIT a, b` into OFFSET and LIMIT with numbers that plans can hold. In a query within another one, a LIMIT that
/// is larger than any table stays, because it keeps the rows in the query's order (`LIMIT 18446744073709551615`).
pub(super) fn normalise(query: &mut Query, is_within: bool) -> Result<()> {
    let Some(clause) = query.limit_clause.take() else { return Ok(()) };
    let (offset, limit) = parts(clause)?;
    let limit = if is_within { limit.min(i64::MAX as u64 - 1) } else { limit };
    query.limit_clause = Some(clause_of(offset, limit));
    Ok(())
}

/// The order that the rows of a SELECT have from a query in its FROM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InheritedOrder {
    None,
    /// Of a query with a LIMIT, all of whose rows are read in its order.
    OfFirstRows,
    Any,
}

/// Whether the only source of a SELECT is a query with ORDER BY. MySQL returns the rows in that order if the SELECT has
/// no order, groups or DISTINCT of its own.
pub(super) fn inherited_order(select: &Select, common: Option<&VisibleCte<'_>>) -> InheritedOrder {
    let [source] = select.from.as_slice() else { return InheritedOrder::None };
    let order = match &source.relation {
        _ if !source.joins.is_empty() => return InheritedOrder::None,
        TableFactor::Derived { subquery, .. } => order_of(subquery),
        TableFactor::Table { name, .. } => {
            let named = name.0.last().and_then(|part| part.as_ident());
            let is_named =
                |common: &&VisibleCte<'_>| named.is_some_and(|named| named.value == common.unique);
            std::iter::successors(common, |common| common.outer)
                .find(is_named)
                .map_or(InheritedOrder::None, |common| common.order)
        }
        _ => return InheritedOrder::None,
    };
    // Subqueries are joined with the rows, in whatever order the joins give.
    match order {
        InheritedOrder::OfFirstRows if reads_subqueries(select) => InheritedOrder::Any,
        order => order,
    }
}

/// The order that a query gives its rows.
pub(super) fn order_of(query: &Query) -> InheritedOrder {
    match query.body.as_ref() {
        _ if query.order_by.is_some() && query.limit_clause.is_some() => {
            InheritedOrder::OfFirstRows
        }
        _ if query.order_by.is_some() => InheritedOrder::Any,
        SetExpr::Query(inner) => order_of(inner),
        _ => InheritedOrder::None,
    }
}

/// Whether the select list or the condition of a SELECT has subqueries.
fn reads_subqueries(select: &Select) -> bool {
    struct AnyQuery;
    impl Visitor for AnyQuery {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    select.projection.visit(&mut AnyQuery).is_break()
        || select.selection.visit(&mut AnyQuery).is_break()
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
