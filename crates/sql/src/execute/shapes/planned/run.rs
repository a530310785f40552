//! Runs a cached plan.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use datafusion::{arrow::array::RecordBatch, common::ScalarValue, error::Result as PlanResult};
use futures::future::BoxFuture;
use remora_engine::{Filter, TextQuery, Value};

use super::{
    super::{parameterize::Constants, plan::MAX_PAGE_ROWS},
    CachedPlan, Read, explain,
    expressions::{BatchExpression, evaluated, one_row},
    page_fill::more_rows,
    path_order::PathOrder,
    planned_run::{Page, PlannedRun, SLICE, value_of},
    read::PlanReader,
    result_order::{OrderedGroups, ResultOrder},
    steps::BatchStep,
    trace::{ReadRows, Trace, TraceRecords},
    tree::{PlanNode, RowSource},
};
use crate::{
    Outcome, Reply, Result,
    blocking::run_blocking,
    catalog::Reader,
    error::{from_engine, from_plan},
    execute::{access::Explained, runtime::Running},
    output,
    plan::{Figures, RunConstant},
    scan::{ScanLimits, joined},
    state::{Context, SessionState},
};

/// If at most this many rows, or pages, are to be read, they are joined instead of walked in index order.
const FEW_ROWS: u64 = 64;
const FEW_PAGES: u64 = 4;
/// If OFFSET is at least so large, the engine may count the rows before it.
const MIN_SKIPPED: usize = 1_000;
/// How often the first rows of an order are tried, with more rows each time.
const WALKS: usize = 4;

/// How the first rows of an order are read.
#[derive(Clone, Copy)]
enum First {
    /// Only along the key or an index.
    Along,
    /// Also by sorting columns.
    Sorted,
    /// Along the index of a path of documents.
    ByPath,
}

/// The rows that the steps of a plan are applied to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepInput {
    /// All rows in any order.
    Any,
    /// All rows in the order of the result.
    Ordered,
    /// The first rows in the order of the result.
    FirstOrdered,
}

/// Runs a plan; `None` if a literal needs a conversion, or too many rows would be read.
pub(super) async fn run<R: Reply>(
    session: &mut SessionState,
    reader: &Reader,
    plan: &Arc<CachedPlan>,
    constants: &Constants<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    if plan.vain_runs.is_given_up() {
        return Ok(None);
    }
    let Some(asked) = PlannedRun::of(session, reader, plan, constants, None)? else {
        return Ok(None);
    };
    let batch = rows(session, asked).await?;
    plan.vain_runs.note(batch.is_none());
    let Some(batch) = batch else {
        session.warnings.clear();
        return Ok(None);
    };
    let columns = plan.labels.named(&plan.columns, constants);
    reply.columns(&columns)?;
    output::send(&batch, &columns, reply)?;
    reply.drain().await?;
    session.found_rows = batch.num_rows() as u64;
    Ok(Some(Outcome::default()))
}

/// The rows of a plan's run, for a statement that changes or locks them; `None` as in [`run`], or if a warning is an error,
/// which the general path reports.
pub(super) async fn found(
    session: &mut SessionState,
    reader: &Reader,
    plan: &Arc<CachedPlan>,
    constants: &Constants<'_>,
) -> Result<Option<Vec<Vec<Value>>>> {
    if plan.vain_runs.is_given_up() {
        return Ok(None);
    }
    let mark = session.warnings.mark();
    if session.refuses_warnings {
        session.warnings.watch();
    }
    let asked = PlannedRun::of(session, reader, plan, constants, None);
    let batch = match asked {
        Ok(Some(asked)) => Some(rows(session, asked).await),
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    };
    let is_refused = session.warnings.refused().is_err();
    let Some(batch) = batch else { return Ok(None) };
    let batch = batch?;
    plan.vain_runs.note(batch.is_none());
    let Some(batch) = batch.filter(|_| !is_refused) else {
        session.warnings.forget_since(mark);
        return Ok(None);
    };
    Ok(Some(output::rows(&batch, &plan.columns)))
}

/// The accesses of the plan's tables in a run with these literals.
pub(super) async fn explain(
    session: &mut SessionState,
    reader: &Reader,
    plan: Arc<CachedPlan>,
    constants: &Constants<'_>,
) -> Result<Option<Explained>> {
    let Some((noted, _)) = traced(session, reader, &plan, constants).await? else {
        return Ok(None);
    };
    let accesses = explain::accesses(&plan, reader, &noted.reads).map_err(|it| from_engine(&it))?;
    Ok(Some(Explained { accesses, selects: plan.selects }))
}

