//! Every SELECT that is not of a quick shape: names are resolved (`resolve`), MySQL's meaning is
//! put in (`meaning`), DataFusion plans it and runs it over one snapshot (`scan`).

mod catalog;
pub(crate) mod errors;
mod extent;
mod functions;
mod into;
mod lazy;
mod locking;
pub(crate) mod names;
pub(crate) mod origin;
pub(crate) mod output;
mod planner;
mod recursive;
pub(crate) mod resolve;
pub(crate) mod room;
mod rules;
mod run;
mod runtime;
pub(crate) mod scan;
pub(crate) mod sought;
mod subquery;
mod watch;

use crate::{
    Code, Column, Outcome, Reply, Result,
    session::SessionState,
    statement::{Source, Statement},
};

pub(crate) use run::collect;
pub(crate) use runtime::{read_aside, wait_aside};

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
    let mut query = run::Query::new(session, parsed, &statement.source).await?;
    query.send(session, reply).await?;
    Ok(Outcome::default())
}

/// Warns of each `!` that stands for NOT.
fn warn_of_marks(session: &SessionState, source: &Source) {
    let marks = source.tokens.iter().filter(|token| token.is(&source.text, "!"));
    for _ in marks {
        let message =
            "'!' is deprecated and will be removed in a future release. Please use NOT instead";
        session.warn(Code::DeprecatedSyntax, message);
    }
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
    let mut query = run::Query::of(session, statement).await?;
    query.columns(session).await
}

/// Whether the statement asks for the last one's warnings or figures, and so leaves them.
pub(crate) fn keeps_diagnostics(statement: &Statement<'_>) -> bool {
    let source = &statement.source;
    let asks = ["WARNINGS", "ERRORS"].iter().any(|word| source.is_word(1, word));
    source.is_word(0, "SHOW") && (asks || source.is_word(1, "COUNT"))
}
