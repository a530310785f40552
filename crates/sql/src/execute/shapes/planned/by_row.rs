//! Correlated subqueries that run once for each outer row: `(SELECT status FROM orders WHERE user_id = u.id ORDER BY
//! created_at DESC LIMIT 1)`.
//!
//! ```text
//! Filter first conditions ── Queries: a column more for each ── Filter those that name them ── Project without them
//! Each step that runs subqueries appends a column with their values. The outer values are bound to the subquery's
//! slots, and its tables are looked up by them. Outer rows with equal values run the subquery once.

use std::{ops::Range, sync::Arc, time::Instant};

use datafusion::{
    arrow::array::{ArrayRef, RecordBatch},
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
};
use remora_engine::Filter;
use rustc_hash::FxHashMap;

use super::{
    expressions::{all_evaluated, of_columns},
    planned_run::{PlannedRun, SLICE, value_of},
    read::{MANY_ROWS, PlanReader},
    steps::BatchStep,
    subquery_columns::SubqueryColumns,
    tree::PlanNode,
};
use crate::blocking::run_blocking;

/// A correlated subquery of a plan.
pub(super) struct CorrelatedPlan {
    pub part: PlanNode,
    /// Whether it is EXISTS; otherwise its only value is wanted.
    pub is_exists: bool,
    /// The slots that the outer row's values are bound to.
    pub slots: Range<usize>,
}

impl SubqueryColumns {
    /// The batch with the appended columns; `None` if a subquery has several rows or the work exceeds its limits.
    fn apply(&self, batch: &RecordBatch, asked: &PlannedRun) -> PlanResult<Option<RecordBatch>> {
        if batch.num_rows() == 0 {
            return Ok(Some(RecordBatch::new_empty(Arc::clone(self.schema()))));
        }
        let mut columns = batch.columns().to_vec();
        let mut left = SubqueryBudget::of(asked);
        for (number, args) in &self.calls {
            let args = all_evaluated(args, batch, asked.asked())?;
            let running = SubqueryRun::of(asked, *number)?;
            let Some(values) = running.values(&args, batch.num_rows(), &mut left)? else {
                return Ok(None);
            };
            columns.push(ScalarValue::iter_to_array(values)?);
        }
        of_columns(self.schema(), columns, batch.num_rows()).map(Some)
    }
}

/// The time and memory that remain for the subqueries of one batch.
struct SubqueryBudget {
    /// The deadline in the connection's thread, which also serves others; `None` in the planning threads.
    end: Option<Instant>,
    bytes: usize,
}

impl SubqueryBudget {
    fn of(asked: &PlannedRun) -> Self {
        let end = (!asked.is_aside).then(|| Instant::now() + SLICE);
        Self { end, bytes: asked.most().bytes }
    }

    /// Accounts for a value; false if the memory or the time is used up.
    fn take(&mut self, value: &ScalarValue) -> bool {
        let left = self.bytes.checked_sub(value.size());
        self.bytes = left.unwrap_or(0);
        left.is_some() && self.end.is_none_or(|end| Instant::now() < end)
    }
}

/// A subquery with its own copy of the run's state.
struct SubqueryRun<'a> {
    query: &'a CorrelatedPlan,
    /// The run of the outer plan.
    around: &'a PlannedRun,
    asked: PlannedRun,
}

impl<'a> SubqueryRun<'a> {
    fn of(around: &'a PlannedRun, number: usize) -> PlanResult<Self> {
        let Some(query) = around.plan.queries.get(number) else {
            return exec_err!("there is no query {number} in a kept plan");
        };
        Ok(Self { query, around, asked: around.untraced() })
    }

    /// The subquery's value for each row; `None` if it cannot be computed, or exceeds its limits.
    fn values(
        mut self,
        args: &[ArrayRef],
        rows: usize,
        left: &mut SubqueryBudget,
    ) -> PlanResult<Option<Vec<ScalarValue>>> {
        let mut known: FxHashMap<Vec<ScalarValue>, ScalarValue> = FxHashMap::default();
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let args = args.iter().map(|each| ScalarValue::try_from_array(each, row));
            let args = args.collect::<PlanResult<Vec<_>>>()?;
            let value = match known.get(&args) {
                Some(known) => known.clone(),
                None => {
                    let Some(value) = self.value(&args)? else { return Ok(None) };
                    known.insert(args, value.clone());
                    value
                }
            };
            if !left.take(&value) {
                return Ok(None);
            }
            values.push(value);
        }
        Ok(Some(values))
    }

    /// The subquery's value for one outer row; `None` if it has several rows, or reads too many.
    fn value(&mut self, args: &[ScalarValue]) -> PlanResult<Option<ScalarValue>> {
        self.asked.check()?;
        let context = Arc::make_mut(&mut self.asked.context);
        let last = self.query.slots.end.max(context.outer_row.len());
        context.outer_row.resize(last, ScalarValue::Null);
        for (slot, value) in self.query.slots.clone().zip(args) {
            if let Some(place) = context.outer_row.get_mut(slot) {
                place.clone_from(value);
            }
        }
        for scan in self.query.part.of.scans() {
            let Some(read) = self.around.plan.reads.get(scan) else { continue };
            let mut filters = read.scan.settled_filters(&self.asked.context, true);
            filters.extend(self.around.filter(scan));
            if let Some(place) = self.asked.filters.get_mut(scan) {
                *place = Filter::all_of(filters);
            }
        }
        match self.rows()? {
            Some(batch) => value_of(&batch, self.query.is_exists),
            None => Ok(None),
        }
    }

    fn rows(&self) -> PlanResult<Option<RecordBatch>> {
        let (asked, part) = (&self.asked, &self.query.part);
        let mut reading = PlanReader::new(asked, &part.of, asked.most(), None)?;
        if part.first.is_none()
            && reading.fewest() > MANY_ROWS
            && let Some((batch, done)) = asked.at_ends(part)?
        {
            return asked.rest_of(part, batch, done);
        }
        reading.part(part)
    }
}

impl PlannedRun {
    /// Applies the steps of a part after the first `done` ones; `None` if that exceeds the limits of this run.
    pub(super) fn rest_of(
        &self,
        part: &PlanNode,
        batch: RecordBatch,
        done: usize,
    ) -> PlanResult<Option<RecordBatch>> {
        self.through(part.steps.get(done..).unwrap_or_default(), batch)
    }

    /// Applies steps; `None` if that exceeds the limits of this run.
    pub(super) fn through(
        &self,
        steps: &[BatchStep],
        batch: RecordBatch,
    ) -> PlanResult<Option<RecordBatch>> {
        let mut batch = batch;
        for step in steps {
            let Some(made) = self.apply(step, &batch)? else { return Ok(None) };
            batch = made;
        }
        Ok(Some(batch))
    }

    /// Applies a step to a batch; `None` if that exceeds the limits of this run.
    pub(super) fn apply(
        &self,
        step: &BatchStep,
        batch: &RecordBatch,
    ) -> PlanResult<Option<RecordBatch>> {
        match step {
            BatchStep::SubqueryColumns(beside) if self.is_aside => {
                run_blocking(|| beside.apply(batch, self))
            }
            BatchStep::SubqueryColumns(beside) => beside.apply(batch, self),
            step => step.apply(batch, self.asked()).map(Some),
        }
    }
}
