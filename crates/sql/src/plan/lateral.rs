//! LATERAL queries that give one row for each of the preceding rows: their joins are projections of these. Without FROM
//! a query selects expressions over the preceding rows; with aggregates of all its rows it is as many scalar subqueries as
//! it has columns, which run for many rows at once (`subquery`).

use std::sync::Arc;

use datafusion::{
    common::{
        Column, JoinType, ScalarValue, Spans, TableReference, config::ConfigOptions,
        tree_node::Transformed,
    },
    error::Result,
    logical_expr::{Expr, Filter, Join, LogicalPlan, Projection, Subquery, utils::conjunction},
    optimizer::AnalyzerRule,
};

use super::{joinable::outer_columns, lateral_rows};
use crate::{
    meaning,
    nodes::{TreeNode, WholePlan},
};

/// The rule.
#[derive(Debug)]
pub(super) struct Laterals;

impl AnalyzerRule for Laterals {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let done = plan.transform_whole(|plan| match plan {
            LogicalPlan::Join(join) => {
                let made = match projected(&join)? {
                    Some(plan) => Some(plan),
                    None => aggregated(&join)?,
                };
                Ok(made.map_or(Transformed::no(LogicalPlan::Join(join)), Transformed::yes))
            }
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &str {
        "laterals"
    }
}

/// The join with a LATERAL query that aggregates all its rows, as scalar subqueries; `None` for other joins and for
/// queries that become joins.
fn aggregated(join: &Join) -> Result<Option<LogicalPlan>> {
    let is_plain = matches!(join.join_type, JoinType::Left | JoinType::Inner) && join.on.is_empty();
    if !is_plain || !join.filter.as_ref().is_none_or(is_true) {
        return Ok(None);
    }
    let Some(query) = lateral_rows::lateral(&join.right)? else { return Ok(None) };
    let left = join.left.schema();
    let outer = outer_columns(&query)?;
    let is_of_left = outer.iter().any(|(_, column)| left.has_column(column));
    if !is_of_left || !gives_one_row(&query) || lateral_rows::becomes_join(join)? {
        return Ok(None);
    }
    let outer = outer.into_iter().map(|(field, column)| Expr::OuterReferenceColumn(field, column));
    let outer: Vec<Expr> = outer.collect();
    let named = query.schema().columns();
    // Without its alias the query may become a join.
    let mut query = Arc::new(query);
    while let LogicalPlan::SubqueryAlias(alias) = query.as_ref() {
        query = Arc::clone(&alias.input);
    }
    let mut items: Vec<Expr> = left.columns().into_iter().map(Expr::Column).collect();
    for (column, of_query) in named.into_iter().zip(query.schema().columns()) {
        let value = Projection::try_new(vec![Expr::Column(of_query)], Arc::clone(&query))?;
        let subquery = Subquery {
            subquery: Arc::new(LogicalPlan::Projection(value)),
            outer_ref_columns: outer.clone(),
            spans: Spans::new(),
        };
        let value = Expr::ScalarSubquery(subquery);
        items.push(value.alias_qualified(column.relation, column.name));
    }
    Projection::try_new(items, Arc::clone(&join.left)).map(|it| Some(LogicalPlan::Projection(it)))
}

/// Whether a condition is TRUE.
pub(super) fn is_true(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    matches!(value, ScalarValue::Boolean(Some(true)) | ScalarValue::Int64(Some(1)))
}

/// Whether a query aggregates all its rows and drops none behind.
pub(super) fn gives_one_row(query: &LogicalPlan) -> bool {
    match query {
        LogicalPlan::SubqueryAlias(named) => gives_one_row(&named.input),
        LogicalPlan::Projection(selected) => gives_one_row(&selected.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// A join with a LATERAL subquery that has no FROM.
struct Lateral<'p> {
    alias: &'p TableReference,
    selected: &'p Projection,
    condition: Option<&'p Expr>,
}

fn lateral(plan: &LogicalPlan) -> Option<Lateral<'_>> {
    let LogicalPlan::SubqueryAlias(named) = plan else { return None };
    let LogicalPlan::Subquery(subquery) = named.input.as_ref() else { return None };
    let LogicalPlan::Projection(selected) = subquery.subquery.as_ref() else { return None };
    let (condition, input) = match selected.input.as_ref() {
        LogicalPlan::Filter(filter) => (Some(&filter.predicate), filter.input.as_ref()),
        input => (None, input),
    };
    let LogicalPlan::EmptyRelation(row) = input else { return None };
    row.produce_one_row.then_some(Lateral { alias: &named.alias, selected, condition })
}

/// The join as a projection of its left side.
fn projected(join: &Join) -> Result<Option<LogicalPlan>> {
    let keeps = join.join_type == JoinType::Left;
    if !keeps && join.join_type != JoinType::Inner || !join.on.is_empty() {
        return Ok(None);
    }
    let Some(lateral) = lateral(&join.right) else { return Ok(None) };
    let left = join.left.schema();
    let inner = |expr: &Expr| {
        let moved = expr.clone().transform_up(|expr| {
            Ok(match expr {
                Expr::OuterReferenceColumn(_, column) if left.has_column(&column) => {
                    Transformed::yes(Expr::Column(column))
                }
                expr => Transformed::no(expr),
            })
        });
        moved.map(|moved| moved.data.unalias())
    };
    let mut values: Vec<(Column, Expr)> = Vec::new();
    for (expr, field) in lateral.selected.expr.iter().zip(lateral.selected.schema.fields()) {
        values.push((Column::new(Some(lateral.alias.clone()), field.name()), inner(expr)?));
    }
    let over_values = |expr: &Expr| {
        let moved = expr.clone().transform_up(|expr| {
            let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
            let value = values.iter().find(|(known, _)| known == column);
            Ok(match value {
                Some((_, value)) => Transformed::yes(value.clone()),
                None => Transformed::no(expr),
            })
        });
        moved.map(|moved| moved.data)
    };
    let mut conditions = Vec::new();
    if let Some(condition) = lateral.condition {
        conditions.push(inner(condition)?);
    }
    if let Some(condition) = &join.filter {
        conditions.push(over_values(condition)?);
    }
    let condition = conjunction(conditions);
    let mut items: Vec<Expr> = left.columns().into_iter().map(Expr::Column).collect();
    for (column, value) in &values {
        let value = match (&condition, keeps) {
            (Some(condition), true) => meaning::value_where(condition.clone(), value.clone()),
            _ => value.clone(),
        };
        items.push(value.alias_qualified(column.relation.clone(), &column.name));
    }
    let rows = match condition.filter(|_| !keeps) {
        Some(condition) => {
            Arc::new(LogicalPlan::Filter(Filter::try_new(condition, Arc::clone(&join.left))?))
        }
        None => Arc::clone(&join.left),
    };
    Projection::try_new(items, rows).map(|plan| Some(LogicalPlan::Projection(plan)))
}
