//! Which subqueries become joins: those that use outer columns only in their own conditions.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::FieldRef,
    common::{
        Column,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    logical_expr::{
        BinaryExpr, Distinct, Expr, LogicalPlan, Operator, expr::InSubquery,
        utils::split_conjunction,
    },
};

use super::subquery::SubqueryPosition;

/// Whether `IN` becomes a join. One that is negated must know of NULL, which a join does for columns, in a
/// whole condition, and for a query that names no outer columns; a constant is no key of a join.
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

/// Whether what a query selects is a column of what it is of.
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

/// Whether the only column of a plan can be NULL.
pub(super) fn has_null(plan: &LogicalPlan) -> bool {
    plan.schema().fields().first().is_none_or(|field| field.is_nullable())
}

/// The columns of outer queries that a plan names. What a query within it names of the plan itself is
/// none of them; no two relations of a statement have one name.
pub(super) fn outer_columns(plan: &LogicalPlan) -> PlanResult<Vec<(FieldRef, Column)>> {
    let mut found: Vec<(FieldRef, Column)> = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
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
        plan.apply_with_subqueries(|node| {
            found.retain(|(_, column)| !node.schema().has_column(column));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// Whether a scalar subquery is one aggregate over rows that are chosen by equalities alone.
pub(super) fn has_simple_aggregate(plan: &LogicalPlan) -> PlanResult<bool> {
    match plan {
        LogicalPlan::Projection(inner) if !has_outer(&inner.expr) => {
            has_simple_aggregate(&inner.input)
        }
        LogicalPlan::SubqueryAlias(inner) => has_simple_aggregate(&inner.input),
        LogicalPlan::Aggregate(inner) if inner.group_expr.is_empty() => {
            Ok(!has_outer(&inner.aggr_expr) && is_simple(&inner.input)?)
        }
        _ => Ok(false),
    }
}

/// Whether outer columns are in equalities of filters alone, below nothing but what leaves rows as
/// they are.
fn is_simple(plan: &LogicalPlan) -> PlanResult<bool> {
    correlates(plan, &|parts| parts.iter().copied().all(is_equality))
}

/// Whether EXISTS becomes a semi-join: beside an equality, which is its key, any condition of a row and an
/// outer one may stand (`l2.supplier <> l1.supplier`).
pub(super) fn exists_joins(plan: &LogicalPlan) -> PlanResult<bool> {
    correlates(plan, &|parts| {
        parts.iter().copied().any(is_equality) && !parts.iter().any(|part| part.is_volatile())
    })
}

/// Whether outer columns are in conditions of filters alone that may be there together, below nothing but what
/// leaves rows as they are.
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

/// An outer column is an inner one.
fn is_equality(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else {
        return false;
    };
    let pair = |outer: &Expr, inner: &Expr| {
        matches!(outer, Expr::OuterReferenceColumn(..)) && matches!(inner, Expr::Column(_))
    };
    pair(left, right) || pair(right, left)
}
