//! Values in cached plans that differ in each run: `NOW() - INTERVAL 7 DAY`, `(SELECT MAX(id) FROM t)`. Each is
//! computed once per run, and a function in its place reads the value from the run's [`Context`]. Correlated subqueries
//! read their outer values in the same way.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::{
        array::{RecordBatch, RecordBatchOptions},
        datatypes::{DataType, Field, FieldRef, Schema},
    },
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature, Volatility, expr::ScalarFunction,
    },
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{BinaryExpr, CaseExpr, Column, Literal},
    },
};

use crate::state::{Context, ContextGuard};

/// The function's name in plans.
pub(crate) const NAME: &str = "settled";
/// Its name where it replaces a subquery, which costs more than reading a value.
pub(crate) const QUERY_NAME: &str = "row_query";

/// The value that such a function reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ValueSlot {
    /// A constant of the run, by number.
    Run(usize),
    /// A value of the current outer row, by number.
    Row(usize),
    /// The value of a correlated subquery, by number. Before a plan runs, a step that computes the value replaces this.
    Query(usize),
}

/// Reads a value. It is declared volatile, because the planner would otherwise evaluate it once for all runs.
#[derive(Debug)]
struct RunValue {
    slot: ValueSlot,
    field: FieldRef,
    signature: Signature,
}

/// A comparison of a column with such a value.
#[derive(Clone, Debug)]
pub(super) struct RunValueComparison {
    /// The position of the column.
    pub column: usize,
    pub operator: Operator,
    /// The collation, if they compare by collation keys.
    pub order: Option<u32>,
    /// Whether it is a value of the outer row.
    pub is_of_row: bool,
    value: Arc<dyn PhysicalExpr>,
}

/// A function that reads the value of a slot. `field` describes its type.
pub(crate) fn value(slot: ValueSlot, field: &Field) -> Expr {
    value_for(slot, field, Vec::new())
}

/// A function in place of the subquery with this number. `of_row` are its outer columns.
pub(crate) fn query(number: usize, field: &Field, of_row: Vec<Expr>) -> Expr {
    value_for(ValueSlot::Query(number), field, of_row)
}

/// The number of the subquery that an expression replaces, if it does.
pub(crate) fn query_of(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    match plain_slot(expression)? {
        ValueSlot::Query(number) => Some(number),
        ValueSlot::Run(_) | ValueSlot::Row(_) => None,
    }
}

fn value_for(slot: ValueSlot, field: &Field, args: Vec<Expr>) -> Expr {
    let signature = match args.is_empty() {
        true => Signature::nullary(Volatility::Volatile),
        false => Signature::variadic_any(Volatility::Volatile),
    };
    let function = RunValue { slot, field: Arc::new(field.clone()), signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), args))
}

/// The comparisons of columns with such values that a condition implies.
pub(super) fn sought(condition: &Arc<dyn PhysicalExpr>) -> Vec<RunValueComparison> {
    let mut found = Vec::new();
    for condition in &conditions_of(condition) {
        let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { continue };
        let (left, right) = (binary.left(), binary.right());
        let of = |column: &_, value: &Arc<dyn PhysicalExpr>, operator| {
            let ((place, order), (slot, of_value)) = (column_of(column)?, slot_of(value)?);
            let is_of_row = matches!(slot, ValueSlot::Row(_));
            let value = Arc::clone(value);
            (order == of_value).then_some(RunValueComparison {
                column: place,
                operator,
                order,
                is_of_row,
                value,
            })
        };
        let mirrored = || of(right, left, binary.op().swap()?);
        found.extend(of(left, right, *binary.op()).or_else(mirrored));
    }
    found
}

/// The conjuncts of a condition in evaluation order. The condition joins them by AND, or by `CASE WHEN first IS NOT
/// TRUE THEN false … ELSE last END` if some may not be evaluated for rows that fail earlier ones.
pub(crate) fn conditions_of(condition: &Arc<dyn PhysicalExpr>) -> Vec<Arc<dyn PhysicalExpr>> {
    let mut found = Vec::new();
    let mut left = vec![Arc::clone(condition)];
    while let Some(condition) = left.pop() {
        match condition.downcast_ref::<BinaryExpr>() {
            Some(binary) if *binary.op() == Operator::And => {
                left.extend([Arc::clone(binary.right()), Arc::clone(binary.left())]);
                continue;
            }
            _ => {}
        }
        match in_turn(&condition) {
            Some(parts) => left.extend(parts.into_iter().rev()),
            None => found.push(condition),
        }
    }
    found
}

