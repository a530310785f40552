//! Runs a SELECT: by our own operators if it has a shape that needs no planning ([`shapes`]), else as a DataFusion plan
//! ([`run`]) in threads of its own ([`runtime`]). Both read one snapshot and return the same columns and rows.

mod access;
mod against;
mod count;
mod explain;
mod into;
mod planned;
mod resolve_query;
mod row_counter;
mod run;
mod runtime;
mod shapes;
mod views;
mod wide;

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, Expr};
use remora_engine::Value;

use crate::{
    Cell, Column, Outcome, Reply, Result, ResultCharset,
    blocking::run_blocking_if_long,
    output,
    parse::{
        Source, Statement,
        write::{query_from, query_of_items},
    },
    resolve::{max_query_time, most_matches},
    state::SessionState,
};

pub(crate) use count::counted_rows;
pub(crate) use explain::{RowsExplained, Writing, explain, explain_write, explained};
use remora_mysql::{ErrorCode, Token};
pub(crate) use run::collect;
pub(crate) use shapes::{
    PreparedShape, found_rows, locked_keys, named_keys, prepare, run_prepared, run_text,
};
pub(crate) use views::describe_shown;

/// Runs a SELECT. If it has a locking clause, its rows are protected already. `narrowed` is its syntax tree, without its
/// INTO clause, if that is not the statement's own.
pub(crate) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    narrowed: Option<ast::Query>,
    reply: &mut R,
) -> Result<Outcome> {
    if let Some(query) = narrowed {
        return match into::taken(&statement.source)? {
            Some((source, names)) => into::run(session, query, &source, &names).await,
            None => run_tree(session, query, statement, reply).await,
        };
    }
    let limit = session.variables.max_execution_time_ms;
    // Each part of a statement gets the time that the parts before it left.
    session.variables.max_execution_time_ms = session.left_of(limit)?;
    let shaped = run_shaped(session, statement, reply).await;
    session.variables.max_execution_time_ms = limit;
    match shaped? {
        Some(outcome) => Ok(outcome),
        None => run_planned(session, statement, reply).await,
    }
}

/// Answers a SELECT by our own operators; `None` if it has no known shape.
async fn run_shaped<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    match shapes::run(session, statement, reply).await? {
        Some(outcome) => Ok(Some(outcome)),
        None => shapes::run_protected(session, statement, reply).await,
    }
}

/// Runs a SELECT as a DataFusion plan, whatever its shape.
pub(crate) async fn run_planned<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    if let Some((source, names)) = into::taken(&statement.source)? {
        let statement = Statement { source: Arc::new(source), ..statement.clone() };
        let query = run::parsed(&statement)?;
        return into::run(session, query, &statement.source, &names).await;
    }
    run_tree(session, run::parsed(statement)?, statement, reply).await
}

/// Runs the syntax tree of a SELECT without an INTO clause.
async fn run_tree<R: Reply>(
    session: &mut SessionState,
    parsed: ast::Query,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let most = most_matches(parsed.settings.as_deref());
    let outcome = run_query(session, parsed, &statement.source, reply).await?;
    session.note_counting(statement, most);
    Ok(outcome)
}

/// Runs a query of a statement as a DataFusion plan.
pub(crate) async fn run_query<R: Reply>(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
    reply: &mut R,
) -> Result<Outcome> {
    warn_of_marks(session, source);
    let hinted = hinted_limit(source);
    match max_query_time(&query).filter(|_| hinted.is_none()) {
        Some(limit) => run_in_time(session, query, source, limit, reply).await?,
        None => {
            let limit = hinted.unwrap_or(session.variables.max_execution_time_ms);
            run_limited(session, query, source, limit, reply).await?;
        }
    }
    Ok(Outcome::default())
}

/// Runs a query whose `OPTION max_query_time` is this many milliseconds. As in Sphinx, the rows that were sent until
/// then are its answer, with a warning.
async fn run_in_time<R: Reply>(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
    limit_ms: u64,
    reply: &mut R,
) -> Result<()> {
    let mut counted = CountedReply { reply, has_begun: false, rows: 0 };
    let sent = run_limited(session, query.clone(), source, limit_ms, &mut counted).await;
    let (has_begun, rows) = (counted.has_begun, counted.rows);
    match sent {
        Err(error) if error.code == ErrorCode::QueryTimeout => {}
        sent => return sent,
    }
    if !has_begun {
        // Planning again has the same limit: servers that do not answer are an error.
        let limit = std::mem::replace(&mut session.variables.max_execution_time_ms, limit_ms);
        let columns = columns_of(session, query, source).await;
        session.variables.max_execution_time_ms = limit;
        let mut columns = columns?;
        if session.variables.is_sphinx {
            columns.iter_mut().for_each(output::as_sphinx_tells);
        }
        reply.columns(&columns)?;
    }
    session.found_rows = rows;
    session.note_returned(rows);
    session.warn(ErrorCode::SearchWarning, "query time exceeded max_query_time");
    Ok(())
}

/// Runs a query with a time limit in milliseconds; 0 means none. Error 3024 at its end.
async fn run_limited<R: Reply>(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
    limit_ms: u64,
    reply: &mut R,
) -> Result<()> {
    let limit = session.variables.max_execution_time_ms;
    session.variables.max_execution_time_ms = session.left_of(limit_ms)?;
    let sent = match wide::WideRow::of(query, source) {
        Ok(wide) => wide.send(session, reply).await,
        Err(query) => match run::ResolvedQuery::new(session, *query, source).await {
            Ok(mut query) => query.send(session, reply).await,
            Err(error) => Err(error),
        },
    };
    session.variables.max_execution_time_ms = limit;
    sent
}

