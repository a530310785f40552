//! Measures the steps of a plan while it runs, for EXPLAIN ANALYZE.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context as TaskWaker, Poll},
    time::{Duration, Instant},
};

use datafusion::{
    arrow::{array::RecordBatch, datatypes::SchemaRef},
    common::exec_err,
    error::Result as PlanResult,
    execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
        ReplaceChildrenOptions,
    },
};
use futures::{Stream, StreamExt};

use super::operator::over_one_input;

/// A step of a plan with its measurements.
pub(crate) struct MeasuredStep {
    /// Its depth in the plan.
    pub depth: usize,
    /// Its description.
    pub what: String,
    taken: Arc<StepMeasurements>,
}

/// The measurements of a step, including its inputs.
#[derive(Debug, Default)]
struct StepMeasurements {
    rows: AtomicU64,
    /// The number of runs.
    loops: AtomicU64,
    /// Nanoseconds until the first rows and until the last rows, summed over all runs.
    first: AtomicU64,
    last: AtomicU64,
}

/// Mean measurements per run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub first: Duration,
    pub last: Duration,
    pub rows: u64,
    pub loops: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, rows, loops } = *self;
        if loops == 0 {
            return out.write_str("(never executed)");
        }
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        let (first, last) = (ms(first), ms(last));
        write!(out, "(actual time={first:.3}..{last:.3} rows={rows} loops={loops})")
    }
}

impl MeasuredStep {
    /// The measurements so far.
    pub(crate) fn figures(&self) -> Figures {
        let loops = self.taken.loops.load(Relaxed);
        let mean = |sum: &AtomicU64| sum.load(Relaxed).checked_div(loops).unwrap_or(0);
        let StepMeasurements { rows, first, last, .. } = &*self.taken;
        let time = |sum| Duration::from_nanos(mean(sum));
        Figures { first: time(first), last: time(last), rows: mean(rows), loops }
    }
}

/// Wraps each step of a plan to measure it. `describe` gives the description of a step.
pub(super) fn measured(
    plan: &Arc<dyn ExecutionPlan>,
    describe: &dyn Fn(&Arc<dyn ExecutionPlan>) -> String,
) -> PlanResult<(Arc<dyn ExecutionPlan>, Vec<MeasuredStep>)> {
    let mut steps = Vec::new();
    Ok((step(plan, 0, describe, &mut steps)?, steps))
}

fn step(
    plan: &Arc<dyn ExecutionPlan>,
    depth: usize,
    describe: &dyn Fn(&Arc<dyn ExecutionPlan>) -> String,
    steps: &mut Vec<MeasuredStep>,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let taken = Arc::new(StepMeasurements::default());
    steps.push(MeasuredStep { depth, what: describe(plan), taken: Arc::clone(&taken) });
    let below = plan.children().into_iter();
    let below: Vec<_> =
        below.map(|child| step(child, depth + 1, describe, steps)).collect::<PlanResult<_>>()?;
    let input = match below.is_empty() {
        true => Arc::clone(plan),
        false => {
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Arc::clone(plan).replace_children(below, options)?
        }
    };
    Ok(Arc::new(Measured { input, taken }))
}

/// A measured step.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    input: Arc<dyn ExecutionPlan>,
    taken: Arc<StepMeasurements>,
}

impl DisplayAs for Measured {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Measured")
    }
}

impl ExecutionPlan for Measured {
    fn name(&self) -> &'static str {
        "Measured"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    over_one_input!(input);

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let taken = Arc::clone(&self.taken);
        match children.into_iter().next() {
            Some(input) => Ok(Arc::new(Self { input, taken })),
            None => exec_err!("what is measured has an input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        self.taken.loops.fetch_add(1, Relaxed);
        let (taken, spent) = (Arc::clone(&self.taken), Duration::ZERO);
        Ok(Box::pin(MeasuredStream { input, taken, spent, has_rows: false }))
    }
}

struct MeasuredStream {
    input: SendableRecordBatchStream,
    taken: Arc<StepMeasurements>,
    /// The time spent in it so far.
    spent: Duration,
    has_rows: bool,
}

impl Stream for MeasuredStream {
    type Item = PlanResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, waker: &mut TaskWaker<'_>) -> Poll<Option<Self::Item>> {
        let started = Instant::now();
        let polled = self.input.poll_next_unpin(waker);
        let taken = started.elapsed();
        self.spent += taken;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.taken.last.fetch_add(nanos(taken), Relaxed);
        if let Poll::Ready(Some(Ok(batch))) = &polled
            && batch.num_rows() > 0
        {
            self.taken.rows.fetch_add(batch.num_rows() as u64, Relaxed);
            if !self.has_rows {
                self.has_rows = true;
                self.taken.first.fetch_add(nanos(self.spent), Relaxed);
            }
        }
        polled
    }
}

impl RecordBatchStream for MeasuredStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
