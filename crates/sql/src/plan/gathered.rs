//! Gathers the rows of recursive queries. Each iteration gives few rows, often one, and a batch of one row costs what one
//! of thousands does: its operators are called for it, and each text column that they make takes a block of memory.

use std::{fmt, sync::Arc};

use datafusion::{
    arrow::compute::BatchCoalescer,
    common::{
        config::ConfigOptions,
        exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        aggregates::AggregateExec, sorts::sort::SortExec, stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, stream};

use super::{operator::over_one_input, recursion::RecursionExec};
use crate::nodes::TreeNode;

/// Rows that take so many bytes are passed on, however few they are.
const MOST_BYTES: usize = 4 << 20;

/// The rule. A LIMIT ends a recursion, so its rows are gathered above the LIMIT.
#[derive(Debug)]
pub(super) struct GatherIterations;

impl PhysicalOptimizerRule for GatherIterations {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let done = plan.transform_down(|node| {
            if node.is::<GatheredExec>() {
                return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
            }
            let ends_recursion = node.fetch().is_some() && gives_iterations(&node);
            let gives_batches = node.is::<RecursionExec>() || ends_recursion;
            if !gives_batches || node.schema().fields().is_empty() {
                return Ok(Transformed::no(node));
            }
            let gathered: Arc<dyn ExecutionPlan> = Arc::new(GatheredExec { rows: node });
            Ok(Transformed::new(gathered, true, TreeNodeRecursion::Jump))
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "gather_iterations"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the rows of iterations arrive at an operator as they are made.
fn gives_iterations(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.is::<SortExec>() || plan.is::<AggregateExec>() {
        return false;
    }
    plan.is::<RecursionExec>() || plan.children().into_iter().any(gives_iterations)
}

/// Gives the rows of its input in batches of the usual size, in the same order.
#[derive(Debug)]
struct GatheredExec {
    rows: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for GatheredExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Gather")
    }
}

impl ExecutionPlan for GatheredExec {
    fn name(&self) -> &str {
        "Gather"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.rows.properties()
    }

    over_one_input!(rows);

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(rows), true) => Ok(Arc::new(Self { rows })),
            _ => exec_err!("rows are gathered of one input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let rows_of_batch = context.session_config().batch_size();
        let rows = self.rows.execute(partition, context)?;
        let schema = rows.schema();
        let gathering = BatchCoalescer::new(Arc::clone(&schema), rows_of_batch)
            .with_biggest_coalesce_batch_size(Some(rows_of_batch / 2));
        let gathered = stream::try_unfold((rows, gathering, false), |state| async move {
            let (mut rows, mut gathering, mut is_over) = state;
            while !is_over && !gathering.has_completed_batch() {
                match rows.next().await.transpose()? {
                    Some(batch) => {
                        gathering.push_batch(batch)?;
                        if gathering.size() > MOST_BYTES {
                            gathering.finish_buffered_batch()?;
                        }
                    }
                    None => {
                        gathering.finish_buffered_batch()?;
                        is_over = true;
                    }
                }
            }
            let batch = gathering.next_completed_batch();
            Ok(batch.map(|batch| (batch, (rows, gathering, is_over))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, gathered)))
    }
}
