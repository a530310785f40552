//! Row comparisons with a subquery, rewritten as EXISTS and scalar subqueries.
//!
//! ```text
//! (a, b) IN (query)      some row is equal: 1; else some comparison is NULL: NULL; else 0
//! (a, b) op (query)      the query's only row compared; if it has none NULL, of `<=>` 0
//! ```
//! In a condition NULL and 0 are the same, so a single EXISTS is enough there, and it is planned as a join.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query,
    SelectItem, SetExpr, TableAliasColumnDef, TableWithJoins, UnaryOperator, Value, ValueWithSpan,
    helpers::attached_token::AttachedToken,
};
use remora_mysql::{ErrorCode, messages};

use super::{from::binary, grouping::has_aggregate, query_of, scope::quoted, select::empty_select};
use crate::{
    Error, Result,
    parse::{
        function_call, visit_expressions,
        write::{derived_table, table_alias},
    },
};

/// The rows that an EXISTS looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowMatch {
    /// `(row) = (columns)` is true.
    Equal,
    /// The comparison is NULL.
    Unknown,
    /// The comparison is true or NULL.
    NotUnequal,
}

/// Rewrites a row comparison with a subquery; `None` if the expression is not one. Error 1241 if the numbers of columns
/// differ.
pub(super) fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    Ok(Some(match expr {
        Expr::InSubquery { expr, subquery, negated } => {
            let Some(row) = row_of(expr) else {
                check_columns(subquery, 1)?;
                return Ok(None);
            };
            let found = is_in(&checked(row, subquery)?, subquery);
            match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(found)) },
                false => nested(found),
            }
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            return compared(left, op, right);
        }
        Expr::Subquery(query) => {
            check_columns(query, 1)?;
            return Ok(None);
        }
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. }
            if !matches!(right.as_ref(), Expr::Subquery(_)) =>
        {
            return Err(Error::unsupported("ANY and ALL of anything but a query"));
        }
        // `= ANY` and `<> ALL` have become IN and NOT IN before.
        Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } if is_row(left) => {
            return Err(operand_columns(1));
        }
        _ => return Ok(None),
    }))
}

