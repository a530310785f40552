//! `x = ANY (query)` and `x <> ALL (query)` become `IN` and `NOT IN`. Plans handle the other comparisons with ANY and
//! ALL themselves.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};

/// The expression as IN; `None` if it is none.
pub(super) fn rewritten(expr: &Expr) -> Option<Expr> {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return None,
    };
    let Expr::Subquery(query) = right.as_ref() else { return None };
    Some(Expr::InSubquery { expr: left.clone(), subquery: query.clone(), negated })
}
