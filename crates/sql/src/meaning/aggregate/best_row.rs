//! Values of the best row of a group: the first row in an order given as arguments. If the order is
//! total, all such aggregates of a statement choose the same row.
//!
//! For each group it keeps the least sort key, as bytes that compare as the order does, and that
//! row's value.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array, new_empty_array},
        compute::{SortOptions, cast},
        datatypes::{DataType, Field, FieldRef, Int64Type},
        row::{RowConverter, SortField},
    },
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::{
        Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
        Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::AggregateOrderSensitivity,
    },
};

use super::super::types::ExprType;

/// The value of the best row. Arguments: the value, then for each part of the order an expression
/// and whether it is descending.
pub(in crate::meaning) const HEAD: &str = "#head";
/// A sort key of the best row, by which groups are ordered like their best rows. Arguments: the
/// order only.
pub(in crate::meaning) const PLACE: &str = "#head_place";

/// One of these two aggregates.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Head {
    is_place: bool,
    signature: Signature,
}

impl Head {
    /// The aggregate of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is_place = match name {
            HEAD => false,
            PLACE => true,
            _ => return None,
        };
        Some(Self { is_place, signature: Signature::user_defined(Volatility::Stable) })
    }

    fn heads(&self, args: &AccumulatorArgs<'_>) -> Heads {
        Heads::new(self.is_place, args.return_field.data_type().clone())
    }
}

impl AggregateUDFImpl for Head {
    fn name(&self) -> &str {
        if self.is_place { PLACE } else { HEAD }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> PlanResult<DataType> {
        exec_err!("the type of {} depends on fields", self.name())
    }

    fn coerce_types(&self, types: &[DataType]) -> PlanResult<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_field(&self, fields: &[FieldRef]) -> PlanResult<FieldRef> {
        if self.is_place {
            return Ok(Arc::new(ExprType::binary(u32::MAX).field(PLACE).with_nullable(true)));
        }
        let Some(first) = fields.first() else { return exec_err!("no argument") };
        let kind = ExprType { not_null: false, ..ExprType::of_field(first) };
        let field = kind.field_of(HEAD, first.data_type().clone());
        Ok(Arc::new(field.with_nullable(true)))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> PlanResult<Box<dyn Accumulator>> {
        Ok(Box::new(self.heads(&args)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> PlanResult<Vec<FieldRef>> {
        let key = Arc::new(Field::new(format!("{}[key]", args.name), DataType::Binary, true));
        if self.is_place {
            return Ok(vec![key]);
        }
        let value = args.return_field.as_ref().clone().with_name(format!("{}[value]", args.name));
        Ok(vec![key, Arc::new(value.with_nullable(true))])
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> PlanResult<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.heads(&args)))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn default_value(&self, held: &DataType) -> PlanResult<ScalarValue> {
        ScalarValue::try_from(held)
    }
}

/// The best row of each group so far.
struct Heads {
    is_place: bool,
    held: DataType,
    /// Makes sort keys. It is created with the first rows, when their types are known.
    keys: Option<RowConverter>,
    best: Vec<Option<Box<[u8]>>>,
    values: Vec<ScalarValue>,
    bytes: usize,
}

impl std::fmt::Debug for Heads {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Heads")
    }
}

impl Heads {
    fn new(is_place: bool, held: DataType) -> Self {
        Self { is_place, held, keys: None, best: Vec::new(), values: Vec::new(), bytes: 0 }
    }

    fn grow(&mut self, groups: usize) -> PlanResult<()> {
        if self.best.len() < groups {
            self.best.resize(groups, None);
        }
        if !self.is_place && self.values.len() < groups {
            self.values.resize(groups, ScalarValue::try_from(&self.held)?);
        }
        Ok(())
    }

    /// Adds rows of arguments.
    fn add(
        &mut self,
        args: &[ArrayRef],
        group_of: impl Fn(usize) -> usize,
        filter: Option<&BooleanArray>,
    ) -> PlanResult<()> {
        let (value, order) = match (self.is_place, args) {
            (false, [value, order @ ..]) => (Some(value), order),
            (_, order) => (None, order),
        };
        let Some(rows) = args.first().map(|array| array.len()).filter(|rows| *rows > 0) else {
            return Ok(());
        };
        let columns: Vec<ArrayRef> = order.iter().step_by(2).map(Arc::clone).collect();
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => converter(order)?,
        };
        let made = keys.convert_columns(&columns);
        self.keys = Some(keys);
        let made = made?;
        for row in 0..rows {
            if filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row)) {
                continue;
            }
            self.offer(group_of(row), made.row(row).as_ref(), value, row)?;
        }
        Ok(())
    }

