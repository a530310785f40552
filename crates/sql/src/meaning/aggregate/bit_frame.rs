//! BIT_AND, BIT_OR and BIT_XOR over a frame that moves: for each bit, how many numbers of the frame have it.

use datafusion::{
    arrow::array::ArrayRef,
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::Accumulator,
};

use super::super::{array::ArrayColumn, call::Call, types::ExprType};

/// The numbers of the frame.
pub(super) struct BitFrame {
    /// The aggregate.
    name: &'static str,
    kind: ExprType,
    /// How many numbers there are.
    numbers: u64,
    /// How many of them have each bit.
    ones: [u64; 64],
}

/// The result over no rows; `None` for other aggregates.
pub(super) fn of_no_rows(name: &str) -> Option<u64> {
    match name {
        "bit_and" => Some(u64::MAX),
        "bit_or" | "bit_xor" => Some(0),
        _ => None,
    }
}

impl BitFrame {
    /// The aggregate of this name, of arguments of this type.
    pub(super) fn new(name: &'static str, kind: ExprType) -> Self {
        Self { name, kind, numbers: 0, ones: [0; 64] }
    }

    /// Adds or subtracts the bits of some numbers.
    fn count(&mut self, values: &[ArrayRef], one: fn(u64) -> u64) -> PlanResult<()> {
        let Some(array) = values.first() else { return Ok(()) };
        let column = ArrayColumn::new(array, self.kind.clone())?;
        let types = std::slice::from_ref(&self.kind);
        let call = Call { context: None, types, result: &self.kind, kept: None };
        for row in 0..array.len() {
            let value = column.get(row);
            if value.is_null() {
                continue;
            }
            let number = value.integer(&call);
            let bits = u64::try_from(number).unwrap_or(number as i64 as u64);
            self.numbers = one(self.numbers);
            for (place, ones) in self.ones.iter_mut().enumerate() {
                if bits >> place & 1 == 1 {
                    *ones = one(*ones);
                }
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for BitFrame {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("BitFrame")
    }
}

impl Accumulator for BitFrame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        self.count(values, |before| before.saturating_add(1))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        self.count(values, |before| before.saturating_sub(1))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        let is_set = |ones: u64| match self.name {
            "bit_and" => ones == self.numbers,
            "bit_or" => ones > 0,
            _ => ones % 2 == 1,
        };
        let places = self.ones.iter().enumerate();
        let bits = places.map(|(place, ones)| u64::from(is_set(*ones)) << place);
        Ok(ScalarValue::UInt64(Some(bits.fold(0, |all, bit| all | bit))))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> PlanResult<()> {
        exec_err!("a frame has one part")
    }
}
