//! UNION: each column gets the common type of all inputs.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::Field,
    common::{Column, TableReference, metadata::FieldMetadata},
    error::Result,
    logical_expr::{Expr, LogicalPlan, Projection, RecursiveQuery, Union, expr::Alias},
};

use super::super::{
    function::{Dialect, external},
    library::{common_type, converted},
    types::ExprType,
};
use crate::catalog::Origin;

/// Converts the inputs of a UNION to their common types.
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

/// Converts the recursive part of a query to the types of its first part.
pub(super) fn recursive(query: RecursiveQuery) -> Result<LogicalPlan> {
    let types = |plan: &LogicalPlan| -> Vec<ExprType> {
        plan.schema().iter().map(|(_, field)| ExprType::of_field(field)).collect()
    };
    let first = types(&query.static_term);
    let further = types(&query.recursive_term);
    let recursive_term = cast(Arc::clone(&query.recursive_term), &further, &first)?;
    Ok(LogicalPlan::RecursiveQuery(RecursiveQuery { recursive_term, ..query }))
}

/// The column without its table as origin.
fn without_origin(column: Expr, qualifier: Option<TableReference>, field: &Field) -> Expr {
    let (name, metadata) = (field.name().clone(), Some(FieldMetadata::from(Origin::none())));
    Expr::Alias(Alias::new(column, qualifier, name).with_metadata(metadata))
}

fn cast(
    input: Arc<LogicalPlan>,
    types: &[ExprType],
    common: &[ExprType],
) -> Result<Arc<LogicalPlan>> {
    let is_plain = |field: &Field| Origin::read(field.metadata()).is_none();
    if types == common && input.schema().fields().iter().all(|field| is_plain(field)) {
        return Ok(input);
    }
    let columns = input.schema().iter().zip(types.iter().zip(common));
    let columns = columns.map(|((qualifier, field), (from, to))| {
        let column = Expr::Column(Column::from((qualifier, field)));
        let same = from.arrow() == to.arrow() && *field.data_type() == to.arrow();
        let cast = match same {
            _ if from == to => column,
            true => super::super::library::typed(column, to, Dialect::default()),
            false => converted(&column, from, to, Dialect::default()),
        };
        if !is_plain(field) {
            return without_origin(cast, qualifier.cloned(), field);
        }
        match from == to {
            true => cast,
            false => cast.alias_qualified(qualifier.cloned(), field.name().clone()),
        }
    });
    let columns = columns.collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}
