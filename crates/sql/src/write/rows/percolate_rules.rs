//! The rows of percolate tables: keyword queries with filters, which are checked before they are
//! written, and the documents that are matched with them.

use std::sync::Arc;

use remora_engine::{Error as EngineError, Row, Schema, StoredQuery, Value};
use remora_mysql::ErrorCode;
use rustc_hash::FxHashSet;

use super::{RowMaker, TargetTable, literal::CellExpr, over_rows::conditions_over};
use crate::{
    Error, Result,
    catalog::{SqlTable, TableName},
    error::from_engine,
    parse::define::is_parenthesised,
    state::SessionState,
    transaction::TableStorage,
    write::stored::{Owner, check_stored},
};

/// The positions of a rule's columns.
pub(crate) const ID: usize = 0;
pub(crate) const QUERY: usize = 1;
pub(crate) const TAGS: usize = 2;
pub(crate) const FILTERS: usize = 3;

/// The documents of a percolate table, in the form of a table that is stored nowhere.
pub(crate) struct PercolateDocuments {
    target: TargetTable,
}

impl PercolateDocuments {
    /// The documents of a percolate table; `None` for any other table.
    pub(crate) fn of(name: &TableName, schema: &Schema) -> Option<Self> {
        let table = SqlTable::once(schema.documents()?.clone());
        let place = TableStorage::Temporary(name.clone());
        Some(Self { target: TargetTable::at(name.clone(), place, table) })
    }

    /// The declaration of the documents in SQL.
    pub(crate) fn table(&self) -> &Arc<SqlTable> {
        &self.target.table
    }

    /// Makes rows of values given for some columns, as INSERT does. A value that does not fit is an
    /// error that names the column and the document's number.
    pub(crate) async fn rows(
        &self,
        session: &mut SessionState,
        documents: Vec<Vec<(usize, Value)>>,
    ) -> Result<Vec<Row>> {
        let mut maker = RowMaker::new(session, &self.target, false).await?;
        let mut rows = Vec::with_capacity(documents.len());
        for (number, values) in (1..).zip(documents) {
            session.check_interrupted()?;
            let (columns, given): (Vec<usize>, Vec<CellExpr>) =
                values.into_iter().map(|(column, value)| (column, CellExpr::Value(value))).unzip();
            rows.push(maker.row(session, &self.target, &columns, &given, number)?);
        }
        Ok(rows)
    }

    /// Evaluates conditions: for which documents each one holds, or its error. See
    /// [`conditions_over`].
    pub(crate) async fn conditions(
        &self,
        session: &mut SessionState,
        rows: &[Row],
        conditions: &[&str],
    ) -> Result<Vec<Result<Vec<bool>>>> {
        conditions_over(session, &self.target, rows, conditions).await
    }

    /// Checks that filters are a condition on the documents.
    async fn check(&self, session: &mut SessionState, filters: &str) -> Result<()> {
        check_filters(filters)?;
        let held = self.conditions(session, &[], &[filters]).await?;
        held.into_iter().try_for_each(|held| held.map(drop))
    }
}

/// Refuses filters that are more than one condition, or that must not be evaluated for another
/// user: subqueries, variables and functions with effects. Filters that were not written by SQL are
/// checked when they are read.
pub(crate) fn check_filters(filters: &str) -> Result<()> {
    let condition = format!("({filters})");
    check_stored(&condition, Owner::Filters)?;
    if is_parenthesised(&condition) {
        return Ok(());
    }
    let message = format!("the filters of a stored query are one condition: {filters}");
    Err(Error::new(ErrorCode::ParseError, message))
}

/// Refuses rows of a percolate table whose query or filters cannot be parsed. Does nothing for
/// other tables.
pub(super) async fn check_rules(
    session: &mut SessionState,
    target: &TargetTable,
    rows: &[Row],
) -> Result<()> {
    let Some(documents) = PercolateDocuments::of(&target.name, &target.table.schema) else {
        return Ok(());
    };
    let mut known = FxHashSet::default();
    for row in rows {
        session.check_progress()?;
        let query = text_of(row, QUERY);
        StoredQuery::new(&documents.table().schema, query)
            .map_err(|error| refused(&target.name, &error))?;
        let filters = text_of(row, FILTERS).trim();
        if !filters.is_empty() && known.insert(filters) {
            documents.check(session, filters).await?;
        }
    }
    Ok(())
}

/// 1064 with Sphinx's message and the table's name, for a query that cannot be parsed.
pub(crate) fn refused(table: &TableName, error: &EngineError) -> Error {
    match error {
        EngineError::Request { message, .. } => {
            Error::new(ErrorCode::ParseError, format!("table {}: {message}", table.table))
        }
        error => from_engine(error),
    }
}

/// The text of a column of a rule.
pub(crate) fn text_of(row: &[Value], column: usize) -> &str {
    match row.get(column) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}
