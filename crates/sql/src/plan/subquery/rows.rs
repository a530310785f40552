//! A query that gives rows for each outer row.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::RecordBatch,
        datatypes::{FieldRef, SchemaRef},
    },
    common::{ScalarValue, config::ConfigOptions},
    error::Result as PlanResult,
    execution::{TaskContext, memory_pool::MemoryConsumer},
    logical_expr::LogicalPlan,
    physical_plan::{ExecutionPlan, execute_stream},
};
use futures::TryStreamExt;

use super::{Context, Kind, Subquery, outer_columns};

/// The query. Its plan is made once, unless it has a part that is planned for each run, such as a recursive query.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::plan) struct RowsQuery(Subquery);

impl RowsQuery {
    /// A query with outer columns.
    pub(in crate::plan) fn new(plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<Self> {
        let outer = outer_columns(&plan)?;
        let context = Context::of_options(options).cloned();
        Ok(Self(Subquery::new(Kind::Rows, plan.into(), outer, context)))
    }

    /// Its rows for these values of the outer columns, in the order of [`outer_columns`].
    pub(in crate::plan) fn rows(
        &self,
        values: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
    ) -> PlanResult<Vec<RecordBatch>> {
        self.0.run(values, fields, options, collected)
    }

    /// The schema of its rows.
    pub(in crate::plan) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(self.0.plan.schema().inner())
    }
}

/// All rows of a plan. Their memory is reserved while they are read; the caller reserves it afterwards.
async fn collected(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> PlanResult<Vec<RecordBatch>> {
    let room = MemoryConsumer::new("lateral query").register(context.memory_pool());
    let mut rows = execute_stream(plan, context)?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.try_next().await? {
        room.try_grow(batch.get_array_memory_size())?;
        batches.push(batch);
    }
    room.free();
    Ok(batches)
}
