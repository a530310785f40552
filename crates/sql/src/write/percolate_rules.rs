//! The rows of percolate tables: queries by keywords with conditions, which are checked before they are written, and
//! the documents that are put to them.

use std::sync::Arc;

use remora_engine::{Error as EngineError, Row, Schema, StoredQuery, Value};
use remora_mysql::ErrorCode;
use rustc_hash::FxHashSet;

use super::{
    define::{Owner, check_stored, is_parenthesised},
    rows::{RowMaker, TargetTable, computed::conditions_over, literal::CellExpr},
};
use crate::{
    Error, Result,
    catalog::{SqlTable, TableName},
    error::from_engine,
    state::SessionState,
    transaction::TableStorage,
};

/// The places of a rule's columns.
pub(crate) const ID: usize = 0;
pub(crate) const QUERY: usize = 1;
pub(crate) const TAGS: usize = 2;
pub(crate) const FILTERS: usize = 3;

/// The documents of a percolate table, as a table that nobody has.
pub(crate) struct Documents {
    target: TargetTable,
}

impl Documents {
    /// Those of a percolate table; `None` of any other.
    pub(crate) fn of(name: &TableName, schema: &Schema) -> Option<Self> {
        let table = SqlTable::once(schema.documents()?.clone());
        let place = TableStorage::Temporary(name.clone());
        Some(Self { target: TargetTable::at(name.clone(), place, table) })
    }

    /// What SQL knows of them.
    pub(crate) fn table(&self) -> &Arc<SqlTable> {
        &self.target.table
    }

    /// Their rows of the values of some columns each, as an INSERT makes them. A value that does not fit is an error
    /// with its column and the number of its document.
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

    /// Of which documents each condition holds, or its error: see [`conditions_over`].
    pub(crate) async fn conditions(
        &self,
        session: &mut SessionState,
        rows: &[Row],
        conditions: &[&str],
    ) -> Result<Vec<Result<Vec<bool>>>> {
        conditions_over(session, &self.target, rows, conditions).await
    }

    /// Refuses filters that are not a condition of a document.
    async fn check(&self, session: &mut SessionState, filters: &str) -> Result<()> {
        check_filters(filters)?;
        let held = self.conditions(session, &[], &[filters]).await?;
        held.into_iter().try_for_each(|held| held.map(drop))
    }
}

/// Refuses filters that are more than one condition, or that a statement must not evaluate for somebody else:
/// subqueries, variables and functions with effects. Filters that were not written by SQL are checked when they are read.
pub(crate) fn check_filters(filters: &str) -> Result<()> {
    let condition = format!("({filters})");
    check_stored(&condition, Owner::Filters)?;
    if is_parenthesised(&condition) {
        return Ok(());
    }
    let message = format!("the filters of a stored query are one condition: {filters}");
    Err(Error::new(ErrorCode::ParseError, message))
}

/// Refuses rows of a percolate table whose queries or filters are not understood; rows of other tables pass.
pub(super) async fn check_rules(
    session: &mut SessionState,
    target: &TargetTable,
    rows: &[Row],
) -> Result<()> {
    let Some(documents) = Documents::of(&target.name, &target.table.schema) else { return Ok(()) };
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

/// 1064 in Sphinx's words, with the table's name, for a query that is not understood.
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
