//! System tables: information_schema and performance_schema as MySQL 9.7 declares them, and what tools read of `mysql` and
//! `sys`. Tables for features that do not exist here have no rows, as those of performance_schema in a MySQL where it is
//! off.
//!
//! `system_tables.txt` holds their columns:
//!
//! ```text
//! file   := (table column*)*
//! table  := database "." name "\n"
//! column := "  " name " " declaration "\n"        as CREATE TABLE has them
//! ```

use std::sync::{Arc, LazyLock};

use datafusion::catalog::TableProvider;
use remora_engine::Value;
use remora_mysql::{CHARSETS, COLLATIONS, Collation};

use super::{
    grid::{Grid, maybe, text, unknown_table},
    keys, privileges, processes,
    requested_tables::RequestedTables,
    server,
    tables::{self, CATALOG, ListedTable},
    views,
};
use crate::{
    Access, Result,
    catalog::{
        ColumnSpec, TableName, database_collation, database_exists, databases, may_see,
        parse_column,
    },
    state::SessionState,
};

/// Databases whose system tables are not listed.
const UNLISTED: [&str; 3] = ["mysql", "remora", "sys"];

/// The version of the `sys` database that MySQL 9.7 has.
const SYS_VERSION: &str = "2.1.3";

/// A system table.
pub(super) struct SystemTable {
    /// Its name.
    pub(super) name: TableName,
    /// The names and declarations of its columns.
    pub(super) columns: Vec<(String, ColumnSpec)>,
}

/// All system tables, sorted by name.
pub(super) fn system_tables() -> &'static [SystemTable] {
    static TABLES: LazyLock<Vec<SystemTable>> =
        LazyLock::new(|| read(include_str!("system_tables.txt")));
    &TABLES
}

/// The listed system tables that were requested.
fn listed_tables(requested_tables: &RequestedTables) -> impl Iterator<Item = &'static SystemTable> {
    let is_listed = |table: &&SystemTable| !UNLISTED.contains(&&*table.name.database);
    system_tables().iter().filter(is_listed).filter(move |table| requested_tables.has(&table.name))
}

fn read(declared: &str) -> Vec<SystemTable> {
    let mut tables: Vec<SystemTable> = Vec::new();
    for line in declared.lines() {
        match line.strip_prefix("  ") {
            None => {
                let (database, table) = line.split_once('.').unwrap_or(("", line));
                let name = TableName::new(database, table);
                tables.push(SystemTable { name, columns: Vec::new() });
            }
            Some(column) => {
                let (name, declaration) = column.split_once(' ').unwrap_or((column, ""));
                let spec = parse_column(declaration, Collation::UTF8MB3_GENERAL_CI);
                if let (Some(table), Some(spec)) = (tables.last_mut(), spec) {
                    table.columns.push((name.to_owned(), spec));
                }
            }
        }
    }
    tables
}

/// Whether all tables of a database are system tables.
pub(super) fn is_system(database: &str) -> bool {
    ["information_schema", "performance_schema"]
        .iter()
        .any(|system| system.eq_ignore_ascii_case(database))
}

/// Whether a table is a system table. Those of `mysql`, `sys` and `remora` can be read but are not
/// listed. Otherwise a dump would contain `mysql.user`, and loading it would overwrite another
/// server's accounts.
pub(super) fn is_systems(name: &TableName) -> bool {
    is_system(&name.database) || UNLISTED.contains(&&*name.database) && find(name).is_ok()
}

/// The system table of this name, ignoring case; 1109 or 1146 if there is none.
pub(super) fn find(name: &TableName) -> Result<&'static SystemTable> {
    let found = system_tables().iter().find(|table| {
        table.name.database.eq_ignore_ascii_case(&name.database)
            && table.name.table.eq_ignore_ascii_case(&name.table)
    });
    let missing = || match name.database.eq_ignore_ascii_case("information_schema") {
        true => unknown_table(&TableName::new("information_schema", name.table.to_uppercase())),
        false => name.missing(),
    };
    found.ok_or_else(missing)
}

