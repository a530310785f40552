//! A query from its syntax tree to its rows.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::RecordBatch,
        datatypes::{Field, SchemaRef},
    },
    error::Result as PlanResult,
    execution::TaskContext,
    physical_plan::{ExecutionPlan, displayable, execute_stream, execute_stream_partitioned},
    sql::sqlparser::ast,
};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use remora_engine::{TextQuery, Value};
use remora_mysql::ErrorCode;
use tokio::{runtime::Handle, sync::mpsc::Sender};

use super::{access::TableAccess, planned, runtime::Running};
use crate::{
    Column, Error, Reply, Result,
    blocking::{run_blocking, run_blocking_if_long},
    error::from_plan,
    meaning::types::ExprType,
    output,
    parse::{Source, Statement},
    plan::{KeptPlan, MeasuredStep, Planner},
    resolve::{ClientColumn, StatementTable},
    state::SessionState,
};

/// A resolved query, ready to be planned.
pub(super) struct ResolvedQuery {
    pub(super) query: ast::Query,
    pub(super) planner: Arc<Planner>,
    pub(super) shown: Vec<ClientColumn>,
    /// OFFSET and LIMIT of a query that reads all rows because they are counted (SQL_CALC_FOUND_ROWS).
    pub(super) window: Option<(u64, u64)>,
    /// Whether it runs in the connection's thread instead of the planning threads.
    pub(super) is_light: bool,
    /// Whether planning may take so long that it must not block the thread for others.
    pub(super) is_long: bool,
    /// The places of its tables in the statement.
    pub(super) places: Vec<StatementTable>,
    /// The number of its SELECTs.
    pub(super) selects: usize,
    /// Its keyword queries, with the engine's names of their tables.
    pub(super) searched: Vec<(String, TextQuery)>,
}

