//! EXPLAIN of statements that write: explains the query by which they find their rows. Nothing is run.

use super::{delete, evaluate::StatementText, insert, parameters, update};
use crate::{
    Error, Outcome, Reply, Result, execute,
    parse::{Statement, StatementKind},
    state::SessionState,
};

/// Runs EXPLAIN of any statement.
pub(crate) async fn explain<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let asked = execute::explained(statement)?;
    let statement = &asked.statement;
    if statement.kind() != StatementKind::Rows {
        return execute::explain(session, &asked, reply).await;
    }
    if asked.is_analysis {
        return Err(Error::unsupported("EXPLAIN ANALYZE of a statement that writes"));
    }
    let source = &statement.source;
    let text = StatementText { statement, parameters: &parameters(statement) };
    let tokens = text.verb();
    let writing = match () {
        () if tokens.is_word("INSERT") || tokens.is_word("REPLACE") => {
            insert::explained(session, text).await?
        }
        () if tokens.is_word("UPDATE") => update::explained_update(session, text).await?,
        () if tokens.is_word("DELETE") => delete::explained_delete(session, text)?,
        () if tokens.is_word("LOAD") => return Err(source.syntax_error(0)),
        () => return Err(Error::unsupported(source.shown())),
    };
    execute::explain_write(session, asked.format, &writing, reply).await
}
