//! Steps over one batch of rows.

use std::{ops::Range, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, AsArray, RecordBatch, UInt32Array},
        compute::{filter_record_batch, take_record_batch},
        datatypes::{DataType, SchemaRef},
        row::{RowConverter, SortField},
    },
    common::exec_err,
    error::Result as PlanResult,
    physical_expr::{LexOrdering, PhysicalSortExpr, ScalarFunctionExpr, expressions::Column},
};

use super::{
    expressions::{
        BatchExpression, FunctionContext, ScanOrigin, all_evaluated, evaluated, of_columns,
    },
    group::GroupStep,
    subquery_columns::SubqueryColumns,
    window::WindowStep,
};
use crate::state::ContextGuard;

/// One step.
pub(super) enum BatchStep {
    Filter(BatchExpression),
    Project(Vec<BatchExpression>, SchemaRef),
    Group(GroupStep),
    Sort(Vec<(BatchExpression, PhysicalSortExpr)>),
    Window(WindowStep),
    /// Keeps the rows in this range.
    Cut(Range<usize>),
    SubqueryColumns(SubqueryColumns),
}

pub(super) fn sort_keys(order: &LexOrdering) -> Vec<(BatchExpression, PhysicalSortExpr)> {
    order.iter().map(|key| (Arc::clone(&key.expr), key.clone())).collect()
}

/// The column that an expression is, or whose score it is.
fn column_of(expression: &BatchExpression) -> Option<&Column> {
    let scored = expression.downcast_ref::<ScalarFunctionExpr>();
    match scored.map(|call| (call.name(), call.args())) {
        Some(("match_score", [score])) => score.downcast_ref::<Column>(),
        _ => expression.downcast_ref::<Column>(),
    }
}

impl BatchStep {
    /// Its name in EXPLAIN.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Filter(_) => "Filter",
            Self::Project(..) => "Project",
            Self::Group(_) => "Aggregate",
            Self::Sort(_) => "Sort",
            Self::Window(_) => "Window aggregate",
            Self::Cut(_) => "Limit",
            Self::SubqueryColumns(_) => "Dependent subquery",
        }
    }

    /// Whether another step would sort again by the first keys that this one sorts by.
    pub(super) fn sorts_as(&self, other: &Self) -> bool {
        let (Self::Sort(keys), Self::Sort(others)) = (self, other) else { return false };
        let mut pairs = keys.iter().zip(others);
        others.len() <= keys.len() && pairs.all(|((_, mine), (_, other))| mine == other)
    }

    /// Whether it gives exactly one row for each row, in the same order.
    pub(super) fn keeps_rows(&self) -> bool {
        matches!(self, Self::Project(..) | Self::SubqueryColumns(_))
    }

    /// Whether it can be applied to parts of the rows separately.
    pub(super) fn is_by_row(&self) -> bool {
        matches!(self, Self::Project(..) | Self::Filter(_) | Self::SubqueryColumns(_))
    }

    /// The scan column of each result column, given those of the input's columns.
    pub(super) fn origins(&self, below: Vec<ScanOrigin>) -> Vec<ScanOrigin> {
        match self {
            Self::Filter(_) | Self::Sort(_) | Self::Cut(_) => below,
            Self::Project(expressions, _) => {
                let origin = |expression: &BatchExpression| {
                    let column = column_of(expression)?;
                    below.get(column.index()).copied().flatten()
                };
                expressions.iter().map(origin).collect()
            }
            Self::Group(grouping) => vec![None; grouping.width()],
            Self::Window(window) => vec![None; window.width()],
            Self::SubqueryColumns(beside) => {
                let mut origins = below;
                origins.resize(beside.width(), None);
                origins
            }
        }
    }

    /// The expression over the input's columns that a result column is; `None` if it depends on more than one row.
    pub(super) fn of_column(&self, place: usize) -> Option<BatchExpression> {
        match self {
            Self::Filter(_) | Self::Sort(_) => Some(Arc::new(Column::new("", place))),
            Self::Project(expressions, _) => expressions.get(place).cloned(),
            Self::Group(grouping) => grouping.key(place).cloned(),
            Self::SubqueryColumns(beside) if place < beside.width_below() => {
                Some(Arc::new(Column::new("", place)))
            }
            // A filter below would change which rows are cut.
            Self::Window(_) | Self::Cut(_) | Self::SubqueryColumns(_) => None,
        }
    }

    pub(super) fn expressions(&self) -> Vec<BatchExpression> {
        match self {
            Self::Filter(predicate) => vec![Arc::clone(predicate)],
            Self::Project(expressions, _) => expressions.clone(),
            Self::Group(grouping) => grouping.expressions().into_iter().cloned().collect(),
            Self::Sort(keys) => keys.iter().map(|(expression, _)| Arc::clone(expression)).collect(),
            Self::Window(window) => window.expressions(),
            Self::Cut(_) => Vec::new(),
            Self::SubqueryColumns(beside) => beside.expressions(),
        }
    }

    /// Applies the step to a batch. [`SubqueryColumns`] is an error, because it needs the whole run.
    pub(super) fn apply(
        &self,
        batch: &RecordBatch,
        asked: FunctionContext<'_>,
    ) -> PlanResult<RecordBatch> {
        // Nothing is evaluated for no rows: that might raise an error.
        let is_empty = batch.num_rows() == 0;
        match self {
            Self::Filter(_) if is_empty => Ok(batch.clone()),
            Self::Sort(_) if batch.num_rows() <= 1 => Ok(batch.clone()),
            Self::Project(_, schema) if is_empty => Ok(RecordBatch::new_empty(Arc::clone(schema))),
            Self::Filter(predicate) => {
                let kept = evaluated(predicate, batch, asked)?;
                match kept.data_type() {
                    DataType::Boolean => Ok(filter_record_batch(batch, kept.as_boolean())?),
                    other => exec_err!("a condition is {other}"),
                }
            }
            Self::Project(expressions, schema) => {
                let columns = all_evaluated(expressions, batch, asked)?;
                of_columns(schema, columns, batch.num_rows())
            }
            Self::Group(grouping) => grouping.apply(batch, asked),
            Self::Sort(keys) => sorted(batch, keys, asked),
            Self::Window(window) => {
                let _caller = asked.map(ContextGuard::new);
                window.apply(batch)
            }
            Self::Cut(places) => {
                let end = places.end.min(batch.num_rows());
                let from = places.start.min(end);
                Ok(batch.slice(from, end - from))
            }
            Self::SubqueryColumns(_) => exec_err!("queries of rows are run with their plan"),
        }
    }
}

/// Sorts the rows; the sort is stable.
fn sorted(
    batch: &RecordBatch,
    keys: &[(BatchExpression, PhysicalSortExpr)],
    asked: FunctionContext<'_>,
) -> PlanResult<RecordBatch> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (expression, key) in keys {
        let column = evaluated(expression, batch, asked)?;
        fields.push(SortField::new_with_options(column.data_type().clone(), key.options));
        columns.push(column);
    }
    let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.sort_by(|one, other| rows.row(*one as usize).cmp(&rows.row(*other as usize)));
    if order.is_sorted() {
        // They were in this order already.
        return Ok(batch.clone());
    }
    Ok(take_record_batch(batch, &UInt32Array::from(order))?)
}
