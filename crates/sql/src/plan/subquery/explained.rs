//! The plans that subquery functions run, for EXPLAIN.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::FieldRef, common::config::ConfigOptions, error::Result as PlanResult,
    physical_expr::ScalarFunctionExpr, physical_plan::ExecutionPlan,
};

use super::{OuterRow, Subquery, planner, waited};

/// The plan of a function's subquery, and whether it is correlated; `None` for other functions.
pub(crate) fn subquery_plan(
    call: &ScalarFunctionExpr,
    options: &ConfigOptions,
) -> PlanResult<Option<(bool, Arc<dyn ExecutionPlan>)>> {
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    let Some(query) = function.downcast_ref::<Subquery>() else { return Ok(None) };
    let fields: Vec<FieldRef> = query.outer.iter().map(|(field, _)| Arc::clone(field)).collect();
    let is_dependent = !fields.is_empty();
    if let Some(ready) = query.ready(&fields, options)? {
        return Ok(Some((is_dependent, ready.plan)));
    }
    let row = OuterRow::default();
    let plan = query.replaced(|at| fields.get(at).map(|field| row.value(at, field)))?;
    let (plan, state) = (query.few(plan)?, planner::state_of(options));
    let plan = waited(async {
        let plan = planner::analysed(&state, plan)?;
        planner::optimised(&state, plan).await
    })?;
    Ok(Some((is_dependent, plan)))
}
