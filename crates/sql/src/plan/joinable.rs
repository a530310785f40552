//! Which subqueries become joins: those that use outer columns only in their own conditions.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::FieldRef,
    common::{Column, tree_node::TreeNodeRecursion},
    error::Result as PlanResult,
    logical_expr::{
        BinaryExpr, Distinct, Expr, LogicalPlan, Operator, expr::InSubquery,
        utils::split_conjunction,
    },
};

use crate::nodes::{TreeNode, WholePlan};

/// The position of a subquery in a condition. A join tells NULL from false at most for a whole condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubqueryPosition {
    /// It is a conjunct of the condition.
    Condition,
    /// Its value is an operand of a comparison that is a conjunct and not true for NULL.
    Compared,
    /// It is an alternative of an OR.
    Alternative,
    /// Anywhere else.
    Inside,
}

/// Whether `IN` becomes a join. NOT IN must treat NULL correctly, which a join does only for a column, as a whole
/// condition, with a subquery that is not correlated. A constant cannot be the key of a join.
pub(super) fn in_joins(
    within: &InSubquery,
    place: SubqueryPosition,
    is_alone: bool,
) -> PlanResult<bool> {
    let is_constant = !within.expr.any_column_refs() && !within.expr.contains_outer();
    let are_columns =
        matches!(*within.expr, Expr::Column(_)) && gives_column(&within.subquery.subquery);
    let stands = match place {
        SubqueryPosition::Condition => !within.negated || is_alone && are_columns,
        SubqueryPosition::Alternative => !within.negated,
        SubqueryPosition::Compared | SubqueryPosition::Inside => false,
    };
    Ok(stands && !(is_constant && is_alone) && is_simple(&within.subquery.subquery)?)
}

/// Whether a query selects a column of its input.
fn gives_column(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(selected) => {
            let first = selected.expr.first();
            first.is_some_and(|expr| matches!(expr.clone().unalias(), Expr::Column(_)))
        }
        LogicalPlan::SubqueryAlias(named) => gives_column(&named.input),
        LogicalPlan::Distinct(Distinct::All(input)) => gives_column(input),
        _ => true,
    }
}

/// Whether the only column of a plan is nullable.
pub(super) fn has_null(plan: &LogicalPlan) -> bool {
    plan.schema().fields().first().is_none_or(|field| field.is_nullable())
}

/// The columns of outer queries that a plan names. A nested subquery's references to the plan's own relations are not
/// among them. No two relations of a statement have the same name.
pub(super) fn outer_columns(plan: &LogicalPlan) -> PlanResult<Vec<(FieldRef, Column)>> {
    let mut found: Vec<(FieldRef, Column)> = Vec::new();
    plan.apply_whole(|node| {
        node.apply_to_expressions(|expr| {
            expr.apply(|each| {
                if let Expr::OuterReferenceColumn(field, column) = each
                    && !found.iter().any(|(_, known)| known == column)
                {
                    found.push((Arc::clone(field), column.clone()));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    if !found.is_empty() {
        plan.apply_whole(|node| {
            found.retain(|(_, column)| !node.schema().has_column(column));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// Whether a scalar subquery is one aggregate, correlated by equalities only.
pub(super) fn has_simple_aggregate(plan: &LogicalPlan) -> PlanResult<bool> {
    match plan {
        LogicalPlan::Projection(inner) if !has_outer(&inner.expr) => {
            has_simple_aggregate(&inner.input)
        }
        LogicalPlan::Aggregate(inner) if inner.group_expr.is_empty() => {
            Ok(!has_outer(&inner.aggr_expr) && is_simple(&inner.input)?)
        }
        _ => Ok(false),
    }
}

/// Whether outer columns occur only in equalities of filters, and only row-preserving nodes are above those.
fn is_simple(plan: &LogicalPlan) -> PlanResult<bool> {
    correlates(plan, &|parts| parts.iter().copied().all(is_equality))
}

/// Whether EXISTS becomes a semi-join. Besides an equality, which is the join key, it may have any condition on an
/// inner and an outer row (`l2.supplier <> l1.supplier`).
pub(super) fn exists_joins(plan: &LogicalPlan) -> PlanResult<bool> {
    correlates(plan, &|parts| {
        parts.iter().copied().any(is_equality) && !parts.iter().any(|part| part.is_volatile())
    })
}

/// Whether outer columns occur only in filters whose correlated conditions `may` accepts, and only row-preserving nodes
/// are above those.
fn correlates(plan: &LogicalPlan, may: &dyn Fn(&[&Expr]) -> bool) -> PlanResult<bool> {
    match plan {
        LogicalPlan::Projection(inner) if !has_outer(&inner.expr) => correlates(&inner.input, may),
        LogicalPlan::Filter(inner) => {
            let mut parts = split_conjunction(&inner.predicate);
            parts.retain(|part| part.contains_outer());
            Ok((parts.is_empty() || may(&parts)) && correlates(&inner.input, may)?)
        }
        other => Ok(outer_columns(other)?.is_empty()),
    }
}

fn has_outer(exprs: &[Expr]) -> bool {
    exprs.iter().any(Expr::contains_outer)
}

/// Whether an expression equates an outer column with an inner one.
fn is_equality(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else {
        return false;
    };
    let pair = |outer: &Expr, inner: &Expr| {
        matches!(outer, Expr::OuterReferenceColumn(..)) && matches!(inner, Expr::Column(_))
    };
    pair(left, right) || pair(right, left)
}
