//! Relations in an UPDATE or DELETE that cannot be changed: derived tables, common table expressions and JSON_TABLE. A
//! column name that they share with a table is ambiguous, and a column that only they have cannot be assigned.

use datafusion::sql::sqlparser::ast::TableFactor;
use remora_mysql::ErrorCode;

use super::{
    evaluate::TreeQuery,
    named::{NamedTable, assigned_column, is_of_with, relations},
};
use crate::{
    Error, Result,
    parse::{
        Source,
        write::{Assigned, ChangedRows, Listed, column_named},
    },
    state::SessionState,
};

/// Checks the assignments of an UPDATE with such relations: errors 1052, 1054, 1288.
pub(super) async fn check_assigned(
    session: &mut SessionState,
    source: &Source,
    rows: &ChangedRows,
    assignments: &[Assigned],
    named: &[NamedTable],
) -> Result<()> {
    let derived = aliases(rows);
    if derived.is_empty() {
        return Ok(());
    }
    let read = Read { source, rows };
    // All names are checked with one plan first. Only if that fails is each checked alone.
    let are_found = read.has_all(session, assignments).await;
    for Assigned { path, .. } in assignments {
        if !are_found {
            read.find(session, path).await?;
        }
        if assigned_column(session, path, named).is_err()
            && let Some(alias) = read.alias_of(session, path, &derived).await
        {
            return Err(not_updatable(alias, "UPDATE"));
        }
    }
    Ok(())
}

/// Error 1288 if a DELETE is from such a relation.
pub(super) fn check_deleted(rows: &ChangedRows, listed: Option<&[Listed]>) -> Result<()> {
    let derived = aliases(rows);
    let is_derived = |(database, table): &&Listed| database.is_none() && derived.contains(table);
    match listed {
        None => derived.first(),
        Some(listed) => listed.iter().find(is_derived).map(|(_, table)| table),
    }
    .map_or(Ok(()), |alias| Err(not_updatable(alias, "DELETE")))
}

fn not_updatable(alias: &str, verb: &str) -> Error {
    let message = format!("The target table {alias} of the {verb} is not updatable");
    Error::new(ErrorCode::NotUpdatable, message)
}

/// The FROM clause of an UPDATE.
struct Read<'r> {
    source: &'r Source,
    rows: &'r ChangedRows,
}

impl Read<'_> {
    /// Whether a SELECT can name all these columns.
    async fn has_all(&self, session: &mut SessionState, assignments: &[Assigned]) -> bool {
        let columns = assignments.iter().map(|each| column_named(&each.path)).collect();
        let query = self.rows.select_any(columns, None);
        TreeQuery { query, source: self.source }.check(session).await.is_ok()
    }

    /// The error of a column name, as a SELECT reports it.
    async fn find(&self, session: &mut SessionState, path: &[String]) -> Result<()> {
        let query = self.rows.select_any(vec![column_named(path)], Some(0));
        TreeQuery { query, source: self.source }.rows(session).await.map(|_| ())
    }

    /// The alias of the relation that has a column of this name.
    async fn alias_of<'a>(
        &self,
        session: &mut SessionState,
        path: &[String],
        derived: &'a [String],
    ) -> Option<&'a String> {
        let [name] = path else {
            let said = path.first()?;
            return derived.iter().find(|alias| *alias == said);
        };
        for alias in derived {
            if self.find(session, &[alias.clone(), name.clone()]).await.is_ok() {
                return Some(alias);
            }
        }
        None
    }
}

/// The aliases of derived tables, common table expressions and JSON_TABLEs in a FROM clause.
fn aliases(rows: &ChangedRows) -> Vec<String> {
    let alias = |relation: &TableFactor| match relation {
        TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::JsonTable { alias: Some(alias), .. } => Some(alias.name.value.clone()),
        TableFactor::Table { name, alias, .. } if is_of_with(name, rows.with.as_ref()) => {
            let name = name.0.last().and_then(|part| part.as_ident());
            let alias = alias.as_ref().map(|alias| &alias.name);
            alias.or(name).map(|name| name.value.clone())
        }
        _ => None,
    };
    relations(&rows.tables).into_iter().filter_map(alias).collect()
}
