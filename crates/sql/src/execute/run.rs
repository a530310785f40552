//! A query from its syntax tree to its rows.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::RecordBatch,
        datatypes::{Field, SchemaRef},
    },
    catalog::TableProvider,
    error::Result as PlanResult,
    execution::TaskContext,
    physical_plan::{ExecutionPlan, displayable, execute_stream, execute_stream_partitioned},
    sql::sqlparser::ast,
};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use remora_engine::{TextQuery, Value};
use remora_mysql::ErrorCode;
use tokio::{runtime::Handle, sync::mpsc::Sender};

use super::{access::Access, planned, runtime::Running, sought, views};
use crate::{
    Column, Error, Reply, Result,
    aside::{read_aside, wait_aside},
    error::from_plan,
    meaning::{Reading, rewrite},
    output,
    parse::{Source, Statement},
    plan::{Extent, KeptPlan, MeasuredStep, Planner, has_joins, is_light, normalise_recursive},
    resolve::{Resolved, SessionCatalog, Shown, StatementTable, asked_of_agents, resolve},
    scan::EngineTable,
    state::SessionState,
};

/// A query that is ready to be planned.
pub(super) struct Query {
    query: ast::Query,
    planner: Arc<Planner>,
    shown: Vec<Shown>,
    /// Rows to pass over and to show, of a query that gives them all to be counted.
    window: Option<(u64, u64)>,
    /// Whether it runs here instead of where queries run.
    is_light: bool,
    /// Whether planning it may take so long that others should not wait for the thread.
    is_long: bool,
    /// Where its tables stand.
    places: Vec<StatementTable>,
    /// How many SELECTs it has.
    selects: usize,
    /// Its queries by keywords, with the engine's names of their tables.
    searched: Vec<(String, TextQuery)>,
}

/// For whom a query is resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A client's SELECT runs.
    Run,
    /// Another statement holds it.
    Within,
    Keep,
    Explain,
}

/// All rows of a query.
pub(crate) struct Rows {
    /// What clients are told of its columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl Rows {
    /// How many rows there are.
    pub(crate) fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// A value; NULL past the end.
    pub(crate) fn value(&self, row: usize, column: usize) -> Value {
        let mut row = row;
        for batch in &self.batches {
            if row < batch.num_rows() {
                let described = self.columns.get(column);
                return described
                    .map_or(Value::Null, |described| output::value(batch, column, described, row));
            }
            row -= batch.num_rows();
        }
        Value::Null
    }
}

/// What a running query sends.
enum QueryOutput {
    Schema(SchemaRef),
    Batch(RecordBatch),
}

impl Query {
    /// Resolves a SELECT that some other statement holds.
    pub(super) async fn of(session: &SessionState, statement: &Statement<'_>) -> Result<Self> {
        Self::reading(session, parsed(statement)?, &statement.source, Purpose::Within).await
    }

    /// Resolves a client's query.
    pub(super) async fn new(
        session: &SessionState,
        query: ast::Query,
        source: &Source,
    ) -> Result<Self> {
        Self::reading(session, query, source, Purpose::Run).await
    }

    /// Resolves a query that is to be explained.
    pub(super) async fn to_explain(
        session: &SessionState,
        statement: &Statement<'_>,
    ) -> Result<Self> {
        Self::reading(session, parsed(statement)?, &statement.source, Purpose::Explain).await
    }

    /// Resolves a query of few rows, whose plan is kept.
    pub(super) async fn of_few(
        session: &SessionState,
        query: ast::Query,
        source: &Source,
    ) -> Result<Self> {
        Self::reading(session, query, source, Purpose::Keep).await
    }