    /// Stores a row if it is better than its group's best one.
    fn offer(
        &mut self,
        group: usize,
        key: &[u8],
        value: Option<&ArrayRef>,
        row: usize,
    ) -> PlanResult<()> {
        let Some(best) = self.best.get_mut(group) else { return Ok(()) };
        if best.as_ref().is_some_and(|best| best.as_ref() <= key) {
            return Ok(());
        }
        self.bytes += key.len();
        self.bytes -= best.as_ref().map_or(0, |best| best.len());
        *best = Some(key.into());
        if let (Some(array), Some(kept)) = (value, self.values.get_mut(group)) {
            let before = std::mem::replace(kept, ScalarValue::try_from_array(array, row)?);
            self.bytes = (self.bytes + kept.size()).saturating_sub(before.size());
        }
        Ok(())
    }

    /// Merges states of other partitions.
    fn join(&mut self, states: &[ArrayRef], group_of: impl Fn(usize) -> usize) -> PlanResult<()> {
        let Some(keys) = states.first() else { return Ok(()) };
        let keys = keys.as_binary::<i32>();
        for row in 0..keys.len() {
            if !keys.is_null(row) {
                self.offer(group_of(row), keys.value(row), states.get(1), row)?;
            }
        }
        Ok(())
    }

    fn taken(&mut self, emit: EmitTo) -> PlanResult<(ArrayRef, ArrayRef)> {
        let keys = emit.take_needed(&mut self.best);
        let keys: BinaryArray = keys.iter().map(Option::as_deref).collect();
        let keys: ArrayRef = Arc::new(keys);
        if self.is_place {
            self.count_bytes();
            return Ok((Arc::clone(&keys), cast(&keys, &self.held)?));
        }
        let values = emit.take_needed(&mut self.values);
        self.count_bytes();
        let values = match values.is_empty() {
            true => new_empty_array(&self.held),
            false => ScalarValue::iter_to_array(values)?,
        };
        Ok((keys, values))
    }

    fn count_bytes(&mut self) {
        let keys = self.best.iter().flatten().map(|key| key.len());
        let values = self.values.iter().map(ScalarValue::size);
        self.bytes = keys.sum::<usize>() + values.sum::<usize>();
    }

    fn held_bytes(&self) -> usize {
        let keys = self.keys.as_ref().map_or(0, RowConverter::size);
        let groups = self.best.capacity() * size_of::<Option<Box<[u8]>>>();
        let values = self.values.capacity() * size_of::<ScalarValue>();
        size_of::<Self>() + self.bytes + keys + groups + values
    }

    fn states(&mut self, emit: EmitTo) -> PlanResult<Vec<ArrayRef>> {
        let (keys, values) = self.taken(emit)?;
        Ok(if self.is_place { vec![keys] } else { vec![keys, values] })
    }
}

/// The converter to sort keys. As in MySQL, NULL comes first in ascending and last in descending
/// order.
fn converter(order: &[ArrayRef]) -> PlanResult<RowConverter> {
    let field = |pair: &[ArrayRef]| {
        let [column, descends] = pair else { return exec_err!("an order without direction") };
        let descends = cast(descends, &DataType::Int64)?;
        let descends: &Int64Array = descends.as_primitive::<Int64Type>();
        let descending = descends.iter().next().flatten() == Some(1);
        let options = SortOptions { descending, nulls_first: !descending };
        Ok(SortField::new_with_options(column.data_type().clone(), options))
    };
    let fields = order.chunks(2).map(field).collect::<PlanResult<Vec<_>>>()?;
    Ok(RowConverter::new(fields)?)
}

impl Accumulator for Heads {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        self.grow(1)?;
        self.add(values, |_| 0, None)
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        self.grow(1)?;
        if self.is_place {
            let key = self.best.first().cloned().flatten();
            return ScalarValue::Binary(key.map(Into::into)).cast_to(&self.held);
        }
        let value = self.values.first().cloned();
        value.map_or_else(|| ScalarValue::try_from(&self.held), Ok)
    }

    fn size(&self) -> usize {
        self.held_bytes()
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        self.grow(1)?;
        let key = self.best.first().cloned().flatten();
        let key = ScalarValue::Binary(key.map(Into::into));
        Ok(std::iter::once(key).chain(self.values.first().cloned()).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> PlanResult<()> {
        self.grow(1)?;
        self.join(states, |_| 0)
    }
}

impl GroupsAccumulator for Heads {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> PlanResult<()> {
        self.grow(total_num_groups)?;
        self.add(values, |row| group_indices.get(row).copied().unwrap_or(usize::MAX), opt_filter)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> PlanResult<ArrayRef> {
        self.taken(emit_to).map(|(_, values)| values)
    }

    fn state(&mut self, emit_to: EmitTo) -> PlanResult<Vec<ArrayRef>> {
        self.states(emit_to)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> PlanResult<()> {
        self.grow(total_num_groups)?;
        self.join(values, |row| group_indices.get(row).copied().unwrap_or(usize::MAX))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> PlanResult<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |array| array.len());
        let mut each = Self::new(self.is_place, self.held.clone());
        each.grow(rows)?;
        each.add(values, |row| row, opt_filter)?;
        each.states(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.held_bytes()
    }
}
