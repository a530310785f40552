//! The tables that a session may read, and information_schema's rows about their columns.

use std::sync::Arc;

use remora_engine::{TableStatistics, Value};

use super::{
    grid::{maybe, number, text, yes},
    requested_tables::RequestedTables,
};
use crate::{
    Access, Error, Result, SqlType,
    catalog::{ColumnSpec, DefaultSpec, Key, KeyKind, PartOf, Reader, SqlTable, TableName, Verb},
    error::from_engine,
    meaning::types::bytes_per_character,
    state::SessionState,
};

/// The name of the only catalog in `information_schema`.
pub(super) const CATALOG: &str = "def";
/// The engine that tables report, so that tools offer what they offer for MySQL's.
pub(super) const ENGINE: &str = "InnoDB";
/// The engine that distributed tables report. mysqldump dumps only the definitions of such tables,
/// so the rows of their parts are not dumped twice.
const ENGINE_OF_PARTS: &str = "MRG_MyISAM";

/// A table to be listed.
pub(super) struct ListedTable {
    /// Its name in SQL.
    pub(super) name: TableName,
    /// The engine's name; empty for a temporary table.
    pub(super) engine_name: String,
    /// Its declaration in SQL.
    pub(super) table: Arc<SqlTable>,
    /// The next AUTO_INCREMENT value of a temporary table.
    pub(super) temporary: Option<u64>,
}

/// All tables that the session may read, sorted by database and name.
pub(super) fn all(session: &SessionState) -> Result<Vec<ListedTable>> {
    among(session, &RequestedTables::default())
}

/// The requested tables that the session may read.
pub(super) fn among(
    session: &SessionState,
    requested_tables: &RequestedTables,
) -> Result<Vec<ListedTable>> {
    let reader = session.reader();
    let mut known = Vec::new();
    for engine_name in reader.tables() {
        let name = TableName::of_engine(&engine_name, &session.shared);
        if requested_tables.has(&name)
            && session.identity.may(&name.database, &name.table, Access::Read)
        {
            let schema = reader.schema(&engine_name).map_err(|error| from_engine(&error))?;
            let parts = TableName::check_parts(&schema, &session.shared, &session.identity);
            if parts.is_err() {
                continue;
            }
            known.push(ListedTable {
                name,
                engine_name,
                table: SqlTable::of(&schema),
                temporary: None,
            });
        }
    }
    let order = |known: &ListedTable| (known.name.database.clone(), known.name.table.clone());
    known.sort_by_cached_key(order);
    Ok(known)
}

/// The number of tables that the session may read. For an administrator hidden tables count too.
pub(super) fn count(session: &SessionState) -> usize {
    let default = &session.shared.settings.default_database;
    let names = session.shared.database.tables();
    names.iter().filter(|name| session.identity.may_engine(name, default, Access::Read)).count()
}

/// The table of this name, preferring a temporary one; 1146 or 1142 if there is none or it may not
/// be read.
pub(super) fn one(session: &SessionState, name: &TableName) -> Result<ListedTable> {
    if let Some(temporary) = session.transaction.temporary(name) {
        return Ok(ListedTable {
            name: name.clone(),
            engine_name: String::new(),
            table: SqlTable::of(&temporary.schema),
            temporary: Some(temporary.next),
        });
    }
    name.check(&session.identity, Verb::Select)?;
    let engine_name = name.engine_name(&session.shared);
    found(session, name, engine_name, session.reading())
}

/// The table as it was declared. Agents are not asked.
pub(super) fn declared(session: &SessionState, name: &TableName) -> Result<ListedTable> {
    if session.transaction.temporary(name).is_some() {
        return one(session, name);
    }
    name.check(&session.identity, Verb::Select)?;
    found(session, name, name.engine_name(&session.shared), session.reader())
}

fn found(
    session: &SessionState,
    name: &TableName,
    engine_name: String,
    reader: Reader,
) -> Result<ListedTable> {
    match reader.schema(&engine_name) {
        Ok(schema) => {
            TableName::check_parts(&schema, &session.shared, &session.identity)?;
            let table = SqlTable::of(&schema);
            Ok(ListedTable { name: name.clone(), engine_name, table, temporary: None })
        }
        Err(remora_engine::Error::NotFound { .. }) => Err(name.missing()),
        Err(error) => Err(from_engine(&error)),
    }
}

