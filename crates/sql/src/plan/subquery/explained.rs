//! The plans that subquery functions run, for EXPLAIN.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::FieldRef, common::config::ConfigOptions, error::Result as PlanResult,
    physical_expr::ScalarFunctionExpr, physical_plan::ExecutionPlan,
};

use super::Subquery;

/// The plan of a function's subquery, and whether it is correlated; `None` for other functions.
pub(crate) fn subquery_plan(
    call: &ScalarFunctionExpr,
    options: &ConfigOptions,
) -> PlanResult<Option<(bool, Arc<dyn ExecutionPlan>)>> {
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    let Some(query) = function.downcast_ref::<Subquery>() else { return Ok(None) };
    let fields: Vec<FieldRef> = query.outer.iter().map(|(field, _)| Arc::clone(field)).collect();
    let ready = query.ready(&fields, options)?;
    Ok(Some((!fields.is_empty(), ready.plan(options)?)))
}
