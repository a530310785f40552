//! GROUP BY, DISTINCT and windows by sort keys. The first of several equal values is shown.

use std::sync::Arc;

use datafusion::{
    common::{Column, TableReference},
    error::Result,
    logical_expr::{
        Aggregate, Distinct, Expr, LogicalPlan, Projection, Window, WindowFunctionDefinition,
        expr::AggregateFunction,
    },
};

use crate::SqlType;

use super::{
    super::{aggregate_function, function::Dialect, library::typed, types::ExprType},
    has_key, sorting, type_of,
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
