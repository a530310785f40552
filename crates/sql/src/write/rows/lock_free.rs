//! SELECT … FOR UPDATE SKIP LOCKED and NOWAIT, with which several workers take jobs from one table.
//!
//! A SELECT of the keys finds candidates. Each is locked for the transaction, unless another one has locked it or has
//! changed it since the snapshot. The statement then runs over the rows that were locked.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, LimitClause, NonBlock, Query, SetExpr, UnaryOperator, Value as Literal,
    ValueWithSpan,
};
use remora_engine::Value;
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{
    evaluate::TreeQuery,
    locked_table::{LockedTable, query_of_keys},
    named::key_items,
};
use crate::{
    Error, Result, parse::Source, resolve::literal, state::SessionState, transaction::RowKey,
};

/// How many rows are read beyond LIMIT first, in place of those that others have locked.
const SPARE: u64 = 64;
/// The most keys of several columns that the condition of the SELECT names: each may become a condition.
const MOST_KEYS: usize = 20_000;
/// The most keys of one column that it names, in one list.
const MOST_LISTED: usize = 250_000;

/// LIMIT and OFFSET.
#[derive(Clone, Copy)]
struct Window {
    offset: u64,
    limit: u64,
}

/// Which rows of a table the statement may read.
#[derive(Default)]
struct Sorted {
    /// The candidates, and whether they are locked for this transaction.
    known: FxHashMap<RowKey, bool>,
    /// Whether a row of a join has none of this table.
    is_absent: bool,
}

/// Locks the rows of a SELECT, whose locking clauses mean these tables, and returns the SELECT of them alone.
///
/// # Errors
/// 3572 if NOWAIT is said and a row cannot be locked; 1235 if too many keys would have to be named. Rows that were locked
/// stay locked.
pub(super) async fn narrowed(
    session: &mut SessionState,
    mut query: Query,
    tables: &[LockedTable],
    source: &Source,
) -> Result<Query> {
    if tables.is_empty() {
        query.locks.clear();
        return Ok(query);
    }
    let most_rows = session.variables.sql_select_limit;
    if query.limit_clause.is_none() && most_rows != u64::MAX {
        query.limit_clause = Some(limit_clause(most_rows));
    }
    let items = tables.iter().flat_map(|table| key_items(&table.named, &table.target)).collect();
    let mut candidates = query_of_keys(session, query.clone(), items)?;
    let window = candidates.limit_clause.take().map(|clause| window(&clause)).transpose()?;
    query.locks.clear();
    // Kept from round to round: a row that is locked once may be read, whatever the next round finds.
    let mut sorted: Vec<Sorted> = tables.iter().map(|_| Sorted::default()).collect();
    let mut spare = SPARE;
    loop {
        let most = window.map(|window| window.offset.saturating_add(window.limit));
        let read = most.map(|most| most.saturating_add(spare));
        // The session's limit would be added to a query without one.
        let limit = read.or((most_rows != u64::MAX).then_some(u64::MAX)).map(limit_clause);
        let query_of_candidates = Query { limit_clause: limit, ..candidates.clone() };
        let rows = TreeQuery { query: query_of_candidates, source }.rows(session).await?;
        let found = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let taken = sort(session, tables, &mut sorted, &rows, most)?;
        let is_complete = match (most, read) {
            (Some(most), Some(read)) => taken >= most || found < read,
            _ => true,
        };
        if is_complete {
            narrow(&mut query, tables, &sorted, window)?;
            return Ok(query);
        }
        spare = spare.saturating_mul(8);
    }
}

/// LIMIT and OFFSET of a query, with the meaning that `resolve/limit.rs` gives them.
fn window(clause: &LimitClause) -> Result<Window> {
    let number = |expr: &Expr| match expr {
        // Some drivers send the numbers of prepared statements as text.
        Expr::Value(ValueWithSpan {
            value: Literal::Number(digits, _) | Literal::SingleQuotedString(digits),
            ..
        }) => digits.parse().ok(),
        Expr::Value(ValueWithSpan { value: Literal::Null, .. }) => Some(0),
        _ => None,
    };
    let said = match clause {
        LimitClause::LimitOffset { limit, offset, .. } => {
            let offset = offset.as_ref().map_or(Some(0), |offset| number(&offset.value));
            let limit = limit.as_ref().map_or(Some(u64::MAX), number);
            offset.zip(limit)
        }
        LimitClause::OffsetCommaLimit { offset, limit } => number(offset).zip(number(limit)),
    };
    let (offset, limit) = said.ok_or_else(|| {
        Error::unsupported("SKIP LOCKED and NOWAIT with a LIMIT that is no number")
    })?;
    Ok(Window { offset, limit })
}

fn limit_clause(limit: u64) -> LimitClause {
    let digits = Literal::Number(limit.to_string(), false);
    let limit = Some(Expr::Value(ValueWithSpan::from(digits)));
    LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() }
}

/// Locks the candidates, as far as others have not, until `most` rows are found. Adds to what is known of each table's
/// rows, and returns how many rows are locked.
fn sort(
    session: &mut SessionState,
    tables: &[LockedTable],
    sorted: &mut [Sorted],
    rows: &[Vec<Value>],
    most: Option<u64>,
) -> Result<u64> {
    let mut taken = 0;
    for row in rows {
        if most.is_some_and(|most| taken >= most) {
            break;
        }
        session.check_interrupted()?;
        let (mut at, mut is_free) = (0, true);
        for (table, sorted) in tables.iter().zip(sorted.iter_mut()) {
            match table.target.key_of(row, at) {
                Some(key) => is_free &= lock(session, table, sorted, key)?,
                None => sorted.is_absent = true,
            }
            at += table.target.table.schema.primary_key.len();
        }
        taken += u64::from(is_free);
    }
    Ok(taken)
}