    async fn reading(
        session: &SessionState,
        mut query: ast::Query,
        source: &Source,
        purpose: Purpose,
    ) -> Result<Self> {
        if purpose == Purpose::Keep && query.settings.is_some() {
            return Err(Error::unsupported("a plan with OPTION that is kept"));
        }
        let is_light = is_light(&query);
        Box::pin(views::describe_for(session, &query)).await?;
        // Before what is sought for is read, which may be of other servers too.
        if let Some(asked) = asked_of_agents(&query) {
            session.ask_agents(asked);
        }
        sought::settle(session, &mut query, source).await?;
        let is_client = matches!(purpose, Purpose::Run | Purpose::Explain);
        let catalog = SessionCatalog::new(session, source);
        let catalog = if is_client { catalog.for_client() } else { catalog };
        let limit = session.variables.sql_select_limit;
        let reading = Reading {
            sql_mode: session.variables.sql_mode,
            database: session.database.clone().unwrap_or_default(),
        };
        let resolved = read_aside(source.is_long(), || -> Result<Resolved> {
            let mut resolved = resolve(query, source, &catalog, limit)?;
            rewrite(&mut resolved.query, &reading)?;
            normalise_recursive(&mut resolved.query);
            Ok(resolved)
        });
        let Resolved { query, columns, tables, places, selects, searched, window } = resolved?;
        if !searched.is_empty() && purpose == Purpose::Keep {
            // SHOW META tells of each run.
            return Err(Error::unsupported("a plan of MATCH('…') that is kept"));
        }
        if catalog.is_elsewhere() && purpose == Purpose::Keep {
            // Each run is of other moments.
            return Err(Error::unsupported("a plan over other servers that is kept"));
        }
        let is_light = is_light && !catalog.is_elsewhere();
        let memory = session.shared.settings.max_query_memory_bytes;
        let extent = if purpose == Purpose::Keep { Extent::Kept } else { Extent::of(&query) };
        let tables = match has_joins(&query) {
            // None of which says what its key is.
            true => altered(tables, |_, table| table.without_key()),
            false => tables,
        };
        let (tables, rows) = match purpose {
            Purpose::Run | Purpose::Within => (tables, catalog.rows()),
            Purpose::Keep => (altered(tables, |relation, table| table.kept(relation)), 0),
            Purpose::Explain => {
                (altered(tables, |relation, table| table.in_plan(relation)), catalog.rows())
            }
        };
        let planner = Planner::new(session.context(), memory, tables, rows, extent);
        let planner = Arc::new(planner);
        let is_long = source.is_long();
        let shown = columns;
        Ok(Self { query, planner, shown, window, is_light, is_long, places, selects, searched })
    }

    /// Sends the columns and the rows.
    pub(super) async fn send<R: Reply>(
        &mut self,
        session: &mut SessionState,
        reply: &mut R,
    ) -> Result<()> {
        let searched = std::mem::take(&mut self.searched);
        let is_sphinx = session.variables.is_sphinx;
        // Sphinx tells of every SELECT.
        let is_search = is_sphinx || !searched.is_empty();
        if is_search {
            session.note_keywords(searched)?;
        }
        if self.is_light && self.window.is_none() {
            return self.send_at_once(session, reply).await;
        }
        let mut running = self.start(session)?;
        let mut columns = Vec::new();
        let mut has_begun = false;
        let (mut passed, mut sent) = (0_u64, 0_u64);
        while let Some(part) = running.next(session).await? {
            match part {
                QueryOutput::Schema(schema) => {
                    columns = self.described(&schema);
                    reply.columns(&columns)?;
                    has_begun = true;
                }
                QueryOutput::Batch(batch) => {
                    let rows = batch.num_rows() as u64;
                    let shown = within(self.window, passed, batch);
                    passed += rows;
                    sent += shown.num_rows() as u64;
                    let shown = if is_sphinx { output::with_texts(shown)? } else { shown };
                    output::send(&shown, &columns, reply)?;
                    reply.drain().await?;
                }
            }
        }
        if !has_begun {
            return Err(nothing_given());
        }
        session.found_rows = if self.window.is_some() { passed } else { sent };
        if is_search {
            session.note_returned(sent);
        }
        Ok(())
    }

    /// The same for a light query, in this thread.
    async fn send_at_once<R: Reply>(
        &mut self,
        session: &mut SessionState,
        reply: &mut R,
    ) -> Result<()> {
        session.check_interrupted()?;
        let plan = self.planner.physical_plan(self.query.clone()).await?;
        let columns = self.described(&plan.schema());
        let stream = stream_of(plan, self.planner.state().task_ctx())?;
        let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(from_plan)?;
        reply.columns(&columns)?;
        batches.iter().try_for_each(|batch| output::send(batch, &columns, reply))?;
        session.found_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        session.note_returned(session.found_rows);
        Ok(())
    }

    /// All rows.
    pub(super) async fn collect(&mut self, session: &SessionState) -> Result<Rows> {
        let most_bytes = session.shared.settings.max_query_memory_bytes;
        let mut running = self.start(session)?;
        let mut rows = None;
        let mut bytes = 0_u64;
        while let Some(part) = running.next(session).await? {
            match (part, &mut rows) {
                (QueryOutput::Schema(schema), rows) => {
                    let columns = self.described(&schema);
                    *rows = Some(Rows { columns, batches: Vec::new() });
                }
                (QueryOutput::Batch(batch), Some(rows)) => {
                    bytes = bytes.saturating_add(batch.get_array_memory_size() as u64);
                    if bytes > most_bytes {
                        return Err(too_many_rows(most_bytes));
                    }
                    rows.batches.push(batch);
                }
                (QueryOutput::Batch(_), None) => {}
            }
        }
        rows.ok_or_else(nothing_given)
    }

