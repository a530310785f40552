//! Quantified comparisons with a subquery that are not joins: `x IN (query)`, `x op ANY (query)`, `x op ALL (query)`.
//!
//! ```text
//! ANY    one comparison holds: 1; else one is NULL: NULL; else 0      (IN is = ANY)
//! ALL    one comparison fails: 0; else one is NULL: NULL; else 1
//! ```
//! Each comparison follows the rules of both types. If both are numbers, moments or texts of one collation, a hash set
//! of keys, or the least and greatest value, decides without comparing each value.

use std::{cmp::Ordering, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray},
        compute::concat,
        datatypes::{DataType, Field, FieldRef, Int64Type},
    },
    common::{ScalarValue, config::ConfigOptions, exec_err},
    error::Result as PlanResult,
    execution::{TaskContext, memory_pool::MemoryConsumer, memory_pool::MemoryReservation},
    logical_expr::{ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF},
    physical_plan::{ExecutionPlan, execute_stream},
};
use futures::TryStreamExt;
use remora_mysql::Collation;
use rustc_hash::FxHashSet;

use crate::{
    SqlType,
    meaning::{collation, types::ExprType},
};

/// The memory of an element in a hash set of keys, without the key's own data.
const SET_BYTES: usize = 128;

/// A quantified comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quantified {
    /// `= <> < <= > >=`.
    pub op: Operator,
    /// ALL instead of ANY.
    pub all: bool,
}

/// The values of a subquery.
pub(super) struct ComparedMembers {
    /// Its values.
    values: ArrayRef,
    field: FieldRef,
    has_null: bool,
    /// How the values compare, if by keys.
    class: Option<Class>,
    /// Their keys, if only equality matters.
    set: Option<FxHashSet<ScalarValue>>,
    /// The least and the greatest value, for the other operators.
    ends: Option<ArrayRef>,
    /// The memory reserved for them.
    _reserved: MemoryReservation,
}

/// What decides a quantified comparison, where NULL counts as false.
pub(super) enum Decision {
    /// The same for all values.
    Truth(bool),
    /// A comparison with this value by the operator.
    Bound(ScalarValue),
}

impl Quantified {
    /// Whether the least or the greatest value decides.
    pub(super) fn seeks_end(self) -> bool {
        !matches!(self.op, Operator::Eq | Operator::NotEq)
    }

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

    /// Whether only equality decides: `= ANY` or `<> ALL`.
    fn seeks_equal(self) -> bool {
        match self.all {
            true => self.op == Operator::NotEq,
            false => self.op == Operator::Eq,
        }
    }
}

