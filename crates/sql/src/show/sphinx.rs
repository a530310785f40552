//! Sphinx's forms: SHOW TABLES, SHOW STATUS and DESCRIBE in its dialect, SHOW INDEX STATUS, SHOW THREADS, SHOW AGENT
//! STATUS.

use remora_engine::{ColumnType, HIDDEN_KEY, Value};
use remora_mysql::ErrorCode;

use super::{
    filter::{Filter, Shown},
    grid::{Grid, text},
    listing, processes, server, tables,
};
use crate::{
    Error, Result, catalog::SqlTable, error::from_engine, parse::Tokens, state::SessionState,
};

/// The columns of results that consist of names and values.
const PAIR: [&str; 2] = ["Variable_name varchar(64) NOT NULL", "Value varchar(1024) NOT NULL"];
/// The columns of SHOW STATUS.
pub(super) const COUNTERS: [&str; 2] =
    ["Counter varchar(64) NOT NULL", "Value varchar(1024) NOT NULL"];
/// The prefix of the position that is stored with a table which is loaded from a source of a sphinx.conf.
const LOADED: &str = "sphinx.conf:";
/// Sphinx's counters, with MySQL's names.
const FIGURES: [(&str, &str); 4] = [
    ("uptime", "Uptime"),
    ("connections", "Connections"),
    ("maxed_out", "Aborted_connects"),
    ("queries", "Questions"),
];
/// The columns of DESCRIBE.
const COLUMNS: [&str; 2] = ["Field varchar(64) NOT NULL", "Type varchar(16) NOT NULL"];

/// SHOW TABLES, with the kind of each table.
pub(super) fn tables(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let database = listing::database(session, tokens)?;
    let filter = Filter::read(tokens)?;
    let mut grid = Grid::new(&["Index varchar(64) NOT NULL", "Type varchar(16) NOT NULL"]);
    for known in tables::all(session)? {
        if known.name.database == database {
            let kind = kind(session, &known.table)?;
            grid.push(vec![text(known.name.table), text(kind)]);
        }
    }
    Ok(Shown { grid, filter })
}

/// The type of a table. `rt` is one that INSERT writes; a `local` one follows a server, or is loaded from a source of a
/// sphinx.conf.
fn kind(session: &SessionState, table: &SqlTable) -> Result<&'static str> {
    let schema = &table.schema;
    if schema.is_distributed() {
        return Ok("distributed");
    }
    if schema.documents().is_some() {
        return Ok("percolate");
    }
    let shared = &session.shared;
    if shared.host.source_of(&schema.name).is_some() {
        return Ok("local");
    }
    let loaded = shared.database.source_position(&format!("{LOADED}{}", schema.name));
    let is_loaded = loaded.map_err(|error| from_engine(&error))?.is_some();
    Ok(if is_loaded && schema.declared.is_none() { "local" } else { "rt" })
}

/// DESCRIBE, after its first word: the key, the fields of ranked search, and the kind of each
/// column.
pub(super) fn describe(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let name = listing::table_name(session, tokens)?;
    if name.database.is_empty() {
        session.current_database()?;
    }
    let of_documents = tokens.accept("TABLE");
    let filter = Filter::read(tokens)?;
    let known = tables::one(session, &name)?;
    if of_documents {
        return documents(&known.table, filter);
    }
    let mut grid = Grid::new(&COLUMNS);
    for (name, kind) in columns(&known.table) {
        grid.push(vec![text(name), text(kind)]);
    }
    Ok(Shown { grid, filter })
}

/// DESCRIBE name TABLE: the columns of a percolate table's documents, or else the table's own.
fn documents(table: &SqlTable, filter: Filter) -> Result<Shown> {
    let of_documents = table.schema.documents().map(|it| SqlTable::once(it.clone()));
    let mut grid = Grid::new(&COLUMNS);
    for (name, kind) in columns(of_documents.as_deref().unwrap_or(table)) {
        grid.push(vec![text(name), text(kind)]);
    }
    Ok(Shown { grid, filter })
}

