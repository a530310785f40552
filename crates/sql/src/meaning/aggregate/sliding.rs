//! MIN and MAX over a frame that moves, for values that are compared by sort keys. A value that another one, which
//! stays longer, beats is forgotten, so each value is added and removed once.

use std::{cmp::Ordering, collections::VecDeque};

use datafusion::{
    arrow::{array::ArrayRef, datatypes::DataType},
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::Accumulator,
};

use super::super::{
    array::{ArrayColumn, Building},
    call::Call,
    compare::{ComparisonDomain, compare_values},
    function::external,
    types::ExprType,
    value::SqlValue,
};

/// The least or greatest value of a moving frame.
pub(super) struct Sliding {
    /// Whether the greatest wins.
    greatest: bool,
    kind: ExprType,
    result: ExprType,
    held: DataType,
    /// The values that are or may become the best, best first, with their row numbers.
    kept: VecDeque<(u64, SqlValue<'static>)>,
    added: u64,
    removed: u64,
}

impl Sliding {
    /// Of arguments of type `kind`, with a result of type `result` in the representation `held`.
    pub(super) fn new(greatest: bool, kind: ExprType, result: ExprType, held: DataType) -> Self {
        Self { greatest, kind, result, held, kept: VecDeque::new(), added: 0, removed: 0 }
    }

    fn add(&mut self, value: SqlValue<'_>, comparing: &ComparisonDomain) -> crate::Result<()> {
        let row = self.added;
        self.added += 1;
        if value.is_null() {
            return Ok(());
        }
        let types = std::slice::from_ref(&self.kind);
        let call = Call { context: None, types, result: &self.result, kept: None };
        let wins = if self.greatest { Ordering::Greater } else { Ordering::Less };
        while let Some((_, last)) = self.kept.back() {
            if compare_values(comparing, &value, last, &call)? != Some(wins) {
                break;
            }
            self.kept.pop_back();
        }
        self.kept.push_back((row, value.into_owned()));
        Ok(())
    }
}

impl std::fmt::Debug for Sliding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Sliding")
    }
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        let Some(array) = values.first() else { return Ok(()) };
        let column = ArrayColumn::new(array, self.kind.clone())?;
        // MySQL compares ENUM values as texts in MIN and MAX.
        let comparing = ComparisonDomain::of(&self.kind, &self.kind).map_err(external)?;
        (0..array.len()).try_for_each(|row| self.add(column.get(row), &comparing).map_err(external))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        self.removed += values.first().map_or(0, |array| array.len() as u64);
        while self.kept.front().is_some_and(|(row, _)| *row < self.removed) {
            self.kept.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        let types = std::slice::from_ref(&self.kind);
        let call = Call { context: None, types, result: &self.result, kept: None };
        let mut built = Building::new(&self.held, &self.result);
        let null = SqlValue::Null;
        built.push(self.kept.front().map_or(&null, |(_, value)| value), &call);
        ScalarValue::try_from_array(&built.finish(), 0)
    }

    fn size(&self) -> usize {
        let bytes = |(_, value): &(u64, SqlValue<'_>)| {
            size_of::<(u64, SqlValue<'_>)>() + value.octets().map_or(0, |bytes| bytes.len())
        };
        size_of::<Self>() + self.kept.iter().map(bytes).sum::<usize>()
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> PlanResult<()> {
        exec_err!("a frame has one part")
    }
}
