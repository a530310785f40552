//! information_schema: keys and constraints.

use remora_engine::{TableIndex, Value};

use super::{
    grid::{maybe, number, text, yes},
    tables::{CATALOG, ListedTable},
};
use crate::{
    Result,
    catalog::{ForeignKey, Key, KeyKind, PartOf, TableName},
    error::from_engine,
    parse::define::QualifiedName,
    state::SessionState,
};

/// The rows of STATISTICS, in the order of SHOW INDEX.
pub(super) fn statistics(session: &SessionState, known: &ListedTable) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for key in known.ordered_keys() {
        let unique = matches!(key.kind, KeyKind::Primary | KeyKind::Unique);
        let kind = match key.kind {
            KeyKind::Fulltext => "FULLTEXT",
            KeyKind::Spatial => "SPATIAL",
            _ => "BTREE",
        };
        for (part, place) in key.parts.iter().zip(1_u64..) {
            let (column, expression) = match &part.of {
                PartOf::Column(name) => (Some(name), None),
                // MySQL prints the text as its data dictionary stores it.
                PartOf::Expression(expression) => (None, Some(expression.replace('\'', "\\'"))),
            };
            let spec = column.and_then(|name| known.table.column(name));
            let spec = spec.and_then(|position| known.table.columns.get(position));
            let direction = if part.descending { "D" } else { "A" };
            let sorted = (kind == "BTREE").then_some(direction);
            let nullable = spec.is_none_or(|spec| !spec.not_null);
            rows.push(vec![
                text(CATALOG),
                text(&known.name.database),
                text(&known.name.table),
                Value::Int(i64::from(!unique)),
                text(&known.name.database),
                text(&key.name),
                Value::Uint(place),
                maybe(column),
                maybe(sorted),
                number(cardinality(session, known, key, place)?),
                number(part.prefix),
                Value::Null,
                text(if nullable { "YES" } else { "" }),
                text(kind),
                text(""),
                text(&key.comment),
                yes(!key.invisible),
                maybe(expression.as_ref()),
            ]);
        }
    }
    Ok(rows)
}

/// The approximate number of distinct values of a key's first `parts` parts; `None` if it is
/// unknown.
fn cardinality(
    session: &SessionState,
    known: &ListedTable,
    key: &Key,
    parts: u64,
) -> Result<Option<u64>> {
    // Only the servers that hold the rows could tell.
    if !known.table.schema.agents().is_empty() {
        return Ok(None);
    }
    let count = known.statistics(session)?.rows;
    let is_whole = usize::try_from(parts).is_ok_and(|parts| parts == key.parts.len());
    if key.kind == KeyKind::Fulltext || is_whole && known.table.is_unique(key) {
        return Ok(Some(count));
    }
    let Some((index, columns)) = known.table.index_of(key) else { return Ok(None) };
    let Some(parts) = usize::try_from(parts).ok().filter(|parts| *parts <= columns) else {
        return Ok(None);
    };
    if known.engine_name.is_empty() {
        return Ok(None);
    }
    let found = session.reader().distinct(&known.engine_name, index, parts);
    Ok(if_there(found)?.flatten())
}

/// `None` instead of an error if the table was dropped after it was listed.
fn if_there<T>(said: remora_engine::Result<T>) -> Result<Option<T>> {
    match said {
        Ok(said) => Ok(Some(said)),
        Err(remora_engine::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(from_engine(&error)),
    }
}

/// The rows of `remora.index_usage`: how often each key of a table was used, by kind of use.
pub(super) fn usage(session: &SessionState, known: &ListedTable) -> Result<Vec<Vec<Value>>> {
    let usage = session.reader().index_usage(&known.engine_name);
    let Some(usage) = if_there(usage)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for key in known.ordered_keys() {
        let counted = match known.table.index_of(key) {
            Some((TableIndex::Key, _)) => Some(usage.key),
            Some((TableIndex::Secondary(place), _)) => usage.secondary.get(place).copied(),
            None => text_index(known, key).and_then(|place| usage.texts.get(place).copied()),
        };
        let Some(counted) = counted else { continue };
        let uses = [
            ("lookup", counted.lookups, key.kind == KeyKind::Primary),
            ("equality", counted.equalities, key.kind != KeyKind::Fulltext),
            ("range", counted.ranges, key.kind != KeyKind::Fulltext),
            ("order", counted.orders, key.kind != KeyKind::Fulltext),
            ("text", counted.searches, key.kind == KeyKind::Fulltext),
        ];
        for (kind, count, _) in uses.into_iter().filter(|(.., can)| *can) {
            let name = &known.name;
            let named = [text(&name.database), text(&name.table), text(&key.name), text(kind)];
            rows.push(named.into_iter().chain([Value::Uint(count)]).collect());
        }
    }
    Ok(rows)
}

/// The index of a text key among the schema's text indexes.
fn text_index(known: &ListedTable, key: &Key) -> Option<usize> {
    let columns = key.parts.iter().map(|part| known.table.column(part.column()?));
    let columns: Vec<usize> = columns.collect::<Option<_>>()?;
    known.table.schema.texts.iter().position(|text| text.columns == columns)
}

/// A foreign key to be listed.
struct ListedForeignKey<'k> {
    name: String,
    key: &'k ForeignKey,
    /// The table that it references.
    parent: TableName,
}