/// Locks a row for the transaction, if no other one has.
fn lock(
    session: &mut SessionState,
    table: &LockedTable,
    sorted: &mut Sorted,
    key: RowKey,
) -> Result<bool> {
    if let Some(is_free) = sorted.known.get(&key) {
        return Ok(*is_free);
    }
    let Some(engine_name) = table.target.engine_name() else { return Ok(true) };
    let is_free = match table.nonblock {
        Some(nonblock) => {
            let shared = std::sync::Arc::clone(&session.shared);
            let transaction = &mut session.transaction;
            let is_free = transaction.try_lock(&shared, engine_name, &key, table.is_exclusive)?;
            if !is_free && nonblock == NonBlock::Nowait {
                let message = "Statement aborted because lock(s) could not be acquired immediately and \
                               NOWAIT is set.";
                return Err(Error::new(ErrorCode::LockNotAvailable, message));
            }
            is_free
        }
        None => {
            session.transaction.lock(engine_name, &key, table.is_exclusive);
            true
        }
    };
    if is_free && session.transaction.is_open() {
        session.transaction.protect(engine_name, &key.0)?;
    }
    sorted.known.insert(key, is_free);
    Ok(is_free)
}

/// Adds to the condition of a query that its rows are locked.
fn narrow(
    query: &mut Query,
    tables: &[LockedTable],
    sorted: &[Sorted],
    window: Option<Window>,
) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let mut conditions: Vec<Expr> = select.selection.take().map(nested).into_iter().collect();
    for (table, sorted) in tables.iter().zip(sorted) {
        let (free, locked) = (sorted.keys(true), sorted.keys(false));
        let columns = key_items(&table.named, &table.target);
        // Behind the last row that LIMIT takes, nothing is known.
        let condition = match window {
            None if locked.is_empty() => continue,
            None if locked.len() < free.len() => {
                let one_of = nested(named_keys(&columns, &locked)?);
                Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(one_of) }
            }
            _ => named_keys(&columns, &free)?,
        };
        let condition = match (sorted.is_absent, columns.first()) {
            (true, Some(column)) => {
                let is_absent = Expr::IsNull(Box::new(column.clone()));
                joined(nested(condition), BinaryOperator::Or, is_absent)
            }
            _ => condition,
        };
        conditions.push(nested(condition));
    }
    select.selection =
        conditions.into_iter().reduce(|all, next| joined(all, BinaryOperator::And, next));
    Ok(())
}

impl Sorted {
    /// The keys, in their order, of the candidates that are locked for this transaction or not.
    fn keys(&self, is_free: bool) -> Vec<&[Value]> {
        let known = self.known.iter().filter(|(_, free)| **free == is_free);
        let mut keys: Vec<&RowKey> = known.map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| &*key.0).collect()
    }
}

/// Whether the columns of a key have the values of one of these, which are in order.
///
/// # Errors
/// 1235 for too many.
fn named_keys(columns: &[Expr], keys: &[&[Value]]) -> Result<Expr> {
    let most = if columns.len() > 1 { MOST_KEYS } else { MOST_LISTED };
    if keys.len() > most {
        return Err(Error::unsupported(format_args!(
            "SKIP LOCKED and NOWAIT that name more than {most} rows by their keys"
        )));
    }
    Ok(one_of(columns, keys))
}

/// Keys that begin with the same value share a condition, and the last column of those has a list.
fn one_of(columns: &[Expr], keys: &[&[Value]]) -> Expr {
    let Some((column, behind)) = columns.split_first() else { return any_of(Vec::new()) };
    if behind.is_empty() {
        let values = keys.iter().filter_map(|key| key.first()).map(literal);
        return match keys.len() {
            0 | 1 => any_of(values.map(|value| is_equal(column, value)).collect()),
            _ => {
                let (expr, list) = (Box::new(column.clone()), values.collect());
                Expr::InList { expr, list, negated: false }
            }
        };
    }
    let of_group = |group: &[&[Value]]| {
        let first = group.first()?.first()?;
        let rests: Vec<&[Value]> = group.iter().filter_map(|key| key.get(1..)).collect();
        let is_first = is_equal(column, literal(first));
        Some(nested(joined(is_first, BinaryOperator::And, one_of(behind, &rests))))
    };
    any_of(keys.chunk_by(|one, next| one.first() == next.first()).filter_map(of_group).collect())
}

/// OR of conditions, as a balanced tree: what walks through it must not go as deep as there are keys.
fn any_of(mut conditions: Vec<Expr>) -> Expr {
    if conditions.len() <= 1 {
        return conditions.pop().unwrap_or_else(|| literal(&Value::Bool(false)));
    }
    let behind = conditions.split_off(conditions.len() / 2);
    joined(any_of(conditions), BinaryOperator::Or, any_of(behind))
}

fn is_equal(column: &Expr, value: Expr) -> Expr {
    joined(column.clone(), BinaryOperator::Eq, value)
}

fn joined(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}
