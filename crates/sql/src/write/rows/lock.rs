//! SELECT … FOR UPDATE and FOR SHARE: the rows read are protected until the commit, which fails (1213) if another
//! session changed one of them. With SKIP LOCKED and NOWAIT, see [`super::lock_free`].

use datafusion::sql::sqlparser::ast::{
    Expr, LockClause, LockType, NonBlock, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr,
    Value, ValueWithSpan,
};

use super::{
    evaluate::TreeQuery,
    lock_free,
    named::{Named, key_items, named_tables_without},
    target::{TargetTable, check_lockable, table_of},
    update::key_of,
};
use crate::{
    Result,
    catalog::{TableName, Verb},
    execute,
    parse::{Source, Statement, write::select_from},
    resolve::{is_grouped, refuse_without_wait},
    state::SessionState,
    transaction::{Key, TableStorage},
};

/// A table of a SELECT whose rows are locked.
pub(super) struct LockedTable {
    /// Its name and alias in the statement.
    pub named: Named,
    /// The table.
    pub target: TargetTable,
    /// Whether it is FOR UPDATE.
    pub is_exclusive: bool,
    /// NOWAIT or SKIP LOCKED.
    pub nonblock: Option<NonBlock>,
}

/// Protects the rows of the tables in FROM that satisfy WHERE, if a SELECT has a locking clause and a transaction is open.
/// Returns the SELECT to run if that must leave out rows that others have locked.
pub(crate) async fn protect(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Option<Query>> {
    let source = &statement.source;
    let is_open = session.transaction.is_open();
    if !may_lock(source) || !is_open && !may_ask(source) {
        return Ok(None);
    }
    if let Some((name, keys)) = execute::locked_keys(session, statement)? {
        let Some(target) = lockable(session, &name)? else { return Ok(None) };
        let is_exclusive = source.is_word(source.tokens.len().saturating_sub(1), "UPDATE");
        for key in keys.into_iter().map(Key) {
            if target.row(session, &key)?.is_some() {
                protect_key(session, &target, &key, is_exclusive)?;
            }
        }
        return Ok(None);
    }
    let query = execute::parsed(statement)?;
    let SetExpr::Select(select) = query.body.as_ref() else {
        return refuse_without_wait(&query).map(|()| None);
    };
    if query.locks.is_empty() {
        return Ok(None);
    }
    let locked = locked_tables(session, &query, select)?;
    if query.locks.iter().any(|lock| lock.nonblock.is_some()) {
        return lock_free::narrowed(session, query, &locked, source).await.map(Some);
    }
    for table in &locked {
        let LockedTable { named, target, is_exclusive, .. } = table;
        let length = target.table.schema.primary_key.len();
        let query = query_of_keys(query.clone(), key_items(named, target));
        for row in (TreeQuery { query, source }).rows(session).await? {
            if let Some(key) = key_of(&row, 0, length) {
                protect_key(session, target, &key, *is_exclusive)?;
            }
        }
    }
    Ok(None)
}

/// The tables of FROM whose rows the locking clauses of a query mean.
fn locked_tables(
    session: &SessionState,
    query: &Query,
    select: &Select,
) -> Result<Vec<LockedTable>> {
    let mut locked = Vec::new();
    for named in named_tables_without(session, &select.from, query.with.as_ref())? {
        let means = |lock: &&LockClause| {
            let of = lock.of.as_ref().and_then(|name| name.0.last()?.as_ident());
            of.is_none_or(|alias| alias.value == named.alias)
        };
        let Some(lock) = query.locks.iter().find(means) else { continue };
        let (is_exclusive, nonblock) = (lock.lock_type == LockType::Update, lock.nonblock);
        if let Some(target) = lockable(session, &named.name)? {
            locked.push(LockedTable { named, target, is_exclusive, nonblock });
        }
    }
    Ok(locked)
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

/// Whether a statement has the words SKIP LOCKED or NOWAIT.
fn may_ask(source: &Source) -> bool {
    let is = |at: usize, word: &str| source.is_word(at, word);
    (1..source.tokens.len()).any(|at| is(at, "NOWAIT") || is(at, "SKIP") && is(at + 1, "LOCKED"))
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

fn protect_key(
    session: &mut SessionState,
    target: &TargetTable,
    key: &Key,
    is_exclusive: bool,
) -> Result<()> {
    let Some(engine_name) = target.engine_name() else { return Ok(()) };
    session.transaction.lock(engine_name, key, is_exclusive);
    session.transaction.protect(engine_name, &key.0)
}

/// The query that selects these columns of its rows. Of groups it is all rows that satisfy WHERE.
pub(super) fn query_of_keys(mut query: Query, keys: Vec<Expr>) -> Query {
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
