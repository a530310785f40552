//! Runs a kept plan.

use std::{
    sync::{Arc, LazyLock, atomic::AtomicBool},
    time::{Duration, Instant},
};

use datafusion::{
    arrow::array::RecordBatch,
    common::config::ConfigOptions,
    error::{DataFusionError, Result as PlanResult},
};
use jiff::tz::TimeZone;
use remora_engine::Filter;

use super::{
    super::{lift::Constants, plan::MAX_PAGE_ROWS},
    Plan,
};
use crate::{
    Error, Outcome, Reply, Result,
    catalog::{Reader, Verb},
    error::from_plan,
    execute::runtime::Running,
    output,
    scan::{Most, joined},
    state::{Context, SessionState},
};

/// Options, but for the session's.
static OPTIONS: LazyLock<ConfigOptions> = LazyLock::new(ConfigOptions::new);
/// How long a run keeps its thread.
const SLICE: Duration = Duration::from_millis(10);

/// Which rows are shown.
#[derive(Clone, Copy)]
struct Page {
    offset: u64,
    limit: u64,
}

/// A plan with what one run asks of it.
#[derive(Clone)]
struct Asked {
    plan: Arc<Plan>,
    reader: Reader,
    filter: Option<Filter>,
    page: Page,
    zone: TimeZone,
    context: Context,
}

/// Runs it; `None` if a literal takes a conversion, or too many rows would be looked at.
pub(super) async fn run<R: Reply>(
    session: &mut SessionState,
    reader: &Reader,
    plan: &Arc<Plan>,
    constants: &Constants<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    if plan.table.is_changed_by(session) {
        return Ok(None);
    }
    plan.table.name.check(&session.identity, Verb::Select)?;
    let (limit, offset) = (constants.rows(plan.limit), constants.rows(plan.offset));
    if limit.is_some() != plan.limit.is_some() || offset.is_some() != plan.offset.is_some() {
        return Ok(None);
    }
    let page = Page { offset: offset.unwrap_or(0), limit: limit.unwrap_or(u64::MAX) };
    let Some(selected) = plan.tests.fill(constants, &plan.table) else { return Ok(None) };
    if page.limit == 0 {
        // Nothing is calculated for no rows.
        return Ok(None);
    }
    session.check_interrupted()?;
    session.warnings.clear();
    let asked = Asked {
        plan: Arc::clone(plan),
        reader: reader.clone(),
        filter: selected.filter,
        page,
        zone: session.variables.time_zone.zone.clone(),
        context: session.context(),
    };
    let batch = match asked.evaluated(Most::HERE).await.map_err(from_plan)? {
        Some(batch) => Some(batch),
        None => match asked.first_rows().map_err(from_plan)? {
            Some(batch) => Some(batch),
            None => aside(session, asked).await?,
        },
    };
    let Some(batch) = batch else {
        session.warnings.clear();
        return Ok(None);
    };
    reply.columns(&plan.columns)?;
    output::send(&batch, &plan.columns, reply)?;
    reply.drain().await?;
    session.found_rows = batch.num_rows() as u64;
    Ok(Some(Outcome::default()))
}

/// The rows, made where plans run.
async fn aside(session: &SessionState, asked: Asked) -> Result<Option<RecordBatch>> {
    let Some(room) = session.shared.rooms.reserve(Most::ASIDE.bytes as u64) else {
        return Ok(None);
    };
    session.warnings.clear();
    let ended: Arc<AtomicBool> = Arc::clone(&asked.context.ended);
    let mut running = Running::start(session, ended, move |sender| async move {
        let _room = room;
        let made = asked.evaluated(Most::ASIDE).await.map_err(from_plan);
        // Nobody waits for it where the session has ended.
        let _ = sender.send(made).await;
    })?;
    Ok(running.next(session).await?.flatten())
}

impl Plan {
    /// The step before which rows are cut to a page: before what is selected is calculated of them.
    fn cut(&self) -> usize {
        let last = self.steps.iter().rposition(|step| !step.keeps_rows());
        last.map_or(0, |last| last + 1)
    }
}