/// Turns `IN` into EXISTS where NULL means the same as 0.
pub(super) fn in_condition(condition: &mut Expr) -> Result<()> {
    match condition {
        Expr::Nested(inner) => in_condition(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            in_condition(left)?;
            in_condition(right)
        }
        Expr::InSubquery { expr, subquery, negated } => {
            let row = match row_of(expr) {
                Some(row) => row,
                // A join would look for rows equal to the constant only and miss NULLs.
                None if *negated && is_constant(expr) => vec![expr.as_ref().clone()],
                None => return Ok(()),
            };
            let row = checked(row, subquery)?;
            let row_match = if *negated { RowMatch::NotUnequal } else { RowMatch::Equal };
            let negated = *negated;
            let subquery = Box::new(matching_query(&row, subquery, row_match));
            *condition = Expr::Exists { subquery, negated };
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_in(row: &[Expr], query: &Query) -> Expr {
    let exists = |row_match| Expr::Exists {
        subquery: Box::new(matching_query(row, query, row_match)),
        negated: false,
    };
    let when = |condition, result| CaseWhen { condition, result };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            when(exists(RowMatch::Equal), number(1)),
            when(exists(RowMatch::Unknown), null()),
        ],
        else_result: Some(Box::new(number(0))),
    }
}

/// Whether an expression names no column.
fn is_constant(expr: &Expr) -> bool {
    let named = visit_expressions(expr, |each| match each {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    named.is_continue()
}

/// Builds `SELECT 1 FROM (query) WHERE …`.
fn matching_query(row: &[Expr], query: &Query, row_match: RowMatch) -> Query {
    let equal = match row {
        [only] => binary(nested(only.clone()), BinaryOperator::Eq, column(0)),
        row => binary(Expr::Tuple(row.to_vec()), BinaryOperator::Eq, columns(row.len())),
    };
    let condition = match row_match {
        RowMatch::Equal => equal,
        RowMatch::Unknown => Expr::IsNull(Box::new(nested(equal))),
        RowMatch::NotUnequal => Expr::IsNotFalse(Box::new(nested(equal))),
    };
    comparison_query(query, row.len(), number(1), Some(condition))
}

/// A comparison of a row with a single-row subquery, on either side.
fn compared(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let (row, op, query) = match (left, right) {
        (row, Expr::Subquery(query)) if is_row(row) => (row, op.clone(), query),
        (Expr::Subquery(query), row) if is_row(row) => (row, swapped(op), query),
        _ => return Ok(None),
    };
    let count = width(row);
    check_columns(query, count)?;
    if has_aggregate(row) {
        return Err(Error::unsupported("a row of aggregates compared with a subquery"));
    }
    let value = binary(row.clone(), op.clone(), columns(count));
    let value = Expr::Subquery(Box::new(comparison_query(query, count, value, None)));
    Ok(Some(match op {
        BinaryOperator::Spaceship => function_call("coalesce", vec![value, number(0)]),
        _ => value,
    }))
}

/// Builds `(SELECT expr FROM (query) AS q (…) WHERE condition)`, with names for the query's columns.
pub(super) fn comparison_query(
    query: &Query,
    count: usize,
    expr: Expr,
    condition: Option<Expr>,
) -> Query {
    let mut named = table_alias("rows compared");
    let column = |at| TableAliasColumnDef { name: quoted(&column_name(at)), data_type: None };
    named.columns = (0..count).map(column).collect();
    let relation = derived_table(query.clone(), named);
    let mut select = empty_select();
    select.projection = vec![SelectItem::UnnamedExpr(expr)];
    select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    select.selection = condition;
    query_of(SetExpr::Select(Box::new(select)))
}

/// The column of [`comparison_query`]'s query at an index.
pub(super) fn column(at: usize) -> Expr {
    Expr::Identifier(quoted(&column_name(at)))
}

fn column_name(at: usize) -> String {
    format!("compared {at}")
}

fn columns(count: usize) -> Expr {
    Expr::Tuple((0..count).map(column).collect())
}

/// The values of a row with several columns.
fn row_of(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(values) if values.len() > 1 => Some(values.clone()),
        Expr::Nested(inner) => row_of(inner),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let value = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            };
            list.args.iter().map(value).collect()
        }
        _ => None,
    }
}

/// The row, if the query has as many columns.
fn checked(row: Vec<Expr>, query: &Query) -> Result<Vec<Expr>> {
    check_columns(query, row.len())?;
    match row.iter().any(has_aggregate) {
        true => Err(Error::unsupported("a row of aggregates compared with a subquery")),
        false => Ok(row),
    }
}

/// Whether an operand has several columns.
pub(super) fn is_row(expr: &Expr) -> bool {
    width(expr) > 1
}

/// The number of columns of an operand.
fn width(expr: &Expr) -> usize {
    match expr {
        Expr::Subquery(query) => column_count(query).unwrap_or(1),
        expr => row_of(expr).map_or(1, |row| row.len()),
    }
}

/// Error 1241 if a query certainly has another number of columns.
fn check_columns(query: &Query, count: usize) -> Result<()> {
    match column_count(query) {
        Some(found) if found != count => Err(operand_columns(count)),
        _ => Ok(()),
    }
}

fn operand_columns(count: usize) -> Error {
    Error::new(ErrorCode::OperandColumns, messages::operand_columns(count))
}

/// The number of columns of a query; `None` if it has a `*`.
fn column_count(query: &Query) -> Option<usize> {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Select(select) => {
                let is_plain = |item: &SelectItem| {
                    matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
                };
                let plain = select.projection.iter().all(is_plain);
                return plain.then_some(select.projection.len());
            }
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            SetExpr::Values(values) => return values.rows.first().map(|row| row.content.len()),
            _ => return None,
        };
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship)
}

/// The comparison with its operands exchanged.
fn swapped(op: &BinaryOperator) -> BinaryOperator {
    match op {
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        op => op.clone(),
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn number(value: i64) -> Expr {
    Expr::Value(ValueWithSpan::from(Value::Number(value.to_string(), false)))
}

fn null() -> Expr {
    Expr::Value(ValueWithSpan::from(Value::Null))
}
