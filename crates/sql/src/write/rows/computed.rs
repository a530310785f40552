//! Generated columns and CHECK conditions of rows before they are written. The rows become a temporary table of the
//! session under the name that expressions use, and one SELECT evaluates an expression for all of them.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Expr, Query};
use remora_engine::{ColumnDef, ColumnType, Row, Schema, Value};
use remora_mysql::ErrorCode;

use super::{RowMaker, TargetTable, evaluate::TreeQuery, percolate_rules::check_rules};
use crate::{
    Error, Result, SqlType,
    catalog::{ROW_NUMBER, SqlTable, TableName},
    parse::{
        Source,
        define::{parsed_expression, query_of_stored},
        write::{column_named, in_order, limit_of, number, query_from, table_named},
    },
    state::SessionState,
    transaction::{Key, Overlay, TemporaryTable},
    write::convert::{Slot, year_as_given},
};

/// The prefix of a new row's columns, where the existing row is read beside it.
pub(crate) const NEW_COLUMN: &str = "#new.";

/// The name of the temporary table of rows.
const ROWS: &str = "#rows";

/// The generated columns and conditions of a table that need a SELECT.
pub(crate) struct Computed {
    columns: Vec<(usize, String)>,
    checks: Vec<(String, String)>,
}

impl Computed {
    /// The generated columns and conditions of a table.
    pub(crate) fn of(target: &TargetTable) -> Self {
        let columns = target.table.columns.iter().enumerate();
        let columns = columns.filter_map(|(position, spec)| {
            spec.generated.as_ref().map(|generated| (position, generated.expression.clone()))
        });
        let checks = target.table.checks.iter().filter(|check| check.enforced);
        let checks = checks.map(|check| (check.name.clone(), check.expression.clone()));
        Self { columns: columns.collect(), checks: checks.collect() }
    }

    /// Computes generated columns and checks conditions. Returns which rows may be written: all, unless violations are
    /// only warnings.
    pub(crate) async fn complete(
        &self,
        session: &mut SessionState,
        target: &TargetTable,
        maker: &RowMaker,
        rows: &mut [Row],
    ) -> Result<Vec<bool>> {
        check_rules(session, target, rows).await?;
        let mut kept = vec![true; rows.len()];
        if self.columns.is_empty() && self.checks.is_empty() || rows.is_empty() {
            return Ok(kept);
        }
        // One after the other, because a generated column may read earlier ones.
        for (position, expression) in &self.columns {
            let values = self.over(session, target, rows, expression).await?;
            let Some(spec) = target.table.columns.get(*position) else { continue };
            let name = super::column_name(target, *position);
            let is_hidden = target.table.schema.is_computed(*position);
            for ((row, value), number) in rows.iter_mut().zip(values).zip(1..) {
                let slot = Slot { name, kind: &spec.kind, row: number };
                // Hidden columns of keys hold the value that queries compute, without the
                // conversion of a YEAR column.
                let value = match spec.kind.sql == SqlType::Year && is_hidden {
                    true => year_as_given(value),
                    false => maker.converter.fit(slot, value)?,
                };
                if let Some(slot) = row.get_mut(*position) {
                    *slot = value;
                }
            }
        }
        for (name, expression) in &self.checks {
            let failed = format!("({expression}) IS FALSE");
            let values = self.over(session, target, rows, &failed).await?;
            for (value, keep) in values.into_iter().zip(&mut kept) {
                if is_true(&value) {
                    let message = format!("Check constraint '{name}' is violated.");
                    if maker.converter.is_strict() || !maker.is_lenient() {
                        return Err(Error::new(ErrorCode::CheckViolated, message));
                    }
                    maker.converter.warn(ErrorCode::CheckViolated, message);
                    *keep = false;
                }
            }
        }
        Ok(kept)
    }

    /// Sets the columns with ON UPDATE CURRENT_TIMESTAMP, unless the UPDATE assigns them.
    pub(crate) fn touch(
        &self,
        target: &TargetTable,
        maker: &RowMaker,
        assigned: &[usize],
        row: &mut Row,
    ) -> Result<()> {
        for (position, spec) in target.table.columns.iter().enumerate() {
            if !spec.on_update_now || assigned.contains(&position) {
                continue;
            }
            let name = super::column_name(target, position);
            let now = maker.converter.now(Slot { name, kind: &spec.kind, row: 1 })?;
            if let Some(slot) = row.get_mut(position) {
                *slot = now;
            }
        }
        Ok(())
    }

