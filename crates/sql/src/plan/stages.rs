//! The stages of planning behind the syntax tree: the analyzer's rules, the optimizer's rules, the physical plan. The
//! planner of a statement and the subqueries of a running plan go through them.

use std::sync::Arc;

use datafusion::{
    common::config::ConfigOptions,
    error::Result as PlanResult,
    execution::{SessionState as PlanState, SessionStateBuilder},
    logical_expr::LogicalPlan,
    physical_plan::ExecutionPlan,
};

use super::{direct, lazy, passes, sequential_union, watch};
use crate::state::Context;

/// The physical plan of an analysed one: made directly for a small table, by the optimizer otherwise.
pub(super) async fn made_of(
    plan: LogicalPlan,
    state: &PlanState,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    if let Some(made) = direct::planned(&plan, state)? {
        return Ok(made);
    }
    optimised(state, plan).await
}

/// The physical plan by way of the optimizer.
pub(super) async fn optimised(
    state: &PlanState,
    plan: LogicalPlan,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    physical_of(state, &logical(state, plan)?).await
}

/// The plan after the analyzer rules, which give it MySQL's meaning.
pub(super) fn analysed(state: &PlanState, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    passes::analysed(state, plan, state.config_options())
}

/// The plan after the rules for logical plans.
pub(super) fn logical(state: &PlanState, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    let plan = passes::optimised(state, plan)?;
    watch::conditions(lazy::in_turn(plan)?)
}

/// The physical plan of such a plan.
pub(super) async fn physical_of(
    state: &PlanState,
    optimised: &LogicalPlan,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    watch::check(state.config_options())?;
    let plan = state.query_planner().create_physical_plan(optimised, state).await?;
    match state.config().target_partitions() {
        // With one target partition, each input of a UNION is still a partition of its own.
        1 => sequential_union::in_order(plan),
        _ => Ok(plan),
    }
}

/// The planner state for a plan that is made inside a running plan.
pub(super) fn state_of(options: &ConfigOptions) -> PlanState {
    let context = Context::of_options(options);
    let nested = context.and_then(|context| Some((context, context.nested_planning?)));
    // Plans that run are made by a planner, which sets it.
    let Some((context, state)) = nested else { return SessionStateBuilder::new().build() };
    let mut config = state.config().clone().with_target_partitions(1);
    config.options_mut().extensions.insert(context.clone());
    let mut state = state.clone();
    *state.config_mut() = config;
    let memory_bytes = context.shared.settings.max_query_memory_bytes;
    let limited = context.shared.resources.environment(state.runtime_env(), memory_bytes);
    let mut state = SessionStateBuilder::new_from_existing(state).with_runtime_env(limited).build();
    state.mark_start_execution();
    state
}
