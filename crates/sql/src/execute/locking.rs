//! `SELECT … FOR UPDATE` and `FOR SHARE`: the transaction conflicts with any other that writes the rows read here
//! before it commits.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

use super::run::collect;
use crate::{
    Error, Result,
    catalog::{SqlTable, TableName},
    parse::Source,
    state::SessionState,
};

/// Protects the rows that a query reads, if it has a locking clause and a transaction is open.
pub(super) async fn protect(
    session: &mut SessionState,
    query: &Query,
    source: &Source,
) -> Result<()> {
    if query.locks.is_empty() || !session.transaction.is_begun() {
        return Ok(());
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let of: Option<Vec<String>> = query.locks.iter().map(|lock| named(lock.of.as_ref()?)).collect();
    for (called, name) in tables(&select.from, session) {
        let is_meant = |of: &Vec<String>| of.iter().any(|of| of.eq_ignore_ascii_case(&called));
        if !of.as_ref().is_none_or(is_meant) {
            continue;
        }
        let engine_name = name.engine_name(&session.shared);
        let Ok(schema) = session.reader().schema(&engine_name) else { continue };
        if !schema.agents().is_empty() {
            let what = "FOR UPDATE and FOR SHARE of a table with rows in other servers";
            return Err(Error::unsupported(what));
        }
        let table = SqlTable::of(&schema);
        if table.row_number.is_some() {
            continue;
        }
        let keys = keys_of(query, &called, &table);
        let rows = collect(session, keys, source).await?;
        for row in 0..rows.count() {
            let parts = (0..rows.columns.len()).map(|column| rows.value(row, column));
            let key: Vec<_> = parts.collect();
            session.transaction.protect(&engine_name, &key)?;
        }
    }
    Ok(())
}

/// The table name that an OF clause gives.
fn named(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(|name| name.value.clone())
}

/// The tables of FROM, with their names or aliases in the query.
fn tables(from: &[TableWithJoins], session: &SessionState) -> Vec<(String, TableName)> {
    let joined = from.iter().flat_map(|from| {
        std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
    });
    let named = joined.filter_map(|factor| {
        let TableFactor::Table { name, alias, .. } = factor else { return None };
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let full = match parts.as_slice() {
            [table] => TableName::new(session.database.clone()?, table.value.clone()),
            [database, table] => TableName::new(database.value.clone(), table.value.clone()),
            _ => return None,
        };
        let called = alias.as_ref().map_or_else(|| full.table.clone(), |a| a.name.value.clone());
        Some((called, full))
    });
    named.collect()
}

/// The same query, but selecting the key of one of its tables.
fn keys_of(query: &Query, called: &str, table: &SqlTable) -> Query {
    let mut query = query.clone();
    query.locks.clear();
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = table
            .schema
            .primary_key
            .iter()
            .filter_map(|position| table.schema.columns.get(*position))
            .map(|column| {
                let name = vec![Ident::new(called), Ident::with_quote('`', &column.name)];
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(name))
            })
            .collect();
        select.distinct = None;
    }
    query
}
