//! Expressions in statements that write are evaluated by SELECTs, so they have the same meaning. The SELECT is a syntax
//! tree made of the statement's own parts.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::{self, Expr};
use remora_engine::Value;

use super::{found_rows::FoundRows, literal::Parameters};
use crate::{
    Column, Result,
    blocking::run_blocking_if_long,
    execute, output,
    parse::{
        Source, Statement, Tokens, query,
        write::{Assigned, SoughtRows, assignments, expressions},
    },
    state::SessionState,
};

/// A statement that writes, as the client sent it.
#[derive(Clone, Copy)]
pub(super) struct StatementText<'s> {
    /// The statement.
    pub statement: &'s Statement<'s>,
    /// The values of its `?`.
    pub parameters: &'s Parameters<'s>,
}

impl<'s> StatementText<'s> {
    /// Its text.
    pub(super) fn source(&self) -> &'s Source {
        &self.statement.source
    }

    /// A cursor at its first token.
    pub(super) fn tokens(&self) -> Tokens<'s> {
        let source = self.source();
        Tokens::new(&source.text, &source.tokens, source.mode)
    }

    /// A cursor at its verb, which follows WITH in an UPDATE or DELETE.
    pub(super) fn verb(&self) -> Tokens<'s> {
        let mut tokens = self.tokens();
        if tokens.is_word("WITH") {
            let is_verb = |next: &Tokens<'_>| next.is_word("UPDATE") || next.is_word("DELETE");
            // Parentheses that are not closed are left to the parser.
            let _ = tokens.skip_until(is_verb);
        }
        tokens
    }

    /// The assignments that the rest of it is.
    pub(super) fn assignments(&self, tokens: &mut Tokens<'_>) -> Result<Vec<Assigned>> {
        let (source, range) = (self.source(), tokens.take_rest());
        let parameters = self.parameters.within(range.clone());
        let parse = || assignments(source, range, parameters);
        run_blocking_if_long(source.is_long(), parse)
    }

    /// Expressions of it, by their tokens, to be planned together.
    pub(super) fn expressions(&self, ranges: &[Range<usize>]) -> Result<Vec<Expr>> {
        let all: Vec<_> = ranges
            .iter()
            .map(|range| (range.clone(), self.parameters.within(range.clone())))
            .collect();
        expressions(self.source(), &all)
    }

    /// The query that these tokens of it are.
    pub(super) fn query(&self, tokens: Range<usize>) -> Result<TreeQuery<'s>> {
        let source = self.source();
        let parameters = self.parameters.within(tokens.clone());
        let parse = || self.statement.parse_within(tokens, parameters);
        let query = run_blocking_if_long(source.is_long(), parse).and_then(query)?;
        Ok(TreeQuery { query, source })
    }
}

/// A SELECT made of parts of a statement.
pub(super) struct TreeQuery<'s> {
    /// The SELECT.
    pub query: ast::Query,
    /// The statement whose parts it has.
    pub source: &'s Source,
}

impl TreeQuery<'_> {
    /// Plans it without running it. Reports its errors, including missing rights.
    pub(super) async fn check(self, session: &mut SessionState) -> Result<()> {
        self.columns(session).await.map(|_| ())
    }

    /// Its columns, without running it.
    pub(super) async fn columns(self, session: &mut SessionState) -> Result<Vec<Column>> {
        Box::pin(execute::columns_of(session, self.query, self.source)).await
    }

    /// Its rows. If warnings are refused, the first one is an error.
    pub(super) async fn rows(self, session: &mut SessionState) -> Result<Vec<Vec<Value>>> {
        self.table(session).await.map(|found| found.rows)
    }

    /// Its columns and rows.
    pub(super) async fn table(self, session: &mut SessionState) -> Result<FoundRows> {
        query_rows(session, self.query, self.source).await
    }
}

/// The rows that a query finds for a statement, by a cached plan if it has one. If warnings are refused, the first one is
/// an error.
pub(super) async fn found_rows(
    session: &mut SessionState,
    statement: &Statement<'_>,
    sought: SoughtRows,
) -> Result<FoundRows> {
    if let Some(rows) = Box::pin(execute::found_rows(session, statement, &sought)).await? {
        // No column of these plans has labels or bits, so no value depends on its column.
        return Ok(FoundRows { columns: Vec::new(), labels: Vec::new(), rows });
    }
    TreeQuery { query: sought.query, source: &statement.source }.table(session).await
}

/// The columns and rows of a query. If warnings are refused, the first one is an error.
pub(crate) async fn query_rows(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
) -> Result<FoundRows> {
    if session.refuses_warnings {
        session.warnings.watch();
    }
    let collected = Box::pin(execute::collect(session, query, source)).await;
    session.warnings.refused()?;
    let rows = collected?;
    let mut values = Vec::new();
    for batch in &rows.batches {
        values.extend(output::rows(batch, &rows.columns));
        session.check_interrupted()?;
    }
    Ok(FoundRows { columns: rows.columns, labels: rows.labels, rows: values })
}
