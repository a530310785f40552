//! Reads one chunk by a statement that sees everything the applier had applied.

use std::{
    thread,
    time::{Duration, Instant},
};

use mysql::prelude::Queryable;
use remora_engine::Row;

use super::literal::{behind, literal, order};
use crate::{
    Error, Result,
    mysql::{
        binlog,
        connection::{Connection, guarded},
        coordinates::Coordinates,
        gtid::{Flavor, GtidSet},
        inbox::OpenedWindow,
        quote::quoted,
        schema::{SourceColumn, SourceTable, SourceType},
        settings::MysqlSettings,
        values::from_select,
    },
};

/// How long the source may take to show what its stream has already sent.
const COMMIT_DELAY: Duration = Duration::from_secs(20);
/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// From this version of MySQL on a transaction is visible when it counts as executed.
pub(super) const VISIBLE_WHEN_EXECUTED: (u16, u16, u16) = (5, 7, 0);

/// The result of one statement.
pub(super) struct Read {
    pub rows: Vec<Row>,
    /// The last key as literals; empty without rows.
    pub after: Vec<String>,
    /// Everything read is before this position of the binlog.
    pub end: Coordinates,
    /// Bytes of the rows as the source sent them.
    pub bytes: usize,
}

/// The source's estimates of the rows and of a row's bytes; 0 if it has none.
pub(crate) fn estimate(source: &mut Connection, table: &SourceTable) -> Result<(u64, u64)> {
    let text = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let statement = format!(
        "SELECT COALESCE(table_rows, 0), COALESCE(avg_row_length, 0) FROM \
         information_schema.tables WHERE table_schema = '{}' AND table_name = '{}'",
        text(&table.database),
        text(&table.name)
    );
    match source.first::<(u64, u64)>(&statement) {
        Err(Error::Statement { .. }) => Ok((0, 0)),
        estimate => Ok(estimate?.unwrap_or_default()),
    }
}

/// Reads at most `limit` rows after a key.
pub(super) fn read(
    source: &mut Connection,
    settings: &MysqlSettings,
    opened: &OpenedWindow,
    table: &SourceTable,
    after: &[String],
    limit: usize,
) -> Result<Read> {
    let behind = behind(table, after);
    let condition = if behind.is_empty() { behind } else { format!(" WHERE {behind}") };
    let early =
        source.server.flavor == Flavor::MySql && source.server.version < VISIBLE_WHEN_EXECUTED;
    // Where a transaction counts as executed before it is visible, this waits for its row locks.
    let locking = if early { " LOCK IN SHARE MODE" } else { "" };
    let statement = format!(
        "SELECT {} FROM {}.{}{condition} ORDER BY {} LIMIT {limit}{locking}",
        table.select_list(),
        quoted(&table.database),
        quoted(&table.name),
        order(table),
    );
    let read = match source.server.flavor {
        Flavor::MySql => {
            wait_until_executed(source, &opened.applied)?;
            rows(source, settings, &statement, table)?
        }
        Flavor::MariaDb => {
            open_snapshot(source, opened)?;
            let read = rows(source, settings, &statement, table);
            source.first::<u8>("COMMIT")?;
            read?
        }
    };
    Ok(Read { end: source.binlog_end()?, ..read })
}

fn rows(
    source: &mut Connection,
    settings: &MysqlSettings,
    statement: &str,
    table: &SourceTable,
) -> Result<Read> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut last: Option<Vec<mysql::Value>> = None;
    let mut refused = None;
    guarded(settings, statement, || {
        for row in source.conn.query_iter(statement)? {
            let values = row?.unwrap();
            bytes += values.iter().map(size).sum::<usize>();
            last = Some(key_of(table, &values));
            match converted(table, values) {
                Ok(row) => rows.push(row),
                Err(error) => refused = refused.take().or(Some(error)),
            }
        }
        Ok(())
    })?;
    if let Some(error) = refused {
        return Err(error);
    }
    let after = match last {
        None => Vec::new(),
        Some(values) => {
            let columns = table.key_columns().zip(&values);
            let literals: Option<Vec<_>> = columns.map(|(c, value)| literal(c, value)).collect();
            literals.ok_or_else(|| Error::TableRefused {
                table: table.full_name(),
                reason: "a copy cannot go on behind a key of this type".to_owned(),
            })?
        }
    };
    Ok(Read { rows, after, end: Coordinates::default(), bytes })
}