/// The measured steps of a run, one line each.
pub(super) async fn analyze(
    session: &mut SessionState,
    reader: &Reader,
    plan: Arc<CachedPlan>,
    constants: &Constants<'_>,
) -> Result<Option<Vec<String>>> {
    let Some((noted, whole)) = traced(session, reader, &plan, constants).await? else {
        return Ok(None);
    };
    explain::lines(&plan, reader, &noted, whole).map(Some).map_err(|it| from_engine(&it))
}

/// Runs a plan and returns what was recorded and measured; `None` if the statement takes the general path.
async fn traced(
    session: &mut SessionState,
    reader: &Reader,
    plan: &Arc<CachedPlan>,
    constants: &Constants<'_>,
) -> Result<Option<(TraceRecords, Figures)>> {
    if !plan.queries.is_empty() || plan.recursions > 0 {
        // The general path reports how correlated subqueries and recursions run.
        return Ok(None);
    }
    let trace = Trace::default();
    let asked = PlannedRun::of(session, reader, plan, constants, Some(trace.clone()))?;
    let Some(asked) = asked else { return Ok(None) };
    let started = Instant::now();
    let batch = rows(session, asked).await?;
    let last = started.elapsed();
    session.warnings.clear();
    Ok(batch.map(|batch| {
        let rows = batch.num_rows() as u64;
        (trace.take(), Figures { first: last, last, rows, loops: 1 })
    }))
}

/// The result rows; `None` if too many rows would be read.
async fn rows(session: &SessionState, asked: PlannedRun) -> Result<Option<RecordBatch>> {
    let plan = Arc::clone(&asked.plan);
    let mark = session.warnings.mark();
    let here = match &plan.root.of {
        RowSource::Scan(_) => asked.here().await,
        of => asked.joined_here(of),
    };
    match here.map_err(from_plan)? {
        Some(batch) => Ok(Some(batch)),
        None => {
            session.warnings.forget_since(mark);
            aside(session, asked).await
        }
    }
}

/// The result rows, computed in the planning threads. Boxed, so that crates above do not compile it too.
fn aside(session: &SessionState, asked: PlannedRun) -> BoxFuture<'_, Result<Option<RecordBatch>>> {
    Box::pin(in_planning_threads(session, asked))
}

async fn in_planning_threads(
    session: &SessionState,
    asked: PlannedRun,
) -> Result<Option<RecordBatch>> {
    let Some(reserved) =
        session.shared.resources.reserve(ScanLimits::IN_PLANNING_THREADS.bytes as u64)
    else {
        return Ok(None);
    };
    let ended: Arc<AtomicBool> = Arc::clone(&asked.context.ended);
    let mut running = Running::start(session, ended, move |sender| async move {
        let _reserved = reserved;
        let asked = PlannedRun { is_aside: true, ..asked };
        let made = match &asked.plan.root.of {
            RowSource::Scan(_) => asked.evaluated(ScanLimits::IN_PLANNING_THREADS).await,
            of => run_blocking(|| asked.joined(of, ScanLimits::IN_PLANNING_THREADS)),
        };
        let made = made.map_err(from_plan);
        // The send fails only if the session has ended.
        let _ = sender.send(made).await;
    })?;
    Ok(running.next(session).await?.flatten())
}

impl CachedPlan {
    /// The number of the step before which rows are cut to the page: after the last step that changes the number of
    /// rows, so that the select list is computed for the page only.
    fn cut(&self) -> usize {
        let last = self.root.steps.iter().rposition(|step| !step.keeps_rows());
        last.map_or(0, |last| last + 1)
    }

    /// The scan whose first rows are read; `None` if the engine does not have the order.
    fn ordered_scan(&self, first: First) -> Option<usize> {
        match first {
            First::ByPath => self.by_path.as_ref().map(PathOrder::scan),
            // More and more of the first rows are read until the groups fill the page: sorted anew each time.
            First::Sorted => self
                .order
                .as_ref()
                .filter(|it| it.grouped != OrderedGroups::ByOrder)
                .map(|it| it.scan),
            First::Along => self.order.as_ref().map(|order| order.scan),
        }
    }

    /// How the first rows of a join are read.
    fn first_joined(&self) -> First {
        match self.order.as_ref().map(|order| order.grouped) {
            Some(OrderedGroups::ByOrder) => First::Along,
            _ => First::Sorted,
        }
    }

