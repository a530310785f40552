//! Evaluates conditions only for rows that passed the conditions before, as MySQL does. So `a REGEXP '^[0-9]+$' AND a >
//! 5` does not warn about texts that are not numbers, and `b = 0 OR 1 / b > 2` does not divide by zero.
//!
//! This runs last: conditions have been pushed down by then, and each filter that remains becomes a CASE.

use datafusion::{
    common::tree_node::{Transformed, TreeNodeRecursion},
    error::Result,
    logical_expr::{
        BinaryExpr, Case, Expr, Filter, LogicalPlan, Operator, lit, or,
        utils::{conjunction, split_binary_owned, split_conjunction_owned},
    },
};

use crate::{
    nodes::{TreeNode, WholePlan},
    scan::settled,
};

/// Cheap functions that never warn or fail.
const HARMLESS: [&str; 7] =
    ["collation_key", "sort_key", "row_key", "typed", "truth", "branch_truth", settled::NAME];

/// The plan with short-circuit conditions in its filters.
pub(super) fn in_turn(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_whole(|plan| match plan {
        LogicalPlan::Filter(filter) => {
            let Filter { predicate, input, .. } = filter;
            let filter = Filter::try_new(turned(predicate), input)?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        plan => Ok(Transformed::no(plan)),
    });
    done.map(|done| done.data)
}

/// Makes a condition short-circuit. NULL may become false.
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
/// The expression does not get deeper, whatever the number of conditions: planning time grows with the cube of the
/// depth.
fn any_of(condition: Expr) -> Expr {
    // Runs of conditions that are evaluated together.
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

/// Conditions joined by OR, as a balanced tree; `None` if there are none.
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

/// `value` if one of the conditions is true, else the value of the last.
fn decided(conditions: Vec<Expr>, value: bool, last: Expr) -> Expr {
    if conditions.is_empty() {
        return last;
    }
    let when = |condition| (Box::new(condition), Box::new(lit(value)));
    let when = conditions.into_iter().map(when).collect();
    Expr::Case(Case::new(None, when, Some(Box::new(last))))
}

/// Whether it may be evaluated for more rows than necessary.
fn is_harmless(expr: &Expr) -> bool {
    let mut harmless = true;
    // The closure never fails.
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
