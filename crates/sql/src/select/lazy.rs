//! Conditions that are evaluated for those rows alone which others let through, as MySQL does:
//! `a REGEXP '^[0-9]+$' AND a > 5` warns of no text that is not a number, and `b = 0 OR 1 / b > 2`
//! divides by no zero.
//!
//! Done when all else is decided: a condition is pushed towards its table while it stands alone, and
//! becomes part of a CASE when it has stayed behind.

use datafusion::{
    common::tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    error::Result,
    logical_expr::{
        BinaryExpr, Case, Expr, Filter, LogicalPlan, Operator, lit,
        utils::{conjunction, split_conjunction_owned},
    },
};

/// Functions that warn of nothing and fail never, and cost little.
const HARMLESS: [&str; 5] = ["collation_key", "sort_key", "row_key", "typed", "truth"];

/// The plan with its filters' conditions in turn.
pub(super) fn in_turn(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Filter(filter) => {
            let Filter { predicate, input, .. } = filter;
            let filter = Filter::try_new(turned(predicate), input)?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        plan => Ok(Transformed::no(plan)),
    });
    done.map(|done| done.data)
}

/// A condition of which only counts where it is true.
pub(super) fn turned(condition: Expr) -> Expr {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (left, right) = (turned(*left), turned(*right));
            if is_harmless(&right) {
                return Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(left),
                    Operator::Or,
                    Box::new(right),
                ));
            }
            choice(left, lit(true), right)
        }
        condition @ Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => all_of(condition),
        other => other,
    }
}

fn all_of(condition: Expr) -> Expr {
    let parts = split_conjunction_owned(condition).into_iter().map(turned);
    let (harmless, others): (Vec<Expr>, Vec<Expr>) = parts.partition(is_harmless);
    let mut parts = others.into_iter().rev();
    let last = parts.next();
    let others = last.map(|last| parts.fold(last, |behind, part| choice(part, behind, lit(false))));
    match (conjunction(harmless), others) {
        (Some(first), Some(others)) => choice(first, others, lit(false)),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => lit(true),
    }
}

fn choice(condition: Expr, value: Expr, otherwise: Expr) -> Expr {
    let when = vec![(Box::new(condition), Box::new(value))];
    Expr::Case(Case::new(None, when, Some(Box::new(otherwise))))
}

/// Whether evaluating it for more rows than it must be does no harm.
fn is_harmless(expr: &Expr) -> bool {
    let mut harmless = true;
    // Nothing fails on the way.
    let _ = expr.apply(|each| {
        if let Expr::ScalarFunction(call) = each
            && !HARMLESS.contains(&call.name())
        {
            harmless = false;
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    harmless
}
