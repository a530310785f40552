//! LIMIT below LATERAL queries that give at least one row for each row before them: they run for no more rows than the page
//! has, as in MySQL.
//!
//! ```text
//! Limit 20                                        Limit 20
//!   Sort: b.id                                      Sort: b.id
//!     Join LEFT LATERAL                   ──→         Join LEFT LATERAL
//!       b                                               Limit 20
//!                                                         Sort: b.id
//!                                                           b
//! ```
//! The rows are sorted again above, because a query may give several rows, or become a join, which gives them in any
//! order.

use std::sync::Arc;

use datafusion::{
    common::{
        JoinType, ScalarValue,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{Expr, Filter, Join, Limit, LogicalPlan, Projection, Sort, SortExpr, lit},
    optimizer::AnalyzerRule,
};

use super::{
    late_subqueries::{at_limits, is_query},
    lateral::{gives_one_row, is_true},
    lateral_rows,
};
use crate::nodes::TreeNode;

/// The rule.
#[derive(Debug)]
pub(super) struct EarlyLimits;

impl AnalyzerRule for EarlyLimits {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        at_limits(plan, early)
    }

    fn name(&self) -> &str {
        "early_limits"
    }
}

/// The LIMIT above joins whose first rows are limited too; `None` if that may leave rows out.
fn early(limit: &Limit) -> Result<Option<LogicalPlan>> {
    let Some(rows) = last_row(limit) else { return Ok(None) };
    let made = below(&limit.input, rows, None)?;
    Ok(made.map(|input| LogicalPlan::Limit(Limit { input: Arc::new(input), ..limit.clone() })))
}

/// The number of the last row of a page.
fn last_row(limit: &Limit) -> Option<i64> {
    let number = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => Some(*number),
        Expr::Literal(ScalarValue::UInt64(Some(number)), _) => i64::try_from(*number).ok(),
        _ => None,
    };
    let skip = limit.skip.as_deref().map_or(Some(0), number)?;
    skip.checked_add(number(limit.fetch.as_deref()?)?)
}

/// The plan below a LIMIT or its ORDER BY, with a limit of the rows that LATERAL queries run for.
fn below(plan: &LogicalPlan, rows: i64, order: Option<&[SortExpr]>) -> Result<Option<LogicalPlan>> {
    let over = |input: Option<LogicalPlan>| {
        input.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
    };
    match plan {
        LogicalPlan::Sort(Sort { expr, input, fetch: None }) if order.is_none() => {
            over(below(input, rows, Some(expr))?)
        }
        LogicalPlan::Projection(selected) => {
            let order = match order {
                None => None,
                Some(order) => match of_input(order, selected)? {
                    Some(order) => Some(order),
                    None => return Ok(None),
                },
            };
            over(below(&selected.input, rows, order.as_deref())?)
        }
        LogicalPlan::Filter(filter) => match filter.input.as_ref() {
            LogicalPlan::Join(join) => over(limited(join, rows, order, Some(&filter.predicate))?),
            _ => Ok(None),
        },
        LogicalPlan::Join(join) => limited(join, rows, order, None),
        _ => Ok(None),
    }
}

/// An order by columns of a projection as one by columns of its input; `None` if one is not of it.
fn of_input(order: &[SortExpr], selected: &Projection) -> Result<Option<Vec<SortExpr>>> {
    let mut is_known = true;
    let mut made = Vec::with_capacity(order.len());
    for key in order {
        let moved = key.expr.clone().transform_up(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let at = selected.schema.maybe_index_of_column(column);
            Ok(match at.and_then(|at| selected.expr.get(at)) {
                Some(below) => Transformed::yes(below.clone().unalias()),
                None => {
                    is_known = false;
                    Transformed::no(expr)
                }
            })
        })?;
        made.push(SortExpr { expr: moved.data, ..key.clone() });
    }
    Ok(is_known.then_some(made))
}

/// A chain of joins with LATERAL queries, the first of which reads no more than these rows.
fn limited(
    join: &Join,
    rows: i64,
    order: Option<&[SortExpr]>,
    condition: Option<&Expr>,
) -> Result<Option<LogicalPlan>> {
    if !gives_each(join)? {
        return Ok(None);
    }
    let left = match join.left.as_ref() {
        LogicalPlan::Join(before) if lateral_rows::lateral(&before.right)?.is_some() => {
            match limited(before, rows, order, condition)? {
                Some(left) => left,
                None => return Ok(None),
            }
        }
        first => {
            let is_own = |expr: &Expr| -> Result<bool> {
                let mut columns = expr.column_refs().into_iter();
                Ok(is_plain(expr)? && columns.all(|column| first.schema().has_column(column)))
            };
            for key in order.unwrap_or_default() {
                if !is_own(&key.expr)? {
                    return Ok(None);
                }
            }
            let mut first = first.clone();
            if let Some(condition) = condition {
                if !is_own(condition)? {
                    return Ok(None);
                }
                first = LogicalPlan::Filter(Filter::try_new(condition.clone(), Arc::new(first))?);
            }
            if let Some(order) = order {
                let expr = order.to_vec();
                first = LogicalPlan::Sort(Sort { expr, input: Arc::new(first), fetch: None });
            }
            let fetch = Some(Box::new(lit(rows)));
            LogicalPlan::Limit(Limit { skip: None, fetch, input: Arc::new(first) })
        }
    };
    let joined = LogicalPlan::Join(Join { left: Arc::new(left), ..join.clone() });
    joined.recompute_schema().map(Some)
}

/// Whether a join with a LATERAL query has at least one row for each row before.
fn gives_each(join: &Join) -> Result<bool> {
    let Some(query) = lateral_rows::lateral(&join.right)? else { return Ok(false) };
    Ok(match join.join_type {
        JoinType::Left => true,
        JoinType::Inner => {
            join.on.is_empty() && join.filter.as_ref().is_none_or(is_true) && gives_one_row(&query)
        }
        _ => false,
    })
}

/// Whether the value of an expression depends on its row alone.
fn is_plain(expr: &Expr) -> Result<bool> {
    let mut is_plain = !expr.is_volatile();
    expr.apply(|each| {
        is_plain &= !is_query(each) && !matches!(each, Expr::OuterReferenceColumn(..));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_plain)
}
