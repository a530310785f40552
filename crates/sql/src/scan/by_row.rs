//! What stands in a kept plan in the place of a query that runs for one row after the other. The plan is taken to pieces
//! before it runs, and the query becomes a step of its own.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::exec_err,
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, Volatility, expr::ScalarFunction,
    },
    physical_expr::{PhysicalExpr, ScalarFunctionExpr},
};

/// The place of a query; its arguments are the values of the row that it names.
#[derive(Debug)]
struct RowQueryPlace {
    number: usize,
    field: FieldRef,
    signature: Signature,
}

/// What stands in the place of the query of a number.
pub(crate) fn value(number: usize, field: Field, args: Vec<Expr>) -> Expr {
    let signature = Signature::variadic_any(Volatility::Volatile);
    let function = RowQueryPlace { number, field: Arc::new(field), signature };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), args))
}

/// The number of the query in whose place an expression stands, if it is one.
pub(crate) fn number_of(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    function.downcast_ref::<RowQueryPlace>().map(|place| place.number)
}

impl ScalarUDFImpl for RowQueryPlace {
    fn name(&self) -> &'static str {
        "row_query"
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
        exec_err!("a query of a row is a step of its own")
    }
}

impl PartialEq for RowQueryPlace {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for RowQueryPlace {}

impl Hash for RowQueryPlace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}
