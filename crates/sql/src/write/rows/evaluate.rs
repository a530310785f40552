//! Expressions in statements that write are evaluated by SELECTs, so they have the same meaning. The SELECT is a syntax
//! tree made of the statement's own parts; it is a text where an expression was stored with a table as one, and where its
//! text finds a cached plan.

use std::{ops::Range, sync::Arc};

use datafusion::sql::sqlparser::ast::{self, Expr};
use remora_engine::Value;
use remora_mysql::LexMode;

use super::{literal::Parameters, target::TargetTable};
use crate::{
    Column, Error, Result,
    blocking::run_blocking_if_long,
    execute, output,
    parse::{
        Source, Statement, Tokens, split,
        write::{Assigned, assignments, expressions},
    },
    state::SessionState,
    transaction::Key,
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
        match run_blocking_if_long(source.is_long(), parse)? {
            ast::Statement::Query(query) => Ok(TreeQuery { query: *query, source }),
            other => Err(Error::unsupported(other)),
        }
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
        self.table(session).await.map(|(_, rows)| rows)
    }

    /// Its columns and rows.
    pub(super) async fn table(
        self,
        session: &mut SessionState,
    ) -> Result<(Vec<Column>, Vec<Vec<Value>>)> {
        query_rows(session, self.query, self.source).await
    }
}

/// The text of a SELECT, and the values of its `?`.
#[derive(Default)]
pub(crate) struct Query {
    text: Vec<u8>,
    parameters: Vec<Value>,
    /// The lexer mode, if it is not the session's.
    mode: Option<LexMode>,
}

impl Query {
    /// Starts with this text.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.as_bytes().to_vec(), ..Self::default() }
    }

    /// A stored text. It is always read in the default mode, in which it was written and checked.
    pub(crate) fn stored(text: &str) -> Self {
        Self { mode: Some(LexMode::default()), ..Self::new(text) }
    }

    /// Appends a text.
    pub(super) fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Appends tokens of the statement.
    pub(crate) fn push_tokens(
        &mut self,
        tokens: &Tokens<'_>,
        range: Range<usize>,
        parameters: &Parameters<'_>,
    ) {
        // A prepared statement is read as it was when it was prepared.
        self.mode = self.mode.or(Some(tokens.mode()));
        self.text.push(b' ');
        self.text.extend_from_slice(tokens.slice(range.clone()));
        self.text.push(b' ');
        self.parameters.extend_from_slice(parameters.within(range));
    }

    /// The keys that its condition names, in key order, if the condition does nothing else. For a SELECT of a table's
    /// key only.
    pub(super) fn keys(
        &self,
        session: &SessionState,
        target: &TargetTable,
    ) -> Result<Option<Vec<Key>>> {
        if target.engine_name().is_none() {
            return Ok(None);
        }
        let text = (self.text.as_slice(), self.mode.unwrap_or_else(|| session.lex_mode()));
        let Some(named) = execute::named_keys(session, text, &self.parameters)? else {
            return Ok(None);
        };
        let mut keys = Vec::with_capacity(named.len());
        for key in named.into_iter().map(Key) {
            if target.row(session, &key)?.is_some() {
                keys.push(key);
            }
        }
        Ok(Some(keys))
    }

    /// Its text and the values of its `?`.
    pub(super) fn into_parts(self) -> (Vec<u8>, Vec<Value>) {
        (self.text, self.parameters)
    }

    /// Its columns, without running it.
    pub(super) async fn columns(&self, session: &mut SessionState) -> Result<Vec<Column>> {
        let (query, source) = self.parsed(session.lex_mode())?;
        TreeQuery { query, source: &source }.columns(session).await
    }

    /// Its rows. If warnings are refused, the first one is an error.
    pub(crate) async fn rows(self, session: &mut SessionState) -> Result<Vec<Vec<Value>>> {
        self.table(session).await.map(|(_, rows)| rows)
    }

    /// Its columns and rows.
    pub(crate) async fn table(
        self,
        session: &mut SessionState,
    ) -> Result<(Vec<Column>, Vec<Vec<Value>>)> {
        let (query, source) = self.parsed(session.lex_mode())?;
        TreeQuery { query, source: &source }.table(session).await
    }

    /// Its syntax tree, and the text as a statement. `mode` is how it is read if nothing else is said.
    fn parsed(&self, mode: LexMode) -> Result<(ast::Query, Arc<Source>)> {
        let sources = split(&self.text, false, self.mode.unwrap_or(mode))?;
        let source = sources.into_iter().next();
        let source = Arc::new(source.ok_or_else(|| Error::unsupported("an empty query"))?);
        let statement = Statement { source: Arc::clone(&source), parameters: &self.parameters };
        match run_blocking_if_long(source.is_long(), || statement.parse())? {
            ast::Statement::Query(query) => Ok((*query, source)),
            other => Err(Error::unsupported(other)),
        }
    }
}

/// The columns and rows of a query with this text. If warnings are refused, the first one is an error.
pub(crate) async fn query_rows(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
) -> Result<(Vec<Column>, Vec<Vec<Value>>)> {
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
    Ok((rows.columns, values))
}