impl ListedTable {
    /// The engine that the table reports.
    pub(super) fn engine(&self) -> &'static str {
        if self.table.schema.parts().is_empty() { ENGINE } else { ENGINE_OF_PARTS }
    }

    /// The next AUTO_INCREMENT value.
    pub(super) fn next(&self, session: &SessionState) -> Result<Option<u64>> {
        let Some(position) = self.table.auto_increment() else { return Ok(None) };
        if self.temporary.is_some() {
            return Ok(self.temporary);
        }
        if self.table.schema.is_distributed() {
            return Ok(None);
        }
        let Some(column) = self.table.schema.columns.get(position) else { return Ok(None) };
        let shared = &session.shared;
        match shared.counters.peek(shared, &self.engine_name, &column.name) {
            Ok(next) => Ok(Some(next)),
            // The table was replaced or dropped after the statement took its snapshot.
            Err(_) if !self.is_still_there(session) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the table still has the definition that the statement read.
    fn is_still_there(&self, session: &SessionState) -> bool {
        let there = session.shared.database.schema(&self.engine_name);
        there.is_ok_and(|schema| schema.means(&self.table.schema))
    }

    /// The table's rows and bytes.
    pub(super) fn statistics(&self, session: &SessionState) -> Result<TableStatistics> {
        if self.temporary.is_some() {
            return Ok(TableStatistics::default());
        }
        let statistics = match session.shared.database.statistics(&self.engine_name) {
            // Dropped after the statement took its snapshot.
            Err(remora_engine::Error::NotFound { .. }) => Ok(TableStatistics::default()),
            statistics => statistics,
        };
        statistics.map_err(|error: remora_engine::Error| -> Error { from_engine(&error) })
    }

    /// Its keys in MySQL's order: unique keys first, text indexes last.
    pub(super) fn ordered_keys(&self) -> Vec<&Key> {
        let mut keys: Vec<&Key> = self.table.keys.iter().collect();
        keys.sort_by_key(|key| match key.kind {
            KeyKind::Primary => 0,
            KeyKind::Unique => 1,
            KeyKind::Fulltext => 3,
            KeyKind::Plain | KeyKind::Spatial | KeyKind::Vector => 2,
        });
        keys
    }

    /// The COLUMN_KEY of a column: PRI, UNI, MUL or empty.
    pub(super) fn column_key(&self, column: &str) -> &'static str {
        let is = |of: &PartOf| match of {
            PartOf::Column(name) => name.eq_ignore_ascii_case(column),
            PartOf::Expression(_) => false,
        };
        let mut found = "";
        for key in &self.table.keys {
            if key.kind == KeyKind::Primary && key.parts.iter().any(|part| is(&part.of)) {
                return "PRI";
            }
            let Some(first) = key.parts.first().filter(|part| is(&part.of)) else { continue };
            let single = key.kind == KeyKind::Unique && key.parts.len() == 1;
            if single && first.prefix.is_none() {
                found = "UNI";
            } else if found.is_empty() && key.kind != KeyKind::Primary {
                found = "MUL";
            }
        }
        found
    }

    /// The rows of information_schema.COLUMNS.
    pub(super) fn column_rows(&self, may_write: bool) -> Vec<Vec<Value>> {
        let visible = self.table.visible().zip(1_u64..);
        let row = |((_, column, spec), position): (
            (usize, &remora_engine::ColumnDef, &ColumnSpec),
            u64,
        )| {
            let key = self.column_key(&column.name);
            column_row(&self.name, &column.name, spec, position, key, may_write)
        };
        visible.map(row).collect()
    }
}

