//! SELECT … FOR UPDATE and FOR SHARE: the rows read are protected until the commit, which fails (1213) if another
//! session changed one of them.

use datafusion::sql::sqlparser::ast::{
    Expr, LockClause, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value,
    ValueWithSpan,
};

use super::{
    evaluate::TreeQuery,
    named::{key_items, named_tables_without},
    target::{TargetTable, check_lockable, table_of},
    update::key_of,
};
use crate::{
    Result,
    catalog::{TableName, Verb},
    execute,
    parse::{Source, Statement, write::select_from},
    resolve::is_grouped,
    state::SessionState,
    transaction::{Key, TableStorage},
};

/// Protects the rows of the tables in FROM that satisfy WHERE, if a SELECT has a locking clause and a transaction is open.
pub(crate) async fn protect(session: &mut SessionState, statement: &Statement<'_>) -> Result<()> {
    let source = &statement.source;
    if !session.transaction.is_open() || !may_lock(source) {
        return Ok(());
    }
    if let Some((name, keys)) = execute::locked_keys(session, statement)? {
        let Some(target) = lockable(session, &name)? else { return Ok(()) };
        for key in keys.into_iter().map(Key) {
            if target.row(session, &key)?.is_some() {
                protect_key(session, &target, &key)?;
            }
        }
        return Ok(());
    }
    let query = execute::parsed(statement)?;
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    if query.locks.is_empty() {
        return Ok(());
    }
    let of: Vec<String> = locked_aliases(&query);
    for named in &named_tables_without(session, &select.from, query.with.as_ref())? {
        if !of.is_empty() && !of.contains(&named.alias) {
            continue;
        }
        let Some(target) = lockable(session, &named.name)? else { continue };
        let length = target.table.schema.primary_key.len();
        let query = query_of_keys(query.clone(), key_items(named, &target));
        for row in (TreeQuery { query, source }).rows(session).await? {
            if let Some(key) = key_of(&row, 0, length) {
                protect_key(session, &target, &key)?;
            }
        }
    }
    Ok(())
}

/// The tables that FOR UPDATE OF and FOR SHARE OF name; none if all are meant.
fn locked_aliases(query: &Query) -> Vec<String> {
    let named = |lock: &LockClause| {
        let name = lock.of.as_ref()?.0.last()?.as_ident()?;
        Some(name.value.clone())
    };
    query.locks.iter().map(named).collect::<Option<_>>().unwrap_or_default()
}

/// Replaces the number or the alias of a selected item by its expression: the item itself is not selected.
fn order_by_item(by: &mut Expr, items: &[SelectItem]) {
    let found = match by {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            digits.parse::<usize>().ok().and_then(|at| items.get(at.checked_sub(1)?))
        }
        Expr::Identifier(name) => items.iter().find(|item| {
            matches!(item, SelectItem::ExprWithAlias { alias, .. }
                if alias.value.eq_ignore_ascii_case(&name.value))
        }),
        _ => None,
    };
    if let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = found {
        *by = Expr::Nested(Box::new(expr.clone()));
    }
}

/// Whether a statement has the words of a locking clause, maybe in a subquery.
fn may_lock(source: &Source) -> bool {
    let is = |at: usize, word: &str| source.is_word(at, word);
    let begins = |at: usize| match is(at, "FOR") {
        true => is(at + 1, "UPDATE") || is(at + 1, "SHARE"),
        false => is(at, "LOCK") && is(at + 1, "IN"),
    };
    (1..source.tokens.len()).any(begins)
}

/// The table, if its rows can be protected: not of a view or a temporary table.
fn lockable(session: &SessionState, name: &TableName) -> Result<Option<TargetTable>> {
    check_lockable(session, name)?;
    // The reader itself reports missing rights.
    let Ok(table) = table_of(session, name, Verb::Select) else { return Ok(None) };
    if session.transaction.temporary(name).is_some() {
        return Ok(None);
    }
    let place = TableStorage::Engine(name.engine_name(&session.shared).into());
    Ok(Some(TargetTable::at(name.clone(), place, table)))
}

fn protect_key(session: &mut SessionState, target: &TargetTable, key: &Key) -> Result<()> {
    match target.engine_name() {
        Some(engine_name) => session.transaction.protect(engine_name, &key.0),
        None => Ok(()),
    }
}

/// The query that selects these columns of its rows. Of groups it is all rows that satisfy WHERE.
fn query_of_keys(mut query: Query, keys: Vec<Expr>) -> Query {
    query.locks.clear();
    let SetExpr::Select(select) = query.body.as_mut() else { return query };
    if is_grouped(select)
        || select.having.is_some()
        || select.distinct.is_some()
        || !select.named_window.is_empty()
    {
        query.limit_clause = None;
    }
    if query.limit_clause.is_none() {
        query.order_by = None;
    }
    if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &mut query.order_by {
        order.iter_mut().for_each(|by| order_by_item(&mut by.expr, &select.projection));
    }
    let (selection, from) = (select.selection.take(), std::mem::take(&mut select.from));
    **select = Select { selection, ..select_from(keys, from) };
    query
}