/// The system table with at least the rows about the requested tables.
pub(super) fn provider(
    session: &SessionState,
    name: &TableName,
    requested_tables: &RequestedTables,
) -> Result<Arc<dyn TableProvider>> {
    let table = find(name)?;
    let mut grid = Grid::of_table(table.name.clone(), &table.columns);
    grid.rows = rows(session, &table.name, requested_tables)?;
    grid.provider()
}

/// The rows of a system table, at least those about the requested tables.
pub(super) fn rows(
    session: &SessionState,
    name: &TableName,
    requested_tables: &RequestedTables,
) -> Result<Vec<Vec<Value>>> {
    match name.database.as_str() {
        "performance_schema" => return performance(session, &name.table),
        "mysql" if name.table == "user" => return Ok(privileges::accounts(session)),
        "mysql" => return Ok(Vec::new()),
        "sys" => return Ok(vec![vec![text(SYS_VERSION), text(&session.shared.settings.version)]]),
        "remora" => {
            let known = tables::all(session)?;
            let rows = known.iter().map(|known| keys::usage(session, known));
            return Ok(rows.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect());
        }
        _ => {}
    }
    let each = |rows: &dyn Fn(&ListedTable) -> Vec<Vec<Value>>| -> Result<Vec<Vec<Value>>> {
        Ok(tables::among(session, requested_tables)?.iter().flat_map(rows).collect())
    };
    Ok(match name.table.as_str() {
        "SCHEMATA" => schemata(session),
        "TABLES" => all_tables(session, requested_tables)?,
        "COLUMNS" => columns(session, requested_tables)?,
        "VIEWS" => views::rows(session),
        "STATISTICS" => {
            let known = tables::among(session, requested_tables)?;
            let rows = known.iter().map(|known| keys::statistics(session, known));
            rows.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        }
        "KEY_COLUMN_USAGE" => each(&keys::column_usage)?,
        "TABLE_CONSTRAINTS" => each(&keys::constraints)?,
        "CHECK_CONSTRAINTS" => each(&keys::checks)?,
        "REFERENTIAL_CONSTRAINTS" => {
            let all = tables::all(session)?;
            let those = all.iter().filter(|known| requested_tables.has(&known.name));
            those.flat_map(|known| keys::references(known, &all)).collect()
        }
        "PARTITIONS" => partitions(session, requested_tables)?,
        "CHARACTER_SETS" => character_sets(),
        "COLLATIONS" => collations(),
        "COLLATION_CHARACTER_SET_APPLICABILITY" => {
            let row =
                |each: &remora_mysql::CollationInfo| vec![text(each.name), text(each.charset)];
            COLLATIONS.iter().map(row).collect()
        }
        "ENGINES" => server::engines(),
        "PLUGINS" => server::plugins(),
        "PROCESSLIST" => processes::rows(session, usize::MAX),
        "USER_PRIVILEGES" => privileges::of_all(&session.identity),
        "SCHEMA_PRIVILEGES" => privileges::of_databases(&session.identity),
        "TABLE_PRIVILEGES" => privileges::of_tables(&session.identity),
        _ => Vec::new(),
    })
}

fn performance(session: &SessionState, table: &str) -> Result<Vec<Vec<Value>>> {
    Ok(match table {
        "session_variables" => server::variables(session, false)?,
        "global_variables" => server::variables(session, true)?,
        "session_status" | "global_status" => server::status(session),
        "threads" => threads(session)?,
        "processlist" => {
            let mut rows = processes::rows(session, usize::MAX);
            rows.iter_mut().for_each(|row| row.push(text("PRIMARY")));
            rows
        }
        _ => Vec::new(),
    })
}

