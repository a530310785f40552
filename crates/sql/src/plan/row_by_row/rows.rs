//! Evaluates a SELECT list expression by expression, row by row.

use std::{fmt, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, RecordBatch, new_empty_array},
        compute::concat,
        datatypes::SchemaRef,
    },
    common::{ScalarValue, config::ConfigOptions, exec_err, metadata::FieldMetadata},
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{ColumnarValue, Operator},
    physical_expr::{
        EquivalenceProperties, OrderingRequirements, Partitioning, PhysicalExpr,
        ScalarFunctionExpr,
        expressions::{BinaryExpr, CaseExpr, Literal},
    },
    physical_optimizer::output_requirements::OutputRequirementExec,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan,
        ExecutionPlanProperties, InputDistributionRequirements, PlanProperties,
        ReplaceChildrenOptions, execution_plan::EmissionType, sorts::sort::SortExec,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt};

use super::super::{operator::over_one_input, watch};
use crate::meaning::{ASSIGN_VARIABLE, GIVE_LAST_INSERT_ID, READ_VARIABLE};

/// The approximate most bytes of values in an output batch: a text may grow with each row.
const BATCH_BYTES: usize = 1 << 20;

/// The row-by-row projection operator.
#[derive(Clone, Debug)]
pub(super) struct RowByRowExec {
    input: Arc<dyn ExecutionPlan>,
    exprs: Arc<[(Arc<dyn PhysicalExpr>, bool)]>,
    /// The required order of the input, in which assignments happen.
    order: Option<OrderingRequirements>,
    properties: Arc<PlanProperties>,
}

impl RowByRowExec {
    /// Evaluates expressions, each given with whether it uses variables.
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        exprs: Vec<(Arc<dyn PhysicalExpr>, bool)>,
        schema: SchemaRef,
    ) -> Self {
        let order = input.output_ordering().cloned().map(OrderingRequirements::from);
        Self::of(input, exprs.into(), order, schema)
    }

    fn of(
        input: Arc<dyn ExecutionPlan>,
        exprs: Arc<[(Arc<dyn PhysicalExpr>, bool)]>,
        order: Option<OrderingRequirements>,
        schema: SchemaRef,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            input.boundedness(),
        );
        Self { input, exprs, order, properties: Arc::new(properties) }
    }
}

/// Protects the sort of the input. If the sort columns are not in the output, no requirement names
/// them, and the optimizer would remove the sort.
pub(super) fn with_kept_sort(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let (order, fetch) = (OrderingRequirements::from(sort.expr().clone()), sort.fetch());
        let single = Distribution::SinglePartition;
        return Ok(Arc::new(OutputRequirementExec::new(plan, Some(order), single, fetch)));
    }
    let is_free = plan.maintains_input_order() == [true]
        && plan.required_input_ordering().iter().all(Option::is_none);
    let below = match plan.children()[..] {
        [only] if is_free => Arc::clone(only),
        _ => return Ok(plan),
    };
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(vec![with_kept_sort(below)?], options)
}

impl DisplayAs for RowByRowExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Assign variables row by row")
    }
}

