//! Window functions over one batch, by DataFusion's operators.

use std::sync::{Arc, LazyLock};

use datafusion::{
    arrow::array::RecordBatch,
    common::exec_err,
    datasource::{memory::MemorySourceConfig, source::DataSourceExec},
    error::Result as PlanResult,
    execution::TaskContext,
    physical_expr::{LexOrdering, OrderingRequirements, PhysicalSortExpr, window::WindowExpr},
    physical_plan::{
        ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions,
        windows::{BoundedWindowAggExec, WindowAggExec},
    },
};
use futures::{FutureExt, TryStreamExt};

use super::steps::{Expression, of_columns};

/// A task context for operators that need no session.
static TASK: LazyLock<Arc<TaskContext>> = LazyLock::new(Arc::default);

/// A window operator, and the order that its input must have.
pub(super) struct Window {
    plan: Arc<dyn ExecutionPlan>,
    order: Option<LexOrdering>,
}

impl Window {
    /// The window operator; `None` if the plan is another operator.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let any: &dyn std::any::Any = plan.as_ref();
        if !any.is::<WindowAggExec>() && !any.is::<BoundedWindowAggExec>() {
            return None;
        }
        let required = plan.required_input_ordering().pop().flatten();
        let required = required.map(OrderingRequirements::into_single);
        let order = required.and_then(|keys| {
            LexOrdering::new(keys.into_iter().map(|key| {
                let options = key.options.unwrap_or_default();
                PhysicalSortExpr { expr: key.expr, options }
            }))
        });
        Some(Self { plan: Arc::clone(plan), order })
    }

    /// The order that its input must have.
    pub(super) fn order(&self) -> Option<&LexOrdering> {
        self.order.as_ref()
    }

    /// The number of result columns.
    pub(super) fn width(&self) -> usize {
        self.plan.schema().fields().len()
    }

    pub(super) fn expressions(&self) -> Vec<Expression> {
        let any: &dyn std::any::Any = self.plan.as_ref();
        let functions: &[Arc<dyn WindowExpr>] = match any.downcast_ref::<WindowAggExec>() {
            Some(plan) => plan.window_expr(),
            None => any.downcast_ref::<BoundedWindowAggExec>().map_or(&[], |it| it.window_expr()),
        };
        let mut expressions = Vec::new();
        for function in functions {
            expressions.extend(function.expressions());
            expressions.extend(function.partition_by().iter().cloned());
            expressions.extend(function.order_by().iter().map(|key| Arc::clone(&key.expr)));
        }
        expressions
    }

    /// The rows with the window functions' values appended. The rows must be in the operator's order.
    pub(super) fn apply(&self, batch: &RecordBatch) -> PlanResult<RecordBatch> {
        let schema = self.plan.schema();
        let [input] = self.plan.children()[..] else { return exec_err!("a window is of no rows") };
        if batch.num_rows() == 0 {
            return Ok(RecordBatch::new_empty(schema));
        }
        let held = input.schema();
        let rows = of_columns(&held, batch.columns().to_vec(), batch.num_rows())?;
        let source = MemorySourceConfig::try_new(&[vec![rows]], held, None)?;
        let source = source.try_with_sort_information(self.order.iter().cloned().collect())?;
        let source = DataSourceExec::from_data_source(source);
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let plan = Arc::clone(&self.plan).replace_children(vec![source], options)?;
        let made = plan.execute(0, Arc::clone(&TASK))?.try_collect::<Vec<_>>();
        // All rows are in memory, so this future never waits.
        let Some(made) = tokio::task::unconstrained(made).now_or_never() else {
            return exec_err!("a window waits");
        };
        Ok(datafusion::arrow::compute::concat_batches(&schema, &made?)?)
    }
}