fn in_turn(condition: &Arc<dyn PhysicalExpr>) -> Option<Vec<Arc<dyn PhysicalExpr>>> {
    let is = |expression: &Arc<dyn PhysicalExpr>, value: bool| {
        let literal = expression.downcast_ref::<Literal>();
        literal.is_some_and(|it| *it.value() == ScalarValue::Boolean(Some(value)))
    };
    let case = condition.downcast_ref::<CaseExpr>()?;
    let (None, Some(last)) = (case.expr(), case.else_expr()) else { return None };
    let mut parts = Vec::with_capacity(case.when_then_expr().len() + 1);
    for (when, then) in case.when_then_expr() {
        let when = when.downcast_ref::<BinaryExpr>()?;
        let is_not_true = *when.op() == Operator::IsDistinctFrom && is(when.right(), true);
        if !is_not_true || !is(then, false) {
            return None;
        }
        parts.push(Arc::clone(when.left()));
    }
    parts.push(Arc::clone(last));
    Some(parts)
}

impl RunValueComparison {
    /// The value in this run; `None` if it cannot be computed.
    pub(super) fn value(&self, context: &Arc<Context>) -> Option<ScalarValue> {
        if let (Some(slot), None) = (plain_slot(&self.value), self.order) {
            return slot.value(context);
        }
        let _caller = ContextGuard::new(context);
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let schema = Arc::new(Schema::empty());
        let row = RecordBatch::try_new_with_options(schema, Vec::new(), &options).ok()?;
        let value = self.value.evaluate(&row).ok()?.into_array(1).ok()?;
        ScalarValue::try_from_array(&value, 0).ok()
    }
}

impl ValueSlot {
    fn value(self, context: &Context) -> Option<ScalarValue> {
        match self {
            Self::Run(number) => context.settled.get(number).cloned(),
            Self::Row(number) => context.outer_row.get(number).cloned(),
            Self::Query(_) => None,
        }
    }
}

/// The position of a column, and the collation if the expression is its collation key.
fn column_of(expression: &Arc<dyn PhysicalExpr>) -> Option<(usize, Option<u32>)> {
    let (of, order) = key_of(expression);
    of.downcast_ref::<Column>().map(|column| (column.index(), order))
}

/// The slot that an expression reads, and the collation if the expression is the collation key of its value.
fn slot_of(expression: &Arc<dyn PhysicalExpr>) -> Option<(ValueSlot, Option<u32>)> {
    let (of, order) = key_of(expression);
    plain_slot(of).map(|slot| (slot, order))
}

/// The argument and collation of a collation key, or the expression itself.
fn key_of(expression: &Arc<dyn PhysicalExpr>) -> (&Arc<dyn PhysicalExpr>, Option<u32>) {
    let key = || {
        let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
        let ("collation_key", [of, number]) = (call.name(), call.args()) else { return None };
        let ScalarValue::Int64(Some(number)) = number.downcast_ref::<Literal>()?.value() else {
            return None;
        };
        Some((of, Some(u32::try_from(*number).ok()?)))
    };
    key().unwrap_or((expression, None))
}

fn plain_slot(expression: &Arc<dyn PhysicalExpr>) -> Option<ValueSlot> {
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    function.downcast_ref::<RunValue>().map(|settled| settled.slot)
}

impl ScalarUDFImpl for RunValue {
    fn name(&self) -> &'static str {
        match self.slot {
            ValueSlot::Run(_) | ValueSlot::Row(_) => NAME,
            ValueSlot::Query(_) => QUERY_NAME,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        match Context::of_caller().and_then(|context| self.slot.value(&context)) {
            Some(value) => Ok(ColumnarValue::Scalar(value)),
            None => exec_err!("a constant of a kept plan was not settled"),
        }
    }
}

impl PartialEq for RunValue {
    fn eq(&self, other: &Self) -> bool {
        self.slot == other.slot && self.field == other.field
    }
}

impl Eq for RunValue {}

impl Hash for RunValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.slot.hash(state);
    }
}
