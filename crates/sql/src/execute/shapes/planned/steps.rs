//! A plan of DataFusion as steps over one batch.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array},
        compute::{SortOptions, filter_record_batch, take_record_batch},
        datatypes::{DataType, SchemaRef},
        row::{RowConverter, SortField},
    },
    common::{
        config::ConfigOptions,
        exec_err,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    physical_expr::{
        LexOrdering, PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr, expressions::Column,
    },
    physical_plan::{
        ExecutionPlan, aggregates::AggregateExec, filter::FilterExec, projection::ProjectionExec,
        sorts::sort::SortExec,
    },
};

use remora_engine::{SortBy, SortKey};

use super::{
    super::{plan::sortable, table::Table},
    group::Grouping,
};
use crate::scan::{FewScan, ScanExec};

/// Most expressions of a plan, one within the other: they are evaluated on the stack of a connection.
const MAX_DEPTH: usize = 32;

/// One step.
pub(super) enum Step {
    Filter(Expression),
    Project(Vec<Expression>, SchemaRef),
    Group(Grouping),
    Sort(Vec<(Expression, PhysicalSortExpr)>),
}

/// An expression, evaluated for the session that runs it.
pub(super) type Expression = Arc<dyn PhysicalExpr>;

/// What functions ask for the session that they are called by; `None` where none are called.
pub(super) type Asked<'a> = Option<&'a Arc<ConfigOptions>>;

/// A plan in steps.
pub(super) struct Stepped {
    pub scan: FewScan,
    pub steps: Vec<Step>,
    /// Whether there are functions in it.
    pub calls: bool,
}

/// The steps of a plan; `None` if it has others than these.
pub(super) fn stepped(plan: &Arc<dyn ExecutionPlan>) -> Option<Stepped> {
    let mut steps = Vec::new();
    let scan = below(plan, &mut steps)?;
    let mut calls = false;
    for step in &steps {
        for expression in step.expressions() {
            calls |= examined(expression)?;
        }
    }
    Some(Stepped { scan, steps, calls })
}

fn below(plan: &Arc<dyn ExecutionPlan>, steps: &mut Vec<Step>) -> Option<FewScan> {
    let any: &dyn std::any::Any = plan.as_ref();
    if let Some(scan) = any.downcast_ref::<ScanExec>() {
        return scan.few();
    }
    if let Some(filter) = any.downcast_ref::<FilterExec>() {
        let scan = below(filter.input(), steps)?;
        steps.push(Step::Filter(Arc::clone(filter.predicate())));
        return (filter.projection().is_none() && filter.fetch().is_none()).then_some(scan);
    }
    if let Some(projection) = any.downcast_ref::<ProjectionExec>() {
        let scan = below(projection.input(), steps)?;
        let expressions = projection.expr().iter().map(|each| Arc::clone(&each.expr));
        steps.push(Step::Project(expressions.collect(), projection.schema()));
        return Some(scan);
    }
    if let Some(sort) = any.downcast_ref::<SortExec>() {
        let scan = below(sort.input(), steps)?;
        steps.push(Step::Sort(sort_keys(sort.expr())));
        return sort.fetch().is_none().then_some(scan);
    }
    let aggregate = any.downcast_ref::<AggregateExec>()?;
    let scan = below(aggregate.input(), steps)?;
    steps.push(Step::Group(Grouping::of(aggregate)?));
    Some(scan)
}

/// The order that steps bring the rows of a scan in, as the engine says it; `None` if they do more than that, or
/// the engine does not have it.
pub(super) fn order(stepped: &Stepped, table: &Table) -> Option<Vec<SortKey>> {
    // For each column at hand its place in the scan.
    let count = stepped.scan.schema().fields().len();
    let mut places: Vec<Option<usize>> = (0..count).map(Some).collect();
    let place = |places: &[Option<usize>], expression: &Expression| {
        let column = expression.downcast_ref::<Column>()?;
        places.get(column.index()).copied().flatten()
    };
    let mut order = None;
    for step in &stepped.steps {
        match step {
            Step::Project(expressions, _) => {
                places = expressions.iter().map(|each| place(&places, each)).collect();
            }
            Step::Sort(keys) if order.is_none() => {
                let key = |(expression, key): &(Expression, PhysicalSortExpr)| {
                    let position = stepped.scan.position(place(&places, expression)?)?;
                    let by = SortBy::Column(sortable(position, table)?);
                    let SortOptions { descending, nulls_first } = key.options;
                    // NULL is the least.
                    (nulls_first != descending).then_some(SortKey { by, descending })
                };
                order = Some(keys.iter().map(key).collect::<Option<Vec<_>>>()?);
            }
            _ => return None,
        }
    }
    Some(order.unwrap_or_else(|| vec![SortKey { by: SortBy::Key, descending: false }]))
}

