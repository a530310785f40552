//! COUNT(DISTINCT …) of many groups. DataFusion keeps a table of its own for each group, which takes 12 KB however few
//! values the group has. Here all groups share one table.
//!
//! ```text
//! state of a group = { key }        key = bytes (u32, big-endian) octets
//! ```

use std::sync::{Arc, LazyLock};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array},
        datatypes::{DataType, Field, FieldRef},
    },
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
        Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
    },
};
use rustc_hash::FxHashSet;

/// The bytes of a group's number before each key.
const GROUP_BYTES: usize = size_of::<u32>();
/// The bytes that a key takes beside its own.
const KEY_BYTES: usize = 32;

/// The most bytes of states, whose offsets have 32 bits.
const MAX_STATE_BYTES: usize = i32::MAX as usize;

/// The aggregate. Its argument is a key of bytes; NULL does not count.
pub(crate) fn count_distinct() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(CountDistinct { signature: any_bytes() })));
    Arc::clone(&FUNCTION)
}

/// Whether [`count_distinct`] takes arguments of this type.
pub(crate) fn is_counted(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn any_bytes() -> Signature {
    Signature::any(1, Volatility::Immutable)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CountDistinct {
    signature: Signature,
}

impl AggregateUDFImpl for CountDistinct {
    fn name(&self) -> &'static str {
        "count_distinct"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> PlanResult<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> PlanResult<Box<dyn Accumulator>> {
        let mut keys = KeysOfGroups::default();
        keys.counts.push(0);
        Ok(Box::new(OneGroup(keys)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> PlanResult<Vec<FieldRef>> {
        let name = format!("{}[keys]", args.name);
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> PlanResult<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(KeysOfGroups::default()))
    }
}

/// The distinct keys of all groups.
#[derive(Default)]
struct KeysOfGroups {
    /// The number of a group, then one of its keys.
    seen: FxHashSet<Box<[u8]>>,
    counts: Vec<i64>,
    /// The bytes of the keys.
    held: usize,
    /// The key that is looked up.
    sought: Vec<u8>,
}

impl KeysOfGroups {
    fn add(&mut self, group: usize, key: &[u8]) -> PlanResult<()> {
        let Ok(number) = u32::try_from(group) else { return exec_err!("too many groups") };
        self.sought.clear();
        self.sought.extend_from_slice(&number.to_be_bytes());
        self.sought.extend_from_slice(key);
        if !self.seen.contains(&self.sought[..]) {
            self.held += self.sought.len();
            self.seen.insert(self.sought.as_slice().into());
            if let Some(count) = self.counts.get_mut(group) {
                *count += 1;
            }
        }
        Ok(())
    }

    /// Adds the keys of a group's state.
    fn add_state(&mut self, group: usize, mut state: &[u8]) -> PlanResult<()> {
        while let Some((bytes, rest)) = state.split_first_chunk::<GROUP_BYTES>() {
            let Some((key, behind)) = rest.split_at_checked(u32::from_be_bytes(*bytes) as usize)
            else {
                return exec_err!("a state ends within a key");
            };
            self.add(group, key)?;
            state = behind;
        }
        Ok(())
    }

    /// Takes the groups out, and gives `each` the keys of those. The other groups get the numbers from 0 on.
    fn take(&mut self, groups: EmitTo, mut each: impl FnMut(usize, &[u8])) -> Vec<i64> {
        let counts = groups.take_needed(&mut self.counts);
        let all = std::mem::take(&mut self.seen);
        self.held = 0;
        for key in all {
            let Some((number, of_group)) = key.split_first_chunk::<GROUP_BYTES>() else { continue };
            let group = u32::from_be_bytes(*number) as usize;
            match group.checked_sub(counts.len()) {
                None => each(group, of_group),
                Some(left) => {
                    let number = u32::try_from(left).unwrap_or(u32::MAX).to_be_bytes();
                    self.held += key.len();
                    self.seen.insert([&number[..], of_group].concat().into());
                }
            }
        }
        counts
    }

    fn states(&mut self, groups: EmitTo) -> PlanResult<BinaryArray> {
        if self.held + self.seen.len() * GROUP_BYTES > MAX_STATE_BYTES {
            return exec_err!("the keys of COUNT(DISTINCT) take more than {MAX_STATE_BYTES} bytes");
        }
        let most = match groups {
            EmitTo::All => self.counts.len(),
            EmitTo::First(groups) => groups,
        };
        let mut states = vec![Vec::new(); most];
        self.take(groups, |group, key| {
            if let Some(state) = states.get_mut(group) {
                state.extend_from_slice(&length(key));
                state.extend_from_slice(key);
            }
        });
        Ok(BinaryArray::from_iter_values(states))
    }

    fn bytes(&self) -> usize {
        self.held
            + self.seen.capacity() * KEY_BYTES
            + self.counts.capacity() * size_of::<i64>()
            + self.sought.capacity()
    }
}

/// What stands before a key in a state.
fn length(key: &[u8]) -> [u8; GROUP_BYTES] {
    u32::try_from(key.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// Calls `each` with the place of each value that is not NULL, and the value.
fn each_value(
    values: &ArrayRef,
    mut each: impl FnMut(usize, &[u8]) -> PlanResult<()>,
) -> PlanResult<()> {
    let mut visit = |values: &mut dyn Iterator<Item = Option<&[u8]>>| {
        values.enumerate().try_for_each(|(at, value)| value.map_or(Ok(()), |value| each(at, value)))
    };
    match values.data_type() {
        DataType::Binary => visit(&mut values.as_binary::<i32>().iter()),
        DataType::LargeBinary => visit(&mut values.as_binary::<i64>().iter()),
        DataType::BinaryView => visit(&mut values.as_binary_view().iter()),
        other => exec_err!("keys of type {other}"),
    }
}

fn one(values: &[ArrayRef]) -> PlanResult<&ArrayRef> {
    match values {
        [only] => Ok(only),
        _ => exec_err!("COUNT(DISTINCT) has one key"),
    }
}

impl GroupsAccumulator for KeysOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> PlanResult<()> {
        self.counts.resize(total, 0);
        each_value(one(values)?, |at, key| {
            let is_taken = filter.is_none_or(|filter| filter.is_valid(at) && filter.value(at));
            match groups.get(at).filter(|_| is_taken) {
                Some(group) => self.add(*group, key),
                None => Ok(()),
            }
        })
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        total: usize,
    ) -> PlanResult<()> {
        self.counts.resize(total, 0);
        each_value(one(values)?, |at, state| match groups.get(at) {
            Some(group) => self.add_state(*group, state),
            None => Ok(()),
        })
    }

    fn evaluate(&mut self, groups: EmitTo) -> PlanResult<ArrayRef> {
        Ok(Arc::new(Int64Array::from(self.take(groups, |_, _| ()))))
    }

    fn state(&mut self, groups: EmitTo) -> PlanResult<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.states(groups)?)])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> PlanResult<Vec<ArrayRef>> {
        let keys = one(values)?;
        let mut states = vec![None; keys.len()];
        each_value(keys, |at, key| {
            let is_taken = filter.is_none_or(|filter| filter.is_valid(at) && filter.value(at));
            if let Some(state) = states.get_mut(at).filter(|_| is_taken) {
                *state = Some([&length(key)[..], key].concat());
            }
            Ok(())
        })?;
        Ok(vec![Arc::new(BinaryArray::from_iter(states))])
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

/// The keys of all rows.
struct OneGroup(KeysOfGroups);

impl std::fmt::Debug for OneGroup {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("OneGroup").field(&self.0.counts).finish()
    }
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        each_value(one(values)?, |_, key| self.0.add(0, key))
    }

    fn merge_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        each_value(one(values)?, |_, state| self.0.add_state(0, state))
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        Ok(ScalarValue::Int64(self.0.counts.first().copied()))
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        let states = self.0.states(EmitTo::All)?;
        self.0.counts.push(0);
        Ok(vec![ScalarValue::Binary(states.iter().next().flatten().map(<[u8]>::to_vec))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[Option<&str>]) -> Vec<ArrayRef> {
        let keys: BinaryArray = keys.iter().map(|key| key.map(str::as_bytes)).collect();
        vec![Arc::new(keys)]
    }

    fn counts(of: &mut KeysOfGroups, groups: EmitTo) -> Vec<i64> {
        of.evaluate(groups)
            .unwrap()
            .as_primitive::<datafusion::arrow::datatypes::Int64Type>()
            .values()
            .to_vec()
    }

    #[test]
    fn groups_are_counted_apart_and_merged() {
        let mut one = KeysOfGroups::default();
        let values = keys(&[Some("a"), Some("b"), None, Some("a"), Some(""), Some("a")]);
        one.update_batch(&values, &[0, 0, 1, 1, 2, 0], None, 4).unwrap();
        let states = one.state(EmitTo::First(2)).unwrap();
        // The third group is the first now.
        assert_eq!(one.counts, [1, 0]);
        let mut other = KeysOfGroups::default();
        other.update_batch(&keys(&[Some("b"), Some("c")]), &[0, 0], None, 1).unwrap();
        other.merge_batch(&states, &[0, 1], 2).unwrap();
        assert_eq!(counts(&mut other, EmitTo::First(1)), [3]);
        assert_eq!(counts(&mut other, EmitTo::All), [1]);
        one.merge_batch(&states, &[1, 0], 2).unwrap();
        assert_eq!(counts(&mut one, EmitTo::All), [2, 2]);
        assert_eq!(one.held, 0);
    }

    #[test]
    fn a_filter_leaves_rows_out() {
        let mut one = KeysOfGroups::default();
        let filter = BooleanArray::from(vec![Some(true), Some(false), None]);
        let values = keys(&[Some("a"), Some("b"), Some("c")]);
        one.update_batch(&values, &[0, 0, 0], Some(&filter), 1).unwrap();
        assert_eq!(counts(&mut one, EmitTo::All), [1]);
    }
}
