//! SHOW CREATE VIEW, `information_schema.VIEWS`, and views in lists of tables.

use remora_engine::Value;
use remora_mysql::Collation;

use super::{
    grid::{Grid, text},
    tables::{self, CATALOG},
};
use crate::{
    Access, Error, Result,
    catalog::{ColumnSpec, TableName, Verb, View},
    state::SessionState,
};

/// The view of this name, if no table has it; 1142 if it may not be read.
pub(super) fn find(session: &SessionState, name: &TableName) -> Result<Option<View>> {
    let reader = session.reader();
    if !View::is_there(&reader, name) {
        return Ok(None);
    }
    let is_table = session.transaction.temporary(name).is_some()
        || reader.schema(&name.engine_name(&session.shared)).is_ok();
    if is_table {
        return Ok(None);
    }
    name.check(&session.identity, Verb::Show)?;
    View::find(&reader, name)
}

/// The names of all views that the session may read, sorted by database and name.
pub(super) fn names(session: &SessionState) -> Vec<TableName> {
    let reader = session.reader();
    let is_shown = |name: &TableName| {
        session.identity.may(&name.database, &name.table, Access::Read)
            && reader.schema(&name.engine_name(&session.shared)).is_err()
    };
    let mut names: Vec<TableName> = View::names(&reader).filter(is_shown).collect();
    names.sort_by(|a, b| (&a.database, &a.table).cmp(&(&b.database, &b.table)));
    names
}

/// The result of SHOW CREATE VIEW.
pub(super) fn created(session: &SessionState, view: &View) -> Grid {
    let mut grid = Grid::new(&[
        "View varchar(64) NOT NULL",
        "`Create View` longtext NOT NULL",
        "character_set_client varchar(32) NOT NULL",
        "collation_connection varchar(64) NOT NULL",
    ]);
    let made = view.head.written(&view.name, &view.select, session.database.as_deref());
    let declared = &view.declared;
    grid.push(vec![
        text(&view.name.table),
        text(made),
        text(&declared.character_set_client),
        text(&declared.collation_connection),
    ]);
    grid
}

/// The rows of VIEWS.
pub(super) fn rows(session: &SessionState) -> Vec<Vec<Value>> {
    let reader = session.reader();
    let row = |name: TableName| {
        let view = View::find(&reader, &name).ok().flatten()?;
        let (user, host) = view.head.definer.clone().unwrap_or_default();
        Some(vec![
            text(CATALOG),
            text(&name.database),
            text(&name.table),
            text(&view.select),
            text(view.head.check.unwrap_or("NONE")),
            text("NO"),
            text(format!("{user}@{host}")),
            text(view.head.security.unwrap_or("DEFINER")),
            text(&view.declared.character_set_client),
            text(&view.declared.collation_connection),
        ])
    };
    names(session).into_iter().filter_map(row).collect()
}

/// A row of TABLES.
pub(super) fn table_row(name: &TableName, started: &Value) -> Vec<Value> {
    let mut row = vec![text(CATALOG), text(&name.database), text(&name.table), text("VIEW")];
    row.extend(std::iter::repeat_n(Value::Null, 10));
    row.push(started.clone());
    row.extend(std::iter::repeat_n(Value::Null, 5));
    row.push(text("VIEW"));
    row
}

/// The rows of COLUMNS that describe a view. None unless its columns were determined for the
/// running statement.
pub(super) fn column_rows(session: &SessionState, name: &TableName) -> Result<Vec<Vec<Value>>> {
    let described = session.described_views.lock();
    let Some(columns) = described.columns.get(name) else { return Ok(Vec::new()) };
    let columns = columns.as_ref().map_err(Error::clone)?;
    let rows = columns.iter().zip(1_u64..).map(|(column, position)| {
        let spec = ColumnSpec::of_result(column, Collation::UTF8MB4_0900_AI_CI);
        tables::column_row(name, &column.name, &spec, position, "", false)
    });
    Ok(rows.collect())
}