    /// Whether the rows of the order are grouped.
    fn has_ordered_groups(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.grouped != OrderedGroups::Not)
    }

    /// Whether there are conditions on tables other than the one that has the order.
    fn asks_others(&self) -> bool {
        let ordered = self.order.as_ref().map(|order| order.scan);
        let asked = self.reads.iter().enumerate().filter(|(_, read)| read.tests.is_some());
        asked.map(|(scan, _)| Some(scan)).any(|scan| scan != ordered)
    }

    /// The filter of each scan with these literals and, if given, with the constants of a context; `None` if a literal
    /// needs a conversion.
    fn filters(
        &self,
        constants: &Constants<'_>,
        context: Option<&Arc<Context>>,
    ) -> Option<Vec<Option<Filter>>> {
        let filter = |read: &Read| {
            let settled = context.map(|context| read.scan.settled_filters(context, false));
            let mut filters = settled.unwrap_or_default();
            if let Some((table, tests)) = &read.tests {
                filters.extend(tests.fill(constants, self.tables.get(*table)?)?.filter);
            }
            Some(Filter::all_of(filters))
        };
        self.reads.iter().map(filter).collect()
    }

    /// The text condition of each scan with these literals; `None` if a literal needs a conversion, or if scores are
    /// wanted of another text than the one that rows match.
    fn texts(&self, constants: &Constants<'_>) -> Option<Arc<[Option<TextQuery>]>> {
        if !self.searches {
            return Some(Arc::default());
        }
        let text = |read: &Read| {
            let Some((table, tests)) = &read.tests else { return Some(None) };
            if let Some((_, matched, _)) = tests.only_match()
                && !read.scan.scores().is_empty()
                && self.scored.iter().any(|it| constants.one(*it) != constants.one(matched))
            {
                return None;
            }
            Some(tests.fill(constants, self.tables.get(*table)?)?.text)
        };
        self.reads.iter().map(text).collect()
    }
}

impl PlannedRun {
    /// Prepares a run; `None` if the statement takes the general path.
    fn of(
        session: &SessionState,
        reader: &Reader,
        plan: &Arc<CachedPlan>,
        constants: &Constants<'_>,
        trace: Option<Trace>,
    ) -> Result<Option<Self>> {
        if plan.tables.iter().any(|table| table.is_changed_by(session)) {
            return Ok(None);
        }
        for table in &plan.tables {
            let checked = table.check(session);
            if checked.is_err() && !plan.views.is_empty() {
                // The general path reports the view that may not be read.
                return Ok(None);
            }
            checked?;
        }
        if !plan.views.iter().all(|view| view.is_read_by(session)) {
            return Ok(None);
        }
        let made = plan.made.iter().map(|made| made.value(constants)).collect();
        let constants = &Constants { made, ..constants.clone() };
        let (limit, offset) = (constants.rows(plan.limit), constants.rows(plan.offset));
        if limit.is_some() != plan.limit.is_some() || offset.is_some() != plan.offset.is_some() {
            return Ok(None);
        }
        let page = Page { offset: offset.unwrap_or(0), limit: limit.unwrap_or(u64::MAX) };
        let (filters, texts) = (plan.filters(constants, None), plan.texts(constants));
        let (Some(filters), Some(texts)) = (filters, texts) else { return Ok(None) };
        if page.limit == 0 {
            // With LIMIT 0 nothing may be evaluated.
            return Ok(None);
        }
        session.check_interrupted()?;
        session.warnings.clear();
        let mut this = Self {
            plan: Arc::clone(plan),
            reader: reader.clone(),
            filters,
            texts,
            page,
            zone: session.variables.time_zone.zone.clone(),
            context: Arc::new(session.context()),
            is_aside: false,
            trace,
        };
        Ok(this.settle(constants)?.then_some(this))
    }

    /// Computes the constants of this run one after the other, and adds the filters that use them. False if that fails
    /// or would read too many rows for this thread: then the statement takes the general path, which reports any error.
    fn settle(&mut self, constants: &Constants<'_>) -> Result<bool> {
        let plan = Arc::clone(&self.plan);
        let mut values: Vec<ScalarValue> = Vec::with_capacity(plan.settled.len());
        for (at, settled) in plan.settled.iter().enumerate() {
            let value = match settled {
                RunConstant::Literal(number) => Ok(plan.literals.value(*number, constants)),
                RunConstant::Constant(constant) => self.constant(constant),
                RunConstant::Query(part, is_exists) => self.query(part, *is_exists),
            };
            self.check().map_err(from_plan)?;
            let Ok(Some(value)) = value else { return Ok(false) };
            values.push(value);
            if matches!(plan.settled.get(at + 1), Some(RunConstant::Literal(_))) {
                // Literals come first and need no filters.
                continue;
            }
            Arc::make_mut(&mut self.context).settled = values.as_slice().into();
            let filters = plan.filters(constants, Some(&self.context));
            let Some(filters) = filters else { return Ok(false) };
            self.filters = filters;
        }
        if let Some(trace) = &self.trace {
            trace.keep();
        }
        Ok(true)
    }

