//! Evaluates conditions only for rows that earlier conditions let through, as MySQL does: `a REGEXP '^[0-9]+$' AND a >
//! 5` does not warn of texts that are not numbers, and `b = 0 OR 1 / b > 2` does not divide by zero.
//!
//! This is the last step: a condition is pushed down while it stands alone, and conditions that stayed behind become a
//! CASE.

use datafusion::{
    common::tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    error::Result,
    logical_expr::{
        BinaryExpr, Case, Expr, Filter, LogicalPlan, Operator, lit, or,
        utils::{conjunction, split_binary_owned, split_conjunction_owned},
    },
};

use crate::scan::settled;

/// Functions that warn of nothing and fail never, and cost little.
const HARMLESS: [&str; 6] =
    ["collation_key", "sort_key", "row_key", "typed", "truth", settled::NAME];

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
        condition @ Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => any_of(condition),
        condition @ Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => all_of(condition),
        other => other,
    }
}

/// ```text
/// CASE WHEN first THEN true WHEN second THEN true … ELSE last END
/// ```
/// It is as deep as it was before, however many there are: what plans cost grows with the cube of its depth.
fn any_of(condition: Expr) -> Expr {
    // Those that are evaluated together.
    let mut runs: Vec<Vec<Expr>> = Vec::new();
    for part in split_binary_owned(condition, Operator::Or) {
        let part = turned(part);
        match runs.last_mut() {
            Some(run) if is_harmless(&part) => run.push(part),
            _ => runs.push(vec![part]),
        }
    }
    let mut parts: Vec<Expr> = runs.into_iter().filter_map(either).collect();
    let last = parts.pop().unwrap_or_else(|| lit(false));
    decided(parts, true, last)
}

/// Conditions joined by OR, as a tree that is not deep; `None` if there are none.
fn either(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() <= 1 {
        return conditions.pop();
    }
    let behind = conditions.split_off(conditions.len() / 2);
    Some(or(either(conditions)?, either(behind)?))
}

/// ```text
/// CASE WHEN first IS NOT TRUE THEN false WHEN second IS NOT TRUE THEN false … ELSE last END
/// ```
fn all_of(condition: Expr) -> Expr {
    let parts = split_conjunction_owned(condition).into_iter().map(turned);
    let (harmless, others): (Vec<Expr>, Vec<Expr>) = parts.partition(is_harmless);
    let mut parts: Vec<Expr> = conjunction(harmless).into_iter().chain(others).collect();
    let last = parts.pop().unwrap_or_else(|| lit(true));
    let parts = parts.into_iter().map(|part| Expr::IsNotTrue(Box::new(part)));
    decided(parts.collect(), false, last)
}

/// `value` where one of the conditions holds, else what the last one says.
fn decided(conditions: Vec<Expr>, value: bool, last: Expr) -> Expr {
    if conditions.is_empty() {
        return last;
    }
    let when = |condition| (Box::new(condition), Box::new(lit(value)));
    let when = conditions.into_iter().map(when).collect();
    Expr::Case(Case::new(None, when, Some(Box::new(last))))
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