/// The foreign keys of a table.
fn foreign(known: &ListedTable) -> impl Iterator<Item = ListedForeignKey<'_>> {
    let keys = known.table.foreign.iter().enumerate();
    keys.filter(|(_, key)| !key.references.columns.is_empty()).map(|(index, key)| {
        let numbered = || format!("{}_ibfk_{}", known.name.table, index + 1);
        let QualifiedName { database, name } = &key.references.table;
        let database = database.as_ref().unwrap_or(&known.name.database);
        let parent = TableName::new(database, name);
        ListedForeignKey { name: key.name.clone().unwrap_or_else(numbered), key, parent }
    })
}

/// The rows of TABLE_CONSTRAINTS.
pub(super) fn constraints(known: &ListedTable) -> Vec<Vec<Value>> {
    let row = |name: &str, kind: &str, enforced: bool| {
        vec![
            text(CATALOG),
            text(&known.name.database),
            text(name),
            text(&known.name.database),
            text(&known.name.table),
            text(kind),
            yes(enforced),
        ]
    };
    let mut rows = Vec::new();
    for key in known.ordered_keys() {
        match key.kind {
            KeyKind::Primary => rows.push(row(&key.name, "PRIMARY KEY", true)),
            KeyKind::Unique => rows.push(row(&key.name, "UNIQUE", true)),
            _ => {}
        }
    }
    rows.extend(foreign(known).map(|it| row(&it.name, "FOREIGN KEY", false)));
    let checks = known.table.checks.iter();
    rows.extend(checks.map(|check| row(&check.name, "CHECK", check.enforced)));
    rows
}

/// The rows of CHECK_CONSTRAINTS.
pub(super) fn checks(known: &ListedTable) -> Vec<Vec<Value>> {
    let checks = known.table.checks.iter().map(|check| {
        let clause = format!("({})", check.expression);
        let clause = if check.expression.starts_with('(') { &check.expression } else { &clause };
        vec![text(CATALOG), text(&known.name.database), text(&check.name), text(clause)]
    });
    checks.collect()
}

/// The rows of KEY_COLUMN_USAGE.
pub(super) fn column_usage(known: &ListedTable) -> Vec<Vec<Value>> {
    let database = &known.name.database;
    let row = |name: &str, column: &str, place: u64, to: Option<(&TableName, u64, &str)>| {
        vec![
            text(CATALOG),
            text(database),
            text(name),
            text(CATALOG),
            text(database),
            text(&known.name.table),
            text(column),
            Value::Uint(place),
            number(to.map(|(_, place, _)| place)),
            maybe(to.map(|(parent, ..)| &parent.database)),
            maybe(to.map(|(parent, ..)| &parent.table)),
            maybe(to.map(|(.., column)| column)),
        ]
    };
    let mut rows = Vec::new();
    for key in known.ordered_keys() {
        if !matches!(key.kind, KeyKind::Primary | KeyKind::Unique) {
            continue;
        }
        for (part, place) in key.parts.iter().zip(1_u64..) {
            if let PartOf::Column(column) = &part.of {
                rows.push(row(&key.name, column, place, None));
            }
        }
    }
    for ListedForeignKey { name, key, parent } in foreign(known) {
        let pairs = key.columns.iter().zip(&key.references.columns);
        for ((column, to), place) in pairs.zip(1_u64..) {
            rows.push(row(&name, column, place, Some((&parent, place, to))));
        }
    }
    rows
}

/// The rows of REFERENTIAL_CONSTRAINTS. `all` are the tables that a foreign key may reference.
pub(super) fn references(known: &ListedTable, all: &[ListedTable]) -> Vec<Vec<Value>> {
    let row = |foreign: ListedForeignKey<'_>| {
        vec![
            text(CATALOG),
            text(&known.name.database),
            text(&foreign.name),
            text(CATALOG),
            text(&foreign.parent.database),
            maybe(referenced_key(&foreign, all)),
            text("NONE"),
            text(foreign.key.references.on_update),
            text(foreign.key.references.on_delete),
            text(&known.name.table),
            text(&foreign.parent.table),
        ]
    };
    foreign(known).map(row).collect()
}

/// The unique key that starts with the columns that a foreign key references.
fn referenced_key<'k>(foreign: &ListedForeignKey<'_>, all: &'k [ListedTable]) -> Option<&'k str> {
    let parent = all.iter().find(|known| known.name == foreign.parent)?;
    let begins = |key: &&Key| {
        let same = |(part, column): (&crate::catalog::KeyPart, &String)| match &part.of {
            PartOf::Column(name) => name.eq_ignore_ascii_case(column),
            PartOf::Expression(_) => false,
        };
        matches!(key.kind, KeyKind::Primary | KeyKind::Unique)
            && key.parts.iter().zip(&foreign.key.references.columns).all(same)
    };
    let keys = parent.ordered_keys();
    keys.into_iter().find(|key| begins(key)).map(|key| key.name.as_str())
}