impl ExecutionPlan for RowByRowExec {
    fn name(&self) -> &'static str {
        "RowByRowExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    over_one_input!(input);

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // Tells the optimizer not to push a sort below this operator, since variables would get
        // other values.
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.into_iter().next() {
            Some(input) => {
                let (exprs, order) = (Arc::clone(&self.exprs), self.order.clone());
                Ok(Arc::new(Self::of(input, exprs, order, self.schema())))
            }
            None => exec_err!("rows are evaluated in turn of an input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // The id that counts is that of the last row: a batch as a whole would be given by one call after the other.
        let given: usize = self.exprs.iter().map(|(expr, _)| ids_given(expr)).sum();
        let is_stepped: fn(&Arc<dyn PhysicalExpr>) -> bool = match given > 1 {
            true => |expr| uses_variables(expr) || ids_given(expr) > 0,
            false => uses_variables,
        };
        let steps = self.exprs.iter().map(|(expr, is_asked)| match *is_asked || given > 1 {
            true => Step::of(expr, is_stepped),
            false => Step::Whole(Arc::clone(expr)),
        });
        let steps: Arc<[Step]> = steps.collect();
        let options = Arc::clone(context.session_config().options());
        let schema = self.schema();
        let rows = self.input.execute(partition, context)?.map_ok(move |batch| {
            let (steps, options) = (Arc::clone(&steps), Arc::clone(&options));
            let schema = Arc::clone(&schema);
            futures::stream::iter(Turned { batch, steps, options, schema, next: 0 })
        });
        let rows = rows.try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// An input batch, evaluated lazily in parts.
struct Turned {
    batch: RecordBatch,
    steps: Arc<[Step]>,
    options: Arc<ConfigOptions>,
    schema: SchemaRef,
    /// The next row.
    next: usize,
}

impl Turned {
    fn made(&mut self) -> Result<RecordBatch> {
        let first = self.next;
        let mut asked: Vec<Vec<ArrayRef>> = self.steps.iter().map(|_| Vec::new()).collect();
        let mut bytes = 0;
        while self.next < self.batch.num_rows() && bytes < BATCH_BYTES {
            watch::check(&self.options)?;
            let row = self.batch.slice(self.next, 1);
            for (step, values) in self.steps.iter().zip(&mut asked) {
                if !matches!(step, Step::Whole(_)) {
                    let value = step.evaluate(&row)?.into_array(1)?;
                    bytes += value.get_array_memory_size();
                    values.push(value);
                }
            }
            self.next += 1;
        }
        let rows = self.batch.slice(first, self.next - first);
        let mut columns = Vec::with_capacity(self.steps.len());
        for ((step, values), field) in self.steps.iter().zip(&asked).zip(self.schema.fields()) {
            columns.push(match step {
                Step::Whole(expr) => expr.evaluate(&rows)?.into_array(rows.num_rows())?,
                _ if values.is_empty() => new_empty_array(field.data_type()),
                _ => concat(&values.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?,
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl Iterator for Turned {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.batch.num_rows() {
            return None;
        }
        let made = self.made();
        if made.is_err() {
            self.next = self.batch.num_rows();
        }
        Some(made)
    }
}

/// How an expression is evaluated for one row: its parts in order, without those that MySQL skips.
enum Step {
    /// Nothing of it depends on the rows before, so it is evaluated for the whole batch.
    Whole(Arc<dyn PhysicalExpr>),
    /// All parts are evaluated.
    Each(Arc<dyn PhysicalExpr>, Vec<Step>),
    /// COALESCE and IFNULL: parts are evaluated up to the first that is not NULL.
    First(Arc<dyn PhysicalExpr>, Vec<Step>),
    /// AND and OR: the second part is evaluated unless the first has this truth value.
    Both(Arc<dyn PhysicalExpr>, Box<[Step; 2]>, bool),
    Case(Box<Case>),
}

struct Case {
    operand: Option<Step>,
    branches: Vec<(Step, Step)>,
    otherwise: Option<Step>,
    expr: Arc<dyn PhysicalExpr>,
}

impl Step {
    /// Of an expression of which the parts for which `is_stepped` holds are evaluated for each row.
    fn of(expr: &Arc<dyn PhysicalExpr>, is_stepped: fn(&Arc<dyn PhysicalExpr>) -> bool) -> Self {
        let of = |expr: &Arc<dyn PhysicalExpr>| Self::of(expr, is_stepped);
        if !is_stepped(expr) {
            return Self::Whole(Arc::clone(expr));
        }
        let any: &dyn std::any::Any = expr.as_ref();
        if let Some(case) = any.downcast_ref::<CaseExpr>() {
            let branch = |(when, then): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
                (of(when), of(then))
            };
            return Self::Case(Box::new(Case {
                operand: case.expr().map(of),
                branches: case.when_then_expr().iter().map(branch).collect(),
                otherwise: case.else_expr().map(of),
                expr: Arc::clone(expr),
            }));
        }
        if let Some(binary) = any.downcast_ref::<BinaryExpr>()
            && matches!(binary.op(), Operator::And | Operator::Or)
        {
            let sides = [of(binary.left()), of(binary.right())];
            return Self::Both(Arc::clone(expr), sides.into(), *binary.op() == Operator::Or);
        }
        let parts = expr.children().into_iter().map(of).collect();
        match function_name(expr) {
            Some("coalesce" | "ifnull") => Self::First(Arc::clone(expr), parts),
            _ => Self::Each(Arc::clone(expr), parts),
        }
    }

    fn evaluate(&self, row: &RecordBatch) -> Result<ColumnarValue> {
        match self {
            Self::Whole(expr) => expr.evaluate(row),
            Self::Each(expr, parts) => {
                let values = expr.children().into_iter().zip(parts);
                let values = values.map(|(child, part)| constant(child, part.value(row)?, row));
                replaced(expr, values.collect::<Result<_>>()?, row)
            }
            Self::First(expr, parts) => {
                let mut values = Vec::with_capacity(parts.len());
                let mut is_found = false;
                for (child, part) in expr.children().into_iter().zip(parts) {
                    let value = match is_found {
                        true => ScalarValue::try_from(&child.data_type(row.schema_ref())?)?,
                        false => part.value(row)?,
                    };
                    is_found |= !value.is_null();
                    values.push(constant(child, value, row)?);
                }
                replaced(expr, values, row)
            }
            Self::Both(expr, sides, decides) => {
                let [left, right] = sides.as_ref();
                let first = left.value(row)?;
                if first == ScalarValue::Boolean(Some(*decides)) {
                    return Ok(ColumnarValue::Scalar(first));
                }
                let values = [first, right.value(row)?];
                let literals = values.map(|value| Arc::new(Literal::new(value)) as _);
                replaced(expr, literals.into(), row)
            }
            Self::Case(case) => case.evaluate(row),
        }
    }

    fn value(&self, row: &RecordBatch) -> Result<ScalarValue> {
        match self.evaluate(row)? {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0),
        }
    }
}

impl Case {
    fn evaluate(&self, row: &RecordBatch) -> Result<ColumnarValue> {
        let operand = self.operand.as_ref().map(|operand| operand.value(row)).transpose()?;
        for (when, then) in &self.branches {
            let when = when.value(row)?;
            let holds = match &operand {
                Some(operand) => !when.is_null() && *operand == when,
                None => when == ScalarValue::Boolean(Some(true)),
            };
            if holds {
                return then.evaluate(row);
            }
        }
        match &self.otherwise {
            Some(otherwise) => otherwise.evaluate(row),
            None => {
                let held = self.expr.data_type(row.schema_ref())?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from(&held)?))
            }
        }
    }
}

/// The name of the function that an expression calls.
fn function_name(expr: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    let any: &dyn std::any::Any = expr.as_ref();
    any.downcast_ref::<ScalarFunctionExpr>().map(|call| call.fun().name())
}

/// How often an expression calls `LAST_INSERT_ID(value)`.
fn ids_given(expr: &Arc<dyn PhysicalExpr>) -> usize {
    let own = usize::from(function_name(expr) == Some(GIVE_LAST_INSERT_ID));
    own + expr.children().into_iter().map(ids_given).sum::<usize>()
}

/// Whether an expression uses variables.
fn uses_variables(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_asked = matches!(function_name(expr), Some(READ_VARIABLE | ASSIGN_VARIABLE));
    is_asked || expr.children().into_iter().any(uses_variables)
}

/// A literal with an expression's type and value.
fn constant(
    of: &Arc<dyn PhysicalExpr>,
    value: ScalarValue,
    row: &RecordBatch,
) -> Result<Arc<dyn PhysicalExpr>> {
    let field = of.return_field(row.schema_ref())?;
    Ok(Arc::new(Literal::new_with_metadata(value, Some(FieldMetadata::from(field.as_ref())))))
}

/// The value of an expression over known values of its parts.
fn replaced(
    expr: &Arc<dyn PhysicalExpr>,
    values: Vec<Arc<dyn PhysicalExpr>>,
    row: &RecordBatch,
) -> Result<ColumnarValue> {
    Arc::clone(expr).with_new_children(values)?.evaluate(row)
}
