//! Requirements of a source: server variables, grants and keys, each with the statement that satisfies it.

mod tables;

use super::{
    binlog::SourceStream,
    client_error::{account, grants},
    connection::{BINLOG_ADVICE, Connection},
    gtid::Flavor,
    schema::Selection,
    settings::MysqlSettings,
};
use crate::{Error, Result};

pub use tables::check_tables;

/// Checks all requirements. Only global variables are checked; a session of the source can still set others for itself.
///
/// # Errors
/// The first thing that is missing, with the mend: [`Error::Requirement`] for the version or a
/// setting of the source, [`Error::AccessDenied`] for a right or the database. Else those of
/// [`super::connection::connect`] and [`Connection::rows`].
pub fn check(connection: &mut Connection, settings: &MysqlSettings) -> Result<()> {
    check_all(connection, settings, false)
}

/// Checks a source that was followed before. A missing database is not an error then, because the
/// stream will report that it was dropped.
pub(super) fn check_again(connection: &mut Connection, settings: &MysqlSettings) -> Result<()> {
    check_all(connection, settings, true)
}

fn check_all(connection: &mut Connection, settings: &MysqlSettings, begun: bool) -> Result<()> {
    check_version(connection)?;
    check_variables(connection, settings)?;
    match check_grants(connection, settings, begun) {
        Err(Error::AccessDenied { address, user, message, .. }) => {
            let advice = grants(settings, &current_account(connection, settings)?);
            Err(Error::AccessDenied { address, user, message, advice })
        }
        checked => checked,
    }
}

/// The account that we are logged in as, in the source's spelling.
fn current_account(connection: &mut Connection, settings: &MysqlSettings) -> Result<String> {
    let account_name: Option<String> = connection.first("SELECT CURRENT_USER()")?;
    let account_name = account_name.unwrap_or_default();
    let (user, host) = account_name.rsplit_once('@').unwrap_or((&settings.user, "%"));
    Ok(account(user, host))
}

fn check_version(connection: &Connection) -> Result<()> {
    let server = &connection.server;
    let (name, oldest, advice) = match server.flavor {
        Flavor::MySql => ("MySQL", (5, 6, 0), "upgrade it to MySQL 5.6 or later"),
        Flavor::MariaDb => ("MariaDB", (10, 2, 0), "upgrade it to MariaDB 10.2 or later"),
    };
    if server.version >= oldest {
        return Ok(());
    }
    let message = format!("the source is {name} {}, which is too old", server.version_text);
    Err(Error::Requirement { message, advice: advice.to_owned() })
}

fn check_variables(connection: &mut Connection, settings: &MysqlSettings) -> Result<()> {
    let mysql = connection.server.flavor == Flavor::MySql;
    let mend_gtid = match connection.server.version {
        (5, 6, _) => {
            "add gtid_mode=ON, enforce_gtid_consistency=ON and log_slave_updates=ON to its \
             my.cnf and restart it"
        }
        _ => {
            "run at the source: SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode \
             = OFF_PERMISSIVE; SET GLOBAL gtid_mode = ON_PERMISSIVE; SET GLOBAL gtid_mode = ON; \
             and add gtid_mode=ON, enforce_gtid_consistency=ON to its my.cnf"
        }
    };
    let mut require = |variable: &str, valid: &[&str], advice: &str| {
        let value: Option<Option<String>> =
            connection.first(&format!("SELECT @@GLOBAL.{variable}"))?;
        let value = value.flatten().unwrap_or_default();
        if valid.iter().any(|valid| valid.eq_ignore_ascii_case(&value)) {
            return Ok(());
        }
        let message = format!("{variable} of {} is {value}", settings.address());
        Err(Error::Requirement { message, advice: advice.to_owned() })
    };
    require("log_bin", &["1", "ON"], BINLOG_ADVICE)?;
    require(
        "binlog_format",
        &["ROW"],
        "run at the source: SET GLOBAL binlog_format = ROW; add binlog_format=ROW to its my.cnf, \
         and reconnect its clients",
    )?;
    require(
        "binlog_row_image",
        &["FULL"],
        "run at the source: SET GLOBAL binlog_row_image = FULL; add binlog_row_image=FULL to its \
         my.cnf, and reconnect its clients",
    )?;
    if mysql {
        require("gtid_mode", &["ON"], mend_gtid)?;
    }
    Ok(())
}

/// Tries what following does: the statement for the binlog's end, the stream, and reading one table in each database.
fn check_grants(connection: &mut Connection, settings: &MysqlSettings, begun: bool) -> Result<()> {
    connection.binlog_end()?;
    let executed = connection.executed()?;
    drop(SourceStream::open(settings, &executed)?);
    let tables = one_table_per_database(connection, settings, begun)?;
    // A locked table must not delay the check.
    connection.first::<u8>("SET SESSION lock_wait_timeout = 1")?;
    for (database, table) in &tables {
        let (database, table) = (database.replace('`', "``"), table.replace('`', "``"));
        let statement = format!("SELECT 1 FROM `{database}`.`{table}` LIMIT 0");
        match connection.first::<u8>(&statement) {
            // The table was dropped, locked or damaged, which says nothing about grants.
            Err(Error::Statement { .. }) => {}
            read => drop(read?),
        }
    }
    connection.first::<u8>("SET SESSION lock_wait_timeout = DEFAULT")?;
    let databases = tables.iter().map(|(database, _)| database).chain(&settings.database);
    check_filters(connection, databases)
}

/// Checks that the source's binlog filters do not exclude a followed database.
fn check_filters<'a>(
    connection: &mut Connection,
    mut databases: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let [logged, ignored] = connection.binlog_filters()?;
    let missing =
        |name: &&String| ignored.contains(name) || !(logged.is_empty() || logged.contains(name));
    let Some(database) = databases.find(missing) else { return Ok(()) };
    Err(Error::Requirement {
        message: format!("the source does not log the changes of the database {database}"),
        advice: "remove binlog_do_db and binlog_ignore_db from its my.cnf and restart it"
            .to_owned(),
    })
}

fn one_table_per_database(
    connection: &mut Connection,
    settings: &MysqlSettings,
    begun: bool,
) -> Result<Vec<(String, String)>> {
    let mut tables: Vec<(String, String)> = connection.rows(
        "SELECT table_schema, table_name FROM information_schema.tables \
         WHERE table_type = 'BASE TABLE' AND table_schema NOT IN \
         ('mysql', 'sys', 'information_schema', 'performance_schema') \
         ORDER BY table_schema, table_name",
    )?;
    let selection = Selection::of(settings);
    tables.retain(|(database, table)| selection.matches(database, table));
    tables.dedup_by(|(database, _), (before, _)| database == before);
    let Some(wanted) = settings.database.as_ref().filter(|_| !begun) else { return Ok(tables) };
    let schemas: Vec<String> =
        connection.rows("SELECT schema_name FROM information_schema.schemata")?;
    if !schemas.iter().any(|schema| schema == wanted) {
        return Err(Error::AccessDenied {
            address: settings.address(),
            user: settings.user.clone(),
            message: format!("there is no database `{wanted}`, or the user may not see it"),
            advice: String::new(),
        });
    }
    Ok(tables)
}
