//! Steps over one batch of rows.

use std::{ops::Range, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array},
        compute::{SortOptions, filter_record_batch, take_record_batch},
        datatypes::{DataType, Schema, SchemaRef},
        row::{RowConverter, SortField},
    },
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    physical_expr::{
        LexOrdering, PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr,
        expressions::{Column, Literal},
    },
};

use remora_engine::{SortBy, SortKey};

use super::{
    super::{plan::sortable, table::Table},
    by_row::SubqueryColumns,
    group::Grouping,
    tree::{Origin, PlanNode, RowSource, Tree},
    window::Window,
};
use crate::{
    scan::CachedScan,
    state::{Context, ContextGuard},
};

/// One step.
pub(super) enum Step {
    Filter(Expression),
    Project(Vec<Expression>, SchemaRef),
    Group(Grouping),
    Sort(Vec<(Expression, PhysicalSortExpr)>),
    Window(Window),
    /// Keeps the rows in this range.
    Cut(Range<usize>),
    SubqueryColumns(SubqueryColumns),
}

/// A physical expression.
pub(super) type Expression = Arc<dyn PhysicalExpr>;

/// The context for functions; `None` if none are called.
pub(super) type FunctionContext<'a> = Option<&'a Arc<Context>>;

/// The order of a plan's result in engine terms, and the scan that has it; `None` if the plan does more than filter,
/// project and sort once, or the engine does not have the order. `table` gives the table of a scan.
pub(super) fn order<'t>(
    tree: &Tree,
    part: &PlanNode,
    table: impl Fn(usize) -> Option<&'t Table>,
) -> Option<(usize, Vec<SortKey>)> {
    let mut origins = part.of.origins(&tree.widths());
    let mut order = None;
    for step in &part.steps {
        if let Step::Sort(keys) = step {
            if order.is_some() {
                return None;
            }
            order = Some(sorted_by(keys, &origins, &tree.scans, &table)?);
        } else if !step.is_by_row() {
            return None;
        }
        origins = step.origins(origins);
    }
    let (scan, order) = match (order, &part.of) {
        (Some(order), _) => order,
        (None, RowSource::Scan(scan)) => {
            (*scan, vec![SortKey { by: SortBy::Key, descending: false }])
        }
        (None, RowSource::Join(_) | RowSource::Union(_) | RowSource::OneRow) => return None,
    };
    part.of.follows(scan).then_some((scan, order))
}

/// The ORDER BY and LIMIT of a query over one scan, if the engine has the order.
pub(super) fn first_of<'t>(
    tree: &Tree,
    part: &PlanNode,
    table: impl Fn(usize) -> Option<&'t Table>,
) -> Option<(Vec<SortKey>, usize)> {
    let sorted = part.steps.iter().position(|step| matches!(step, Step::Sort(_)))?;
    let Some(Step::Cut(places)) = part.steps.get(sorted + 1) else { return None };
    let before = part.steps.get(..=sorted)?;
    let mut origins = part.of.origins(&tree.widths());
    for step in before {
        if let (Step::Sort(keys), RowSource::Scan(scan)) = (step, &part.of) {
            let (of, order) = sorted_by(keys, &origins, &tree.scans, &table)?;
            return (of == *scan).then_some((order, places.end));
        }
        if !step.is_by_row() {
            return None;
        }
        origins = step.origins(origins);
    }
    None
}

/// Sort keys in engine terms, if all are columns of one scan.
fn sorted_by<'t>(
    keys: &[(Expression, PhysicalSortExpr)],
    origins: &[Origin],
    scans: &[CachedScan],
    table: &impl Fn(usize) -> Option<&'t Table>,
) -> Option<(usize, Vec<SortKey>)> {
    let mut of = None;
    let mut order = Vec::new();
    for (expression, key) in keys {
        let (column, collation) = sorted_column(expression)?;
        let (scan, place) = origins.get(column.index()).copied().flatten()?;
        if *of.get_or_insert(scan) != scan {
            return None;
        }
        let position = scans.get(scan)?.position(place)?;
        let by = match collation {
            None => SortBy::Column(sortable(position, table(scan)?)?),
            Some(number) => {
                let (operand, _) = table(scan)?.texts_at(position)?;
                SortBy::TextKey(operand.name, number)
            }
        };
        let SortOptions { descending, nulls_first } = key.options;
        // MySQL sorts NULL as the least value.
        if nulls_first == descending {
            return None;
        }
        order.push(SortKey { by, descending });
    }
    Some((of?, order))
}

/// The column that is sorted by, and the number of its collation if it is sorted by collation keys.
fn sorted_column(expression: &Expression) -> Option<(&Column, Option<u32>)> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return Some((column, None));
    }
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let ("collation_key", [of, number]) = (call.name(), call.args()) else { return None };
    let ScalarValue::Int64(Some(number)) = number.downcast_ref::<Literal>()?.value() else {
        return None;
    };
    Some((of.downcast_ref::<Column>()?, Some(u32::try_from(*number).ok()?)))
}

pub(super) fn sort_keys(order: &LexOrdering) -> Vec<(Expression, PhysicalSortExpr)> {
    order.iter().map(|key| (Arc::clone(&key.expr), key.clone())).collect()
}

impl Step {
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
    pub(super) fn origins(&self, below: Vec<Origin>) -> Vec<Origin> {
        match self {
            Self::Filter(_) | Self::Sort(_) | Self::Cut(_) => below,
            Self::Project(expressions, _) => {
                let origin = |expression: &Expression| {
                    let column = expression.downcast_ref::<Column>()?;
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
    pub(super) fn of_column(&self, place: usize) -> Option<Expression> {
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

    pub(super) fn expressions(&self) -> Vec<Expression> {
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

/// Evaluates an expression for each row.
pub(super) fn evaluated(
    expression: &Expression,
    batch: &RecordBatch,
    asked: FunctionContext<'_>,
) -> PlanResult<ArrayRef> {
    let _caller = asked.map(ContextGuard::new);
    expression.evaluate(batch)?.into_array(batch.num_rows())
}

/// Evaluates several expressions.
pub(super) fn all_evaluated(
    expressions: &[Expression],
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

/// Sorts the rows; the sort is stable.
fn sorted(
    batch: &RecordBatch,
    keys: &[(Expression, PhysicalSortExpr)],
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
