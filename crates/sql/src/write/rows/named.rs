//! The tables that a statement names: those of its FROM clause, and the one that an assigned column is of.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, TableFactor, TableWithJoins, With};

use super::{
    evaluate::{Query, StatementText},
    insert::check_found,
    target::{TargetTable, table_name, table_of},
};
use crate::{
    Error, Result,
    catalog::{TableName, Verb, quoted_name},
    parse::{
        Tokens,
        write::{ChangedRows, column_named},
    },
    state::SessionState,
};

/// A table and its alias in a statement.
#[derive(Clone)]
pub(crate) struct Named {
    /// The table's name.
    pub name: TableName,
    /// Its alias, or else its name without the database.
    pub alias: String,
}

/// The tables of a FROM clause and their aliases, without derived tables.
pub(crate) fn named_tables(
    session: &SessionState,
    tables: &[TableWithJoins],
) -> Result<Vec<Named>> {
    named_tables_without(session, tables, None)
}

/// Likewise, without those of a WITH.
pub(crate) fn named_tables_without(
    session: &SessionState,
    tables: &[TableWithJoins],
    with: Option<&With>,
) -> Result<Vec<Named>> {
    let is_with = |name: &ObjectName| {
        let [part] = name.0.as_slice() else { return false };
        let named = part.as_ident().map(|ident| ident.value.as_str()).unwrap_or_default();
        let mut of_with = with.iter().flat_map(|with| &with.cte_tables);
        of_with.any(|cte| cte.alias.name.value.eq_ignore_ascii_case(named))
    };
    let mut named = Vec::new();
    for relation in relations(tables) {
        let TableFactor::Table { name, alias, partitions, .. } = relation else { continue };
        if is_with(name) {
            continue;
        }
        let name = full_name(session, name)?;
        if !partitions.is_empty() {
            return Err(Error::unsupported("PARTITION (…) of a table"));
        }
        let alias = alias.as_ref().map_or(&name.table, |alias| &alias.name.value).clone();
        named.push(Named { name, alias });
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
pub(super) fn one_table(session: &SessionState, tokens: &mut Tokens<'_>) -> Option<Named> {
    let name = table_name(tokens, session).ok()?;
    let is_alias = tokens.accept("AS") || !(tokens.is_word("SET") || tokens.is_word("WHERE"));
    let alias = if is_alias { tokens.accept_name() } else { None };
    let alias = alias.unwrap_or_else(|| name.table.clone());
    Some(Named { name, alias })
}

/// Words that a SELECT can have behind its conditions, and what else is not part of them.
const BEHIND_CONDITIONS: [&str; 12] = [
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "GROUP",
    "HAVING",
    "WINDOW",
    "INTO",
    "FOR",
    "LOCK",
    "PROCEDURE",
];

/// Takes WHERE and everything behind it, if that has only conditions.
pub(super) fn conditions(tokens: &mut Tokens<'_>) -> Option<Range<usize>> {
    let start = tokens.place();
    if !tokens.accept("WHERE") {
        return None;
    }
    while !tokens.at_end() {
        if BEHIND_CONDITIONS.iter().any(|word| tokens.is_reserved(word)) {
            return None;
        }
        tokens.next();
    }
    Some(start..tokens.place())
}

/// The columns of a table's key.
fn key_columns(target: &TargetTable) -> impl Iterator<Item = &str> {
    let schema = &target.table.schema;
    let parts = schema.primary_key.iter().filter_map(move |&part| schema.columns.get(part));
    parts.map(|column| column.name.as_str())
}

/// The key's columns of a table, for a SELECT.
pub(super) fn key_items(named: &Named, target: &TargetTable) -> Vec<Expr> {
    key_columns(target).map(|column| column_named(&[named.alias.as_str(), column])).collect()
}

/// The text of a SELECT of the tables' keys, and of the expressions that these tokens are, from the rows that a statement
/// changes.
pub(super) fn keys_text<'t>(
    text: StatementText<'_>,
    tables: impl IntoIterator<Item = (&'t Named, &'t TargetTable)>,
    expressions: impl IntoIterator<Item = Range<usize>>,
    rows: &ChangedRows,
) -> Query {
    let column = |named: &Named, column: &str| {
        format!("{}.{}", quoted_name(&named.alias), quoted_name(column))
    };
    let columns = tables
        .into_iter()
        .flat_map(|(named, target)| key_columns(target).map(move |name| column(named, name)));
    let mut query = Query::new(&format!("SELECT {}", columns.collect::<Vec<_>>().join(",")));
    let tokens = text.tokens();
    for expression in expressions {
        query.push(",(");
        query.push_tokens(&tokens, expression, text.parameters);
        query.push(")");
    }
    query.push(" FROM ");
    query.push_tokens(&tokens, rows.tables_at.clone(), text.parameters);
    query.push_tokens(&tokens, rows.rest_at.clone(), text.parameters);
    query
}

/// The table whose column is assigned.
pub(super) fn assigned_column(
    session: &SessionState,
    path: &[String],
    named: &[Named],
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
pub(super) fn fits<T: AsRef<str>>(qualifiers: &[T], table: &Named) -> bool {
    match qualifiers {
        [] => true,
        [alias] => alias.as_ref() == table.alias,
        [database, alias] => {
            alias.as_ref() == table.alias && database.as_ref() == table.name.database
        }
        _ => false,
    }
}
