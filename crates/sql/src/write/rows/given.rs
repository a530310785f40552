//! Rows that a program changes by key, without a statement: the documents of collections.
//!
//! They keep what SQL declared, as INSERT, UPDATE and DELETE do: keys over expressions, unique keys, conditions, types
//! and counters. Documents stay the texts that the program gave; a statement would store MySQL's form of them.

use remora_engine::{Change, Row, Value, fitted_row};

use super::{RowMaker, TargetTable, computed::Computed, literal::CellExpr, values::InsertedRows};
use crate::{
    Error, Outcome, Result, SqlType,
    catalog::{TableName, Verb},
    error::from_engine_write,
    state::SessionState,
    transaction::RowKey,
};

/// Changes rows of a table, by its engine's name, in the open transaction. Rows have the visible columns.
///
/// # Errors
/// 1062 for an inserted row whose key exists, and for any row with a unique key of another; those of the values and
/// conditions that INSERT reports; 1235 for a table whose rows a program cannot give whole.
pub(super) async fn change(
    session: &mut SessionState,
    table: &str,
    changes: &[Change],
) -> Result<Outcome> {
    let name = TableName::of_engine(table, &session.shared);
    let target = TargetTable::stored(session, &name, Verb::Replace)?;
    let maker = RowMaker::new(session, &target, false).await?;
    let given = changes.iter().filter_map(|change| match change {
        Change::Put(row) | Change::Insert(row) => Some(row),
        Change::Delete(_) => None,
    });
    // Where nothing is deleted, a row's number is that of its change.
    let are_rows = !changes.iter().any(|change| matches!(change, Change::Delete(_)));
    let mut rows = Vec::with_capacity(changes.len());
    for (row, number) in given.zip(1..) {
        session.failed_row = are_rows.then_some(rows.len());
        rows.push(whole(&target, &maker, row, number)?);
    }
    session.failed_row = None;
    // Rows that violate a condition are errors, because the maker is not lenient.
    Computed::of(&target).complete(session, &target, &maker, &mut rows).await?;
    let mut rows = rows.into_iter();
    let mut outcome = Outcome::default();
    for (place, change) in changes.iter().enumerate() {
        session.failed_row = None;
        session.check_progress()?;
        session.failed_row = Some(place);
        let is_changed = match change {
            Change::Delete(key) => delete(session, &target, key)?,
            Change::Put(_) | Change::Insert(_) => {
                // There is one for each of them.
                let Some(row) = rows.next() else { break };
                put(session, &target, row, matches!(change, Change::Insert(_)))?
            }
        };
        outcome.affected_rows += u64::from(is_changed);
    }
    session.failed_row = None;
    Ok(outcome)
}

/// Inserts rows, each in place of the one with its primary key. A row has a value for each column of the table that is
/// not hidden behind others; `None` means the column's default. Values of generated columns are computed, whatever is
/// given.
///
/// # Errors
/// Those of INSERT; 1062 only for unique keys other than the primary key.
pub(super) async fn insert(
    session: &mut SessionState,
    table: &str,
    rows: &[Vec<Option<Value>>],
) -> Result<Outcome> {
    let name = TableName::of_engine(table, &session.shared);
    let target = TargetTable::stored(session, &name, Verb::Replace)?;
    let visible = target.table.visible().filter(|(_, _, spec)| spec.generated.is_none());
    let columns: Vec<usize> = visible.map(|(position, ..)| position).collect();
    let cell = |row: &Vec<Option<Value>>, column: &usize| match row.get(*column) {
        Some(Some(value)) => CellExpr::Value(value.clone()),
        _ => CellExpr::Default,
    };
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect());
    let given = InsertedRows { rows: cells.collect(), columns };
    let mut maker = RowMaker::new(session, &target, false).await?;
    maker.expect_rows(session, &target, &given.valued(), given.rows.len()).await?;
    let mut made = Vec::with_capacity(given.rows.len());
    for (cells, number) in given.rows.iter().zip(1..) {
        session.failed_row = Some(made.len());
        made.push(maker.row(session, &target, &given.columns, cells, number)?);
    }
    session.failed_row = None;
    maker.settle(session, &target, &mut made).await?;
    Computed::of(&target).complete(session, &target, &maker, &mut made).await?;
    let mut outcome = Outcome::default();
    for (place, row) in made.into_iter().enumerate() {
        session.failed_row = None;
        session.check_progress()?;
        session.failed_row = Some(place);
        outcome.affected_rows += u64::from(put(session, &target, row, false)?);
    }
    session.failed_row = None;
    Ok(outcome)
}

/// A row with all columns of the table, converted. Generated columns are NULL so far.
fn whole(target: &TargetTable, maker: &RowMaker, row: &Row, number: u64) -> Result<Row> {
    let table = &target.table;
    if table.row_number.is_some() || row.len() != table.schema.given_columns() {
        let what = format!("rows without names of columns for table {:?}", table.schema.name);
        return Err(Error::unsupported(what));
    }
    // What a value becomes does not depend on which other tables are changed together.
    if table.schema.declared.is_none() {
        return fitted_row(&table.schema, row).map_err(from_engine_write);
    }
    let mut made = Vec::with_capacity(table.columns.len());
    for (position, spec) in table.columns.iter().enumerate() {
        let given = row.get(position).filter(|_| spec.generated.is_none());
        made.push(match given {
            Some(Value::Null) if spec.not_null => maker.null_for(target, position, true)?,
            Some(document @ Value::Json(_)) if spec.kind.sql == SqlType::Json => document.clone(),
            Some(value) => maker.fit(target, position, value.clone(), number)?,
            None => Value::Null,
        });
    }
    Ok(made)
}

/// Inserts a row, or replaces the one with its key unless `is_new`.
fn put(session: &mut SessionState, target: &TargetTable, row: Row, is_new: bool) -> Result<bool> {
    if let Some(column) = target.table.auto_increment()
        && let Some(given) = counted(row.get(column))
    {
        target.pass_value(session, column, given)?;
    }
    let old = if is_new { None } else { target.row(session, &target.key(&row))? };
    let duplicate = match old {
        Some(old) => target.update(session, &old, row)?,
        None => match target.duplicate(session, &row, None)? {
            Some(duplicate) => Some(duplicate),
            None => {
                target.insert(session, row)?;
                None
            }
        },
    };
    match duplicate {
        Some(duplicate) => Err(duplicate.error),
        None => Ok(true),
    }
}

/// The number of a value that counts for AUTO_INCREMENT.
fn counted(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Uint(number) => Some(*number),
        _ => None,
    }
}

/// Deletes the row with this key. Returns whether it existed.
fn delete(session: &mut SessionState, target: &TargetTable, key: &[Value]) -> Result<bool> {
    let key = RowKey(key.iter().cloned().collect());
    let old = target.row(session, &key)?;
    if let Some(old) = &old {
        target.delete(session, old);
    }
    Ok(old.is_some())
}