/// All rows of a query, in memory.
pub(crate) struct QueryRows {
    /// The columns as clients are told of them.
    pub columns: Vec<Column>,
    /// The labels of each column that is an ENUM or SET.
    pub labels: Vec<Option<Arc<[String]>>>,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl QueryRows {
    /// The number of rows.
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

/// A message from a running query.
enum QueryOutput {
    Schema(SchemaRef),
    Batch(RecordBatch),
}

impl ResolvedQuery {
    /// Runs the query and sends its columns and rows.
    pub(super) async fn send<R: Reply>(
        &mut self,
        session: &mut SessionState,
        reply: &mut R,
    ) -> Result<()> {
        let searched = std::mem::take(&mut self.searched);
        let is_sphinx = session.variables.is_sphinx;
        // In Sphinx's dialect SHOW META reports every SELECT.
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
                    if is_sphinx {
                        columns.iter_mut().for_each(output::as_sphinx_tells);
                    }
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

    /// Runs a light query in this thread and sends its columns and rows.
    async fn send_at_once<R: Reply>(
        &mut self,
        session: &mut SessionState,
        reply: &mut R,
    ) -> Result<()> {
        session.check_interrupted()?;
        let plan = self.planner.physical_plan(self.query.clone()).await?;
        let is_sphinx = session.variables.is_sphinx;
        let mut columns = self.described(&plan.schema());
        if is_sphinx {
            columns.iter_mut().for_each(output::as_sphinx_tells);
        }
        let stream = stream_of(plan, self.planner.state().task_ctx())?;
        let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(from_plan)?;
        reply.columns(&columns)?;
        session.found_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        for batch in batches {
            let shown = if is_sphinx { output::with_texts(batch)? } else { batch };
            output::send(&shown, &columns, reply)?;
        }
        session.note_returned(session.found_rows);
        Ok(())
    }

    /// Runs the query and collects its rows. Fails with error 1038 if they exceed `max_query_memory_bytes`.
    pub(super) async fn collect(&mut self, session: &SessionState) -> Result<QueryRows> {
        let most_bytes = session.shared.settings.max_query_memory_bytes;
        let mut running = self.start(session)?;
        let mut rows = None;
        let mut bytes = 0_u64;
        while let Some(part) = running.next(session).await? {
            match (part, &mut rows) {
                (QueryOutput::Schema(schema), rows) => {
                    let columns = self.described(&schema);
                    let fields = schema.fields().iter();
                    let labels = fields.map(|field| ExprType::of_field(field).members).collect();
                    *rows = Some(QueryRows { columns, labels, batches: Vec::new() });
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

    /// The columns, found by planning without running.
    pub(super) async fn columns(&mut self, session: &SessionState) -> Result<Vec<Column>> {
        let is_long = self.is_long;
        let schema = self.planned(session, move |planner, query| async move {
            run_blocking_if_long(is_long, || planner.schema(query))
        });
        Ok(self.described(&schema.await?))
    }

    /// A plan for many runs, with its columns; `None` if the query counts rows that it does not return.
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

    /// The places of its tables in the statement, and its number of SELECTs.
    pub(super) fn places(&self) -> (&[StatementTable], usize) {
        (&self.places, self.selects)
    }

    /// Its plan, a line for each step, and the accesses of its tables.
    pub(super) async fn explained(
        &self,
        session: &SessionState,
    ) -> Result<(Vec<String>, Vec<TableAccess>)> {
        let places = self.places.clone();
        let shown = self.planned(session, |planner, query| async move {
            let (plan, subqueries) = planner.physical_plans(query).await?;
            let options = planner.state().config_options();
            let accesses = planned::accesses(&plan, &subqueries, &places, options)?;
            let plans = std::iter::once(&plan).chain(&subqueries);
            let lines = plans.map(|plan| displayable(plan.as_ref()).indent(false).to_string());
            Ok((lines.collect::<String>(), accesses))
        });
        let (lines, accesses) = shown.await?;
        Ok((lines.lines().map(str::to_owned).collect(), accesses))
    }

    /// Runs it and returns the measured steps, one line each.
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

    /// Runs `work` on the query in the planning threads.
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
            // The send fails only if the session has ended.
            let _ = sender.send(made.await).await;
        })?;
        let planned = running.next(session).await?;
        planned.ok_or_else(nothing_given)
    }

    fn described(&self, schema: &SchemaRef) -> Vec<Column> {
        let pairs = schema.fields().iter().zip(&self.shown);
        let column = |(field, shown): (&Arc<Field>, &ClientColumn)| {
            let mut told = output::column(field, &shown.name, &shown.table);
            // Also for columns of a derived table or of a UNION.
            let is_one = !shown.table.is_empty() || told.original_name.is_empty();
            if is_one && !shown.column.is_empty() {
                told.table.clone_from(&shown.table);
                told.original_name.clone_from(&shown.column);
            }
            told
        };
        pairs.map(column).collect()
    }

    /// Plans and runs the query in the planning threads.
    fn start(&mut self, session: &SessionState) -> Result<Running<QueryOutput>> {
        let (planner, query) = (Arc::clone(&self.planner), self.query.clone());
        let is_long = self.is_long;
        Running::start(session, planner.ended(), move |sender| async move {
            let planned = match is_long {
                true => {
                    let here = Handle::current();
                    run_blocking(|| here.block_on(planner.watched_plan(query)))
                }
                false => planner.watched_plan(query).await,
            };
            let sent = match planned {
                Ok(plan) => run(plan, planner.state().task_ctx(), &sender).await,
                Err(error) => Err(error),
            };
            if let Err(error) = sent {
                // An error that planning reports after an interruption is a consequence of it.
                let error = if planner.is_over() { Error::interrupted() } else { error };
                // The send fails only if the session has ended.
                let _ = sender.send(Err(error)).await;
            }
        })
    }
}

/// The query ended before it sent its columns.
fn nothing_given() -> Error {
    Error::new(ErrorCode::Unknown, "The query gave nothing")
}

/// Error 1038: a statement's rows do not fit into its memory limit.
fn too_many_rows(most_bytes: u64) -> Error {
    let message = format!(
        "the rows that this statement works on take more than {most_bytes} bytes: raise \
         sql.max_query_memory_mb or take fewer at a time"
    );
    Error::new(ErrorCode::OutOfMemory, message)
}

/// The syntax tree of a SELECT.
pub(super) fn parsed(statement: &Statement<'_>) -> Result<ast::Query> {
    run_blocking_if_long(statement.source.is_long(), || statement.parse_query())
}

/// Streams the rows of a plan. The inputs of a UNION run one after the other, unless several threads run them.
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

/// Runs a plan and sends its columns and rows.
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
        // Columns are sent after the first batch, so that an error in that batch comes before them.
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

/// The rows of a batch inside the window, given the number of rows before the batch.
fn within(window: Option<(u64, u64)>, passed: u64, batch: RecordBatch) -> RecordBatch {
    let Some((offset, limit)) = window else { return batch };
    let rows = batch.num_rows() as u64;
    let from = offset.saturating_sub(passed).min(rows);
    let end = offset.saturating_add(limit).saturating_sub(passed).min(rows);
    batch.slice(from as usize, end.saturating_sub(from) as usize)
}

/// Collects all rows of a query that is part of another statement.
pub(crate) async fn collect(
    session: &SessionState,
    query: ast::Query,
    source: &Source,
) -> Result<QueryRows> {
    ResolvedQuery::of(session, query, source).await?.collect(session).await
}
