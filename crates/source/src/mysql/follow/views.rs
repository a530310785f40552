//! The source's views, stored as their definitions. When a statement may have changed a view, all definitions are read
//! again, and the differences are stored in one commit with the statement's position.
//!
//! A definition is the source's at the time of reading, which may be later than the statement. Then the stream brings
//! the later statement too, and the definitions are read again. `information_schema.VIEWS` has them with all names
//! resolved, so they are not parsed here.

use std::collections::{BTreeMap, BTreeSet};

use remora_engine::DeclaredView;

use super::{applier::Applier, positions::Stored, shared::FollowState};
use crate::{
    Result,
    mysql::{
        connection::Connection,
        copy::wait_until_executed,
        quote::{quoted, quoted_text},
    },
};

/// A row of `information_schema.VIEWS`.
type Row = (
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
    String,
);

impl Applier {
    /// Reads the source's views. Differences are stored with the next commit, together with the statement's position
    /// and the tables that it changed.
    pub fn read_changed_views(&mut self) -> Result<()> {
        wait_until_executed(&mut self.source, &self.applied)?;
        self.changed_views = changed(&mut self.source, &self.shared)?;
        Ok(())
    }
}

/// The views' definitions that differ from the stored ones.
///
/// # Errors
/// Those of [`Connection::rows`].
pub(super) fn changed(source: &mut Connection, shared: &FollowState) -> Result<Vec<Stored>> {
    let name = &shared.settings.name;
    let mut views = read(source, shared)?;
    let positions = shared.database.source_positions();
    let mut changed = Vec::new();
    for (position, kept) in positions.iter() {
        let Some(view) = DeclaredView::name_of(position) else { continue };
        let read = views.remove(view);
        let is_own =
            DeclaredView::read(kept).is_some_and(|kept| kept.source.as_ref() == Some(name));
        match read {
            Some(_) if !is_own => {
                tracing::warn!(
                    "the view {view} of {name} is not followed: there is another of that name"
                );
            }
            Some(read) if read.written() != kept => {
                changed.push((position.to_owned(), read.written()));
            }
            None if is_own => changed.push((position.to_owned(), String::new())),
            Some(_) | None => {}
        }
    }
    changed.extend(views.iter().map(|(view, read)| (DeclaredView::position(view), read.written())));
    Ok(changed)
}

/// The selected views of the source, by `database.view`.
fn read(source: &mut Connection, shared: &FollowState) -> Result<BTreeMap<String, DeclaredView>> {
    let rows: Vec<Row> = source.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION, CHECK_OPTION, DEFINER, SECURITY_TYPE, \
         CHARACTER_SET_CLIENT, COLLATION_CONNECTION FROM information_schema.VIEWS \
         WHERE TABLE_SCHEMA NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')",
    )?;
    let rows: Vec<Row> =
        rows.into_iter().filter(|row| shared.selection.matches(&row.0, &row.1)).collect();
    let mut columns = columns(source, &rows)?;
    let mut views = BTreeMap::new();
    for row in rows {
        let view = format!("{}.{}", row.0, row.1);
        let columns = columns.remove(&view).unwrap_or_default();
        let declared = declared(row, &columns, &shared.settings.name);
        if let Some(reason) = &declared.refused {
            tracing::warn!("the view {view} cannot be read: {reason}");
        }
        views.insert(view, declared);
    }
    Ok(views)
}

/// The columns of all tables and views in the databases of these views, by `database.table`.
fn columns(source: &mut Connection, rows: &[Row]) -> Result<BTreeMap<String, Vec<String>>> {
    let databases: BTreeSet<String> = rows.iter().map(|row| quoted_text(&row.0)).collect();
    let mut columns = BTreeMap::<String, Vec<String>>::new();
    if databases.is_empty() {
        return Ok(columns);
    }
    let databases: Vec<String> = databases.into_iter().collect();
    let named: Vec<(String, String, String)> = source.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA IN ({}) ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
        databases.join(", ")
    ))?;
    for (database, table, column) in named {
        columns.entry(format!("{database}.{table}")).or_default().push(column);
    }
    Ok(columns)
}

/// A view in stored form.
fn declared(row: Row, columns: &[String], source: &str) -> DeclaredView {
    let (database, view, select, check, definer, security, client, connection) = row;
    let select = select.unwrap_or_default();
    let definer = definer.unwrap_or_default();
    let (user, host) = definer.rsplit_once('@').unwrap_or((&definer, "%"));
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let columns = match columns.is_empty() {
        true => String::new(),
        false => format!(" ({})", columns.join(",")),
    };
    let check = check.filter(|check| matches!(check.as_str(), "CASCADED" | "LOCAL"));
    let check = check.map_or_else(String::new, |check| format!(" WITH {check} CHECK OPTION"));
    let security = match security.as_deref() {
        Some("INVOKER") => "INVOKER",
        _ => "DEFINER",
    };
    let refused = select.is_empty().then(|| {
        let name = format!("{}.{}", quoted(&database), quoted(&view));
        format!("its definition is not shown to the account of the source: GRANT SHOW VIEW ON {name} there")
    });
    DeclaredView {
        statement: format!(
            "CREATE ALGORITHM=UNDEFINED DEFINER={}@{} SQL SECURITY {security} VIEW {}.{}{columns} AS \
             {select}{check}",
            quoted(user),
            quoted(host),
            quoted(&database),
            quoted(&view),
        ),
        character_set_client: client,
        collation_connection: connection,
        source: Some(source.to_owned()),
        refused,
    }
}
