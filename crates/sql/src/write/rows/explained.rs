//! EXPLAIN of statements that write: explains the SELECT by which they find their rows. Nothing is run. That SELECT is a
//! text here, because a plan by its shape is found by its text.

use std::sync::Arc;

use super::{
    delete,
    evaluate::{Query, StatementText},
    insert, parameters, update,
};
use crate::{
    Error, Outcome, Reply, Result,
    execute::{self, Writing},
    parse::{Kind, Statement, split},
    state::SessionState,
};

/// What EXPLAIN needs of a statement that writes.
pub(super) struct Explained {
    /// INSERT, REPLACE, UPDATE or DELETE.
    pub verb: &'static str,
    /// The names or aliases of the tables that it changes.
    pub targets: Vec<String>,
    /// The SELECT that finds its rows; `None` if its text holds them.
    pub query: Option<Query>,
}

/// Runs EXPLAIN of any statement.
pub(crate) async fn explain<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let asked = execute::explained(statement)?;
    if asked.statement.kind() != Kind::Rows {
        return execute::explain(session, &asked, reply).await;
    }
    if asked.is_analysis {
        return Err(Error::unsupported("EXPLAIN ANALYZE of a statement that writes"));
    }
    let told = explain_statement(session, &asked.statement).await?;
    let (text, values) = match told.query {
        Some(query) => query.into_parts(),
        None => (Vec::new(), Vec::new()),
    };
    let source = split(&text, false, session.lex_mode())?.pop();
    let select = source.map(|source| Statement { source: Arc::new(source), parameters: &values });
    let writing = Writing { verb: told.verb, targets: told.targets, select };
    execute::explain_write(session, asked.format, &writing, reply).await
}

/// Parses and checks a statement without running it.
async fn explain_statement(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Explained> {
    let source = &statement.source;
    let text = StatementText { statement, parameters: &parameters(statement) };
    let tokens = text.tokens();
    match () {
        () if tokens.is_word("INSERT") || tokens.is_word("REPLACE") => {
            insert::explained(session, text).await
        }
        () if tokens.is_word("UPDATE") => update::explained_update(session, text).await,
        () if tokens.is_word("DELETE") => delete::explained_delete(session, text),
        () if tokens.is_word("LOAD") => Err(source.syntax_error(0)),
        () => Err(Error::unsupported(source.shown())),
    }
}
