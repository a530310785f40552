//! Expressions over rows that are not in a table yet: the rows are a temporary table of the session meanwhile, and one
//! SELECT evaluates an expression for all of them.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Expr, Query, With};
use remora_engine::{ColumnDef, ColumnType, Row, Schema, Value};
use remora_mysql::ErrorCode;

use super::{TargetTable, evaluate::TreeQuery};
use crate::{
    Error, Result,
    catalog::{ROW_NUMBER, SqlTable, TableName},
    parse::{
        Source,
        define::query_of_stored,
        write::{column_named, in_order, limit_of, number, query_from, table_named},
    },
    state::SessionState,
    transaction::{Overlay, RowKey, TemporaryTable},
};

/// The name of the temporary table of rows.
const ROWS: &str = "#rows";

/// An expression of a statement that is evaluated for rows.
#[derive(Clone, Copy)]
pub(crate) struct RowExpression<'e> {
    /// The expression.
    pub expression: &'e Expr,
    /// The statement that it is of.
    pub source: &'e Source,
    /// WITH of the statement.
    pub with: Option<&'e With>,
}

impl<'e> RowExpression<'e> {
    /// An expression of a statement without WITH.
    pub(crate) fn of(expression: &'e Expr, source: &'e Source) -> Self {
        Self { expression, source, with: None }
    }
}

/// Evaluates an expression for each of some rows of a table, under this name.
pub(crate) async fn values_over(
    session: &mut SessionState,
    target: &TargetTable,
    alias: &str,
    rows: &[Row],
    beside: &[VariableColumn],
    of: RowExpression<'_>,
) -> Result<Vec<Value>> {
    let database = &target.name.database;
    let name = TableName::new(database.clone(), ROWS.to_owned());
    let table = numbered(&target.table, rows, "", beside);
    let from = table_named(&[database.as_str(), ROWS], Some(alias));
    let query = query_from(vec![of.expression.clone()], vec![from]);
    let query = Query { with: of.with.cloned(), ..in_order(query, column_named(&[ROW_NUMBER])) };
    let hidden = session.transaction.put_temporary(name.clone(), table);
    let found = TreeQuery { query, source: of.source }.rows(session).await;
    restore(session, name, hidden);
    let values = found?.into_iter().map(|row| row.into_iter().next().unwrap_or(Value::Null));
    Ok(values.collect())
}

/// The most conditions that one SELECT evaluates.
const CONDITIONS_AT_ONCE: usize = 32;

/// For which rows each condition holds, or the condition's error. Conditions are stored texts, read
/// in the default `sql_mode`; apart from that they mean what they mean in a SELECT from the table.
///
/// # Errors
/// Only what ends the whole statement: KILL, its time limit, its memory limit.
pub(crate) async fn conditions_over(
    session: &mut SessionState,
    target: &TargetTable,
    rows: &[Row],
    conditions: &[&str],
) -> Result<Vec<Result<Vec<bool>>>> {
    let name = TableName::new(target.name.database.clone(), ROWS.to_owned());
    let hidden =
        session.transaction.put_temporary(name.clone(), numbered(&target.table, rows, "", &[]));
    let held = conditions_held(session, target, rows.len(), conditions).await;
    restore(session, name, hidden);
    held
}

async fn conditions_held(
    session: &mut SessionState,
    target: &TargetTable,
    rows: usize,
    conditions: &[&str],
) -> Result<Vec<Result<Vec<bool>>>> {
    let ends = |error: &Error| {
        use ErrorCode::{Interrupted, OutOfMemory, QueryTimeout};
        matches!(error.code, Interrupted | OutOfMemory | QueryTimeout)
    };
    let mut held = Vec::with_capacity(conditions.len());
    for some in conditions.chunks(CONDITIONS_AT_ONCE) {
        match hold(session, target, some, rows).await {
            Ok(found) => held.extend(found.into_iter().map(Ok)),
            Err(error) if ends(&error) => return Err(error),
            // One of them fails, or together they exceed the limits of a statement.
            Err(_) => {
                for one in some.chunks(1) {
                    let found = hold(session, target, one, rows).await;
                    if let Err(error) = &found
                        && ends(error)
                    {
                        return found.map(|_| Vec::new());
                    }
                    held.push(found.map(|mut found| found.pop().unwrap_or_default()));
                }
            }
        }
    }
    Ok(held)
}