    /// The columns, without running it.
    pub(super) async fn columns(&mut self, session: &SessionState) -> Result<Vec<Column>> {
        let is_long = self.is_long;
        let schema = self.planned(session, move |planner, query| async move {
            read_aside(is_long, || {
                let plan = planner.plan(query)?;
                let plan = planner.state().optimize(&plan).map_err(from_plan)?;
                Ok(Arc::clone(plan.schema().inner()))
            })
        });
        Ok(self.described(&schema.await?))
    }

    /// Its plan for many runs and its columns; `None` if it counts rows that are not shown.
    pub(super) async fn to_keep(
        &self,
        session: &SessionState,
    ) -> Result<Option<(KeptPlan, Vec<Column>)>> {
        if self.window.is_some() {
            return Ok(None);
        }
        let made =
            self.planned(session, |planner, query| async move { planner.kept_plan(query).await });
        let plan = made.await?;
        let columns = self.described(&plan.plan.schema());
        Ok(Some((plan, columns)))
    }

    /// Where its tables stand, and how many SELECTs it has.
    pub(super) fn places(&self) -> (&[StatementTable], usize) {
        (&self.places, self.selects)
    }

    /// What it would do, a line for each step, and how it would read its tables.
    pub(super) async fn explained(
        &self,
        session: &SessionState,
    ) -> Result<(Vec<String>, Vec<Access>)> {
        let places = self.places.clone();
        let shown = self.planned(session, |planner, query| async move {
            let plan = planner.physical_plan(query).await?;
            let accesses = planned::accesses(&plan, &places, planner.state().config_options())?;
            Ok((displayable(plan.as_ref()).indent(false).to_string(), accesses))
        });
        let (lines, accesses) = shown.await?;
        Ok((lines.lines().map(str::to_owned).collect(), accesses))
    }

    /// Runs it and says of each step what it took, a line each.
    pub(super) async fn analyzed(&self, session: &SessionState) -> Result<Vec<String>> {
        let places = self.places.clone();
        let lines = self.planned(session, |planner, query| async move {
            let options = planner.state().config_options().clone();
            let describe = |plan: &Arc<dyn ExecutionPlan>| planned::step(plan, &places, &options);
            let (plan, steps) = planner.measured_plan(query, describe).await?;
            let mut stream = stream_of(plan, planner.state().task_ctx())?;
            while let Some(batch) = stream.next().await {
                batch.map_err(from_plan)?;
            }
            Ok(steps.iter().map(analyzed_line).collect())
        });
        lines.await
    }

    /// What `work` makes of the query, where queries are planned.
    async fn planned<T, F>(
        &self,
        session: &SessionState,
        work: impl FnOnce(Arc<Planner>, ast::Query) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let made = work(Arc::clone(&self.planner), self.query.clone());
        let mut running = Running::start(session, self.planner.ended(), |sender| async move {
            // Nobody waits for it where the session has ended.
            let _ = sender.send(made.await).await;
        })?;
        let planned = running.next(session).await?;
        planned.ok_or_else(nothing_given)
    }

    fn described(&self, schema: &SchemaRef) -> Vec<Column> {
        let pairs = schema.fields().iter().zip(&self.shown);
        let column = |(field, shown): (&Arc<Field>, &Shown)| {
            let mut told = output::column(field, &shown.name, &shown.table);
            // Also of a derived table, or of a UNION.
            let is_one = !shown.table.is_empty() || told.original_name.is_empty();
            if is_one && !shown.column.is_empty() {
                told.table.clone_from(&shown.table);
                told.original_name.clone_from(&shown.column);
            }
            told
        };
        pairs.map(column).collect()
    }

    /// Starts planning and running where queries run.
    fn start(&mut self, session: &SessionState) -> Result<Running<QueryOutput>> {
        let (planner, query) = (Arc::clone(&self.planner), self.query.clone());
        let is_long = self.is_long;
        Running::start(session, planner.ended(), move |sender| async move {
            let planned = match is_long {
                true => {
                    let here = Handle::current();
                    wait_aside(|| here.block_on(planner.watched_plan(query)))
                }
                false => planner.watched_plan(query).await,
            };
            let sent = match planned {
                Ok(plan) => run(plan, planner.state().task_ctx(), &sender).await,
                Err(error) => Err(error),
            };
            if let Err(error) = sent {
                // What planning fails with where the statement is to end says nothing.
                let error = if planner.is_over() { Error::interrupted() } else { error };
                // Nobody waits for it where the session has ended.
                let _ = sender.send(Err(error)).await;
            }
        })
    }
}

