//! All tables of a server and of a follower in one form, columns in their order, and what differs.

use std::collections::BTreeMap;

use mysql::{Conn, prelude::Queryable};
use remora_engine::{Database, HIDDEN_KEY};

use crate::{
    generator::shape::{self, Column},
    rows::{self, Cell},
};

/// A table: its columns in their order and its rows sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

/// Databases of the server itself.
const SYSTEM: &str = "'mysql', 'information_schema', 'performance_schema', 'sys', 'mtr'";

/// The databases that are not the server's own.
pub fn databases(connection: &mut Conn) -> mysql::Result<Vec<String>> {
    connection.query(format!(
        "SELECT schema_name FROM information_schema.schemata
         WHERE schema_name NOT IN ({SYSTEM}) ORDER BY schema_name"
    ))
}

/// The tables of these databases that hold rows: neither views nor sequences.
pub fn names(connection: &mut Conn, databases: &[String]) -> mysql::Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for database in databases {
        let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = ?
             AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY table_name";
        let tables: Vec<String> = connection.exec(sql, (database,))?;
        names.extend(tables.into_iter().map(|table| (database.clone(), table)));
    }
    Ok(names)
}

/// Everything in these databases, with its type and engine, for reports.
pub fn listed(connection: &mut Conn, databases: &[String]) -> mysql::Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for database in databases {
        let sql = "SELECT table_name, table_type, engine, table_comment
             FROM information_schema.tables WHERE table_schema = ? ORDER BY table_name";
        listed.extend(connection.exec::<Listed, _, _>(sql, (database,))?);
    }
    Ok(listed)
}

/// A name with its type, engine and comment.
pub type Listed = (String, Option<String>, Option<String>, Option<String>);

/// One table of the source, without the computed columns that are not `here`.
pub fn of_source(
    connection: &mut Conn,
    database: &str,
    table: &str,
    here: Option<&Table>,
) -> mysql::Result<Table> {
    let shape = shape::read(connection, database, table)?;
    let is_here = |column: &Column| here.is_none_or(|here| here.columns.contains(&column.name));
    let columns: Vec<&Column> =
        shape.columns.iter().filter(|column| !column.generated || is_here(column)).collect();
    let list: Vec<_> = columns.iter().map(|column| rows::expression(column)).collect();
    let sql = format!("SELECT {} FROM {}.{}", list.join(", "), quoted(database), quoted(table));
    let mut found = connection.query_map(sql, |row: mysql::Row| {
        let cells = row.unwrap().into_iter().zip(&columns);
        cells.map(|(value, column)| rows::canonical(column, value)).collect::<Vec<Cell>>()
    })?;
    found.sort();
    let columns = columns.into_iter().map(|column| column.name.clone()).collect();
    Ok(Table { columns, rows: found })
}

/// A table that is visible here.
pub fn of_engine(engine: &Database, name: &str) -> Result<Table, String> {
    let schema = engine.schema(name).map_err(|error| error.to_string())?;
    // The key of a table without one stands last, and is shown to nobody.
    let shown = schema.columns.iter().filter(|column| column.name != HIDDEN_KEY);
    let columns: Vec<_> = shown.map(|column| column.name.clone()).collect();
    let mut found = Vec::new();
    let scan = engine.scan(name, &mut |row| {
        let shown = row.iter().take(columns.len());
        found.push(shown.map(rows::written).collect::<Vec<Cell>>());
        Ok(())
    });
    scan.map_err(|error| error.to_string())?;
    found.sort();
    Ok(Table { columns, rows: found })
}

/// What differs between a table here and at the source, in a sentence.
pub fn difference(here: &Table, source: &Table) -> Option<String> {
    if here.columns != source.columns {
        return Some(format!("columns {:?}, at the source {:?}", here.columns, source.columns));
    }
    if here.rows == source.rows {
        return None;
    }
    let (ours, theirs) = (only(here, source), only(source, here));
    Some(format!(
        "{} rows, {} at the source; only here {ours}; only there {theirs}",
        here.rows.len(),
        source.rows.len(),
    ))
}

/// The first rows that only one of them has, or has more often.
fn only(one: &Table, other: &Table) -> String {
    let mut counts = BTreeMap::<&Vec<Cell>, i64>::new();
    one.rows.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    other.rows.iter().for_each(|row| *counts.entry(row).or_default() -= 1);
    let mut more = counts.into_iter().filter(|(_, count)| *count > 0).map(|(row, _)| row);
    let shown: Vec<String> = more.by_ref().take(3).map(|row| show(row)).collect();
    match more.count() {
        0 if shown.is_empty() => "none".to_owned(),
        0 => shown.join(" "),
        left => format!("{} and {left} others", shown.join(" ")),
    }
}

fn show(row: &[Cell]) -> String {
    let cell = |cell: &Cell| match cell {
        None => "NULL".to_owned(),
        Some(bytes) => String::from_utf8_lossy(bytes).chars().take(40).collect(),
    };
    format!("({})", row.iter().map(cell).collect::<Vec<_>>().join(", "))
}

/// A name in back quotes.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
