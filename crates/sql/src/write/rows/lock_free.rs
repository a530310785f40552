//! SELECT … FOR UPDATE SKIP LOCKED and NOWAIT, with which several workers take jobs from one table.
//!
//! A SELECT of the keys finds candidates. Each is locked for the transaction, unless another one has locked it or has
//! changed it since the snapshot. The statement then runs over the rows that were locked.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, LimitClause, NonBlock, Offset, OffsetRows, Query, SetExpr, UnaryOperator,
    Value as Literal, ValueWithSpan,
};
use remora_engine::Value;
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{
    evaluate::TreeQuery,
    lock::{LockedTable, query_of_keys},
    named::key_items,
    update::key_of,
};
use crate::{
    Error, Result, parse::Source, resolve::literal, state::SessionState, transaction::Key,
};

/// How many rows are read beyond LIMIT first, in place of those that others have locked.
const SPARE: u64 = 64;

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
    known: FxHashMap<Key, bool>,
    /// Whether a row of a join has none of this table.
    is_absent: bool,
}

/// Locks the rows of a SELECT, whose locking clauses mean these tables, and returns the SELECT of them alone.
///
/// # Errors
/// 3572 if NOWAIT is said and a row cannot be locked. Rows that were locked stay locked.
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
    let items = tables.iter().flat_map(|table| key_items(&table.named, &table.target)).collect();
    let mut candidates = query_of_keys(query.clone(), items);
    let window = candidates.limit_clause.take().map(|clause| window(&clause)).transpose()?;
    query.locks.clear();
    let mut spare = SPARE;
    loop {
        let most = window.map(|window| window.offset.saturating_add(window.limit));
        let read = most.map(|most| most.saturating_add(spare));
        let limit = read.map(|read| limit_clause(read, 0));
        let query_of_candidates = Query { limit_clause: limit, ..candidates.clone() };
        let rows = TreeQuery { query: query_of_candidates, source }.rows(session).await?;
        let found = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let (sorted, taken) = sort(session, tables, &rows, most)?;
        let is_complete = match (most, read) {
            (Some(most), Some(read)) => taken >= most || found < read,
            _ => true,
        };
        if is_complete {
            narrow(&mut query, tables, &sorted, window);
            return Ok(query);
        }
        spare = spare.saturating_mul(8);
    }
}

/// LIMIT and OFFSET of a query, which are numbers.
fn window(clause: &LimitClause) -> Result<Window> {
    let number = |expr: &Expr| match expr {
        Expr::Value(ValueWithSpan { value: Literal::Number(digits, _), .. }) => digits.parse().ok(),
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

fn limit_clause(limit: u64, offset: u64) -> LimitClause {
    let number =
        |number: u64| Expr::Value(ValueWithSpan::from(Literal::Number(number.to_string(), false)));
    let offset = (offset > 0).then(|| Offset { value: number(offset), rows: OffsetRows::None });
    LimitClause::LimitOffset { limit: Some(number(limit)), offset, limit_by: Vec::new() }
}

/// Locks the candidates, as far as others have not, until `most` rows are found. Returns what is known of each table's
/// rows, and how many rows are locked.
fn sort(
    session: &mut SessionState,
    tables: &[LockedTable],
    rows: &[Vec<Value>],
    most: Option<u64>,
) -> Result<(Vec<Sorted>, u64)> {
    let mut sorted: Vec<Sorted> = tables.iter().map(|_| Sorted::default()).collect();
    let mut taken = 0;
    for row in rows {
        if most.is_some_and(|most| taken >= most) {
            break;
        }
        session.check_interrupted()?;
        let (mut at, mut is_free) = (0, true);
        for (table, sorted) in tables.iter().zip(&mut sorted) {
            let length = table.target.table.schema.primary_key.len();
            match key_of(row, at, length) {
                Some(key) => is_free &= lock(session, table, sorted, key)?,
                None => sorted.is_absent = true,
            }
            at += length;
        }
        taken += u64::from(is_free);
    }
    Ok((sorted, taken))
}

/// Locks a row for the transaction, if no other one has.
fn lock(
    session: &mut SessionState,
    table: &LockedTable,
    sorted: &mut Sorted,
    key: Key,
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
fn narrow(query: &mut Query, tables: &[LockedTable], sorted: &[Sorted], window: Option<Window>) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let mut conditions: Vec<Expr> = select.selection.take().map(nested).into_iter().collect();
    for (table, sorted) in tables.iter().zip(sorted) {
        let keys = |is_free: bool| -> Vec<&Key> {
            sorted.known.iter().filter(|(_, free)| **free == is_free).map(|(key, _)| key).collect()
        };
        let (free, locked) = (keys(true), keys(false));
        let columns = key_items(&table.named, &table.target);
        // Behind the last row that LIMIT takes, nothing is known.
        let condition = match window {
            None if locked.is_empty() => continue,
            None if locked.len() < free.len() => {
                let one_of = nested(one_of(&columns, &locked));
                Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(one_of) }
            }
            _ => one_of(&columns, &free),
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
}

/// Whether the columns of a key have the values of one of these.
fn one_of(columns: &[Expr], keys: &[&Key]) -> Expr {
    let [column] = columns else {
        let is_key = |key: &&Key| {
            let parts = columns.iter().zip(&key.0);
            let parts = parts
                .map(|(column, part)| joined(column.clone(), BinaryOperator::Eq, literal(part)));
            parts.reduce(|all, next| joined(all, BinaryOperator::And, next)).map(nested)
        };
        let any = keys.iter().filter_map(is_key);
        return any
            .reduce(|any, next| joined(any, BinaryOperator::Or, next))
            .unwrap_or_else(|| literal(&Value::Bool(false)));
    };
    if keys.is_empty() {
        return literal(&Value::Bool(false));
    }
    let list = keys.iter().filter_map(|key| key.0.first()).map(literal).collect();
    Expr::InList { expr: Box::new(column.clone()), list, negated: false }
}

fn joined(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}
