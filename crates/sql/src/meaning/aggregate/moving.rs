//! Aggregates of floating-point numbers over a frame that moves. A sum from which the numbers that leave are subtracted
//! loses the digits that a large number took with it, so each frame is computed from its own rows, as MySQL does with
//! `windowing_use_high_precision`. That takes time in proportion to the rows of a frame, so frames of more than
//! [`MOST_ROWS`] are computed by subtraction.

use std::{collections::VecDeque, sync::Arc};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, Float64Array},
        datatypes::{DataType, FieldRef, Float64Type, Schema, SchemaRef},
    },
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::{Accumulator, AggregateUDF, function::AccumulatorArgs},
    physical_expr::PhysicalExpr,
};

/// The numbers of the frame, and what is computed of them.
pub(super) struct MovingFrame {
    of: Arc<AggregateUDF>,
    name: String,
    result: FieldRef,
    schema: SchemaRef,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    frame: VecDeque<Option<f64>>,
    /// The same by adding and subtracting, for long frames.
    running: Box<dyn Accumulator>,
}

/// A longer frame is computed by subtraction, whose cost does not depend on its rows.
const MOST_ROWS: usize = 4_096;

impl MovingFrame {
    /// The aggregate with these arguments. `running` adds and subtracts.
    pub(super) fn of(
        of: &Arc<AggregateUDF>,
        args: &AccumulatorArgs<'_>,
        running: Box<dyn Accumulator>,
    ) -> Self {
        Self {
            of: Arc::clone(of),
            name: args.name.to_owned(),
            result: Arc::clone(&args.return_field),
            schema: Arc::new(Schema::clone(args.schema)),
            exprs: args.exprs.to_vec(),
            fields: args.expr_fields.to_vec(),
            frame: VecDeque::new(),
            running,
        }
    }

    /// Whether it is for an aggregate with these arguments: of one floating-point number.
    pub(super) fn is_for(args: &AccumulatorArgs<'_>) -> bool {
        let [field] = args.expr_fields else { return false };
        field.data_type() == &DataType::Float64 && !args.is_distinct && args.order_bys.is_empty()
    }
}

impl std::fmt::Debug for MovingFrame {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Moving")
    }
}

impl Accumulator for MovingFrame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        let Some(array) = values.first() else { return Ok(()) };
        let Some(numbers) = array.as_primitive_opt::<Float64Type>() else {
            return exec_err!("{} of {}", self.name, array.data_type());
        };
        self.frame.extend(numbers.iter());
        self.running.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        let left = values.first().map_or(0, |array| array.len());
        self.frame.drain(..left.min(self.frame.len()));
        self.running.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        if self.frame.len() > MOST_ROWS {
            return self.running.evaluate();
        }
        let args = AccumulatorArgs {
            return_field: Arc::clone(&self.result),
            schema: &self.schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: &self.name,
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        };
        let mut whole = self.of.accumulator(args)?;
        whole.update_batch(&[Arc::new(Float64Array::from_iter(self.frame.iter().copied()))])?;
        whole.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.running.size() + self.frame.capacity() * size_of::<Option<f64>>()
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> PlanResult<()> {
        exec_err!("a frame has one part")
    }
}
