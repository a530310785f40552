//! Every SELECT that is not of a quick shape: names are resolved (`resolve`), MySQL's meaning is
//! put in (`meaning`), DataFusion plans it and runs it over one snapshot (`scan`).

mod bare;
mod catalog;
mod compared;
mod direct;
mod extent;
mod functions;
mod into;
mod keys;
mod lateral;
mod lazy;
mod locking;
mod outer;
mod planner;
mod recursive;
pub(crate) mod resolve;
mod rules;
mod run;
mod runtime;
pub(crate) mod scan;
pub(crate) mod sought;
mod subquery;
mod united;
mod watch;
mod wide;

use crate::{
    Code, Column, Outcome, Reply, Result,
    parse::{Source, Statement},
    state::SessionState,
};

pub(crate) use run::collect;

/// Runs a SELECT.
pub(crate) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    if let Some((source, names)) = into::taken(&statement.source)? {
        return into::run(session, statement, source, &names).await;
    }
    let parsed = run::parsed(statement)?;
    warn_of_marks(session, &statement.source);
    locking::protect(session, &parsed, &statement.source).await?;
    let limit = session.variables.max_execution_time_ms;
    session.variables.max_execution_time_ms = hinted_limit(&statement.source).unwrap_or(limit);
    let sent = match wide::Wide::of(parsed, &statement.source) {
        Ok(wide) => wide.send(session, reply).await,
        Err(parsed) => match run::Query::new(session, *parsed, &statement.source).await {
            Ok(mut query) => query.send(session, reply).await,
            Err(error) => Err(error),
        },
    };
    session.variables.max_execution_time_ms = limit;
    sent.map(|()| Outcome::default())
}

/// The milliseconds that `SELECT /*+ MAX_EXECUTION_TIME(n) */` gives itself.
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

/// Warns of each `!` that stands for NOT, and of each `BINARY` that stands for CAST.
fn warn_of_marks(session: &SessionState, source: &Source) {
    for (at, token) in source.tokens.iter().enumerate() {
        let said = match () {
            () if token.is(&source.text, "!") => {
                "'!' is deprecated and will be removed in a future \
                                                  release. Please use NOT instead"
            }
            () if is_binary_operator(source, at) => {
                "'BINARY expr' is deprecated and will be removed \
                                                     in a future release. Please use CAST instead"
            }
            () => continue,
        };
        session.warn(Code::DeprecatedSyntax, said);
    }
}

/// Whether a token is BINARY before an expression, and not a type or a collation.
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

/// What begins the line of [`explained`] that is about a table.
pub(crate) const SCAN_OF: &str = "Scan of ";

/// What a SELECT would do, a line for each step, in plain words where a table is read.
pub(crate) async fn explained(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Vec<String>> {
    run::Query::of(session, statement).await?.explained(session).await
}

/// Runs DO: a SELECT whose rows nobody wants.
pub(crate) async fn run_do(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Outcome> {
    let parsed = run::parse_do(statement)?;
    collect(session, parsed, &statement.source).await?;
    Ok(Outcome::default())
}

/// The value of a SELECT of one expression.
pub(crate) async fn value(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<remora_engine::Value> {
    let rows = run::Query::of(session, statement).await?.collect(session).await?;
    Ok(rows.value(0, 0))
}

/// The columns that a SELECT will have, its parameters being unknown.
pub(crate) async fn columns(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Vec<Column>> {
    match wide::Wide::of(run::parsed(statement)?, &statement.source) {
        Ok(wide) => wide.columns(session).await,
        Err(parsed) => {
            let mut query = run::Query::new(session, *parsed, &statement.source).await?;
            query.columns(session).await
        }
    }
}

/// Whether the statement asks for the last one's warnings or figures, and so leaves them.
pub(crate) fn keeps_diagnostics(statement: &Statement<'_>) -> bool {
    let source = &statement.source;
    let asks = ["WARNINGS", "ERRORS"].iter().any(|word| source.is_word(1, word));
    source.is_word(0, "SHOW") && (asks || source.is_word(1, "COUNT"))
}
