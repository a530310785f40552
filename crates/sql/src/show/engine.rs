//! SHOW ENGINE … STATUS: the storage of tables, and counters.
//!
//! `remora` has one row for the server and one for each table. `InnoDB` has one row with
//! everything, because monitoring tools look there.

use remora_engine::{IndexStatistics, LevelStatistics, TableStatistics};
use remora_mysql::ErrorCode;

use super::{
    filter::{Filter, Shown},
    grid::{Grid, text},
    tables::{self, ENGINE},
};
use crate::{
    Error, Result,
    catalog::{Key, KeyKind, KeyPart, SqlTable},
    parse::Tokens,
    scan::paths::declared,
    state::SessionState,
};

const OWN: &str = "Remora";
const COLUMNS: [&str; 3] =
    ["Type varchar(10) NOT NULL", "Name varchar(512) NOT NULL", "Status longtext NOT NULL"];

/// Parses the rest of SHOW ENGINE and returns its result.
pub(super) fn shown(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let name = if tokens.is_text() { tokens.utf8()? } else { tokens.name()? };
    let status = tokens.accept("STATUS");
    if !status && !tokens.accept_any(&["MUTEX", "LOGS"]) {
        return Err(tokens.syntax_error());
    }
    tokens.expect_end()?;
    let known = [OWN, ENGINE].into_iter().find(|known| known.eq_ignore_ascii_case(&name));
    let Some(known) = known else {
        let message = format!("Unknown storage engine '{name}'");
        return Err(Error::new(ErrorCode::UnknownEngine, message));
    };
    let mut grid = Grid::new(&COLUMNS);
    if status {
        let parts = parts(session)?;
        if known == ENGINE {
            grid.push(vec![text(ENGINE), text(""), text(monitor(&parts))]);
        } else {
            parts.into_iter().for_each(|(name, status)| {
                grid.push(vec![text(OWN), text(name), text(status)]);
            });
        }
    }
    Ok(Shown { grid, filter: Filter::All })
}

/// The status texts: the server's, with an empty name, and each table's.
fn parts(session: &SessionState) -> Result<Vec<(String, String)>> {
    let mut parts = vec![(String::new(), of_server(session)?)];
    for known in tables::all(session)? {
        let name = format!("{}.{}", known.name.database, known.name.table);
        let mut status = of_table(&known.statistics(session)?);
        of_keys(&known.table).into_iter().for_each(|line| {
            status.push('\n');
            status.push_str(&line);
        });
        parts.push((name, status));
    }
    Ok(parts)
}

/// All status texts as one, under headings like those of InnoDB's monitor.
fn monitor(parts: &[(String, String)]) -> String {
    let section = |(name, status): &(String, String)| {
        let name = if name.is_empty() { "SERVER" } else { name };
        let line = "-".repeat(name.chars().count());
        format!("{line}\n{name}\n{line}\n{status}\n")
    };
    parts.iter().map(section).collect()
}

fn of_server(session: &SessionState) -> Result<String> {
    let database = &session.shared.database;
    let bytes = database.store_bytes().map_err(|error| crate::error::from_engine(&error))?;
    let mut figures = vec![
        ("position", database.position().0.to_string()),
        ("tables", tables::count(session).to_string()),
        ("row store bytes", bytes.to_string()),
    ];
    figures.extend(database.checkpoint_failure().map(|failure| ("checkpoint failed", failure)));
    figures.extend(database.write_refusal().map(|why| ("writes refused", why)));
    Ok(lines(&figures))
}

fn of_table(figures: &TableStatistics) -> String {
    let mut shown =
        lines(&[("rows", figures.rows.to_string()), ("segments", figures.segments.to_string())]);
    if let Some(failure) = &figures.merge_failure {
        shown.push('\n');
        shown.push_str(&lines(&[("merge failed", failure.clone())]));
    }
    if let Some(failure) = &figures.path_failure {
        shown.push('\n');
        shown.push_str(&lines(&[("not indexed", failure.clone())]));
    }
    figures.levels.iter().for_each(|level| shown.push_str(&of_level(level)));
    figures.indexes.iter().for_each(|index| shown.push_str(&of_index(index, figures)));
    shown.push('\n');
    shown.push_str(&lines(&[
        ("bloom filter checks", figures.bloom_checks.to_string()),
        ("bloom filter saves", figures.bloom_saves.to_string()),
        ("merges", figures.merges.to_string()),
        ("merged bytes", figures.merged_bytes.to_string()),
        ("merging", if figures.merging { "yes" } else { "no" }.to_owned()),
        ("index bytes in memory", figures.index_bytes.to_string()),
        ("row store bytes", figures.store_bytes.to_string()),
        ("terms", figures.terms.to_string()),
        ("postings", figures.postings.to_string()),
        ("positions", figures.positions.to_string()),
        ("bitmap lists", figures.bitmap_lists.to_string()),
        ("text characters", figures.text_chars.to_string()),
    ]));
    shown
}

fn of_level(figures: &LevelStatistics) -> String {
    let LevelStatistics { level, segments, rows, deleted, bytes } = figures;
    format!("\nlevel {level}: {segments} segments, {rows} rows, {deleted} deleted, {bytes} bytes")
}

/// How many segments and rows have an index, since new indexes are built in the background.
fn of_index(index: &IndexStatistics, of: &TableStatistics) -> String {
    let IndexStatistics { columns, segments, rows } = index;
    let (all, all_rows) = (of.segments, of.rows);
    format!("\nindex ({columns}): in {segments} of {all} segments, {rows} of {all_rows} rows")
}

/// Describes keys that no index serves, or only a prefix of their columns.
fn of_keys(table: &SqlTable) -> Vec<String> {
    let schema = &table.schema;
    let by_index = schema.indexes.iter().map(|index| {
        let columns = index.columns.iter().map(|part| part.column);
        columns.collect::<Vec<usize>>()
    });
    let all: Vec<Vec<usize>> = by_index.chain([schema.primary_key.clone()]).collect();
    let keys = table.keys.iter();
    let keys = keys.filter(|key| matches!(key.kind, KeyKind::Unique | KeyKind::Plain));
    let line = |key: &Key| {
        let parts = 0..key.parts.len();
        let places: Vec<Option<usize>> = parts.map(|nth| table.key_part(key, nth)).collect();
        let same = |columns: &Vec<usize>| {
            let pairs = columns.iter().zip(&places);
            pairs.take_while(|(column, place)| Some(**column) == **place).count()
        };
        let held = all.iter().map(same).max().unwrap_or(0);
        let expression = key.parts.get(held).and_then(KeyPart::expression);
        let why = match places.get(held)? {
            // An indexed path serves it.
            None if expression.is_some_and(|it| declared(table, it).is_some()) => return None,
            None => "what its expression gives is in no column",
            Some(place) if schema.columns.get(*place).is_some_and(|it| it.indexed) => {
                "the next has no order that is known"
            }
            // A table of an earlier version, or a type without an order.
            Some(_) => {
                "the next is too long to be held in columns, and no definition since gave it a prefix"
            }
        };
        Some(match held {
            0 => {
                format!("key {}: no index, as {}", key.name, why.replace("the next", "its column"))
            }
            _ => format!("key {}: an index of its first {held} columns, as {why}", key.name),
        })
    };
    keys.filter_map(line).collect()
}

fn lines(figures: &[(&str, String)]) -> String {
    let lines = figures.iter().map(|(name, value)| format!("{name}: {value}"));
    lines.collect::<Vec<String>>().join("\n")
}
