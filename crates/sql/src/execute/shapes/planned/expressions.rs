//! The expressions of a cached plan, evaluated over one batch of rows.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{ArrayRef, RecordBatch, RecordBatchOptions},
        datatypes::{Schema, SchemaRef},
    },
    error::Result as PlanResult,
    physical_expr::PhysicalExpr,
};

use crate::state::{Context, ContextGuard};

/// The scan, and the index of the scan's column, that a column comes from.
pub(super) type ScanOrigin = Option<(usize, usize)>;

/// A physical expression.
pub(super) type BatchExpression = Arc<dyn PhysicalExpr>;

/// The context for functions; `None` if none are called.
pub(super) type FunctionContext<'a> = Option<&'a Arc<Context>>;

/// Evaluates an expression for each row.
pub(super) fn evaluated(
    expression: &BatchExpression,
    batch: &RecordBatch,
    asked: FunctionContext<'_>,
) -> PlanResult<ArrayRef> {
    let _caller = asked.map(ContextGuard::new);
    expression.evaluate(batch)?.into_array(batch.num_rows())
}

/// Evaluates several expressions.
pub(super) fn all_evaluated(
    expressions: &[BatchExpression],
    batch: &RecordBatch,
    asked: FunctionContext<'_>,
) -> PlanResult<Vec<ArrayRef>> {
    expressions.iter().map(|expression| evaluated(expression, batch, asked)).collect()
}

/// One row without columns.
pub(super) fn one_row() -> PlanResult<RecordBatch> {
    of_columns(&Arc::new(Schema::empty()), Vec::new(), 1)
}

/// A batch of these columns.
pub(super) fn of_columns(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> PlanResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