    fn constant(&self, constant: &BatchExpression) -> PlanResult<Option<ScalarValue>> {
        let value = evaluated(constant, &one_row()?, Some(&self.context))?;
        ScalarValue::try_from_array(&value, 0).map(Some)
    }

    /// The value of a scalar subquery or EXISTS; `None` if it has several rows.
    fn query(&self, part: &PlanNode, is_exists: bool) -> PlanResult<Option<ScalarValue>> {
        let most = ScanLimits::IN_CONNECTION_THREAD;
        let batch = match self.at_ends(part)? {
            Some((batch, done)) => self.rest_of(part, batch, done)?,
            None => PlanReader::new(self, &part.of, most, None)?.part(part)?,
        };
        match batch {
            Some(batch) => value_of(&batch, is_exists),
            None => Ok(None),
        }
    }

    /// The rows of a plan over one table, computed in this thread.
    async fn here(&self) -> PlanResult<Option<RecordBatch>> {
        if let Some((batch, done)) = self.at_ends(&self.plan.root)? {
            return self.finished(batch, done, self.plan.cut(), StepInput::Any);
        }
        let root = &self.plan.root;
        if root.first.is_some() {
            let most = ScanLimits::IN_CONNECTION_THREAD;
            let reading = PlanReader::new(self, &root.of, most, None)?;
            if let Some((batch, done)) = reading.first_rows(root)? {
                return self.finished(batch, done, self.plan.cut(), StepInput::Any);
            }
        }
        let first = match self.plan.order.as_ref().map(|order| order.grouped) {
            // The rows of whole groups by key are the first ones by key.
            Some(OrderedGroups::ByKey) => First::Sorted,
            _ => First::Along,
        };
        for first in [first, First::ByPath] {
            if let Some(batch) = self.first_rows(first)? {
                return Ok(Some(batch));
            }
        }
        let mark = self.context.warnings.mark();
        if let Some(batch) = self.evaluated(ScanLimits::IN_CONNECTION_THREAD).await? {
            return Ok(Some(batch));
        }
        self.context.warnings.forget_since(mark);
        self.first_rows(First::Sorted)
    }

    /// The rows of a plan over several tables, computed in this thread. For a page in an order that an index has, the
    /// first rows of that order are joined first, unless conditions leave fewer rows to read.
    fn joined_here(&self, of: &RowSource) -> PlanResult<Option<RecordBatch>> {
        let last = self.page.offset.saturating_add(self.page.limit);
        if last > MAX_PAGE_ROWS {
            if let Some(batch) = self.first_rows(First::Along)? {
                return Ok(Some(batch));
            }
            return self.joined(of, ScanLimits::IN_CONNECTION_THREAD);
        }
        let first = self.plan.first_joined();
        // Scores are computed only of the first rows in their order.
        let asks_others = self.plan.asks_others() && self.plan.scored.is_empty();
        if !asks_others && let Some(batch) = self.first_rows(first)? {
            return Ok(Some(batch));
        }
        let mut reading = PlanReader::new(self, of, ScanLimits::IN_CONNECTION_THREAD, None)?;
        let few = last.saturating_mul(FEW_PAGES).max(FEW_ROWS);
        if asks_others
            && reading.fewest() > few
            && self.is_walked(&reading, last)?
            && let Some(batch) = self.first_rows(first)?
        {
            return Ok(Some(batch));
        }
        let Some(batch) = reading.all(of)? else { return Ok(None) };
        self.finished(batch, 0, self.plan.cut(), StepInput::Any)
    }

    /// Whether the page is likely to be filled by fewer rows of the ordered scan than a join would read at least.
    fn is_walked(&self, reading: &PlanReader<'_>, last: u64) -> PlanResult<bool> {
        let first = self.plan.first_joined();
        let Some(scan) = self.plan.ordered_scan(first) else { return Ok(false) };
        let Some(read) = self.plan.reads.get(scan) else { return Ok(false) };
        let rows = read.scan.row_count(&self.reader)?;
        let (rows, fewest) = (reading.count_of(scan).min(rows), reading.fewest().max(1));
        Ok(last.saturating_mul(rows) / fewest <= fewest)
    }

