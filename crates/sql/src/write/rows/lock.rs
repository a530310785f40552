//! SELECT … FOR UPDATE and FOR SHARE: the rows read are protected until the commit, which fails (1213) if another
//! session changed one of them. With SKIP LOCKED and NOWAIT, see [`super::lock_free`].

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, LockClause, LockType, NonBlock, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor, Value, ValueWithSpan,
};
use remora_mysql::ErrorCode;

use super::{
    evaluate::TreeQuery,
    lock_free,
    named::{Named, key_items, named_tables_without, relations},
    target::{TargetTable, check_lockable, table_of},
};
use crate::{
    Error, Result,
    catalog::{TableName, Verb, View},
    execute,
    parse::{Source, Statement, change_own_expressions, visit_own_expressions, write::select_from},
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
    if !may_lock(source) || !is_open && !may_ask(source) && !may_name(source) {
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
    check_named(&query, select)?;
    let asks = query.locks.iter().any(|lock| lock.nonblock.is_some());
    if !is_open && !asks {
        return Ok(None);
    }
    let locked = locked_tables(session, &query, select)?;
    if asks {
        return lock_free::narrowed(session, query, &locked, source).await.map(Some);
    }
    for table in &locked {
        let LockedTable { named, target, is_exclusive, .. } = table;
        let query = query_of_keys(session, query.clone(), key_items(named, target))?;
        for row in (TreeQuery { query, source }).rows(session).await? {
            if let Some(key) = target.key_of(&row, 0) {
                protect_key(session, target, &key, *is_exclusive)?;
            }
        }
    }
    Ok(None)
}

/// Error 3568 if OF names what is not in FROM.
fn check_named(query: &Query, select: &Select) -> Result<()> {
    let relations = relations(&select.from);
    for lock in &query.locks {
        let of = lock.of.as_ref().and_then(|name| name.0.last()?.as_ident());
        let Some(of) = of else { continue };
        if !relations.iter().any(|relation| name_of(relation) == Some(of.value.as_str())) {
            let message = format!("Unresolved table name `{}` in locking clause.", of.value);
            return Err(Error::new(ErrorCode::UnresolvedLockedTable, message));
        }
    }
    Ok(())
}

/// The name of a relation in its statement.
fn name_of(relation: &TableFactor) -> Option<&str> {
    let name = match relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::JsonTable { alias: Some(alias), .. } => &alias.name,
        TableFactor::Table { name, .. } => name.0.last()?.as_ident()?,
        _ => return None,
    };
    Some(&name.value)
}

/// The tables of FROM whose rows the locking clauses of a query mean.
///
/// # Errors
/// 1235 for SKIP LOCKED and NOWAIT of a relation with rows of others that cannot be locked.
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
        let target = lockable(session, &named.name)?;
        if let Some(clause) = nonblock {
            check_without_wait(session, &named.name, target.as_ref(), clause)?;
        }
        if let Some(target) = target {
            locked.push(LockedTable { named, target, is_exclusive, nonblock });
        }
    }
    Ok(locked)
}

/// Error 1235 for SKIP LOCKED and NOWAIT of a view, and of a table whose rows are in others. What only the session reads,
/// such as a temporary or a derived table, has no rows that others lock.
fn check_without_wait(
    session: &SessionState,
    name: &TableName,
    target: Option<&TargetTable>,
    clause: NonBlock,
) -> Result<()> {
    let refused = match target {
        Some(target) => target.table.schema.is_distributed().then_some("distributed table"),
        None if session.transaction.temporary(name).is_some() => None,
        // The reader itself reports missing rights.
        None if name.check(&session.identity, Verb::Select).is_err() => None,
        None => View::is_there(&session.reader(), name).then_some("view"),
    };
    match refused {
        Some(what) => Err(Error::unsupported(format_args!(
            "{clause} of the {what} {}: name its tables instead",
            name.table
        ))),
        None => Ok(()),
    }
}