fn key_of(table: &SourceTable, values: &[mysql::Value]) -> Vec<mysql::Value> {
    table.key.iter().filter_map(|place| values.get(*place).cloned()).collect()
}

pub(super) fn converted(table: &SourceTable, values: Vec<mysql::Value>) -> Result<Row> {
    if let Some(error) = no_text(table, &values) {
        return Err(error);
    }
    let pairs = table.columns.iter().zip(values);
    pairs.map(|(column, value)| from_select(column, value)).collect()
}

/// The error of the first invalid text in a row.
fn no_text(table: &SourceTable, values: &[mysql::Value]) -> Option<Error> {
    let is_text = |column: &SourceColumn| {
        use SourceType::{Char, Enum, Set, Text, VarChar};
        matches!(column.kind, Char(_) | VarChar(_) | Text(_) | Enum(_) | Set(_))
    };
    let bad = |(column, value): (&SourceColumn, &mysql::Value)| match value {
        mysql::Value::Bytes(bytes) if is_text(column) && std::str::from_utf8(bytes).is_err() => {
            let key = key_of(table, values);
            let key: Vec<String> = key.iter().map(display_text).collect();
            Some(binlog::no_text(&column.name, &key, bytes))
        }
        _ => None,
    };
    let reason = table.columns.iter().zip(values).find_map(bad)?;
    Some(Error::TableRefused { table: table.full_name(), reason })
}

fn display_text(value: &mysql::Value) -> String {
    match value {
        mysql::Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true),
    }
}

pub(super) fn size(value: &mysql::Value) -> usize {
    const SMALL: usize = 16;
    match value {
        mysql::Value::Bytes(bytes) => bytes.len().saturating_add(SMALL),
        _ => SMALL,
    }
}

/// Waits until a new statement sees everything in `applied`. The stream of a MySQL may be slightly ahead of what the
/// server shows, both rows and definitions.
pub(crate) fn wait_until_executed(source: &mut Connection, applied: &GtidSet) -> Result<()> {
    poll_until(|| Ok(source.executed()?.covers(applied)))
}

/// Opens a transaction that sees exactly what is before the returned position. A transaction of MariaDB counts as
/// executed before it is visible, but a snapshot knows its position in the binlog.
pub(super) fn open_snapshot(source: &mut Connection, opened: &OpenedWindow) -> Result<Coordinates> {
    let mut place = Coordinates::default();
    poll_until(|| {
        source.first::<u8>("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let status: Vec<(String, String)> =
            source.rows("SHOW STATUS WHERE variable_name IN ('binlog_snapshot_file', 'binlog_snapshot_position')")?;
        let value = |wanted: &str| {
            let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(wanted);
            status.iter().find(named).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let file = value("binlog_snapshot_file");
        let offset: u64 = value("binlog_snapshot_position").parse().unwrap_or(0);
        place = Coordinates { file: file.clone(), offset };
        let seen = if opened.place.file.is_empty() {
            let position: Option<Option<String>> =
                source.first(&format!("SELECT BINLOG_GTID_POS('{file}', {offset})"))?;
            let position = position.flatten().unwrap_or_default();
            GtidSet::parse_as(Flavor::MariaDb, &position)?.covers(&opened.applied)
        } else {
            Coordinates { file, offset } >= opened.place
        };
        if !seen {
            source.first::<u8>("COMMIT")?;
        }
        Ok(seen)
    })?;
    Ok(place)
}

fn poll_until(mut seen: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + COMMIT_DELAY;
    while !seen()? {
        if Instant::now() >= deadline {
            return Err(Error::BackInTime {
                message: "it does not show what its binlog told before".to_owned(),
            });
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
