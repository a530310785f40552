//! One run of a cached plan: its snapshot, filters and limits.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use datafusion::{
    arrow::array::RecordBatch,
    common::ScalarValue,
    error::{DataFusionError, Result as PlanResult},
};
use jiff::tz::TimeZone;
use remora_engine::{Filter, TextQuery};

use super::{
    CachedPlan,
    trace::{ReadRows, Trace},
};
use crate::{
    Error,
    catalog::Reader,
    scan::{ScanCondition, ScanLimits},
    state::Context,
};

/// How long a run may occupy its thread.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// LIMIT and OFFSET.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub offset: u64,
    pub limit: u64,
}

/// One run of a plan.
#[derive(Clone)]
pub(super) struct PlannedRun {
    pub(super) plan: Arc<CachedPlan>,
    pub(super) reader: Reader,
    /// The filter of each scan.
    pub(super) filters: Vec<Option<Filter>>,
    /// The text condition of each scan.
    pub(super) texts: Arc<[Option<TextQuery>]>,
    pub(super) page: Page,
    pub(super) zone: TimeZone,
    pub(super) context: Arc<Context>,
    /// Whether it runs in the planning threads.
    pub(super) is_aside: bool,
    /// Records how rows are read, for EXPLAIN.
    pub(super) trace: Option<Trace>,
}

impl PlannedRun {
    /// Records a read, if the run is traced, and drops what was recorded after the first `kept` reads.
    pub(super) fn note(&self, kept: usize, read: impl FnOnce() -> ReadRows) {
        if let Some(trace) = &self.trace {
            trace.truncate(kept);
            trace.push(read());
        }
    }

    /// The current time, if the run is traced.
    pub(super) fn started(&self) -> Option<Instant> {
        self.trace.as_ref().map(|_| Instant::now())
    }

    /// Records the result of reading a scan.
    pub(super) fn has_read(&self, scan: usize, rows: u64, started: Option<Instant>) {
        if let (Some(trace), Some(started)) = (&self.trace, started) {
            trace.has_read(scan, rows, started.elapsed());
        }
    }

    /// Records the result of a step.
    pub(super) fn has_done(
        &self,
        what: &'static str,
        batch: &RecordBatch,
        started: Option<Instant>,
    ) {
        if let (Some(trace), Some(started)) = (&self.trace, started) {
            trace.has_done(what, batch.num_rows() as u64, started.elapsed());
        }
    }

    /// The filter of a scan.
    pub(super) fn filter(&self, scan: usize) -> Option<Filter> {
        self.filters.get(scan).cloned().flatten()
    }

    /// The condition of a scan with this filter.
    pub(super) fn condition(&self, scan: usize, filter: Option<Filter>) -> ScanCondition<'_> {
        ScanCondition { filter, text: self.text(scan) }
    }

    /// The text condition of a scan.
    pub(super) fn text(&self, scan: usize) -> Option<&TextQuery> {
        self.texts.get(scan).and_then(Option::as_ref)
    }

    /// A copy of this run without tracing, for subqueries.
    pub(super) fn untraced(&self) -> Self {
        Self { trace: None, ..self.clone() }
    }

    /// The limits of this run.
    pub(super) fn most(&self) -> ScanLimits {
        if self.is_aside {
            ScanLimits::IN_PLANNING_THREADS
        } else {
            ScanLimits::IN_CONNECTION_THREAD
        }
    }

    /// The context for functions, if any are called.
    pub(super) fn asked(&self) -> Option<&Arc<Context>> {
        self.plan.calls.then_some(&self.context)
    }

    /// Error 1317 if the statement was interrupted.
    pub(super) fn check(&self) -> PlanResult<()> {
        match self.context.is_over() {
            true => Err(DataFusionError::External(Box::new(Error::interrupted()))),
            false => Ok(()),
        }
    }
}

/// The value of a scalar subquery's rows, or whether EXISTS has rows; `None` if a scalar subquery has several.
pub(super) fn value_of(batch: &RecordBatch, is_exists: bool) -> PlanResult<Option<ScalarValue>> {
    match (is_exists, batch.num_rows()) {
        (true, rows) => Ok(Some(ScalarValue::Boolean(Some(rows > 0)))),
        (false, 0) => ScalarValue::try_from(batch.schema().field(0).data_type()).map(Some),
        (false, 1) => ScalarValue::try_from_array(batch.column(0), 0).map(Some),
        (false, _) => Ok(None),
    }
}

impl Page {
    /// The rows of the page.
    pub fn of(self, batch: &RecordBatch) -> RecordBatch {
        let rows = batch.num_rows() as u64;
        let from = self.offset.min(rows);
        let end = self.offset.saturating_add(self.limit).min(rows);
        batch.slice(from as usize, (end - from) as usize)
    }
}