/// A reply that counts its rows.
struct CountedReply<'r, R> {
    reply: &'r mut R,
    has_begun: bool,
    rows: u64,
}

impl<R: Reply> Reply for CountedReply<'_, R> {
    fn charset(&mut self, charset: Option<ResultCharset>) {
        self.reply.charset(charset);
    }

    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.has_begun = true;
        self.reply.columns(columns)
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        self.rows += 1;
        self.reply.row(cells)
    }

    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()> {
        self.reply.done(outcome, more)
    }

    async fn drain(&mut self) -> Result<()> {
        self.reply.drain().await
    }
}

/// The syntax tree of a SELECT, without its INTO clause.
pub(crate) fn parsed(statement: &Statement<'_>) -> Result<ast::Query> {
    match into::taken(&statement.source)? {
        None => run::parsed(statement),
        Some((source, _)) => {
            run::parsed(&Statement { source: Arc::new(source), ..statement.clone() })
        }
    }
}

/// The time limit in milliseconds of `SELECT /*+ MAX_EXECUTION_TIME(n) */`.
fn hinted_limit(source: &Source) -> Option<u64> {
    const NAME: &[u8] = b"MAX_EXECUTION_TIME";
    let (select, next) = (source.tokens.first()?, source.tokens.get(1)?);
    let between = source.text.get(select.end..next.start)?.trim_ascii_start();
    let hints = between.strip_prefix(b"/*+")?.to_ascii_uppercase();
    let place = hints.windows(NAME.len()).position(|window| window == NAME)?;
    let behind = hints.get(place + NAME.len()..)?.trim_ascii_start().strip_prefix(b"(")?;
    let end = behind.iter().position(|byte| *byte == b')')?;
    std::str::from_utf8(behind.get(..end)?).ok()?.trim().parse().ok()
}

/// Adds a deprecation warning for each `!` used as NOT and each `BINARY` used as a cast.
pub(crate) fn warn_of_marks(session: &SessionState, source: &Source) {
    marks(source).for_each(|said| session.warn(ErrorCode::DeprecatedSyntax, said));
}

/// The warning for each of them.
fn marks(source: &Source) -> impl Iterator<Item = &'static str> {
    const NOT: &str =
        "'!' is deprecated and will be removed in a future release. Please use NOT instead";
    const CAST: &str = "'BINARY expr' is deprecated and will be removed in a future release. Please use CAST instead";
    let said = |(at, token): (usize, &Token)| match () {
        () if token.is(&source.text, "!") => Some(NOT),
        () if is_binary_operator(source, at) => Some(CAST),
        () => None,
    };
    source.tokens.iter().enumerate().filter_map(said)
}

/// Whether a token is the BINARY operator, and not a type or a collation.
fn is_binary_operator(source: &Source, at: usize) -> bool {
    if !source.is_word(at, "BINARY") {
        return false;
    }
    let before = |word: &str| at.checked_sub(1).is_some_and(|before| source.is_word(before, word));
    let names = ["AS", "COLLATE", "SET", "CHARSET", "RETURNING", "USING"];
    let is_type =
        source.is(at + 1, ")") || source.is(at + 1, ",") || source.is(at - at.min(1), ".");
    !is_type && !names.iter().any(|word| before(word)) && at + 1 < source.tokens.len()
}

/// The lines of a SELECT's plan, the accesses of its tables, and its number of SELECTs.
async fn planned_accesses(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
) -> Result<(Vec<String>, Vec<access::TableAccess>, usize)> {
    let query = run::ResolvedQuery::to_explain(session, query, source).await?;
    let (lines, accesses) = query.explained(session).await?;
    Ok((lines, accesses, query.places().1))
}

/// Runs a SELECT and returns the measured steps, one line each.
async fn analyzed(session: &mut SessionState, statement: &Statement<'_>) -> Result<Vec<String>> {
    let query = run::parsed(statement)?;
    run::ResolvedQuery::to_explain(session, query, &statement.source).await?.analyzed(session).await
}

/// Runs DO: a SELECT whose rows are discarded.
pub(crate) async fn run_do(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Outcome> {
    let source = &statement.source;
    let items = 1..source.tokens.len();
    let parse = || query_of_items(source, items, statement.parameters, Vec::new());
    let query = run_blocking_if_long(source.is_long(), parse)?;
    collect(session, query, source).await?;
    Ok(Outcome::default())
}

/// The value of an expression of a statement.
pub(crate) async fn value(session: &SessionState, expr: Expr, source: &Source) -> Result<Value> {
    let rows = collect(session, query_from(vec![expr], Vec::new()), source).await?;
    Ok(rows.value(0, 0))
}

/// The columns that a SELECT will have; its parameters are still unknown.
pub(crate) async fn columns(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Vec<Column>> {
    columns_of(session, run::parsed(statement)?, &statement.source).await
}

/// The columns that a query of a statement will have.
pub(crate) async fn columns_of(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
) -> Result<Vec<Column>> {
    match wide::WideRow::of(query, source) {
        Ok(wide) => wide.columns(session).await,
        Err(query) => {
            let mut query = run::ResolvedQuery::new(session, *query, source).await?;
            query.columns(session).await
        }
    }
}
