//! Outer values of a correlated subquery, whose plan is made once and run for one outer row after the other.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature, Volatility, expr::ScalarFunction,
    },
    physical_expr::{PhysicalExpr, ScalarFunctionExpr},
};
use parking_lot::Mutex;

use crate::catalog::Origin;

/// The values of a subquery's outer columns. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OuterRow(Arc<Mutex<Vec<ScalarValue>>>);

impl OuterRow {
    /// Sets the values of another outer row.
    pub(crate) fn set(&self, values: &[ScalarValue]) {
        let mut row = self.0.lock();
        row.clear();
        row.extend_from_slice(values);
    }

    /// A function that reads the value at an index. `field` describes its type.
    pub(crate) fn value(&self, at: usize, field: &Field) -> Expr {
        self.read(at, field, Volatility::Volatile)
    }

    /// Such a function for an optimizer, which may move it because it is the same in a whole run. The optimizer must not
    /// run while a row is set: it would take the value for a constant of all runs.
    pub(crate) fn constant(&self, at: usize, field: &Field) -> Expr {
        self.read(at, field, Volatility::Stable)
    }

    fn read(&self, at: usize, field: &Field, volatility: Volatility) -> Expr {
        let field = Arc::new(field.clone().with_nullable(true));
        let signature = Signature::nullary(volatility);
        let function = OuterValue { row: self.clone(), at, field, signature };
        let function = Arc::new(ScalarUDF::from(function));
        Expr::ScalarFunction(ScalarFunction::new_udf(function, Vec::new()))
    }
}

/// The function.
#[derive(Debug)]
struct OuterValue {
    row: OuterRow,
    at: usize,
    field: FieldRef,
    signature: Signature,
}

impl OuterValue {
    fn now(&self) -> Option<ScalarValue> {
        self.row.0.lock().get(self.at).cloned()
    }
}

/// The condition with its column on the left, if it compares a column with an outer value, so that rows can be looked
/// up.
pub(crate) fn outer_comparisons(condition: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    let (column, op, value) = match (is_column(left), is_column(right)) {
        (true, false) => (left, *op, right),
        (false, true) => (right, op.swap()?, left),
        _ => return None,
    };
    let is_outer = matches!(value.as_ref(), Expr::ScalarFunction(call) if is_value(&call.func));
    is_outer.then(|| Expr::BinaryExpr(BinaryExpr::new(column.clone(), op, value.clone())))
}

/// Whether a function reads an outer value.
pub(crate) fn is_value(function: &ScalarUDF) -> bool {
    let function: &dyn std::any::Any = function.inner().as_ref();
    function.is::<OuterValue>()
}

/// The current value of such a function; `None` for other expressions.
pub(crate) fn value_now(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    function.downcast_ref::<OuterValue>()?.now()
}

/// The outer column of such a function, as `database.table.column`; `None` for other expressions.
pub(crate) fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    let field = &function.downcast_ref::<OuterValue>()?.field;
    let named = Origin::read(field.metadata());
    let named = named.map(|of| format!("{}.{}.{}", of.database, of.table, of.column));
    Some(named.unwrap_or_else(|| "func".to_owned()))
}

impl ScalarUDFImpl for OuterValue {
    fn name(&self) -> &'static str {
        "outer_value"
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
        match self.now() {
            Some(value) => Ok(ColumnarValue::Scalar(value)),
            None => exec_err!("there is no outer row"),
        }
    }
}

impl PartialEq for OuterValue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.row.0, &other.row.0) && self.at == other.at
    }
}

impl Eq for OuterValue {}

impl Hash for OuterValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.row.0).addr(), self.at).hash(state);
    }
}
