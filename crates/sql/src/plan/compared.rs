//! The values that a subquery gives, and what comparing a value with all of them says: `x IN (query)`,
//! `x op ANY (query)`, `x op ALL (query)` where they are no joins.
//!
//! ```text
//! ANY    one comparison holds: 1; else one is NULL: NULL; else 0      (IN is = ANY)
//! ALL    one comparison fails: 0; else one is NULL: NULL; else 1
//! ```
//! A value is compared with each of them by the rules of its type and theirs. Where both are numbers or
//! moments of one type, a set of them or the smallest and the greatest say the same at once.

use std::{cmp::Ordering, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray},
        compute::{SortOptions, concat, sort_to_indices, take},
        datatypes::{DataType, Field, FieldRef, Int64Type},
    },
    common::{ScalarValue, config::ConfigOptions, exec_err},
    error::Result as PlanResult,
    execution::{TaskContext, memory_pool::MemoryConsumer, memory_pool::MemoryReservation},
    logical_expr::{ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF},
    physical_plan::{ExecutionPlan, execute_stream},
};
use futures::TryStreamExt;
use rustc_hash::FxHashSet;

use crate::{SqlType, meaning::types::ExprType};

/// How a value is compared with those of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quantified {
    /// `= <> < <= > >=`.
    pub op: Operator,
    /// ALL instead of ANY.
    pub all: bool,
}

/// What a subquery gave.
pub(super) struct Members {
    /// Its values but NULL.
    values: ArrayRef,
    field: FieldRef,
    has_null: bool,
    /// The same as `values` where equality is all that is asked and is that of its type.
    set: Option<FxHashSet<ScalarValue>>,
    /// The smallest and the greatest of `values` where their type is in one order.
    ends: Option<ArrayRef>,
    /// The memory that they take of the statement's.
    _reserved: MemoryReservation,
}

impl Quantified {
    fn holds(self, order: Ordering) -> bool {
        match self.op {
            Operator::Eq => order.is_eq(),
            Operator::NotEq => order.is_ne(),
            Operator::Lt => order.is_lt(),
            Operator::LtEq => order.is_le(),
            Operator::Gt => order.is_gt(),
            _ => order.is_ge(),
        }
    }

    /// Whether only equal values are sought, or only unequal ones refuse.
    fn seeks_equal(self) -> bool {
        match self.all {
            true => self.op == Operator::NotEq,
            false => self.op == Operator::Eq,
        }
    }
}

impl Members {
    /// The first column of what a plan gives.
    pub(super) async fn of(
        plan: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        quantified: Quantified,
    ) -> PlanResult<Self> {
        let Some(field) = plan.schema().fields().first().cloned() else {
            return exec_err!("a comparison with nothing");
        };
        let reserved = MemoryConsumer::new("values of a subquery").register(task.memory_pool());
        let mut stream = execute_stream(plan, task)?;
        let mut arrays: Vec<ArrayRef> = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            let Some(column) = batch.columns().first() else { continue };
            // They are copied into one array, and sorted or put into a set.
            reserved.try_grow(column.get_array_memory_size().saturating_mul(3))?;
            arrays.push(Arc::clone(column));
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        let all = match arrays.is_empty() {
            true => datafusion::arrow::array::new_empty_array(field.data_type()),
            false => concat(&arrays)?,
        };
        Self::new(&all, field, quantified, reserved)
    }

    fn new(
        all: &ArrayRef,
        field: FieldRef,
        quantified: Quantified,
        reserved: MemoryReservation,
    ) -> PlanResult<Self> {
        let has_null = all.logical_null_count() > 0;
        let (mut set, mut ends) = (None, None);
        let mut values = Arc::clone(all);
        if is_ordered(&ExprType::of_field(&field)) {
            let options = SortOptions { descending: false, nulls_first: false };
            let places = sort_to_indices(all, Some(options), None)?;
            let present = all.len() - all.logical_null_count();
            values = take(all, &places.slice(0, present), None)?;
            match quantified.seeks_equal() {
                true => {
                    let each = (0..present).map(|at| ScalarValue::try_from_array(&values, at));
                    set = Some(each.collect::<PlanResult<_>>()?);
                }
                false if present > 0 => {
                    let two = [values.slice(0, 1), values.slice(present - 1, 1)];
                    ends = Some(concat(&[two[0].as_ref(), two[1].as_ref()])?);
                }
                false => {}
            }
        }
        Ok(Self { values, field, has_null, set, ends, _reserved: reserved })
    }

    /// What comparing a value with all of them says. `order` is the function that tells the order of two
    /// values.
    pub(super) fn compare(
        &self,
        quantified: Quantified,
        (value, field): (&ScalarValue, &FieldRef),
        order: &Arc<ScalarUDF>,
        options: &Arc<ConfigOptions>,
    ) -> PlanResult<Option<bool>> {
        let decided = Some(!quantified.all);
        let otherwise = if self.has_null { None } else { Some(quantified.all) };
        if self.values.is_empty() && !self.has_null {
            return Ok(otherwise);
        }
        if value.is_null() {
            return Ok(None);
        }
        let is_same_type = value.data_type() == *self.field.data_type()
            && are_alike(&ExprType::of_field(field), &ExprType::of_field(&self.field));
        if let (true, Some(set)) = (is_same_type, &self.set) {
            return Ok(if set.contains(value) { decided } else { otherwise });
        }
        let among = match (is_same_type, &self.ends) {
            (true, Some(ends)) => ends,
            _ => &self.values,
        };
        let orders = self.orders(among, (value, field), order, options)?;
        let orders = orders.as_primitive::<Int64Type>();
        let mut unknown = self.has_null;
        for row in 0..among.len() {
            if orders.is_null(row) {
                unknown |= !among.is_null(row);
            } else if quantified.holds(orders.value(row).cmp(&0)) != quantified.all {
                return Ok(decided);
            }
        }
        Ok(if unknown { None } else { otherwise })
    }

    /// How the value is ordered beside each of some values.
    fn orders(
        &self,
        among: &ArrayRef,
        (value, field): (&ScalarValue, &FieldRef),
        order: &Arc<ScalarUDF>,
        options: &Arc<ConfigOptions>,
    ) -> PlanResult<ArrayRef> {
        let args = ScalarFunctionArgs {
            args: vec![
                ColumnarValue::Scalar(value.clone()),
                ColumnarValue::Array(Arc::clone(among)),
            ],
            arg_fields: vec![Arc::clone(field), Arc::clone(&self.field)],
            number_rows: among.len(),
            return_field: Arc::new(Field::new("order", DataType::Int64, true)),
            config_options: Arc::clone(options),
        };
        order.invoke_with_args(args)?.into_array(among.len())
    }
}

/// Whether the values of a type are held as numbers in their order.
fn is_ordered(kind: &ExprType) -> bool {
    kind.is_number() && !matches!(kind.kind, SqlType::Float | SqlType::Double) || is_moment(kind)
}

/// Whether values of two types compare as what they are held as, where that is of one type.
fn are_alike(a: &ExprType, b: &ExprType) -> bool {
    a.is_number() && b.is_number() || is_moment(a) && a.kind == b.kind
}

fn is_moment(kind: &ExprType) -> bool {
    matches!(
        kind.kind,
        SqlType::Date | SqlType::Time(_) | SqlType::DateTime(_) | SqlType::Timestamp(_)
    )
}
