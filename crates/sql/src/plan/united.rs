//! UNION returns its parts one after the other, as MySQL does; DataFusion would interleave batches as they are ready.
//! Where partitions are merged without an order, the parts form one partition from the UNION on: a join above them
//! would wait for all parts to start, but they run one after the other.

use std::{fmt, sync::Arc};

use datafusion::{
    common::{
        exec_err,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
        ExecutionPlanProperties, Partitioning, PlanProperties, ReplaceChildrenOptions,
        coalesce_partitions::CoalescePartitionsExec,
        sorts::sort_preserving_merge::SortPreservingMergeExec, stream::RecordBatchStreamAdapter,
        union::UnionExec,
    },
};
use futures::{StreamExt, TryStreamExt};

use super::operator::over_one_input;

/// The plan with the parts of a UNION one after the other wherever partitions become one without an order.
pub(super) fn in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let done = plan.transform_up(|plan| {
        let Some(merged) = plan.downcast_ref::<CoalescePartitionsExec>() else {
            return Ok(Transformed::no(plan));
        };
        let parts = Arc::clone(merged.input()).transform_down(|below| {
            // What is sorted part by part is merged by its order.
            let is_one = below.is::<SortPreservingMergeExec>() || below.is::<InTurn>();
            if below.is::<UnionExec>() {
                let in_turn = Arc::new(InTurn::new(below)) as Arc<dyn ExecutionPlan>;
                return Ok(Transformed::new(in_turn, true, TreeNodeRecursion::Jump));
            }
            let next = if is_one { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue };
            Ok(Transformed::new(below, false, next))
        })?;
        if !parts.transformed {
            return Ok(Transformed::no(plan));
        }
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Transformed::yes(plan.replace_children(vec![parts.data], options)?))
    });
    done.map(|done| done.data)
}

/// Reads the partitions of a plan one after the other.
#[derive(Debug)]
struct InTurn {
    parts: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InTurn {
    fn new(parts: Arc<dyn ExecutionPlan>) -> Self {
        let mut equal = parts.equivalence_properties().clone();
        equal.clear_orderings();
        equal.clear_per_partition_constants();
        let one = Partitioning::UnknownPartitioning(1);
        let (emission, bounds) = (parts.pipeline_behavior(), parts.boundedness());
        let properties = Arc::new(PlanProperties::new(equal, one, emission, bounds));
        Self { parts, properties }
    }
}

impl DisplayAs for InTurn {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "One part after the other")
    }
}

impl ExecutionPlan for InTurn {
    fn name(&self) -> &str {
        "InTurn"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    over_one_input!(parts);

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(parts), true) => Ok(Arc::new(Self::new(parts))),
            _ => exec_err!("parts in turn are those of one plan"),
        }
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let parts = Arc::clone(&self.parts);
        let count = parts.output_partitioning().partition_count();
        let streams = (0..count).map(move |part| parts.execute(part, Arc::clone(&context)));
        let rows = futures::stream::iter(streams).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows.boxed())))
    }
}
