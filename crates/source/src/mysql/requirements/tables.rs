//! Checks that the tables in the settings exist and can be read.

use std::collections::BTreeMap;

use super::current_account;
use crate::{
    Error, Result,
    mysql::{
        client_error::{grant_on_table, grants},
        connection::Connection,
        quote::{quoted, quoted_text},
        schema::Selection,
        settings::MysqlSettings,
    },
};

/// The most names in a message.
const MOST_NAMED: usize = 8;

/// The tables, views and sequences that the account can see, with their kinds.
type Seen = BTreeMap<(String, String), String>;

/// Checks that each name and pattern of the settings has a table at the source, and that the account may read them.
/// `here` are the tables, by database and name, that were followed before: the stream tells what happened to those.
///
/// # Errors
/// [`Error::Setting`] for the first name or pattern without a table, [`Error::AccessDenied`] if
/// tables may not be read; else those of [`Connection::rows`].
pub fn check_tables(
    connection: &mut Connection,
    settings: &MysqlSettings,
    here: &[(String, String)],
) -> Result<()> {
    let selection = Selection::of(settings);
    let rows: Vec<(String, String, String)> = connection.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA <> 'information_schema'",
    )?;
    let seen: Seen =
        rows.into_iter().map(|(database, table, kind)| ((database, table), kind)).collect();
    for pattern in selection.patterns() {
        let fits = |(database, table): &(String, String)| pattern.fits(database, table);
        let is_followed = |kind: &str| is_table(kind) || kind == "VIEW";
        let found = seen.iter().any(|(name, kind)| is_followed(kind) && fits(name));
        if !found && !here.iter().any(fits) {
            return Err(missing(connection, settings, &seen, pattern.database, pattern.table)?);
        }
    }
    check_readable(connection, settings, &selection, &seen)
}

fn is_table(kind: &str) -> bool {
    matches!(kind, "BASE TABLE" | "SYSTEM VERSIONED")
}

/// Why no table has this name or pattern.
fn missing(
    connection: &mut Connection,
    settings: &MysqlSettings,
    seen: &Seen,
    database: &str,
    table: &str,
) -> Result<Error> {
    let address = settings.address();
    let name = format!("{database}.{table}");
    if name.contains(['*', '?']) {
        return Ok(Error::Setting(format!(
            "no table of {address} that the user can see fits `{name}`; {}",
            tables_of(seen, database)
        )));
    }
    if let Some(kind) = seen.get(&(database.to_owned(), table.to_owned())) {
        let kind = kind.to_lowercase();
        return Ok(Error::Setting(format!(
            "{name} is a {kind}: only tables and views can be followed"
        )));
    }
    let statement = format!("SELECT 1 FROM {}.{} LIMIT 0", quoted(database), quoted(table));
    match connection.first::<u8>(&statement) {
        Err(Error::AccessDenied { address, user, message, .. }) => {
            let advice = grant_on_table(database, table, &current_account(connection, settings)?);
            Ok(Error::AccessDenied { address, user, message, advice })
        }
        Err(error @ Error::Unreachable { .. }) => Err(error),
        _ => Ok(Error::Setting(format!(
            "there is no table `{name}` at {address}; {}",
            tables_of(seen, database)
        ))),
    }
}

/// The tables of a database, as a hint for a misspelled name.
fn tables_of(seen: &Seen, database: &str) -> String {
    let is_of = |of: &str| database.contains(['*', '?']) || of == database;
    let tables = seen.iter().filter(|((of, _), kind)| is_of(of) && is_table(kind));
    let names: Vec<_> = tables.map(|((of, table), _)| format!("{of}.{table}")).collect();
    match names.as_slice() {
        [] => "it has no tables there, or the user may not see them".to_owned(),
        names if names.len() > MOST_NAMED => {
            let first = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
            format!("there are {first} and {} more", names.len() - MOST_NAMED)
        }
        names => format!("there are {}", names.join(", ")),
    }
}

/// Checks that the account may read a table: it may see tables that it may not read, for example with INSERT only.
fn check_readable(
    connection: &mut Connection,
    settings: &MysqlSettings,
    selection: &Selection,
    seen: &Seen,
) -> Result<()> {
    let wanted = |(database, table): &(String, String)| selection.matches(database, table);
    let tables = seen.iter().filter(|(name, kind)| is_table(kind) && wanted(name));
    let mut databases: Vec<_> = tables.map(|((database, _), _)| quoted_text(database)).collect();
    databases.dedup();
    if databases.is_empty() {
        return Ok(());
    }
    let unreadable: Vec<(String, String)> = connection.rows(&format!(
        "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA IN ({}) AND FIND_IN_SET('select', PRIVILEGES) = 0",
        databases.join(", ")
    ))?;
    let is_table = |name: &(String, String)| seen.get(name).is_some_and(|kind| is_table(kind));
    let mut unreadable: Vec<_> =
        unreadable.into_iter().filter(|name| wanted(name) && is_table(name)).collect();
    unreadable.sort();
    let Some((database, table)) = unreadable.first() else { return Ok(()) };
    let account = current_account(connection, settings)?;
    let names = unreadable.iter().take(MOST_NAMED);
    let names: Vec<_> = names.map(|(database, table)| format!("{database}.{table}")).collect();
    let advice = match unreadable.len() {
        1 => grant_on_table(database, table, &account),
        _ => grants(settings, &account),
    };
    Err(Error::AccessDenied {
        address: settings.address(),
        user: settings.user.clone(),
        message: format!("it may not read {}", names.join(", ")),
        advice,
    })
}