/// Evaluates at most [`CONDITIONS_AT_ONCE`] conditions over rows in a temporary table.
async fn hold(
    session: &mut SessionState,
    target: &TargetTable,
    conditions: &[&str],
    rows: usize,
) -> Result<Vec<Vec<bool>>> {
    session.check_interrupted()?;
    let each: Vec<String> =
        conditions.iter().map(|condition| format!("(({condition}) IS TRUE)")).collect();
    let from = table_named(&[&target.name.database, ROWS], Some(&target.name.table));
    let (query, source) = query_of_stored(&each, from)?;
    let limit_clause = Some(limit_of(number(rows.max(1))));
    let query = Query { limit_clause, ..in_order(query, column_named(&[ROW_NUMBER])) };
    let found = TreeQuery { query, source: &source }.rows(session).await?;
    if found.len() != rows {
        let message = "a condition must have a value for each row: it has an aggregate".to_owned();
        return Err(Error::new(ErrorCode::ParseError, message));
    }
    let of = |nth: usize| found.iter().map(|row| row.get(nth).is_some_and(is_true)).collect();
    Ok((0..conditions.len()).map(of).collect())
}

/// Puts back the table that had the name before.
pub(super) fn restore(session: &mut SessionState, name: TableName, before: Option<TemporaryTable>) {
    match before {
        Some(table) => _ = session.transaction.put_temporary(name, table),
        None => _ = session.transaction.take_temporary(&name),
    }
}

/// Whether it is the truth of a condition.
pub(super) fn is_true(value: &Value) -> bool {
    matches!(value, Value::Int(1) | Value::Uint(1) | Value::Bool(true))
}

/// A user variable with a value for each row.
pub(crate) struct VariableColumn {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<Value>,
}

impl VariableColumn {
    /// The name of its column.
    pub(crate) fn column(&self) -> String {
        format!("#@{}", self.name)
    }
}

/// The rows as a temporary table whose key is their number, with variables as additional columns.
pub(super) fn numbered(
    table: &SqlTable,
    rows: &[Row],
    prefix: &str,
    beside: &[VariableColumn],
) -> TemporaryTable {
    let mut schema = Schema::clone(&table.schema);
    let number = match table.row_number {
        Some(position) => position,
        None => {
            let id = schema.columns.iter().map(|column| column.id).max().unwrap_or(0) + 1;
            schema.columns.push(crate::catalog::row_number_column(id));
            schema.columns.len() - 1
        }
    };
    for (place, column) in schema.columns.iter_mut().enumerate() {
        if place != number {
            column.name.insert_str(0, prefix);
        }
    }
    schema.primary_key = vec![number];
    let first_id = schema.columns.iter().map(|column| column.id).max().unwrap_or(0) + 1;
    let place = schema.columns.len();
    schema.columns.extend((first_id..).zip(beside).map(|(id, beside)| ColumnDef {
        id,
        name: beside.column(),
        kind: ColumnType::Text,
        nullable: true,
        indexed: false,
        declared: None,
    }));
    let mut overlay = Overlay::default();
    for (nth, row) in rows.iter().enumerate() {
        let mut row = row.clone();
        row.resize(place, Value::Null);
        row.extend(beside.iter().map(|each| each.values.get(nth).cloned().unwrap_or(Value::Null)));
        if let Some(slot) = row.get_mut(number) {
            *slot = Value::Uint(nth as u64);
        }
        overlay.set(RowKey::of(&schema, &row), Some(Arc::new(row)));
    }
    TemporaryTable { schema: Arc::new(schema), rows: Arc::new(overlay), next: 0, next_row: 0 }
}
