//! Evaluates correlated subqueries of a select list only for the rows that LIMIT leaves, as MySQL does.
//!
//! ```text
//! Limit                                           Sort
//!   Sort                                            Project: …, subquery
//!     Project: …, subquery               ──→          Limit
//!       Scan                                            Sort
//!                                                         Project: … and the columns that the subquery uses
//!                                                           Scan
//! ```
//! The subquery may become a join, which gives its rows in any order: so they are sorted again.

use std::sync::Arc;

use datafusion::{
    common::{
        Column,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{Expr, Limit, LogicalPlan, Projection, Sort, SortExpr, Subquery},
    optimizer::AnalyzerRule,
};

use super::joinable::outer_columns;
use crate::nodes::{TreeNode, WholePlan};

/// The rule.
#[derive(Debug)]
pub(super) struct LateSubqueries;

impl AnalyzerRule for LateSubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        at_limits(plan, late)
    }

    fn name(&self) -> &str {
        "late_subqueries"
    }
}

/// The plan with another in place of each LIMIT for which there is one.
pub(super) fn at_limits(
    plan: LogicalPlan,
    changed: impl Fn(&Limit) -> Result<Option<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let done = plan.transform_whole(|plan| match plan {
        LogicalPlan::Limit(limit) => match changed(&limit)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(LogicalPlan::Limit(limit))),
        },
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(done.data)
}

/// The plan in place of a LIMIT; `None` if its rows have no correlated subqueries, or are ordered by them.
fn late(limit: &Limit) -> Result<Option<LogicalPlan>> {
    let Limit { skip, fetch, input } = limit;
    let limited = |input: LogicalPlan| {
        let (skip, fetch, input) = (skip.clone(), fetch.clone(), Arc::new(input));
        LogicalPlan::Limit(Limit { skip, fetch, input })
    };
    match input.as_ref() {
        // Columns that only ORDER BY uses are left out by a projection above the sort.
        LogicalPlan::Projection(outer) if outer.expr.iter().all(is_column) => {
            let Some(input) = late(&Limit { input: Arc::clone(&outer.input), ..limit.clone() })?
            else {
                return Ok(None);
            };
            projected(outer.expr.clone(), input).map(Some)
        }
        LogicalPlan::Projection(selected) => {
            let Some(split) = Split::of(selected)? else { return Ok(None) };
            projected(split.after, limited(split.before)).map(Some)
        }
        LogicalPlan::Sort(Sort { expr: order, input, fetch: None }) => {
            let LogicalPlan::Projection(selected) = input.as_ref() else { return Ok(None) };
            let Some(split) = Split::of(selected)? else { return Ok(None) };
            let Some(early) = split.order(order, selected)? else { return Ok(None) };
            let sort = Sort { expr: early, input: Arc::new(split.before), fetch: None };
            let made = projected(split.after, limited(LogicalPlan::Sort(sort)))?;
            let sort = Sort { expr: order.clone(), input: Arc::new(made), fetch: None };
            Ok(Some(LogicalPlan::Sort(sort)))
        }
        _ => Ok(None),
    }
}

fn projected(columns: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
    Projection::try_new(columns, Arc::new(input)).map(LogicalPlan::Projection)
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_column(&alias.expr),
        expr => matches!(expr, Expr::Column(_)),
    }
}

/// A projection in two steps.
struct Split {
    /// The columns without correlated subqueries under numbers, and all columns that the subqueries use.
    before: LogicalPlan,
    /// All columns, of these.
    after: Vec<Expr>,
    /// Which columns are those of the first step.
    is_early: Vec<bool>,
}

/// The name of a column of the first step.
fn name(column: usize) -> String {
    format!("early#{column}")
}

impl Split {
    /// `None` if there are no correlated subqueries.
    fn of(selected: &Projection) -> Result<Option<Self>> {
        let below = selected.input.schema();
        let (mut before, mut after, mut is_early) = (Vec::new(), Vec::new(), Vec::new());
        let mut used: Vec<Column> = Vec::new();
        let fields = selected.schema.iter();
        for (at, (expr, (table, field))) in selected.expr.iter().zip(fields).enumerate() {
            let queries = correlated(expr)?;
            is_early.push(queries.is_empty());
            if queries.is_empty() {
                before.push(expr.clone().alias(name(at)));
                let column = Expr::Column(Column::new_unqualified(name(at)));
                after.push(column.alias_qualified(table.cloned(), field.name()));
                continue;
            }
            used.extend(expr.column_refs().into_iter().cloned());
            for query in queries {
                used.extend(outer_columns(&query.subquery)?.into_iter().map(|(_, column)| column));
            }
            after.push(expr.clone());
        }
        if after.len() == before.len() {
            return Ok(None);
        }
        used.sort_unstable();
        used.dedup();
        // Columns of queries further out stay what they are.
        let used = used.into_iter().filter(|column| below.has_column(column));
        before.extend(used.map(Expr::Column));
        let before = Projection::try_new(before, Arc::clone(&selected.input))?;
        Ok(Some(Self { before: LogicalPlan::Projection(before), after, is_early }))
    }

    /// The order by the columns of the first step; `None` if subqueries decide it.
    fn order(&self, order: &[SortExpr], selected: &Projection) -> Result<Option<Vec<SortExpr>>> {
        let mut is_late = false;
        let mut early = Vec::with_capacity(order.len());
        for key in order {
            let moved = key.expr.clone().transform_up(|expr| {
                let Expr::Column(column) = &expr else {
                    is_late |= is_query(&expr);
                    return Ok(Transformed::no(expr));
                };
                let at = selected.schema.maybe_index_of_column(column);
                let is_early = |at: &usize| self.is_early.get(*at) == Some(&true);
                let Some(at) = at.filter(is_early) else {
                    is_late = true;
                    return Ok(Transformed::no(expr));
                };
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name(at)))))
            })?;
            early.push(SortExpr { expr: moved.data, ..key.clone() });
        }
        Ok((!is_late).then_some(early))
    }
}

/// Whether an expression is a subquery.
pub(super) fn is_query(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
    )
}

/// The subqueries in an expression that use columns of the rows.
fn correlated(expr: &Expr) -> Result<Vec<Subquery>> {
    let mut found = Vec::new();
    expr.apply(|each| {
        let query = match each {
            Expr::ScalarSubquery(query) => Some(query),
            Expr::Exists(exists) => Some(&exists.subquery),
            Expr::InSubquery(within) => Some(&within.subquery),
            Expr::SetComparison(compared) => Some(&compared.subquery),
            _ => None,
        };
        found.extend(query.filter(|query| !query.outer_ref_columns.is_empty()).cloned());
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
