//! LATERAL without FROM selects expressions over the preceding rows, so its join is a projection of them.

use std::sync::Arc;

use datafusion::{
    common::{Column, JoinType, TableReference, config::ConfigOptions, tree_node::Transformed},
    error::Result,
    logical_expr::{Expr, Filter, Join, LogicalPlan, Projection, utils::conjunction},
    optimizer::AnalyzerRule,
};

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
            LogicalPlan::Join(join) => match projected(&join)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(LogicalPlan::Join(join))),
            },
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &str {
        "laterals"
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