/// Replaces the number of a selected item, and aliases, by their expressions: the items themselves are not selected.
/// Returns false if it is not known which item a number means, because `*` is at that place or before it.
fn order_by_item(by: &mut Expr, items: &[SelectItem], is_column: &dyn Fn(&str) -> bool) -> bool {
    if let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = by {
        let place = digits.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
        let Some(place) = place.filter(|place| *place < usize::MAX) else { return true };
        let is_wildcard = |item: &SelectItem| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        };
        if items.iter().take(place + 1).any(is_wildcard) {
            return false;
        }
        if let Some(expr) = items.get(place).and_then(expression_of) {
            *by = Expr::Nested(Box::new(expr.clone()));
        }
        return true;
    }
    if let Expr::Identifier(name) = by {
        let item = items.iter().find(|item| is_called(item, &name.value));
        if let Some(expr) = item.and_then(expression_of) {
            *by = Expr::Nested(Box::new(expr.clone()));
        }
        return true;
    }
    // Within an expression, columns go before aliases.
    let _: ControlFlow<()> = change_own_expressions(by, |part| {
        let found = match part {
            Expr::Identifier(name) if !is_column(&name.value) => {
                items.iter().find(|item| has_alias(item, &name.value)).and_then(expression_of)
            }
            _ => None,
        };
        if let Some(expr) = found {
            *part = Expr::Nested(Box::new(expr.clone()));
        }
        ControlFlow::Continue(())
    });
    true
}

fn expression_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn has_alias(item: &SelectItem, name: &str) -> bool {
    matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value.eq_ignore_ascii_case(name))
}

/// Whether an item has this alias, or is a column of this name with its table.
fn is_called(item: &SelectItem, name: &str) -> bool {
    match item {
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.last().is_some_and(|last| last.value.eq_ignore_ascii_case(name))
        }
        item => has_alias(item, name),
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

/// Whether a statement has a locking clause with OF.
fn may_name(source: &Source) -> bool {
    let is = |at: usize, word: &str| source.is_word(at, word);
    let locks = |at: usize| is(at, "FOR") && (is(at + 1, "UPDATE") || is(at + 1, "SHARE"));
    (1..source.tokens.len()).any(|at| is(at + 2, "OF") && locks(at))
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

/// The query that selects these columns of its rows. It is all rows that satisfy WHERE, if more rows than those that LIMIT
/// takes decide the answer.
///
/// # Errors
/// 1235 if ORDER BY cannot be told without the selected items and, because of SKIP LOCKED or NOWAIT, the first rows matter.
pub(super) fn query_of_keys(
    session: &SessionState,
    mut query: Query,
    keys: Vec<Expr>,
) -> Result<Query> {
    let asks = query.locks.iter().any(|lock| lock.nonblock.is_some());
    query.locks.clear();
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(query) };
    if reads_all(select, query.order_by.as_ref()) {
        query.limit_clause = None;
    }
    if query.limit_clause.is_none() {
        query.order_by = None;
    }
    if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = &mut query.order_by {
        let named = named_tables_without(session, &select.from, query.with.as_ref())?;
        let is_column = |name: &str| {
            let tables = named.iter().map(|named| table_of(session, &named.name, Verb::Select));
            tables.flatten().any(|table| table.column(name).is_some())
        };
        let items = select.projection.as_slice();
        let is_told = order.iter_mut().all(|by| order_by_item(&mut by.expr, items, &is_column));
        if !is_told && asks {
            return Err(Error::unsupported(
                "SKIP LOCKED and NOWAIT with ORDER BY a position at or behind *: name the column",
            ));
        }
        if !is_told {
            query.limit_clause = None;
            query.order_by = None;
        }
    }
    let (selection, from) = (select.selection.take(), std::mem::take(&mut select.from));
    **select = Select { selection, ..select_from(keys, from) };
    Ok(query)
}

/// Whether rows beyond LIMIT decide the answer: those of groups and windows, and those that are counted.
fn reads_all(select: &Select, order: Option<&OrderBy>) -> bool {
    let has_window = |expr: &Expr| match expr {
        Expr::Function(function) if function.over.is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let modifiers = select.select_modifiers.as_ref();
    is_grouped(select)
        || select.having.is_some()
        || select.distinct.is_some()
        || !select.named_window.is_empty()
        || modifiers.is_some_and(|modifiers| modifiers.sql_calc_found_rows)
        || visit_own_expressions(&select.projection, has_window).is_break()
        || order.is_some_and(|order| visit_own_expressions(order, has_window).is_break())
}