fn sort_keys(order: &LexOrdering) -> Vec<(Expression, PhysicalSortExpr)> {
    order.iter().map(|key| (Arc::clone(&key.expr), key.clone())).collect()
}

/// Whether functions are called in an expression; `None` if it is too deep.
fn examined(expression: &Expression) -> Option<bool> {
    fn depth(expression: &Expression) -> usize {
        let below = expression.children().into_iter().map(depth).max();
        1 + below.unwrap_or(0)
    }
    if depth(expression) > MAX_DEPTH {
        return None;
    }
    let mut calls = false;
    expression
        .apply(|each| {
            calls |= each.downcast_ref::<ScalarFunctionExpr>().is_some();
            Ok(TreeNodeRecursion::Continue)
        })
        .ok()?;
    Some(calls)
}

impl Step {
    /// Whether it gives a row for each row, in their order.
    pub(super) fn keeps_rows(&self) -> bool {
        matches!(self, Self::Project(..))
    }

    /// Whether what it makes of a batch is the same for a part of it.
    pub(super) fn is_by_row(&self) -> bool {
        matches!(self, Self::Project(..) | Self::Filter(_))
    }

    fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::Filter(predicate) => vec![predicate],
            Self::Project(expressions, _) => expressions.iter().collect(),
            Self::Group(grouping) => grouping.expressions(),
            Self::Sort(keys) => keys.iter().map(|(expression, _)| expression).collect(),
        }
    }

    /// What it makes of a batch.
    pub(super) fn apply(&self, batch: &RecordBatch, asked: Asked<'_>) -> PlanResult<RecordBatch> {
        // Nothing is calculated for no rows: it might be an error.
        let is_empty = batch.num_rows() == 0;
        match self {
            Self::Filter(_) | Self::Sort(_) if is_empty => Ok(batch.clone()),
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
        }
    }
}

/// The value of an expression for each row.
pub(super) fn evaluated(
    expression: &Expression,
    batch: &RecordBatch,
    asked: Asked<'_>,
) -> PlanResult<ArrayRef> {
    let value = match asked {
        None => expression.evaluate(batch)?,
        Some(options) => bound(expression, batch, options)?.evaluate(batch)?,
    };
    value.into_array(batch.num_rows())
}

/// The same of several.
pub(super) fn all_evaluated(
    expressions: &[Expression],
    batch: &RecordBatch,
    asked: Asked<'_>,
) -> PlanResult<Vec<ArrayRef>> {
    expressions.iter().map(|expression| evaluated(expression, batch, asked)).collect()
}

/// The expression with functions that ask this session: those of a plan have the session's that it was made
/// for.
fn bound(
    expression: &Expression,
    batch: &RecordBatch,
    options: &Arc<ConfigOptions>,
) -> PlanResult<Expression> {
    let schema = batch.schema_ref();
    let done = Arc::clone(expression).transform_up(|each| {
        let Some(call) = each.downcast_ref::<ScalarFunctionExpr>() else {
            return Ok(Transformed::no(each));
        };
        let (function, args) = (Arc::new(call.fun().clone()), call.args().to_vec());
        let field = each.return_field(schema)?;
        let bound =
            ScalarFunctionExpr::new(call.name(), function, args, field, Arc::clone(options));
        Ok(Transformed::yes(Arc::new(bound) as Expression))
    });
    done.map(|done| done.data)
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

/// The rows in order; those that are equal stay as they were.
fn sorted(
    batch: &RecordBatch,
    keys: &[(Expression, PhysicalSortExpr)],
    asked: Asked<'_>,
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
    Ok(take_record_batch(batch, &UInt32Array::from(order))?)
}
