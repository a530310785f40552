//! `x = ANY (query)` and `x <> ALL (query)` become `IN` and `NOT IN`. The planner handles the other quantified
//! comparisons.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};

/// The expression with IN; `None` if it is not one of these.
pub(super) fn rewritten(expr: &Expr) -> Option<Expr> {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return None,
    };
    let Expr::Subquery(query) = right.as_ref() else { return None };
    Some(Expr::InSubquery { expr: left.clone(), subquery: query.clone(), negated })
}
