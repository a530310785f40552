//! `x op ANY (query)` and `x op ALL (query)`: said with the greatest or smallest value of the
//! query, how many there are, and whether one of them is NULL.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query,
    UnaryOperator, Value, ValueWithSpan, helpers::attached_token::AttachedToken,
};

use super::{
    from::binary,
    matching::function_call,
    rows::{self, asking, column},
};

/// The expression without ANY and ALL; `None` if it has none, or none that can be said otherwise.
pub(super) fn rewritten(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::AnyOp { left, compare_op, right, .. } => said(left, compare_op, right, false),
        Expr::AllOp { left, compare_op, right } => said(left, compare_op, right, true),
        _ => None,
    }
}

fn said(left: &Expr, op: &BinaryOperator, right: &Expr, all: bool) -> Option<Expr> {
    let Expr::Subquery(query) = right else { return None };
    match (op, all) {
        (BinaryOperator::Eq, false) | (BinaryOperator::NotEq, true) => {
            return Some(Expr::InSubquery {
                expr: Box::new(left.clone()),
                subquery: query.clone(),
                negated: all,
            });
        }
        _ => {}
    }
    if rows::is_row(left) {
        return None;
    }
    let greater = match op {
        BinaryOperator::Gt | BinaryOperator::GtEq => true,
        BinaryOperator::Lt | BinaryOperator::LtEq => false,
        _ => return None,
    };
    let extreme = if greater == all { "max" } else { "min" };
    let extreme = asked(query, function_call(extreme, vec![column(0)]));
    let compared = binary(nested(left.clone()), op.clone(), extreme);
    let counted = asked(query, count_rows());
    let present = asked(query, function_call("count", vec![column(0)]));
    let none = binary(counted.clone(), BinaryOperator::Eq, number(0));
    let has_null = binary(counted, BinaryOperator::Gt, present);
    let decided = match all {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(compared.clone())) },
        false => compared.clone(),
    };
    let when = |condition: Expr, result: Expr| CaseWhen { condition, result };
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            when(none, number(i64::from(all))),
            when(decided, number(i64::from(!all))),
            when(has_null, Expr::Value(ValueWithSpan::from(Value::Null))),
        ],
        else_result: Some(Box::new(compared)),
    })
}

/// `(SELECT expr FROM (query))`.
fn asked(query: &Query, expr: Expr) -> Expr {
    Expr::Subquery(Box::new(asking(query, 1, expr, None)))
}

fn count_rows() -> Expr {
    let mut call = function_call("count", Vec::new());
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
    }
    call
}

fn number(value: i64) -> Expr {
    Expr::Value(ValueWithSpan::from(Value::Number(value.to_string(), false)))
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}
