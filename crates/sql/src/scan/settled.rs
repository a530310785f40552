//! Constants of plans that are kept which are others at each run: `NOW() - INTERVAL 7 DAY`, `(SELECT MAX(id) FROM t)`.
//! Each is evaluated once a run, and what stands in its place in the plan reads its value from the run's [`Context`].

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::exec_err,
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature, Volatility, expr::ScalarFunction,
    },
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{BinaryExpr, Column},
    },
};

use crate::state::Context;

/// What the plan calls the function.
pub(crate) const NAME: &str = "settled";

/// Reads the constant of a number. It is volatile for the planner, which would calculate it once for all runs.
#[derive(Debug)]
struct SettledValue {
    number: usize,
    field: FieldRef,
    signature: Signature,
}

/// A column that is compared with such a constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought {
    /// The place of the column.
    pub column: usize,
    pub operator: Operator,
    /// The number of the constant.
    pub number: usize,
}

/// What reads the constant of a number; `field` describes it.
pub(crate) fn value(number: usize, field: &Field) -> Expr {
    let signature = Signature::nullary(Volatility::Volatile);
    let function = SettledValue { number, field: Arc::new(field.clone()), signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), Vec::new()))
}

/// The comparisons of columns with such constants that hold for each row for which a condition does.
pub(super) fn sought(condition: &Arc<dyn PhysicalExpr>) -> Vec<Sought> {
    let mut found = Vec::new();
    let mut left = vec![condition];
    while let Some(condition) = left.pop() {
        let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { continue };
        if *binary.op() == Operator::And {
            left.extend([binary.left(), binary.right()]);
            continue;
        }
        let sides = (place(binary.left()), number(binary.right()));
        let mirrored = (place(binary.right()), number(binary.left()));
        let (sides, operator) = match (sides, mirrored) {
            ((Some(column), Some(number)), _) => ((column, number), Some(*binary.op())),
            (_, (Some(column), Some(number))) => ((column, number), binary.op().swap()),
            _ => continue,
        };
        let (column, number) = sides;
        found.extend(operator.map(|operator| Sought { column, operator, number }));
    }
    found
}

fn place(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

fn number(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    function.downcast_ref::<SettledValue>().map(|settled| settled.number)
}

impl ScalarUDFImpl for SettledValue {
    fn name(&self) -> &'static str {
        NAME
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
        match Context::of_caller().and_then(|context| context.settled.get(self.number).cloned()) {
            Some(value) => Ok(ColumnarValue::Scalar(value)),
            None => exec_err!("a constant of a kept plan was not settled"),
        }
    }
}

impl PartialEq for SettledValue {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.field == other.field
    }
}

impl Eq for SettledValue {}

impl Hash for SettledValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}