/// `SHOW (INDEX | TABLE) name (STATUS | SETTINGS)`, after its first word; `None` for other
/// statements.
pub(super) fn table(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Option<Shown>> {
    let mut ahead = *tokens;
    // `SHOW INDEX FROM status` is MySQL's form.
    let is_named =
        ahead.accept_any(&["INDEX", "TABLE"]) && !ahead.is_word("FROM") && !ahead.is_word("IN");
    let Some(name) = is_named.then(|| listing::table_name(session, &mut ahead)) else {
        return Ok(None);
    };
    let Ok(name) = name else { return Ok(None) };
    let is_status = ahead.accept("STATUS");
    if !is_status && !ahead.accept("SETTINGS") {
        return Ok(None);
    }
    *tokens = ahead;
    let filter = Filter::read(tokens)?;
    if name.database.is_empty() {
        session.current_database()?;
    }
    let known = tables::one(session, &name)?;
    let schema = &known.table.schema;
    let mut grid = Grid::new(&PAIR);
    let mut push = |name: &str, value: String| grid.push(vec![text(name), text(value)]);
    if is_status {
        let figures = known.statistics(session)?;
        let kind = match kind(session, &known.table)? {
            "local" => "disk",
            kind => kind,
        };
        push("index_type", kind.to_owned());
        push("indexed_documents", figures.rows.to_string());
        push("ram_bytes", figures.index_bytes.to_string());
        push("disk_bytes", figures.store_bytes.to_string());
    } else {
        let settings = schema.words.iter().flat_map(|words| &words.settings);
        let lines = settings.map(|(name, value)| format!("{name} = {value}\n"));
        push("settings", lines.collect());
    }
    Ok(Some(Shown { grid, filter }))
}

fn columns(table: &SqlTable) -> Vec<(String, &'static str)> {
    let schema = &table.schema;
    let of = |place: usize| schema.columns.get(place);
    let kind = |kind: ColumnType| match kind {
        ColumnType::Int(64) | ColumnType::Uint(64) => "bigint",
        ColumnType::Int(_) | ColumnType::Uint(_) => "uint",
        ColumnType::Bool => "bool",
        ColumnType::Date | ColumnType::DateTime | ColumnType::Timestamp => "timestamp",
        ColumnType::Float | ColumnType::Double | ColumnType::Decimal(..) => "float",
        ColumnType::Json => "json",
        _ => "string",
    };
    let places: Vec<usize> = (0..schema.columns.len()).collect();
    let is_shown = |place: &&usize| of(**place).is_some_and(|it| it.name != HIDDEN_KEY);
    let keys = schema.primary_key.iter().filter(is_shown);
    let keys = keys.filter_map(|&place| of(place)).map(|column| {
        // Integer keys are Sphinx's document IDs, which are bigint.
        let kind = if kind(column.kind) == "uint" { "bigint" } else { kind(column.kind) };
        (column.name.clone(), kind)
    });
    let fields = schema.words.iter().flat_map(|words| &words.columns);
    let fields = fields.filter_map(|&place| of(place)).map(|column| (column.name.clone(), "field"));
    let others = places.iter().filter(|place| !schema.primary_key.contains(place));
    let others = others.filter_map(|&place| {
        let column = of(place)?;
        let multi = table.columns.get(place).and_then(|spec| spec.kind.multi());
        let kind = match multi {
            Some(multi) if multi.is_wide => "mva64",
            Some(_) => "mva",
            None => kind(column.kind),
        };
        Some((column.name.clone(), kind))
    });
    keys.chain(fields).chain(others).collect()
}

/// The rows of SHOW STATUS: Sphinx's counters, then those that only Remora has.
pub(super) fn status(session: &SessionState) -> Vec<Vec<Value>> {
    let figures = server::status(session);
    let named = |name: &str| figures.iter().find(|row| row.first() == Some(&text(name)));
    let counter = |(name, mysql): &(&str, &str)| {
        let value = named(mysql).and_then(|row| row.get(1)).cloned();
        vec![text(*name), value.unwrap_or_else(|| text("0"))]
    };
    let is_own = |row: &&Vec<Value>| matches!(row.first(), Some(Value::Text(name)) if name.starts_with("Remora_"));
    FIGURES.iter().map(counter).chain(figures.iter().filter(is_own).cloned()).collect()
}

/// SHOW THREADS [OPTION columns = n], after its first two words.
pub(super) fn threads(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let mut characters = usize::MAX;
    if tokens.accept("OPTION") {
        let name = tokens.name()?;
        if !name.eq_ignore_ascii_case("columns") {
            let message = format!("unknown option '{name}' (or bad argument type)");
            return Err(Error::new(ErrorCode::ParseError, message));
        }
        tokens.need("=")?;
        characters = usize::try_from(tokens.number()?).unwrap_or(usize::MAX);
    }
    let filter = Filter::read(tokens)?;
    let mut grid = Grid::new(&[
        "Tid bigint NOT NULL",
        "Proto varchar(16) NOT NULL",
        "State varchar(64) NOT NULL",
        "Time varchar(32) NOT NULL",
        "Info text NOT NULL",
    ]);
    for process in processes::seen(session) {
        let statement = process.statement.unwrap_or_default();
        let info: String = statement.chars().take(characters).collect();
        let state = if process.command == "Query" { "query" } else { "net_idle" };
        let time = format!("{}.000000", process.seconds);
        let tid = Value::Uint(process.id);
        grid.push(vec![tid, text("sphinxql"), text(state), text(time), text(info)]);
    }
    Ok(Shown { grid, filter })
}

/// SHOW AGENT [address] STATUS, after its first two words: the health of other servers.
pub(super) fn agents(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Shown> {
    let mut wanted = None;
    if !tokens.accept("STATUS") {
        wanted = Some(if tokens.is_text() { tokens.utf8()? } else { tokens.name()? });
        if !tokens.accept("STATUS") {
            return Err(tokens.syntax_error());
        }
    }
    let mut grid = Grid::new(&PAIR);
    // Only administrators may learn which other servers there are.
    let is_told = session.identity.rights.is_none();
    let known = if is_told { session.shared.agents.health() } else { Vec::new() };
    for (address, health) in known {
        if wanted.as_ref().is_some_and(|wanted| *wanted != address) {
            continue;
        }
        let figures = [
            ("asked", health.asked.to_string()),
            ("failed", health.failed.to_string()),
            ("failed_in_a_row", health.failed_last.to_string()),
            ("last_ms", format!("{:.3}", health.last.as_secs_f64() * 1e3)),
        ];
        let row =
            |(name, value): (&str, String)| vec![text(format!("{address} {name}")), text(value)];
        grid.rows.extend(figures.map(row));
    }
    Ok(Shown { grid, filter: Filter::read(tokens)? })
}