/// A row of information_schema.COLUMNS.
pub(super) fn column_row(
    table: &TableName,
    name: &str,
    spec: &ColumnSpec,
    position: u64,
    key: &str,
    may_write: bool,
) -> Vec<Value> {
    let kind = &spec.kind;
    let is_text = kind.is_text() && !kind.collation.is_of_type();
    let (characters, bytes) = text_lengths(spec);
    let (precision, scale) = number_digits(spec);
    let moment =
        matches!(kind.sql, SqlType::Time(_) | SqlType::DateTime(_) | SqlType::Timestamp(_));
    let privileges = if may_write { "select,insert,update,references" } else { "select" };
    vec![
        text(CATALOG),
        text(&table.database),
        text(&table.table),
        text(name),
        Value::Uint(position),
        maybe(default_text(spec)),
        yes(!spec.not_null),
        text(kind.name()),
        number(characters),
        number(bytes),
        number(precision),
        number(scale),
        number(moment.then(|| u64::from(kind.fraction_digits()))),
        maybe(is_text.then(|| kind.collation.charset())),
        maybe(is_text.then(|| kind.collation.name())),
        text(kind.spelled()),
        text(key),
        text(extra(spec)),
        text(privileges),
        text(&spec.comment),
        text(spec.generated.as_ref().map_or("", |generated| &generated.expression)),
        Value::Null,
    ]
}

/// CHARACTER_MAXIMUM_LENGTH and CHARACTER_OCTET_LENGTH.
fn text_lengths(spec: &ColumnSpec) -> (Option<u64>, Option<u64>) {
    let kind = &spec.kind;
    let per_character = u64::from(bytes_per_character(kind.collation));
    let count = |label: &Arc<str>| label.chars().count() as u64;
    match kind.sql {
        SqlType::Char | SqlType::VarChar => {
            (Some(kind.length), Some(kind.length.saturating_mul(per_character)))
        }
        SqlType::Enum => {
            let longest = kind.labels.iter().map(count).max().unwrap_or(0);
            (Some(longest), Some(longest * per_character))
        }
        SqlType::Set => {
            let commas = (kind.labels.len() as u64).saturating_sub(1);
            let all = kind.labels.iter().map(count).sum::<u64>() + commas;
            (Some(all), Some(all * per_character))
        }
        _ if kind.is_blob() => (Some(kind.length), Some(kind.length)),
        _ => (None, None),
    }
}

/// NUMERIC_PRECISION and NUMERIC_SCALE.
fn number_digits(spec: &ColumnSpec) -> (Option<u64>, Option<u64>) {
    let kind = &spec.kind;
    let whole = |digits: u64| (Some(digits), Some(0));
    match kind.sql {
        SqlType::TinyInt => whole(3),
        SqlType::SmallInt => whole(5),
        SqlType::MediumInt => whole(7),
        SqlType::Int => whole(10),
        SqlType::BigInt => whole(if kind.unsigned { 20 } else { 19 }),
        SqlType::Bit(bits) => (Some(u64::from(bits)), None),
        SqlType::Decimal(digits, scale) => (Some(u64::from(digits)), Some(u64::from(scale))),
        SqlType::Float | SqlType::Double => match kind.digits {
            Some((digits, scale)) => (Some(u64::from(digits)), Some(u64::from(scale))),
            None => (Some(if kind.sql == SqlType::Float { 12 } else { 22 }), None),
        },
        _ => (None, None),
    }
}

/// The value of COLUMN_DEFAULT.
pub(super) fn default_text(spec: &ColumnSpec) -> Option<String> {
    match &spec.default {
        DefaultSpec::None | DefaultSpec::Null => None,
        DefaultSpec::Constant(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        DefaultSpec::Bits(spelled) => Some(spelled.clone()),
        DefaultSpec::Now => Some(now(spec)),
        DefaultSpec::Expression(expression) => Some(expression.clone()),
    }
}

fn now(spec: &ColumnSpec) -> String {
    match spec.kind.fraction_digits() {
        0 => "CURRENT_TIMESTAMP".to_owned(),
        digits => format!("CURRENT_TIMESTAMP({digits})"),
    }
}

/// The value of EXTRA.
pub(super) fn extra(spec: &ColumnSpec) -> String {
    let mut words = Vec::new();
    if spec.auto_increment {
        words.push("auto_increment".to_owned());
    }
    if matches!(spec.default, DefaultSpec::Now | DefaultSpec::Expression(_)) {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    if spec.on_update_now {
        words.push(format!("on update {}", now(spec)));
    }
    match &spec.generated {
        Some(generated) if generated.stored => words.push("STORED GENERATED".to_owned()),
        Some(_) => words.push("VIRTUAL GENERATED".to_owned()),
        None => {}
    }
    if spec.invisible {
        words.push("INVISIBLE".to_owned());
    }
    words.join(" ")
}
