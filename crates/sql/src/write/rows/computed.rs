//! Computed columns and CHECK conditions of rows that are about to be written.
//!
//! The rows become a temporary table of the session, under the table's own name for the expression,
//! and one SELECT over it gives its value for all of them.

use std::sync::Arc;

use remora_engine::{ColumnDef, ColumnType, Row, Schema, Value};
use remora_mysql::ErrorCode;

use super::{Query, RowMaker, TargetTable};
use crate::{
    Error, Result, SqlType,
    catalog::{ROW_NUMBER, SqlTable, TableName, quoted_name},
    state::SessionState,
    transaction::{Key, Overlay, TemporaryTable},
    write::convert::{Slot, year_as_given},
};

/// What the names of a new row's columns begin with, where the row that is there is read beside it.
pub(crate) const NEW_COLUMN: &str = "#new.";

/// The table of rows that expressions are evaluated over.
const ROWS: &str = "#rows";

/// The columns and conditions of a table that need a SELECT.
pub(crate) struct Computed {
    columns: Vec<(usize, String)>,
    checks: Vec<(String, String)>,
}

impl Computed {
    /// Those of a table.
    pub(crate) fn of(target: &TargetTable) -> Self {
        let columns = target.table.columns.iter().enumerate();
        let columns = columns.filter_map(|(position, spec)| {
            spec.generated.as_ref().map(|generated| (position, generated.expression.clone()))
        });
        let checks = target.table.checks.iter().filter(|check| check.enforced);
        let checks = checks.map(|check| (check.name.clone(), check.expression.clone()));
        Self { columns: columns.collect(), checks: checks.collect() }
    }

    /// Fills computed columns and checks conditions. Gives which rows may be written: all, unless
    /// what fails is let through with a warning.
    pub(crate) async fn complete(
        &self,
        session: &mut SessionState,
        target: &TargetTable,
        maker: &RowMaker,
        rows: &mut [Row],
    ) -> Result<Vec<bool>> {
        let mut kept = vec![true; rows.len()];
        if self.columns.is_empty() && self.checks.is_empty() || rows.is_empty() {
            return Ok(kept);
        }
        // A computed column may use those before it, so each has a turn.
        for (position, expression) in &self.columns {
            let values = self.over(session, target, rows, expression).await?;
            let Some(spec) = target.table.columns.get(*position) else { continue };
            let name = super::column_name(target, *position);
            let is_hidden = target.table.schema.is_computed(*position);
            for ((row, value), number) in rows.iter_mut().zip(values).zip(1..) {
                let slot = Slot { name, kind: &spec.kind, row: number };
                // What a key is over is compared with what queries compute, and not shown.
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

    /// Sets the columns that an UPDATE sets to the current moment, where it does not name them.
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

    /// An expression's value for each row.
    async fn over(
        &self,
        session: &mut SessionState,
        target: &TargetTable,
        rows: &[Row],
        expression: &str,
    ) -> Result<Vec<Value>> {
        let expression = Query::kept(expression);
        values_over(session, target, &target.name.table, rows, &[], &expression).await
    }

    /// The value of an expression over one row each of some tables, which are all made like the
    /// target; the names of all but the first one's columns begin with [`NEW_COLUMN`].
    pub(crate) async fn expression(
        &self,
        session: &mut SessionState,
        target: &TargetTable,
        rows: &[(&str, &Row)],
        expression: &str,
        parameters: &[Value],
    ) -> Result<Value> {
        let database = &target.name.database;
        let mut hidden = Vec::with_capacity(rows.len());
        let mut from = Vec::with_capacity(rows.len());
        for (place, (name, row)) in rows.iter().enumerate() {
            let name = TableName::new(database.clone(), (*name).to_owned());
            from.push(format!("{}.{}", quoted_name(database), quoted_name(&name.table)));
            let prefix = if place == 0 { "" } else { NEW_COLUMN };
            let table = numbered(&target.table, std::slice::from_ref(*row), prefix, &[]);
            let before = session.transaction.put_temporary(name.clone(), table);
            hidden.push((name, before));
        }
        let mut query = Query::new(&format!("SELECT {expression} FROM {}", from.join(",")));
        query.bind(parameters);
        let found = query.rows(session).await;
        for (name, before) in hidden.into_iter().rev() {
            restore(session, name, before);
        }
        let row = found?.into_iter().next().unwrap_or_default();
        Ok(row.into_iter().next().unwrap_or(Value::Null))
    }
}

/// A user variable that has a value for each of some rows.
pub(crate) struct Beside {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<Value>,
}

impl Beside {
    /// What the column is called that it becomes.
    pub(crate) fn column(&self) -> String {
        format!("#@{}", self.name)
    }
}

/// An expression's value for each of some rows of a table, which is called so there.
pub(crate) async fn values_over(
    session: &mut SessionState,
    target: &TargetTable,
    alias: &str,
    rows: &[Row],
    beside: &[Beside],
    expression: &Query,
) -> Result<Vec<Value>> {
    let database = &target.name.database;
    let name = TableName::new(database.clone(), ROWS.to_owned());
    let table = numbered(&target.table, rows, "", beside);
    let mut query = Query::new("SELECT ");
    query.push_query(expression);
    query.push(&format!(
        " FROM {}.{} AS {} ORDER BY {}",
        quoted_name(database),
        quoted_name(ROWS),
        quoted_name(alias),
        quoted_name(ROW_NUMBER)
    ));
    let hidden = session.transaction.put_temporary(name.clone(), table);
    let found = query.rows(session).await;
    restore(session, name, hidden);
    let values = found?.into_iter().map(|row| row.into_iter().next().unwrap_or(Value::Null));
    Ok(values.collect())
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

/// The rows as a temporary table whose key is their number, with texts as further columns.
fn numbered(table: &SqlTable, rows: &[Row], prefix: &str, beside: &[Beside]) -> TemporaryTable {
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