    /// The rows of a plan over several tables; `None` if that exceeds the limits.
    fn joined(&self, of: &RowSource, most: ScanLimits) -> PlanResult<Option<RecordBatch>> {
        let Some(batch) = PlanReader::new(self, of, most, None)?.all(of)? else { return Ok(None) };
        self.finished(batch, 0, self.plan.cut(), StepInput::Any)
    }

    /// The rows of a plan over one table; `None` if that exceeds the limits.
    async fn evaluated(&self, most: ScanLimits) -> PlanResult<Option<RecordBatch>> {
        let steps = &self.plan.root.steps;
        let cut = self.plan.cut();
        let by_row = steps.iter().take(cut).take_while(|step| step.is_by_row()).count();
        let last = self.page.offset.saturating_add(self.page.limit);
        let limit = (cut == 0 && self.page.limit < u64::MAX).then_some(last);
        let Some(read) = self.plan.reads.first() else { return Ok(None) };
        let (filter, zone) = (self.filter(0), self.zone.clone());
        let started = self.started();
        let condition = self.condition(0, filter.clone());
        let rows = read.scan.batches(&self.reader, condition, limit, zone, most)?;
        let Some(found) = rows else { return Ok(None) };
        let text = || self.text(0).cloned();
        self.note(0, || ReadRows { limit, text: text(), ..ReadRows::of(0, filter) });
        let (mut batches, mut bytes, mut rows) = (Vec::new(), 0, 0);
        let mut since = Instant::now();
        for batch in found {
            let mut batch = batch?;
            for step in steps.iter().take(by_row) {
                let Some(made) = self.apply(step, &batch)? else { return Ok(None) };
                batch = made;
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
        self.has_read(0, rows, started);
        let schema = match batches.first() {
            Some(batch) => batch.schema(),
            None => Arc::clone(read.scan.schema()),
        };
        // An empty batch has the scan's columns, so all steps must still be applied to it.
        let done = if batches.is_empty() { 0 } else { by_row };
        self.finished(joined(&schema, batches)?, done, cut, StepInput::Any)
    }

    /// Applies the steps after the first `done` ones and cuts the rows to the page before the step `cut`; `None` if
    /// that exceeds the limits. Rows that are in the result's order already are not sorted.
    fn finished(
        &self,
        batch: RecordBatch,
        done: usize,
        cut: usize,
        input: StepInput,
    ) -> PlanResult<Option<RecordBatch>> {
        let steps = &self.plan.root.steps;
        let mut batch = batch;
        for (at, step) in steps.iter().enumerate().skip(done) {
            if at == cut {
                batch = self.page.of(&batch);
            }
            if input != StepInput::Any && matches!(step, BatchStep::Sort(_)) {
                continue;
            }
            self.check()?;
            let started = self.started();
            let Some(made) = self.apply(step, &batch)? else { return Ok(None) };
            batch = match (step, input) {
                // Further rows may belong to the last group.
                (BatchStep::Group(_), StepInput::FirstOrdered) => {
                    made.slice(0, made.num_rows().saturating_sub(1))
                }
                _ => made,
            };
            self.has_done(step.name(), &batch, started);
        }
        Ok(Some(if cut == steps.len() { self.page.of(&batch) } else { batch }))
    }

    /// The first `count` rows of an order behind the `skipped` ones, and how they were read; `None` if the engine does
    /// not have the order. Only along an index rows are skipped.
    fn first_of(
        &self,
        first: First,
        count: usize,
        skipped: usize,
    ) -> PlanResult<Option<(RecordBatch, ReadRows)>> {
        let Some(scan) = self.plan.ordered_scan(first) else { return Ok(None) };
        let Some(read) = self.plan.reads.get(scan) else { return Ok(None) };
        let (filter, text) = (self.filter(scan), self.text(scan).cloned());
        let made = ReadRows { text, ..ReadRows::of(scan, filter.clone()) };
        if let (First::ByPath, Some(by)) = (first, &self.plan.by_path) {
            if made.text.is_some() {
                return Ok(None);
            }
            let found = by.first(&read.scan, &self.reader, filter, count, &self.zone)?;
            return Ok(found.map(|(batch, path)| (batch, ReadRows { by_path: Some(path), ..made })));
        }
        let Some(ResultOrder { keys: order, .. }) = &self.plan.order else { return Ok(None) };
        let page = (order.as_slice(), count);
        let condition = self.condition(scan, filter);
        let found = match first {
            First::Along if skipped > 0 => {
                read.scan.behind((&self.reader, &self.zone), condition, page, skipped)
            }
            First::Along => read.scan.first_along(&self.reader, condition, page, &self.zone),
            First::Sorted | First::ByPath => {
                read.scan.first(&self.reader, condition, page, &self.zone)
            }
        };
        let page = Some((order.clone(), skipped + count));
        Ok(found?.map(|batch| (batch, ReadRows { page, ..made })))
    }

    /// A page made of the first rows of an order that the engine has; `None` if they do not fill the page.
    fn first_rows(&self, first: First) -> PlanResult<Option<RecordBatch>> {
        let mark = self.context.warnings.mark();
        let behind = match first {
            First::Along | First::Sorted => self.behind_offset(mark)?,
            First::ByPath => None,
        };
        let page = match behind {
            Some(page) => Some(page),
            None => self.page_of_first(first, mark, 0)?,
        };
        if page.is_none() {
            self.context.warnings.forget_since(mark);
        }
        Ok(page)
    }

    /// The page behind an OFFSET whose rows the engine counts along the key or an index; `None` if that is small, if the
    /// rows there are not those of the result, or if neither has the order.
    fn behind_offset(&self, mark: (usize, u64)) -> PlanResult<Option<RecordBatch>> {
        let Page { offset, limit } = self.page;
        let Ok(skipped) = usize::try_from(offset) else { return Ok(None) };
        if skipped < MIN_SKIPPED || !self.plan.each_is_shown() {
            return Ok(None);
        }
        let rest = Self { page: Page { offset: 0, limit }, ..self.clone() };
        rest.page_of_first(First::Along, mark, skipped)
    }

    /// A page of the first rows of an order behind the `skipped` ones. Each attempt forgets the warnings of the one
    /// before, which are those from `mark` on.
    fn page_of_first(
        &self,
        first: First,
        mark: (usize, u64),
        skipped: usize,
    ) -> PlanResult<Option<RecordBatch>> {
        let last = self.page.offset.saturating_add(self.page.limit);
        let (Some(scan), true) = (self.plan.ordered_scan(first), last <= MAX_PAGE_ROWS) else {
            return Ok(None);
        };
        let of_groups = self.plan.has_ordered_groups();
        if of_groups && self.plan.vain_walks.is_given_up() {
            return Ok(None);
        }
        let each_is_shown = self.plan.each_is_shown();
        let mut count = if each_is_shown { last } else { self.plan.likely.rows(last) };
        for walk in 0..WALKS {
            let started = self.started();
            let found = self.first_of(first, count as usize, skipped)?;
            let Some((found, read)) = found else { return Ok(self.cannot_read(count, last)) };
            self.note(0, || read);
            self.has_read(scan, found.num_rows() as u64, started);
            let is_all = (found.num_rows() as u64) < count;
            let batch = match &self.plan.root.of {
                RowSource::Scan(_) => Some(found),
                of => {
                    let most = ScanLimits::IN_CONNECTION_THREAD;
                    PlanReader::new(self, of, most, Some((scan, found)))?.all(of)?
                }
            };
            let Some(batch) = batch else { return Ok(self.cannot_read(count, last)) };
            let input = if is_all { StepInput::Ordered } else { StepInput::FirstOrdered };
            let finished = self.finished(batch, 0, self.plan.cut(), input)?;
            let Some(batch) = finished else { return Ok(self.cannot_read(count, last)) };
            let found = batch.num_rows() as u64;
            if each_is_shown || is_all || found == self.page.limit {
                if walk == 0 {
                    self.plan.likely.record_full_page();
                }
                if of_groups {
                    self.plan.vain_walks.note(false);
                }
                return Ok(Some(batch));
            }
            // The rows before the page were found too.
            let reached = if found > 0 { self.page.offset.saturating_add(found) } else { 0 };
            self.plan.likely.record_short_page(count, reached);
            self.context.warnings.forget_since(mark);
            let more = more_rows(count, reached, last);
            if more <= count {
                break;
            }
            count = more;
        }
        if of_groups {
            self.plan.vain_walks.note(true);
        }
        Ok(None)
    }

    /// No page: so many first rows cannot be read. If they are more than the page ends with, the next run tries those alone.
    fn cannot_read(&self, count: u64, last: u64) -> Option<RecordBatch> {
        if count > last {
            self.plan.likely.forget();
        }
        None
    }
}
