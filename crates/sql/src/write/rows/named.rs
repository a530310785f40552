//! The tables that a statement names: those of its FROM clause, and the one that an assigned column is of.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, TableFactor, TableWithJoins, With};

use remora_engine::{ColumnDef, ColumnType};

use super::target::{TargetTable, check_found, table_name, table_of};
use crate::{
    Error, Result,
    catalog::{TableName, Verb},
    execute,
    meaning::INSTANT,
    parse::{
        Statement, Tokens, function_call,
        write::{ChangedRows, column_named},
    },
    state::SessionState,
    transaction::RowKey,
};

/// A table and its alias in a statement.
#[derive(Clone)]
pub(crate) struct NamedTable {
    /// The table's name.
    pub name: TableName,
    /// Its alias, or else its name without the database.
    pub alias: String,
}

/// The tables of an UPDATE or DELETE and their aliases, without derived tables and those of its WITH.
pub(super) fn changed_tables(
    session: &SessionState,
    rows: &ChangedRows,
) -> Result<Vec<NamedTable>> {
    named_tables_without(session, &rows.tables, rows.with.as_ref())
}

/// Whether a WITH defines the table of this name.
pub(super) fn is_of_with(name: &ObjectName, with: Option<&With>) -> bool {
    let [part] = name.0.as_slice() else { return false };
    let named = part.as_ident().map(|ident| ident.value.as_str()).unwrap_or_default();
    let mut of_with = with.iter().flat_map(|with| &with.cte_tables);
    of_with.any(|cte| cte.alias.name.value.eq_ignore_ascii_case(named))
}

/// The tables of a FROM clause and their aliases, without derived tables and those of a WITH.
pub(crate) fn named_tables_without(
    session: &SessionState,
    tables: &[TableWithJoins],
    with: Option<&With>,
) -> Result<Vec<NamedTable>> {
    let mut named = Vec::new();
    for relation in relations(tables) {
        let TableFactor::Table { name, alias, partitions, .. } = relation else { continue };
        if is_of_with(name, with) {
            continue;
        }
        let name = full_name(session, name)?;
        if !partitions.is_empty() {
            return Err(Error::unsupported("PARTITION (…) of a table"));
        }
        let alias = alias.as_ref().map_or(&name.table, |alias| &alias.name.value).clone();
        named.push(NamedTable { name, alias });
    }
    Ok(named)
}

/// The name of a table, with the current database if none is given.
pub(super) fn full_name(session: &SessionState, name: &ObjectName) -> Result<TableName> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [table] => Ok(TableName::new(session.current_database()?, table.value.clone())),
        [database, table] => Ok(TableName::new(database.value.clone(), table.value.clone())),
        _ => Err(Error::unsupported(name)),
    }
}

/// All relations of a FROM clause, in the order of the text.
pub(super) fn relations(tables: &[TableWithJoins]) -> Vec<&TableFactor> {
    fn add<'t>(table: &'t TableWithJoins, found: &mut Vec<&'t TableFactor>) {
        let joined = table.joins.iter().map(|join| &join.relation);
        for relation in std::iter::once(&table.relation).chain(joined) {
            match relation {
                TableFactor::NestedJoin { table_with_joins, .. } => add(table_with_joins, found),
                relation => found.push(relation),
            }
        }
    }
    let mut found = Vec::new();
    tables.iter().for_each(|table| add(table, &mut found));
    found
}

/// Takes the name of one table and its alias. What else may not stand there is left to who reads it as a SELECT.
pub(super) fn one_table(session: &SessionState, tokens: &mut Tokens<'_>) -> Option<NamedTable> {
    let name = table_name(tokens, session).ok()?;
    let is_alias = tokens.accept("AS") || !(tokens.is_word("SET") || tokens.is_word("WHERE"));
    let alias = if is_alias { tokens.accept_name() } else { None };
    let alias = alias.unwrap_or_else(|| name.table.clone());
    Some(NamedTable { name, alias })
}

/// Takes WHERE and everything behind it, unless that says in which order rows are changed.
pub(super) fn conditions(tokens: &mut Tokens<'_>) -> Option<Range<usize>> {
    let start = tokens.place();
    if !tokens.accept("WHERE") {
        return None;
    }
    while !tokens.at_end() {
        if tokens.is_reserved("ORDER") {
            return None;
        }
        tokens.next();
    }
    Some(start..tokens.place())
}

/// The key's columns of a table, for a SELECT.
pub(super) fn key_items(named: &NamedTable, target: &TargetTable) -> Vec<Expr> {
    let schema = &target.table.schema;
    let parts = schema.primary_key.iter().filter_map(|&part| schema.columns.get(part));
    let item = |column: &ColumnDef| {
        let value = column_named(&[&named.alias, &column.name]);
        match column.kind {
            // A query gives local times.
            ColumnType::Timestamp => function_call(INSTANT, vec![value]),
            _ => value,
        }
    };
    parts.map(item).collect()
}

/// The keys, in key order, of the rows of a table that a statement changes, if its condition does nothing but name keys.
pub(super) fn named_keys(
    session: &SessionState,
    statement: &Statement<'_>,
    (named, target): (&NamedTable, &TargetTable),
    rows: &ChangedRows,
) -> Result<Option<Vec<RowKey>>> {
    if target.engine_name().is_none() {
        return Ok(None);
    }
    let items = || key_items(named, target);
    let Some(found) = execute::named_keys(session, statement, rows, &items)? else {
        return Ok(None);
    };
    let mut keys = Vec::with_capacity(found.len());
    for key in found.into_iter().map(RowKey) {
        if target.row(session, &key)?.is_some() {
            keys.push(key);
        }
    }
    Ok(Some(keys))
}

/// The table whose column is assigned.
pub(super) fn assigned_column(
    session: &SessionState,
    path: &[String],
    named: &[NamedTable],
) -> Result<(usize, usize)> {
    let mut found = None;
    let (name, qualifiers) =
        path.split_last().map_or(("", path), |(last, rest)| (last.as_str(), rest));
    for (index, table) in named.iter().enumerate() {
        if !fits(qualifiers, table) {
            continue;
        }
        let known = table_of(session, &table.name, Verb::Update)?;
        if let Some(column) = known.column(name) {
            if found.is_some() {
                return Err(Error::ambiguous_column(name, "field list"));
            }
            found = Some((index, column));
        }
    }
    check_found(found, &path.join("."))
}

/// Whether these qualifiers of a column's name are the table's.
pub(super) fn fits<T: AsRef<str>>(qualifiers: &[T], table: &NamedTable) -> bool {
    match qualifiers {
        [] => true,
        [alias] => alias.as_ref() == table.alias,
        [database, alias] => {
            alias.as_ref() == table.alias && database.as_ref() == table.name.database
        }
        _ => false,
    }
}