type Tables = Vec<(String, Arc<dyn TableProvider>)>;

/// The tables of a query, those of the engine otherwise.
fn altered(tables: Tables, alter: fn(&str, &EngineTable) -> EngineTable) -> Tables {
    let altered = |(name, table): (String, Arc<dyn TableProvider>)| {
        let any: &dyn std::any::Any = table.as_ref();
        let made: Option<Arc<dyn TableProvider>> =
            any.downcast_ref::<EngineTable>().map(|table| Arc::new(alter(&name, table)) as _);
        (name, made.unwrap_or(table))
    };
    tables.into_iter().map(altered).collect()
}

/// A query that ended before it had columns.
fn nothing_given() -> Error {
    Error::new(ErrorCode::Unknown, "The query gave nothing")
}

/// 1038 for rows that a statement has to hold at once.
fn too_many_rows(most_bytes: u64) -> Error {
    let message = format!(
        "the rows that this statement works on take more than {most_bytes} bytes: raise \
         sql.max_query_memory_mb or take fewer at a time"
    );
    Error::new(ErrorCode::OutOfMemory, message)
}

/// The syntax tree of a SELECT.
pub(super) fn parsed(statement: &Statement<'_>) -> Result<ast::Query> {
    match read_aside(statement.source.is_long(), || statement.parse())? {
        ast::Statement::Query(query) => Ok(*query),
        other => Err(Error::unsupported(other)),
    }
}

/// The rows of a plan. The parts of a UNION come one after the other, unless several threads make
/// them.
fn stream_of(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<BoxStream<'static, PlanResult<RecordBatch>>> {
    if context.session_config().target_partitions() > 1 {
        return Ok(execute_stream(plan, context).map_err(from_plan)?.boxed());
    }
    let parts = execute_stream_partitioned(plan, context).map_err(from_plan)?;
    Ok(futures::stream::iter(parts).flatten().boxed())
}

fn analyzed_line(step: &MeasuredStep) -> String {
    let indent = " ".repeat(4 * step.depth);
    format!("{indent}-> {} {}", step.what, step.figures())
}

/// Sends a plan's columns and rows.
async fn run(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    sender: &Sender<Result<QueryOutput>>,
) -> Result<()> {
    let schema = plan.schema();
    let mut stream = stream_of(plan, context)?;
    let mut begun = false;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(from_plan)?;
        // An error in the first batch comes before the columns do.
        if !begun {
            begun = true;
            if sender.send(Ok(QueryOutput::Schema(Arc::clone(&schema)))).await.is_err() {
                return Ok(());
            }
        }
        if batch.num_rows() > 0 && sender.send(Ok(QueryOutput::Batch(batch))).await.is_err() {
            return Ok(());
        }
    }
    if !begun {
        let _ = sender.send(Ok(QueryOutput::Schema(schema))).await;
    }
    Ok(())
}

/// The rows of a batch that are shown, `passed` having come before it.
fn within(window: Option<(u64, u64)>, passed: u64, batch: RecordBatch) -> RecordBatch {
    let Some((offset, limit)) = window else { return batch };
    let rows = batch.num_rows() as u64;
    let from = offset.saturating_sub(passed).min(rows);
    let end = offset.saturating_add(limit).saturating_sub(passed).min(rows);
    batch.slice(from as usize, end.saturating_sub(from) as usize)
}

/// All rows of a query that some other statement holds.
pub(crate) async fn collect(
    session: &SessionState,
    query: ast::Query,
    source: &Source,
) -> Result<Rows> {
    Query::reading(session, query, source, Purpose::Within).await?.collect(session).await
}

/// DO as a SELECT.
pub(super) fn parse_do(statement: &Statement<'_>) -> Result<ast::Query> {
    let source = &statement.source;
    let mut text = source.text.clone();
    if let Some(token) = source.tokens.first() {
        text.splice(token.start..token.end, *b"SELECT");
    }
    let mut made = crate::parse::split(&text, false, source.mode)?;
    let made = made.pop().ok_or_else(|| source.syntax_error(0))?;
    let made = Source { interrupted: Arc::clone(&source.interrupted), ..made };
    let made = Statement { source: Arc::new(made), ..statement.clone() };
    match made.parse()? {
        ast::Statement::Query(query) => Ok(*query),
        other => Err(Error::unsupported(other)),
    }
}
