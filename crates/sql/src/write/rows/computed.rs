//! Generated columns and CHECK conditions of rows before they are written. The rows become a temporary table of the
//! session under the name that expressions use, and one SELECT evaluates an expression for all of them.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Expr;
use remora_engine::{Row, Schema, Value};
use remora_mysql::ErrorCode;

use super::{
    RowMaker, TargetTable,
    evaluate::TreeQuery,
    over_rows::{RowExpression, is_true, numbered, restore, values_over},
    percolate_rules::check_rules,
};
use crate::{
    Error, Result, SqlType,
    catalog::TableName,
    parse::{
        Source,
        define::parsed_expression,
        write::{query_from, table_named},
    },
    state::SessionState,
    transaction::{Overlay, RowKey, TemporaryTable},
    write::convert::{TargetColumn, year_as_given},
};

/// The prefix of a new row's columns, where the existing row is read beside it.
pub(crate) const NEW_COLUMN: &str = "#new.";

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
                let slot = TargetColumn { name, kind: &spec.kind, row: number };
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
            let now = maker.converter.now(TargetColumn { name, kind: &spec.kind, row: 1 })?;
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
        let expression = RowExpression::of(&expression, &source);
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
            overlay.set(RowKey::of(schema, row), Some(Arc::new(row.clone())));
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
