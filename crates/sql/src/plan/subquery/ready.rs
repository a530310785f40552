//! Plans of a subquery that are made once and run for one outer row after the other.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::FieldRef,
    common::{
        ScalarValue, config::ConfigOptions, metadata::FieldMetadata, tree_node::TreeNodeRecursion,
    },
    error::Result as PlanResult,
    execution::TaskContext,
    logical_expr::{Expr, LogicalPlan},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{ExecutionPlan, execution_plan::reset_plan_states},
};

use super::{
    super::{direct, pushed::DynamicFilters},
    Subquery, stages, waited, watched,
};
use crate::{nodes::WholePlan, scan::outer::OuterRow};

/// A plan for any values of the outer columns.
pub(super) struct Ready {
    plan: Arc<dyn ExecutionPlan>,
    /// The types of the arguments that it is made for.
    fields: Vec<FieldRef>,
    /// Whether each run adds the conditions by which a join filters a scan. They hold for that run only.
    is_joined: bool,
    row: OuterRow,
    task: Arc<TaskContext>,
}

impl Ready {
    /// The plan for one run.
    pub(super) fn plan(&self, options: &ConfigOptions) -> PlanResult<Arc<dyn ExecutionPlan>> {
        match self.is_joined {
            true => DynamicFilters.optimize(Arc::clone(&self.plan), options),
            false => Ok(Arc::clone(&self.plan)),
        }
    }

    /// The plan, reset for another run.
    fn again(self) -> PlanResult<Self> {
        Ok(Self { plan: reset_plan_states(self.plan)?, ..self })
    }
}

impl Subquery {
    /// Runs `work` on the query for some values of the outer columns.
    pub(super) fn run<T, F: Future<Output = PlanResult<T>>>(
        &self,
        outer: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
        work: impl FnOnce(Arc<dyn ExecutionPlan>, Arc<TaskContext>) -> F,
    ) -> PlanResult<T> {
        if is_for_one_run(&self.plan)? {
            let plan = self.few(self.bound(outer, fields)?)?;
            let state = stages::state_of(options);
            return waited(async {
                let plan = stages::analysed(&state, plan)?;
                let plan = stages::optimised(&state, plan).await?;
                work(watched(plan, options)?, state.task_ctx()).await
            });
        }
        let ready = match self.idle_for(fields) {
            Some(ready) => ready.again()?,
            None => self.ready(fields, options)?,
        };
        // What plans must not take the values of one run for those of all.
        ready.row.set(&[]);
        let plan = match ready.is_joined {
            true => watched(ready.plan(options)?, options)?,
            false => ready.plan(options)?,
        };
        ready.row.set(outer);
        let done = waited(work(plan, Arc::clone(&ready.task)))?;
        self.idle.lock().push(ready);
        Ok(done)
    }

    /// A plan for arguments of these types that no thread is running. A condition that was moved into each input of a
    /// UNION has arguments of different types there.
    fn idle_for(&self, fields: &[FieldRef]) -> Option<Ready> {
        let mut idle = self.idle.lock();
        let at = idle.iter().position(|ready| are_same_types(&ready.fields, fields))?;
        Some(idle.swap_remove(at))
    }

    /// A plan for any values of the outer columns.
    pub(super) fn ready(&self, fields: &[FieldRef], options: &ConfigOptions) -> PlanResult<Ready> {
        let mut state = stages::state_of(options);
        let row = OuterRow::default();
        if let Some(rows) = direct::rows_below(&self.plan)
            && (!self.outer.is_empty() || rows <= direct::most_rows(options))
        {
            let plan = self.replaced(|at| fields.get(at).map(|field| row.value(at, field)))?;
            let plan = stages::analysed(&state, self.few(plan)?)?;
            if let Some(plan) = direct::made(&plan, &state)? {
                let plan = watched(plan, options)?;
                let (fields, task) = (fields.to_vec(), state.task_ctx());
                return Ok(Ready { plan, fields, is_joined: false, row, task });
            }
        }
        let plan = self.replaced(|at| fields.get(at).map(|field| row.constant(at, field)))?;
        let plan = stages::analysed(&state, self.few(plan)?)?;
        let task = state.task_ctx();
        let optimizing = &mut state.config_mut().options_mut().optimizer;
        optimizing.enable_join_dynamic_filter_pushdown = false;
        optimizing.enable_topk_dynamic_filter_pushdown = false;
        optimizing.enable_aggregate_dynamic_filter_pushdown = false;
        let plan = waited(stages::optimised(&state, plan))?;
        Ok(Ready { plan, fields: fields.to_vec(), is_joined: true, row, task })
    }

    /// The query with values bound to its outer columns.
    fn bound(&self, args: &[ScalarValue], fields: &[FieldRef]) -> PlanResult<LogicalPlan> {
        self.replaced(|at| {
            let value = args.get(at).cloned().unwrap_or(ScalarValue::Null);
            let field = fields.get(at).map(|field| FieldMetadata::from(field.as_ref()));
            Some(Expr::Literal(value, field))
        })
    }
}

/// Whether arguments have the same types, in Arrow and in MySQL.
pub(super) fn are_same_types(known: &[FieldRef], fields: &[FieldRef]) -> bool {
    let of = |field: &FieldRef| (field.data_type().clone(), field.metadata().clone());
    known.len() == fields.len() && known.iter().zip(fields).all(|(one, other)| of(one) == of(other))
}

/// Whether a plan has nodes whose state cannot be reset for another run.
fn is_for_one_run(plan: &LogicalPlan) -> PlanResult<bool> {
    if direct::rows_below(plan).is_some() {
        return Ok(false);
    }
    let mut found = false;
    plan.apply_whole(|node| {
        found |= matches!(node, LogicalPlan::Extension(_) | LogicalPlan::RecursiveQuery(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
