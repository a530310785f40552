//! The columns that CREATE TABLE … AS SELECT makes of those of its query.

use datafusion::sql::sqlparser::ast::{Query, SetExpr};

use super::draft::{Draft, DraftColumn};
use crate::{
    Column, Result, SqlType,
    catalog::{ColumnSpec, DefaultSpec, TableName, Verb},
    state::SessionState,
    write::rows::{NamedTable, named_tables_without, table_of},
};

/// The tables in the FROM clause of a query, without derived tables and those of its WITH.
pub(super) fn tables_of(session: &SessionState, query: &Query) -> Result<Vec<NamedTable>> {
    let SetExpr::Select(select) = &*query.body else { return Ok(Vec::new()) };
    named_tables_without(session, &select.from, query.with.as_ref())
}

/// Adds columns for those of a query that the statement does not list. `tables` are in its FROM clause. Returns the
/// positions of the query's columns.
pub(super) fn add_selected(
    session: &SessionState,
    draft: &mut Draft,
    columns: &[Column],
    tables: &[NamedTable],
) -> Vec<usize> {
    let mut places = Vec::with_capacity(columns.len());
    for column in columns {
        if let Some(place) = draft.column(&column.name) {
            places.push(place);
            continue;
        }
        let plain = ColumnSpec::of_result(column, draft.options.collation);
        let spec = match known(session, column) {
            Some(known) if known.kind.multi().is_none() => declared(column, tables, known, plain),
            _ => plain,
        };
        draft.columns.push(DraftColumn { name: column.name.clone(), spec, id: None });
        places.push(draft.columns.len() - 1);
    }
    places
}

/// The declaration of the column of a table that a column of the query is.
fn known(session: &SessionState, column: &Column) -> Option<ColumnSpec> {
    if column.original_table.is_empty() {
        return None;
    }
    let name = TableName::new(column.database.clone(), column.original_table.clone());
    let table = table_of(session, &name, Verb::Select).ok()?;
    table.columns.get(table.column(&column.original_name)?).cloned()
}

/// The declaration of a column that is one of a table: as there, but neither AUTO_INCREMENT nor computed nor invisible.
/// Behind a derived table or a view a default becomes 0 or empty.
fn declared(
    column: &Column,
    tables: &[NamedTable],
    known: ColumnSpec,
    plain: ColumnSpec,
) -> ColumnSpec {
    let is_table = |table: &NamedTable| {
        table.alias == column.table && table.name.table == column.original_table
    };
    let is_direct = tables.iter().any(is_table);
    let is_computed = known.generated.is_some();
    let default = match known.default {
        _ if is_computed => DefaultSpec::None,
        _ if known.auto_increment => DefaultSpec::Constant(b"0".to_vec()),
        DefaultSpec::Expression(text) => DefaultSpec::Expression(text),
        DefaultSpec::Bits(_) => DefaultSpec::None,
        DefaultSpec::Constant(_) if !is_direct && column.not_null => implicit(&known),
        default if is_direct => default,
        _ => DefaultSpec::None,
    };
    ColumnSpec {
        kind: known.kind,
        default,
        on_update_now: known.on_update_now && is_direct && !is_computed,
        comment: known.comment,
        ..plain
    }
}

/// The default that takes the place of another one: 0, an empty text or the first label.
fn implicit(spec: &ColumnSpec) -> DefaultSpec {
    let kind = &spec.kind;
    match kind.sql {
        SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_) | SqlType::Time(_) => {
            DefaultSpec::None
        }
        SqlType::Enum => {
            let first = kind.labels.first();
            DefaultSpec::Constant(first.map_or_else(Vec::new, |label| label.as_bytes().to_vec()))
        }
        SqlType::Set | SqlType::Char | SqlType::VarChar => DefaultSpec::Constant(Vec::new()),
        _ if kind.is_blob() || kind.sql == SqlType::Json => DefaultSpec::None,
        _ => DefaultSpec::Constant(b"0".to_vec()),
    }
}