impl ComparedMembers {
    /// Runs the plan and collects its first column. Fails if the statement's memory does not suffice.
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
            // Counts the arrays, their concatenation and the set.
            let set_bytes = column.len().saturating_mul(SET_BYTES);
            let copied = column.get_array_memory_size().saturating_mul(3);
            reserved.try_grow(copied.saturating_add(set_bytes))?;
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
        let class = Class::of(&ExprType::of_field(&field));
        let keys = class.as_ref().map(|class| keys_of(class, all)).transpose()?.flatten();
        let class = class.filter(|_| keys.is_some());
        let (mut set, mut ends) = (None, None);
        match (keys, quantified.seeks_equal()) {
            (Some(keys), true) => set = Some(keys.into_iter().map(|(key, _)| key).collect()),
            (Some(keys), false) => ends = ends_of(all, keys)?,
            (None, _) => {}
        }
        let values = Arc::clone(all);
        Ok(Self { values, field, has_null, class, set, ends, _reserved: reserved })
    }

    /// What decides for all values of a type; `None` if each must be compared.
    pub(super) fn decision(
        &self,
        quantified: Quantified,
        kind: &ExprType,
    ) -> PlanResult<Option<Decision>> {
        let is_same = self.class.is_some() && Class::of(kind) == self.class;
        // Texts compare by keys, which plain comparisons do not.
        if !quantified.seeks_end() || !is_same || matches!(self.class, Some(Class::Text(_))) {
            return Ok(None);
        }
        if quantified.all && self.has_null {
            return Ok(Some(Decision::Truth(false)));
        }
        let Some(ends) = &self.ends else {
            return Ok(Some(Decision::Truth(quantified.all)));
        };
        // Greater than all is greater than the greatest; greater than any is greater than the least.
        let is_greater = matches!(quantified.op, Operator::Gt | Operator::GtEq);
        let place = usize::from(is_greater == quantified.all);
        ScalarValue::try_from_array(ends, place).map(|bound| Some(Decision::Bound(bound)))
    }

    /// The result of comparing a value with all of them. `order` is the function that orders two values.
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
        let class =
            Class::of(&ExprType::of_field(field)).filter(|of| Some(of) == self.class.as_ref());
        let key = class.as_ref().and_then(|class| class.key(value));
        if let (Some(key), Some(set)) = (&key, &self.set) {
            return Ok(if set.contains(key) { decided } else { otherwise });
        }
        let among = match (&key, &self.ends) {
            (Some(_), Some(ends)) => ends,
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

    /// The ordering of the value relative to each of `values`.
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

/// Classes of types whose values compare by keys with each other.
#[derive(Clone, Debug, PartialEq)]
enum Class {
    /// Integers of any width.
    Integer,
    /// Decimals with this scale.
    Decimal(u8),
    Float,
    /// Dates or times of one type.
    Moment(SqlType),
    /// Texts and bytes, by their collation keys.
    Text(Collation),
}

impl Class {
    fn of(kind: &ExprType) -> Option<Self> {
        Some(match kind.kind {
            _ if kind.is_integer() => Self::Integer,
            SqlType::Decimal(_, scale) => Self::Decimal(scale),
            _ if kind.is_float() => Self::Float,
            _ if kind.is_temporal() => Self::Moment(kind.kind),
            SqlType::Char
            | SqlType::VarChar
            | SqlType::TinyBlob
            | SqlType::Blob
            | SqlType::MediumBlob
            | SqlType::LongBlob => Self::Text(kind.collation),
            _ => return None,
        })
    }

    /// A key that is equal and ordered as the values are; `None` if the array's type is not the expected one.
    fn key(&self, value: &ScalarValue) -> Option<ScalarValue> {
        Some(match self {
            Self::Integer | Self::Decimal(_) => number_key(value)?,
            Self::Float => match value {
                // Adding 0.0 turns -0 into +0.
                ScalarValue::Float64(Some(number)) => ScalarValue::Float64(Some(number + 0.0)),
                ScalarValue::Float32(Some(number)) => {
                    ScalarValue::Float64(Some(f64::from(*number) + 0.0))
                }
                _ => return None,
            },
            Self::Moment(_) => value.clone(),
            Self::Text(collation) => {
                let bytes = match value {
                    ScalarValue::Binary(bytes)
                    | ScalarValue::LargeBinary(bytes)
                    | ScalarValue::BinaryView(bytes) => bytes.clone()?,
                    text => collation::key(text.try_as_str()??, *collation).into_owned(),
                };
                ScalarValue::Binary(Some(bytes))
            }
        })
    }
}

/// An integer or decimal widened to the widest type.
fn number_key(value: &ScalarValue) -> Option<ScalarValue> {
    let (number, scale) = match value {
        ScalarValue::Int8(number) => (i128::from((*number)?), 0),
        ScalarValue::Int16(number) => (i128::from((*number)?), 0),
        ScalarValue::Int32(number) => (i128::from((*number)?), 0),
        ScalarValue::Int64(number) => (i128::from((*number)?), 0),
        ScalarValue::UInt8(number) => (i128::from((*number)?), 0),
        ScalarValue::UInt16(number) => (i128::from((*number)?), 0),
        ScalarValue::UInt32(number) => (i128::from((*number)?), 0),
        ScalarValue::UInt64(number) => (i128::from((*number)?), 0),
        ScalarValue::Boolean(truth) => (i128::from((*truth)?), 0),
        ScalarValue::Decimal128(number, _, scale) => ((*number)?, *scale),
        ScalarValue::Decimal256(number, _, scale) => ((*number)?.to_i128()?, *scale),
        _ => return None,
    };
    Some(ScalarValue::Decimal128(Some(number), 38, scale))
}

/// The keys of all values that are not NULL, with their positions; `None` if a value has no key.
fn keys_of(class: &Class, all: &ArrayRef) -> PlanResult<Option<Vec<(ScalarValue, usize)>>> {
    let mut keys = Vec::with_capacity(all.len());
    for place in (0..all.len()).filter(|place| !all.is_null(*place)) {
        let Some(key) = class.key(&ScalarValue::try_from_array(all, place)?) else {
            return Ok(None);
        };
        keys.push((key, place));
    }
    Ok(Some(keys))
}

/// The values with the least and the greatest key, if there are any.
fn ends_of(all: &ArrayRef, keys: Vec<(ScalarValue, usize)>) -> PlanResult<Option<ArrayRef>> {
    let mut ends: Option<[(ScalarValue, usize); 2]> = None;
    for found in keys {
        match &mut ends {
            None => ends = Some([found.clone(), found]),
            Some([least, _]) if found.0 < least.0 => *least = found,
            Some([_, most]) if found.0 > most.0 => *most = found,
            Some(_) => {}
        }
    }
    let Some([(_, least), (_, most)]) = ends else { return Ok(None) };
    Ok(Some(concat(&[all.slice(least, 1).as_ref(), all.slice(most, 1).as_ref()])?))
}

/// Whether values of two types compare by keys, so that a value is found in a set without comparing each.
pub(super) fn compare_by_keys(a: &ExprType, b: &ExprType) -> bool {
    Class::of(a).is_some_and(|class| Class::of(b) == Some(class))
}