/// The rows of performance_schema.threads: one for each connection.
fn threads(session: &SessionState) -> Result<Vec<Vec<Value>>> {
    let table = find(&TableName::new("performance_schema", "threads"))?;
    let row = |process: crate::Process| {
        let cell = |(name, spec): &(String, ColumnSpec)| match name.as_str() {
            "THREAD_ID" | "PROCESSLIST_ID" => Value::Uint(process.id),
            "NAME" => text("thread/sql/one_connection"),
            "TYPE" => text("FOREGROUND"),
            "PROCESSLIST_USER" => text(&process.user),
            "PROCESSLIST_HOST" => text(&process.host),
            "PROCESSLIST_DB" => maybe(process.database.clone()),
            "PROCESSLIST_COMMAND" => text(&process.command),
            "PROCESSLIST_TIME" => Value::Int(i64::try_from(process.seconds).unwrap_or(i64::MAX)),
            "PROCESSLIST_STATE" => text(&process.state),
            "PROCESSLIST_INFO" => maybe(process.statement.clone()),
            "EXECUTION_ENGINE" => text("PRIMARY"),
            _ if !spec.not_null => Value::Null,
            _ if spec.kind.is_integer() => Value::Uint(0),
            _ => text("NO"),
        };
        table.columns.iter().map(cell).collect()
    };
    Ok(processes::seen(session).into_iter().map(row).collect())
}

/// The databases that the session may see.
pub(super) fn visible_databases(session: &SessionState) -> Vec<String> {
    let mut names = databases(&session.shared);
    names.retain(|name| may_see(&session.identity, name) && database_exists(&session.shared, name));
    names
}

fn schemata(session: &SessionState) -> Vec<Vec<Value>> {
    let row = |name: String| {
        let collation = database_collation(&session.shared, &name);
        let (charset, collation) = (text(collation.charset()), text(collation.name()));
        vec![text(CATALOG), text(name), charset, collation, Value::Null, text("NO")]
    };
    visible_databases(session).into_iter().map(row).collect()
}

fn all_tables(
    session: &SessionState,
    requested_tables: &RequestedTables,
) -> Result<Vec<Vec<Value>>> {
    let started = server::started(session);
    let mut rows = Vec::new();
    for table in listed_tables(requested_tables) {
        let kind = match table.name.database.as_str() {
            "information_schema" => "SYSTEM VIEW",
            _ => "BASE TABLE",
        };
        let mut row = vec![text(CATALOG), text(&table.name.database), text(&table.name.table)];
        row.extend([text(kind), Value::Null, Value::Int(10), Value::Null]);
        row.extend(std::iter::repeat_n(Value::Uint(0), 6));
        row.extend([Value::Null, started.clone(), Value::Null, Value::Null, Value::Null]);
        row.extend([Value::Null, text(""), text("")]);
        rows.push(row);
    }
    for known in tables::among(session, requested_tables)? {
        rows.push(table_row(session, &known, &started)?);
    }
    let views = views::names(session).into_iter().filter(|name| requested_tables.has(name));
    rows.extend(views.map(|name| views::table_row(&name, &started)));
    Ok(rows)
}

/// A row of TABLES.
pub(super) fn table_row(
    session: &SessionState,
    known: &ListedTable,
    started: &Value,
) -> Result<Vec<Value>> {
    let statistics = known.statistics(session)?;
    // Only the servers that hold the rows know how many there are.
    let is_here = known.table.schema.agents().is_empty();
    let of_rows = |count| if is_here { Value::Uint(count) } else { Value::Null };
    let average = statistics.store_bytes.checked_div(statistics.rows).unwrap_or(0);
    let options = &known.table.options;
    let others = options.others.iter().map(|option| option.to_lowercase());
    Ok(vec![
        text(CATALOG),
        text(&known.name.database),
        text(&known.name.table),
        text("BASE TABLE"),
        text(known.engine()),
        Value::Int(10),
        text("Dynamic"),
        of_rows(statistics.rows),
        of_rows(average),
        Value::Uint(statistics.store_bytes),
        Value::Uint(0),
        Value::Uint(statistics.index_bytes),
        Value::Uint(0),
        known.next(session)?.map_or(Value::Null, Value::Uint),
        started.clone(),
        Value::Null,
        Value::Null,
        text(options.collation.name()),
        Value::Null,
        text(others.collect::<Vec<String>>().join(" ")),
        text(&options.comment),
    ])
}

