//! UNION: every column gets the type that all its parts have in common.

use std::sync::Arc;

use datafusion::{
    common::Column,
    error::Result,
    logical_expr::{Expr, LogicalPlan, Projection, RecursiveQuery, Union},
};

use super::super::{
    function::{Dialect, external},
    library::{common_type, converted},
    types::ExprType,
};

/// The union of inputs that all have the same types.
pub(super) fn union(union: Union) -> Result<LogicalPlan> {
    let parts: Vec<Vec<ExprType>> = union
        .inputs
        .iter()
        .map(|input| input.schema().iter().map(|(_, field)| ExprType::of_field(field)).collect())
        .collect();
    let width = parts.iter().map(Vec::len).min().unwrap_or(0);
    let mut common = Vec::with_capacity(width);
    for index in 0..width {
        let types: Vec<ExprType> =
            parts.iter().filter_map(|types| types.get(index).cloned()).collect();
        common.push(common_type(&types).map_err(external)?);
    }
    let inputs = union.inputs.into_iter().zip(&parts);
    let inputs = inputs.map(|(input, types)| cast(input, types, &common));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// A recursive query whose further rows have the types of the first.
pub(super) fn recursive(query: RecursiveQuery) -> Result<LogicalPlan> {
    let types = |plan: &LogicalPlan| -> Vec<ExprType> {
        plan.schema().iter().map(|(_, field)| ExprType::of_field(field)).collect()
    };
    let first = types(&query.static_term);
    let further = types(&query.recursive_term);
    let recursive_term = cast(Arc::clone(&query.recursive_term), &further, &first)?;
    Ok(LogicalPlan::RecursiveQuery(RecursiveQuery { recursive_term, ..query }))
}

fn cast(
    input: Arc<LogicalPlan>,
    types: &[ExprType],
    common: &[ExprType],
) -> Result<Arc<LogicalPlan>> {
    if types == common {
        return Ok(input);
    }
    let columns = input.schema().iter().zip(types.iter().zip(common));
    let columns = columns.map(|((qualifier, field), (from, to))| {
        let column = Expr::Column(Column::from((qualifier, field)));
        if from == to {
            return column;
        }
        let same = from.arrow() == to.arrow() && *field.data_type() == to.arrow();
        let cast = match same {
            true => super::super::library::typed(column, to, Dialect::default()),
            false => converted(&column, from, to, Dialect::default()),
        };
        cast.alias_qualified(qualifier.cloned(), field.name().clone())
    });
    let columns = columns.collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}
