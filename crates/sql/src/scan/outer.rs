//! Outer values of a correlated subquery, whose plan is made once and run for one outer row after the other.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::{
        array::{RecordBatch, RecordBatchOptions},
        datatypes::{DataType, Field, FieldRef, Schema},
    },
    common::{ScalarValue, exec_err, tree_node::TreeNodeRecursion},
    error::Result as PlanResult,
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature, Volatility, expr::ScalarFunction,
    },
    physical_expr::{PhysicalExpr, ScalarFunctionExpr},
};
use parking_lot::Mutex;

use crate::{catalog::Origin, nodes::TreeNode};

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

/// The condition with its column on the left, if it compares a column with an outer value or a computation of outer
/// values, so that rows can be looked up.
pub(crate) fn outer_comparisons(condition: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    let (column, op, value) = match (is_column(left), is_column(right)) {
        (true, false) => (left, *op, right),
        (false, true) => (right, op.swap()?, left),
        _ => return None,
    };
    is_of_row(value).then(|| Expr::BinaryExpr(BinaryExpr::new(column.clone(), op, value.clone())))
}

/// Whether an expression is an outer value or computed of outer numbers. What is computed of texts may warn, and the
/// condition is evaluated for each row too.
fn is_of_row(expr: &Expr) -> bool {
    if matches!(expr, Expr::ScalarFunction(call) if is_value(&call.func)) {
        return true;
    }
    let (mut reads, mut varies) = (false, false);
    // The closure never fails.
    let _ = expr.apply(|each| {
        match each {
            Expr::ScalarFunction(call) if is_value(&call.func) => {
                reads = true;
                varies |= !call.func.return_type(&[]).is_ok_and(|kind| kind.is_numeric());
            }
            Expr::Column(_) | Expr::ScalarSubquery(_) => varies = true,
            each => varies |= each.is_volatile_node(),
        }
        Ok(if varies { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    reads && !varies
}

/// Whether a function reads an outer value.
pub(crate) fn is_value(function: &ScalarUDF) -> bool {
    let function: &dyn std::any::Any = function.inner().as_ref();
    function.is::<OuterValue>()
}

/// The current value of such a function or of a computation of such; `None` for other expressions.
pub(crate) fn value_now(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    if let Some(function) = outer_value(expr) {
        return function.now();
    }
    if !reads_row(expr) {
        return None;
    }
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let schema = Arc::new(Schema::empty());
    let row = RecordBatch::try_new_with_options(schema, Vec::new(), &options).ok()?;
    let value = expr.evaluate(&row).ok()?.into_array(1).ok()?;
    ScalarValue::try_from_array(&value, 0).ok()
}

fn outer_value(expr: &Arc<dyn PhysicalExpr>) -> Option<&OuterValue> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let function: &dyn std::any::Any = call.fun().inner().as_ref();
    function.downcast_ref::<OuterValue>()
}

fn reads_row(expr: &Arc<dyn PhysicalExpr>) -> bool {
    outer_value(expr).is_some() || expr.children().into_iter().any(reads_row)
}

/// The outer column of such a function, as `database.table.column`, and `func` for a computation; `None` for other
/// expressions.
pub(crate) fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
    let Some(function) = outer_value(expr) else {
        return reads_row(expr).then(|| "func".to_owned());
    };
    let named = Origin::read(function.field.metadata());
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