fn columns(session: &SessionState, requested_tables: &RequestedTables) -> Result<Vec<Vec<Value>>> {
    let mut rows: Vec<Vec<Value>> =
        listed_tables(requested_tables).flat_map(system_columns).collect();
    for known in tables::among(session, requested_tables)? {
        let name = &known.name;
        let may_write = session.identity.may(&name.database, &name.table, Access::Write);
        rows.extend(known.column_rows(may_write));
    }
    // Views whose definition is broken are left out.
    let views = views::names(session).into_iter().filter(|name| requested_tables.has(name));
    rows.extend(views.filter_map(|name| views::column_rows(session, &name).ok()).flatten());
    Ok(rows)
}

/// The rows of COLUMNS that describe a system table.
pub(super) fn system_columns(table: &'static SystemTable) -> Vec<Vec<Value>> {
    let row = |((name, spec), position): (&(String, ColumnSpec), u64)| {
        tables::column_row(&table.name, name, spec, position, "", false)
    };
    table.columns.iter().zip(1_u64..).map(row).collect()
}

/// The rows of PARTITIONS: each table is one partition.
fn partitions(
    session: &SessionState,
    requested_tables: &RequestedTables,
) -> Result<Vec<Vec<Value>>> {
    let started = server::started(session);
    let mut rows = Vec::new();
    for known in tables::among(session, requested_tables)? {
        let table = table_row(session, &known, &started)?;
        let mut row: Vec<Value> = table.iter().take(3).cloned().collect();
        row.extend(std::iter::repeat_n(Value::Null, 10));
        // TABLE_ROWS up to DATA_FREE, then the times.
        row.extend(table.iter().skip(7).take(6).cloned());
        row.extend([started.clone(), Value::Null, Value::Null, Value::Null]);
        row.extend([text(""), text(""), Value::Null]);
        rows.push(row);
    }
    Ok(rows)
}

fn character_sets() -> Vec<Vec<Value>> {
    let rows = CHARSETS.iter().map(|each| {
        let bytes = Value::Uint(u64::from(each.max_bytes));
        vec![text(each.name), text(each.default_collation), text(each.description), bytes]
    });
    rows.collect()
}

fn collations() -> Vec<Vec<Value>> {
    let rows = COLLATIONS.iter().map(|each| {
        vec![
            text(each.name),
            text(each.charset),
            Value::Uint(u64::from(each.id)),
            text(if each.is_default { "Yes" } else { "" }),
            text("Yes"),
            Value::Uint(u64::from(each.sort_length)),
            text(if each.pads { "PAD SPACE" } else { "NO PAD" }),
        ]
    });
    rows.collect()
}

/// The rows reduced to the columns at these positions.
pub(super) fn taken(rows: Vec<Vec<Value>>, positions: &[usize]) -> Vec<Vec<Value>> {
    let one = |row: Vec<Value>| {
        positions.iter().map(|at| row.get(*at).cloned().unwrap_or(Value::Null)).collect()
    };
    rows.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declaration_is_read() {
        let columns = include_str!("system_tables.txt").lines().filter_map(|line| {
            let (_, declaration) = line.strip_prefix("  ")?.split_once(' ')?;
            Some(declaration)
        });
        let read = |text: &&str| parse_column(text, Collation::UTF8MB3_GENERAL_CI).is_some();
        let unread: Vec<&str> = columns.filter(|text| !read(text)).collect();
        assert_eq!(unread, [""; 0]);
        assert!(find(&TableName::new("INFORMATION_SCHEMA", "tables")).is_ok());
    }
}
