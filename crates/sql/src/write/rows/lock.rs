//! SELECT … FOR UPDATE and FOR SHARE: the rows read are protected until the commit, which fails (1213) if another
//! session changed one of them. With SKIP LOCKED and NOWAIT, see [`super::lock_free`].

use datafusion::sql::sqlparser::ast::{
    LockClause, LockType, NonBlock, Query, Select, SetExpr, TableFactor,
};
use remora_mysql::ErrorCode;

use super::{
    evaluate::found_rows,
    lock_free,
    locked_table::{LockedTable, query_of_keys},
    named::{key_items, named_tables_without, relations},
    target::{TargetTable, check_lockable, table_of},
};
use crate::{
    Error, Result,
    catalog::{TableName, Verb, View},
    execute,
    parse::{Source, Statement, write::SoughtRows},
    resolve::refuse_without_wait,
    state::SessionState,
    transaction::{RowKey, TableStorage},
};

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
        for key in keys.into_iter().map(RowKey) {
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
    for (number, table) in locked.iter().enumerate() {
        let LockedTable { named, target, is_exclusive, .. } = table;
        let query = query_of_keys(session, query.clone(), key_items(named, target))?;
        let number = u8::try_from(number).unwrap_or(u8::MAX);
        let whole = (number < u8::MAX).then_some(0..source.tokens.len());
        let tokens = whole.into_iter().collect();
        for row in found_rows(session, statement, SoughtRows { query, tokens, number }).await?.rows
        {
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
    key: &RowKey,
    is_exclusive: bool,
) -> Result<()> {
    let Some(engine_name) = target.engine_name() else { return Ok(()) };
    session.transaction.lock(engine_name, key, is_exclusive);
    session.transaction.protect(engine_name, &key.0)
}