impl Asked {
    /// The rows; `None` if more would be looked at than may be.
    async fn evaluated(&self, most: Most) -> PlanResult<Option<RecordBatch>> {
        let steps = &self.plan.steps;
        let cut = self.plan.cut();
        let by_row = steps.iter().take(cut).take_while(|step| step.is_by_row()).count();
        let last = self.page.offset.saturating_add(self.page.limit);
        let limit = (cut == 0 && self.page.limit < u64::MAX).then_some(last);
        let options = self.options();
        let Some(read) = self.batches(limit, most)? else { return Ok(None) };
        let (mut batches, mut bytes, mut rows) = (Vec::new(), 0, 0);
        let mut since = Instant::now();
        for batch in read {
            let mut batch = batch?;
            for step in steps.iter().take(by_row) {
                batch = step.apply(&batch, options.as_ref())?;
            }
            bytes += batch.get_array_memory_size();
            if bytes > most.bytes {
                return Ok(None);
            }
            rows += batch.num_rows() as u64;
            batches.push(batch);
            if by_row == cut && rows >= last {
                break;
            }
            if since.elapsed() > SLICE {
                self.check()?;
                tokio::task::yield_now().await;
                since = Instant::now();
            }
        }
        let schema = match batches.first() {
            Some(batch) => batch.schema(),
            None => Arc::clone(self.plan.scan.schema()),
        };
        // A step of no rows gives the columns of that step.
        let done = if batches.is_empty() { 0 } else { by_row };
        self.finished(joined(&schema, batches)?, done, cut).map(Some)
    }

    /// What the steps behind the first `done` make of a batch, cut to the page before the step `cut`.
    fn finished(&self, batch: RecordBatch, done: usize, cut: usize) -> PlanResult<RecordBatch> {
        let (steps, options) = (&self.plan.steps, self.options());
        let mut batch = batch;
        for (at, step) in steps.iter().enumerate().skip(done) {
            if at == cut {
                batch = self.page.of(&batch);
            }
            self.check()?;
            batch = step.apply(&batch, options.as_ref())?;
        }
        Ok(if cut == steps.len() { self.page.of(&batch) } else { batch })
    }

    /// The same of a page whose order the engine has; `None` if it is none.
    fn first_rows(&self) -> PlanResult<Option<RecordBatch>> {
        let last = self.page.offset.saturating_add(self.page.limit);
        let (Some(order), true) = (&self.plan.order, last <= MAX_PAGE_ROWS) else {
            return Ok(None);
        };
        let (filter, zone) = (self.filter.clone(), &self.zone);
        let sort = (order.as_slice(), last as usize);
        let batch = self.plan.scan.first(&self.reader, filter, sort, zone)?;
        batch.map(|batch| self.finished(batch, 0, self.plan.cut())).transpose()
    }

    fn batches(
        &self,
        limit: Option<u64>,
        most: Most,
    ) -> PlanResult<Option<impl Iterator<Item = PlanResult<RecordBatch>>>> {
        let (filter, zone) = (self.filter.clone(), self.zone.clone());
        self.plan.scan.batches(&self.reader, filter, limit, zone, most)
    }

    /// What functions ask, if any are called.
    fn options(&self) -> Option<Arc<ConfigOptions>> {
        self.plan.calls.then(|| {
            let mut options = OPTIONS.clone();
            options.extensions.insert(self.context.clone());
            Arc::new(options)
        })
    }

    /// 1317 where the statement is to end.
    fn check(&self) -> PlanResult<()> {
        match self.context.is_over() {
            true => Err(DataFusionError::External(Box::new(Error::interrupted()))),
            false => Ok(()),
        }
    }
}

impl Page {
    fn of(self, batch: &RecordBatch) -> RecordBatch {
        let rows = batch.num_rows() as u64;
        let from = self.offset.min(rows);
        let end = self.offset.saturating_add(self.limit).min(rows);
        batch.slice(from as usize, (end - from) as usize)
    }
}
