//! Window functions over one batch: DataFusion's functions, without its operators, whose set-up costs more than a few
//! rows do.

use std::{any::Any, ops::Range, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, RecordBatch},
        compute::{SortColumn, concat},
        datatypes::SchemaRef,
    },
    common::utils::evaluate_partition_ranges,
    error::Result as PlanResult,
    physical_expr::{LexOrdering, OrderingRequirements, PhysicalSortExpr, window::WindowExpr},
    physical_plan::{
        ExecutionPlan, InputOrderMode,
        windows::{BoundedWindowAggExec, WindowAggExec},
    },
};

use super::expressions::{BatchExpression, of_columns};

/// Window functions of the same partitions and order.
pub(super) struct WindowStep {
    functions: Vec<Arc<dyn WindowExpr>>,
    /// The schema of the rows with the functions' values.
    schema: SchemaRef,
    /// The order that the rows must have.
    order: Option<LexOrdering>,
}

impl WindowStep {
    /// The window functions of an operator; `None` if the plan is another operator, or its rows are not in the order of
    /// the partitions.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let any: &dyn Any = plan.as_ref();
        let functions = match any.downcast_ref::<WindowAggExec>() {
            Some(plan) => plan.window_expr(),
            None => {
                let plan = any.downcast_ref::<BoundedWindowAggExec>()?;
                (plan.input_order_mode == InputOrderMode::Sorted).then(|| plan.window_expr())?
            }
        };
        let required = plan.required_input_ordering().pop().flatten();
        let required = required.map(OrderingRequirements::into_single);
        let order = required.and_then(|keys| {
            LexOrdering::new(keys.into_iter().map(|key| {
                let options = key.options.unwrap_or_default();
                PhysicalSortExpr { expr: key.expr, options }
            }))
        });
        Some(Self { functions: functions.to_vec(), schema: plan.schema(), order })
    }

    /// The order that its input must have.
    pub(super) fn order(&self) -> Option<&LexOrdering> {
        self.order.as_ref()
    }

    /// The number of result columns.
    pub(super) fn width(&self) -> usize {
        self.schema.fields().len()
    }

    pub(super) fn expressions(&self) -> Vec<BatchExpression> {
        let mut expressions = Vec::new();
        for function in &self.functions {
            expressions.extend(function.expressions());
            expressions.extend(function.partition_by().iter().cloned());
            expressions.extend(function.order_by().iter().map(|key| Arc::clone(&key.expr)));
        }
        expressions
    }

    /// The rows with the window functions' values appended. The rows must be in the operator's order.
    pub(super) fn apply(&self, batch: &RecordBatch) -> PlanResult<RecordBatch> {
        if batch.num_rows() == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let partitions = self.partitions(batch)?;
        let mut columns = batch.columns().to_vec();
        for function in &self.functions {
            columns.push(values(function.as_ref(), batch, &partitions)?);
        }
        of_columns(&self.schema, columns, batch.num_rows())
    }

    /// The rows of each partition.
    fn partitions(&self, batch: &RecordBatch) -> PlanResult<Vec<Range<usize>>> {
        let by = self.functions.first().map_or(&[][..], |function| function.partition_by());
        let column = |key: &BatchExpression| {
            let values = key.evaluate(batch)?.into_array(batch.num_rows())?;
            Ok(SortColumn { values, options: None })
        };
        let columns = by.iter().map(column).collect::<PlanResult<Vec<_>>>()?;
        evaluate_partition_ranges(batch.num_rows(), &columns)
    }
}

/// A function's values, partition by partition.
fn values(
    function: &dyn WindowExpr,
    batch: &RecordBatch,
    partitions: &[Range<usize>],
) -> PlanResult<ArrayRef> {
    let of_partition =
        |rows: &Range<usize>| function.evaluate(&batch.slice(rows.start, rows.len()));
    let mut parts = partitions.iter().map(of_partition).collect::<PlanResult<Vec<_>>>()?;
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return Ok(only);
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    Ok(concat(&parts)?)
}
