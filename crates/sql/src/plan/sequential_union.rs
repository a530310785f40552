//! UNION returns the rows of its inputs one after the other, as MySQL does; DataFusion would interleave them as batches
//! become ready. Where partitions are merged without an order, or read by the client, the inputs form one partition
//! from the UNION on. They run one after the other, so a join above them must not wait for all of them to start.

use std::{fmt, sync::Arc};

use datafusion::{
    common::{
        exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
        ExecutionPlanProperties, Partitioning, PlanProperties, ReplaceChildrenOptions,
        coalesce_partitions::CoalescePartitionsExec, stream::RecordBatchStreamAdapter,
        union::UnionExec,
    },
};
use futures::{StreamExt, TryStreamExt};

use super::operator::over_one_input;
use crate::nodes::TreeNode;

/// The plan with a single partition. The inputs of a UNION run one after the other wherever partitions are merged
/// without an order, as the result is.
pub(super) fn in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let done = in_turn(plan)?.data.transform_up(|plan| {
        let Some(merged) = plan.downcast_ref::<CoalescePartitionsExec>() else {
            return Ok(Transformed::no(plan));
        };
        let parts = in_turn(Arc::clone(merged.input()))?;
        if !parts.transformed {
            return Ok(Transformed::no(plan));
        }
        Ok(Transformed::yes(plan.replace_children(vec![parts.data], recomputed())?))
    });
    done.map(|done| done.data)
}

/// A plan of several partitions as a plan of one, which reads the inputs of a UNION in turn. Plans with one partition,
/// such as a sort-preserving merge, stay unchanged.
fn in_turn(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.transform_down(|below| {
        if below.output_partitioning().partition_count() == 1 {
            return Ok(Transformed::new(below, false, TreeNodeRecursion::Jump));
        }
        if !below.is::<UnionExec>() {
            return Ok(Transformed::no(below));
        }
        // A join in an input may have a UNION of its own.
        let parts = below.children().into_iter().map(|part| in_turn(Arc::clone(part)));
        let parts = parts.map(|part| part.map(|part| part.data)).collect::<Result<Vec<_>>>()?;
        let below = below.replace_children(parts, recomputed())?;
        let in_turn = Arc::new(SequentialUnion::new(below)) as Arc<dyn ExecutionPlan>;
        Ok(Transformed::new(in_turn, true, TreeNodeRecursion::Jump))
    })
}

/// Whether the operator only concatenates the partitions below it.
pub(crate) fn is_sequential_union(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<SequentialUnion>()
}

fn recomputed() -> ReplaceChildrenOptions {
    ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute)
}

/// Concatenates the partitions of a plan.
#[derive(Debug)]
struct SequentialUnion {
    parts: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl SequentialUnion {
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

impl DisplayAs for SequentialUnion {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "One part after the other")
    }
}

impl ExecutionPlan for SequentialUnion {
    fn name(&self) -> &str {
        "SequentialUnion"
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
