//! Expressions in statements that write are evaluated as SELECTs, so they have the same meaning.

use std::{ops::Range, sync::Arc};

use datafusion::sql::sqlparser::ast;
use remora_engine::Value;
use remora_mysql::LexMode;

use super::{literal::Parameters, target::TargetTable};
use crate::{
    Column, Error, Result, execute, output,
    parse::{Source, Statement, Tokens, split},
    state::SessionState,
    transaction::Key,
};

/// The text of a SELECT, and the values of its `?`.
#[derive(Default)]
pub(crate) struct Query {
    text: Vec<u8>,
    parameters: Vec<Value>,
    /// Whether it contains expressions stored with a table, which an earlier version may have
    /// written.
    is_kept: bool,
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

    /// A text stored with a table, which an earlier version may have written.
    pub(crate) fn kept(text: &str) -> Self {
        Self { is_kept: true, ..Self::stored(text) }
    }

    /// Appends a text.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Appends tokens of the statement.
    pub(crate) fn push_tokens(
        &mut self,
        tokens: &Tokens<'_>,
        range: Range<usize>,
        parameters: &Parameters<'_>,
    ) {
        self.text.push(b' ');
        self.text.extend_from_slice(tokens.slice(range.clone()));
        self.text.push(b' ');
        self.parameters.extend_from_slice(parameters.within(range));
    }

    /// Appends another query. All is then read in that query's mode, so the text around it must
    /// mean the same in every mode.
    pub(crate) fn push_query(&mut self, other: &Self) {
        self.text.extend_from_slice(&other.text);
        self.parameters.extend_from_slice(&other.parameters);
        self.is_kept |= other.is_kept;
        self.mode = self.mode.or(other.mode);
    }

    /// Appends values of `?`.
    pub(crate) fn bind(&mut self, parameters: &[Value]) {
        self.parameters.extend_from_slice(parameters);
    }

    /// The keys that its condition names, in key order, if the condition does nothing else. For a SELECT of a table's
    /// key only.
    pub(crate) fn keys(
        &self,
        session: &SessionState,
        target: &TargetTable,
    ) -> Result<Option<Vec<Key>>> {
        if target.engine_name().is_none() {
            return Ok(None);
        }
        let Some(named) = execute::named_keys(session, &self.text, &self.parameters)? else {
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

    /// Plans it without running it. Reports its errors, including missing rights.
    pub(crate) async fn check(self, session: &mut SessionState) -> Result<()> {
        self.columns(session).await.map(|_| ())
    }

    /// Its columns, without running it.
    pub(super) async fn columns(&self, session: &mut SessionState) -> Result<Vec<Column>> {
        let sources = split(&self.text, false, self.mode.unwrap_or_else(|| session.lex_mode()))?;
        let Some(source) = sources.into_iter().next() else { return Ok(Vec::new()) };
        let source = Source { is_kept: self.is_kept, ..source };
        let statement = Statement { source: Arc::new(source), parameters: &self.parameters };
        Box::pin(execute::columns(session, &statement)).await
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
        let sources = split(&self.text, false, self.mode.unwrap_or_else(|| session.lex_mode()))?;
        let source = sources.into_iter().next();
        let source = source.ok_or_else(|| Error::unsupported("an empty query"))?;
        let source = Arc::new(Source { is_kept: self.is_kept, ..source });
        let parameters = &self.parameters;
        let statement = Statement { source: Arc::clone(&source), parameters };
        let query = match statement.parse()? {
            ast::Statement::Query(query) => *query,
            other => return Err(Error::unsupported(other)),
        };
        query_rows(session, query, &source).await
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
