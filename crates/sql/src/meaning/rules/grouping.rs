//! GROUP BY, DISTINCT and windows by sort keys. The first of several equal values is shown.

use std::sync::Arc;

use datafusion::{
    common::{Column, TableReference},
    error::Result,
    logical_expr::{
        Aggregate, Case, Distinct, Expr, GroupingSet, LogicalPlan, Projection, Window,
        WindowFunctionDefinition, expr::AggregateFunction,
    },
};

use crate::{SqlType, nodes::TreeNode};

use super::{
    super::{aggregate_function, function::Dialect, library::typed, types::ExprType},
    expand, expand_plan, has_key, sorting, type_of,
};

/// GROUP BY, with texts grouped by their sort keys.
pub(super) fn aggregate(aggregate: Aggregate) -> Result<LogicalPlan> {
    let schema = aggregate.input.schema();
    let mut keyed = Vec::with_capacity(aggregate.group_expr.len());
    for expr in &aggregate.group_expr {
        let plain = matches!(expr, Expr::GroupingSet(_)) || !has_key(&type_of(expr, schema)?);
        keyed.push(!plain);
    }
    if !keyed.contains(&true) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let mut groups = Vec::new();
    let mut folded = aggregate.aggr_expr.clone();
    let mut shown = Vec::new();
    let output: Vec<(Option<TableReference>, String)> = aggregate
        .schema
        .iter()
        .map(|(qualifier, field)| (qualifier.cloned(), field.name().clone()))
        .collect();
    for (index, (qualifier, name)) in output.into_iter().enumerate() {
        let column = Column::new(qualifier.clone(), name.clone());
        let grouped = aggregate.group_expr.get(index).zip(keyed.get(index));
        let Some((expr, true)) = grouped.map(|(expr, keyed)| (expr, *keyed)) else {
            if let Some(expr) = aggregate.group_expr.get(index) {
                groups.push(expr.clone());
            }
            shown.push(Expr::Column(column));
            continue;
        };
        let inner = expr.clone().unalias();
        groups.push(sorting(inner.clone(), schema)?.alias(format!("__group_{index}")));
        let first = format!("__first_{index}");
        folded.push(first_of(inner).alias(first.clone()));
        let found = Expr::Column(Column::new_unqualified(first));
        shown.push(found.alias_qualified(qualifier, name));
    }
    let inner = Aggregate::try_new(Arc::clone(&aggregate.input), groups, folded)?;
    let input = Arc::new(LogicalPlan::Aggregate(inner));
    Ok(LogicalPlan::Projection(Projection::try_new(shown, input)?))
}

/// Whether an aggregate is one WITH ROLLUP whose keys are not yet columns of its input.
pub(super) fn is_rolled_up(aggregate: &Aggregate) -> bool {
    let [Expr::GroupingSet(set)] = aggregate.group_expr.as_slice() else { return false };
    let is_key = |expr: &Expr, index: usize| match expr {
        Expr::Column(column) => column.relation.is_none() && column.name == key_name(index),
        _ => false,
    };
    set.distinct_expr().into_iter().enumerate().any(|(index, key)| !is_key(key, index))
}

/// GROUP BY … WITH ROLLUP. The group keys become columns of the input, because DataFusion names the columns of grouping
/// sets by their expressions, which change here, and because texts are grouped by their sort keys.
pub(super) fn rolled_up(aggregate: Aggregate) -> Result<LogicalPlan> {
    let [Expr::GroupingSet(set)] = aggregate.group_expr.as_slice() else {
        return Ok(LogicalPlan::Aggregate(aggregate));
    };
    let schema = aggregate.input.schema();
    let keys: Vec<Expr> = set.distinct_expr().into_iter().cloned().collect();
    let mut columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let aggregates = aggregate.aggr_expr.iter().enumerate();
    let mut folded: Vec<Expr> = aggregates
        .map(|(index, expr)| by_columns(expr.clone(), &keys).alias(format!("__folded_{index}")))
        .collect();
    let mut shown = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let (qualifier, field) = aggregate.schema.qualified_field(index);
        let value = key.clone().unalias().transform_up(|expr| expand(expr, schema))?.data;
        let kind = type_of(&value, schema)?;
        columns.push(sorting(value.clone(), schema)?.alias(key_name(index)));
        let column = Expr::Column(Column::new_unqualified(key_name(index)));
        let found = match has_key(&kind) {
            true => {
                let (name, first) = (format!("__value_{index}"), format!("__first_{index}"));
                columns.push(value.alias(name.clone()));
                folded.push(
                    first_of(Expr::Column(Column::new_unqualified(name))).alias(first.clone()),
                );
                unless_null(column, Expr::Column(Column::new_unqualified(first)), &kind)
            }
            false => typed_nullable(column, &kind),
        };
        shown.push(found.alias_qualified(qualifier.cloned(), field.name().clone()));
    }
    for index in 0..aggregate.aggr_expr.len() {
        // The number of the grouping set stands between the keys and the aggregates.
        let (qualifier, field) = aggregate.schema.qualified_field(keys.len() + 1 + index);
        let found = Expr::Column(Column::new_unqualified(format!("__folded_{index}")));
        shown.push(found.alias_qualified(qualifier.cloned(), field.name().clone()));
    }
    let set = vec![Expr::GroupingSet(set_of_columns(set, &keys))];
    let input = Projection::try_new(columns, Arc::clone(&aggregate.input))?;
    let inner = Aggregate::try_new(Arc::new(LogicalPlan::Projection(input)), set, folded)?;
    let inner = expand_plan(LogicalPlan::Aggregate(inner))?.data;
    Ok(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(inner))?))
}