    /// Evaluates an expression for each row.
    async fn over(
        &self,
        session: &mut SessionState,
        target: &TargetTable,
        rows: &[Row],
        expression: &str,
    ) -> Result<Vec<Value>> {
        let (expression, source) = parsed_expression(expression)?;
        let expression = (&expression, &source);
        values_over(session, target, &target.name.table, rows, &[], expression).await
    }

    /// Evaluates an expression of a statement over one row each of some tables with the target's definition. In all but
    /// the first table, column names begin with [`NEW_COLUMN`]. `beside` is a table of another definition, if there is one.
    pub(crate) async fn expression(
        &self,
        session: &mut SessionState,
        target: &TargetTable,
        rows: &[(&str, &Row)],
        beside: Option<(&Arc<Schema>, &Row)>,
        (expression, source): (&Expr, &Source),
    ) -> Result<Value> {
        let database = &target.name.database;
        let mut hidden = Vec::with_capacity(rows.len());
        let mut from = Vec::with_capacity(rows.len());
        for (place, (name, row)) in rows.iter().enumerate() {
            let name = TableName::new(database.clone(), (*name).to_owned());
            from.push(table_named(&[database.as_str(), name.table.as_str()], None));
            let prefix = if place == 0 { "" } else { NEW_COLUMN };
            let table = numbered(&target.table, std::slice::from_ref(*row), prefix, &[]);
            let before = session.transaction.put_temporary(name.clone(), table);
            hidden.push((name, before));
        }
        if let Some((schema, row)) = beside {
            let name = TableName::new(database.clone(), schema.name.clone());
            from.push(table_named(&[database.as_str(), name.table.as_str()], None));
            let mut overlay = Overlay::default();
            overlay.set(Key::of(schema, row), Some(Arc::new(row.clone())));
            let (schema, rows) = (Arc::clone(schema), Arc::new(overlay));
            let table = TemporaryTable { schema, rows, next: 0, next_row: 0 };
            let before = session.transaction.put_temporary(name.clone(), table);
            hidden.push((name, before));
        }
        let query = query_from(vec![expression.clone()], from);
        let found = TreeQuery { query, source }.rows(session).await;
        for (name, before) in hidden.into_iter().rev() {
            restore(session, name, before);
        }
        let row = found?.into_iter().next().unwrap_or_default();
        Ok(row.into_iter().next().unwrap_or(Value::Null))
    }
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

/// Evaluates an expression of a statement for each of some rows of a table, under this name.
pub(crate) async fn values_over(
    session: &mut SessionState,
    target: &TargetTable,
    alias: &str,
    rows: &[Row],
    beside: &[VariableColumn],
    (expression, source): (&Expr, &Source),
) -> Result<Vec<Value>> {
    let database = &target.name.database;
    let name = TableName::new(database.clone(), ROWS.to_owned());
    let table = numbered(&target.table, rows, "", beside);
    let from = table_named(&[database.as_str(), ROWS], Some(alias));
    let query = query_from(vec![expression.clone()], vec![from]);
    let query = in_order(query, column_named(&[ROW_NUMBER]));
    let hidden = session.transaction.put_temporary(name.clone(), table);
    let found = TreeQuery { query, source }.rows(session).await;
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

fn restore(session: &mut SessionState, name: TableName, before: Option<TemporaryTable>) {
    match before {
        Some(table) => _ = session.transaction.put_temporary(name, table),
        None => _ = session.transaction.take_temporary(&name),
    }
}

fn is_true(value: &Value) -> bool {
    matches!(value, Value::Int(1) | Value::Uint(1) | Value::Bool(true))
}

/// The rows as a temporary table whose key is their number, with variables as additional columns.
fn numbered(
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
        overlay.set(Key::of(&schema, &row), Some(Arc::new(row)));
    }
    TemporaryTable { schema: Arc::new(schema), rows: Arc::new(overlay), next: 0, next_row: 0 }
}
