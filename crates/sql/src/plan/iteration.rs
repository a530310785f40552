//! One iteration of a recursive common table expression. DataFusion takes the dynamic filters off a join before it runs
//! it again, so without this operator each iteration would read the whole of the tables that it joins. Here the joins of
//! each iteration get filters of their own, and a scan looks up the keys of that iteration's rows.

use std::{fmt, sync::Arc};

use datafusion::{
    common::exec_err,
    error::Result as PlanResult,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    },
};

use super::{operator::over_one_input, pushed::with_dynamic_filters};

/// The recursive part of a query, which runs once for each iteration.
#[derive(Debug)]
pub(super) struct IterationExec {
    rows: Arc<dyn ExecutionPlan>,
}

impl IterationExec {
    /// Over this recursive part, or the part itself if it is one.
    pub(super) fn over(rows: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        match rows.is::<Self>() {
            true => Arc::clone(rows),
            false => Arc::new(Self { rows: Arc::clone(rows) }),
        }
    }
}

impl DisplayAs for IterationExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Iteration")
    }
}

impl ExecutionPlan for IterationExec {
    fn name(&self) -> &str {
        "Iteration"
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
            _ => exec_err!("an iteration has one input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let rows = with_dynamic_filters(&self.rows, context.session_config().options())?;
        rows.execute(partition, context)
    }
}