fn key_name(index: usize) -> String {
    format!("__rollup_{index}")
}

/// The column of a group key, or the expression itself.
fn key_column(expr: &Expr, keys: &[Expr]) -> Expr {
    match keys.iter().position(|key| key == expr) {
        Some(index) => Expr::Column(Column::new_unqualified(key_name(index))),
        None => expr.clone(),
    }
}

fn set_of_columns(set: &GroupingSet, keys: &[Expr]) -> GroupingSet {
    let columns = |exprs: &Vec<Expr>| exprs.iter().map(|expr| key_column(expr, keys)).collect();
    match set {
        GroupingSet::Rollup(exprs) => GroupingSet::Rollup(columns(exprs)),
        GroupingSet::Cube(exprs) => GroupingSet::Cube(columns(exprs)),
        GroupingSet::GroupingSets(sets) => {
            GroupingSet::GroupingSets(sets.iter().map(columns).collect())
        }
    }
}

/// An aggregate; GROUPING names the columns of the keys.
fn by_columns(aggregate: Expr, keys: &[Expr]) -> Expr {
    match aggregate {
        Expr::Alias(alias) => by_columns(*alias.expr, keys),
        Expr::AggregateFunction(mut called) if called.func.name() == "grouping" => {
            for argument in &mut called.params.args {
                *argument = key_column(argument, keys);
            }
            Expr::AggregateFunction(called)
        }
        expr => expr,
    }
}

/// The value shown for a group: NULL in the rows of totals, whose key is NULL.
fn unless_null(key: Expr, value: Expr, kind: &ExprType) -> Expr {
    let when = vec![(Box::new(key.is_not_null()), Box::new(value))];
    typed_nullable(Expr::Case(Case::new(None, when, None)), kind)
}

fn typed_nullable(expr: Expr, kind: &ExprType) -> Expr {
    let kind = ExprType { not_null: false, ..kind.clone() };
    typed(expr, &kind, Dialect::default())
}

fn first_of(expr: Expr) -> Expr {
    match aggregate_function("any_value") {
        Some(udaf) => {
            let call = AggregateFunction::new_udf(udaf, vec![expr], false, None, Vec::new(), None);
            Expr::AggregateFunction(call)
        }
        None => expr,
    }
}

/// DISTINCT as GROUP BY of all columns, if one of them has a sort key.
pub(super) fn distinct(distinct: Distinct) -> Result<LogicalPlan> {
    let Distinct::All(input) = distinct else { return Ok(LogicalPlan::Distinct(distinct)) };
    let fields = input.schema().iter().map(|(_, field)| ExprType::of_field(field));
    if !fields.into_iter().any(|kind| has_key(&kind)) {
        return Ok(LogicalPlan::Distinct(Distinct::All(input)));
    }
    let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
    aggregate(Aggregate::try_new(input, columns, Vec::new())?)
}

/// Window functions that return one of their argument's values: restores the type.
pub(super) fn window(window: Window) -> Result<LogicalPlan> {
    let before = window.input.schema();
    let mut shown: Vec<Expr> = before.columns().into_iter().map(Expr::Column).collect();
    let mut lost = false;
    let count = shown.len();
    for (index, expr) in window.window_expr.iter().enumerate() {
        let (qualifier, field) = window.schema.qualified_field(count + index);
        let column = Expr::Column(Column::from((qualifier, field)));
        shown.push(match carried(expr) {
            Some(argument) => {
                lost = true;
                let kind = ExprType { not_null: false, ..type_of(argument, before)? };
                let kind = if kind.is_integer() && is_shift(expr) {
                    ExprType { kind: SqlType::BigInt, ..kind }
                } else {
                    kind
                };
                let kind = if kind.arrow() == *field.data_type() {
                    kind
                } else {
                    ExprType::of_arrow(field.data_type())
                };
                let (qualifier, name) = (qualifier.cloned(), field.name().clone());
                typed(column, &kind, Dialect::default()).alias_qualified(qualifier, name)
            }
            None => column,
        });
    }
    if !lost {
        return Ok(LogicalPlan::Window(window));
    }
    let input = Arc::new(LogicalPlan::Window(window));
    Ok(LogicalPlan::Projection(Projection::try_new(shown, input)?))
}

/// The argument whose value a window function returns.
fn carried(expr: &Expr) -> Option<&Expr> {
    let expr = match expr {
        Expr::Alias(alias) => alias.expr.as_ref(),
        expr => expr,
    };
    let Expr::WindowFunction(function) = expr else { return None };
    let WindowFunctionDefinition::WindowUDF(udf) = &function.fun else { return None };
    let carries = matches!(udf.name(), "lag" | "lead" | "first_value" | "last_value" | "nth_value");
    carries.then(|| function.params.args.first())?
}

/// Whether it is LAG or LEAD, which widen integers.
fn is_shift(expr: &Expr) -> bool {
    let expr = match expr {
        Expr::Alias(alias) => alias.expr.as_ref(),
        expr => expr,
    };
    matches!(expr, Expr::WindowFunction(function) if matches!(function.fun.name(), "lag" | "lead"))
}
