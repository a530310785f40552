//! Loads a server: most rows before replication starts, the last ones while it runs.

use anyhow::{Context, Result};
use mysql::{Conn, prelude::Queryable};

use super::rows::{Shop, TableRows};

/// Row numbers per INSERT.
const NUMBERS: u64 = 500;
/// The options of all tables.
const TABLE_OPTIONS: &str = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci";

/// Which part of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All but the last 2 %; not written to the binlog.
    Most,
    /// The last 2 %, as transactions that are replicated.
    Last,
}

/// Creates the tables of a schema file.
pub fn create(connection: &mut Conn, schema: &str) -> Result<()> {
    for table in definitions(schema) {
        let statement = format!("{table}{TABLE_OPTIONS}");
        connection.query_drop(&statement).context(statement)?;
    }
    Ok(())
}

/// Creates the views of a file.
pub fn create_views(connection: &mut Conn, views: &str) -> Result<()> {
    for view in views.split(";\n").map(str::trim).filter(|view| !view.is_empty()) {
        connection.query_drop(view).context(view.to_owned())?;
    }
    Ok(())
}

/// The table definitions of a schema file, without the closing parenthesis.
pub fn definitions(schema: &str) -> impl Iterator<Item = &str> {
    schema.split(");\n").map(str::trim).filter(|table| !table.is_empty())
}

/// Inserts one share of the rows of each table.
pub fn fill(connection: &mut Conn, tables: &[TableRows], shop: &Shop, share: Share) -> Result<()> {
    // The rows satisfy all constraints; checking them takes a server twice as long.
    connection.query_drop("SET foreign_key_checks = 0, unique_checks = 0, autocommit = 0")?;
    if share == Share::Most {
        connection.query_drop("SET sql_log_bin = 0")?;
    }
    for table in tables {
        let count = (table.count)(shop);
        let most = count - count / 50;
        let (mut first, last) = match share {
            Share::Most => (1, most),
            Share::Last => (most + 1, count),
        };
        while first <= last {
            let end = last.min(first + NUMBERS - 1);
            let mut sql = String::new();
            (first..=end).for_each(|number| (table.write)(shop, number, &mut sql));
            if let Some(rows) = sql.strip_prefix(',') {
                let insert = format!("INSERT INTO {} VALUES {rows}", table.name);
                connection.query_drop(insert).context(table.name)?;
                connection.query_drop("COMMIT")?;
            }
            first = end + 1;
        }
    }
    Ok(())
}

/// Collects the statistics that the servers' optimizers use.
pub fn analyze(connection: &mut Conn, tables: &[TableRows]) -> Result<()> {
    let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
    let statement = format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {}", names.join(", "));
    let _: Vec<mysql::Row> = connection.query(statement)?;
    Ok(())
}
