//! ALTER TABLE of a temporary table: the new table replaces the old one. No other session sees it, and no rollback
//! restores the old one.

use std::sync::Arc;

use remora_engine::{Row, Schema};

use super::{create::hidden, draft::Draft, rebuild::converted_row, table_exists};
use crate::{
    Result,
    catalog::{SqlTable, TableName},
    error::from_engine_write,
    state::SessionState,
    transaction::{Overlay, TableStorage, TemporaryTable},
    write::{
        rows::{RowMaker, TargetTable, computed::Computed},
        unique::UniqueKey,
    },
};

/// The prefix of the new table's name until it replaces the old one.
const HIDDEN: &str = "#alter.";

/// Gives a temporary table its new definition and returns the number of its rows.
pub(super) async fn alter(
    session: &mut SessionState,
    target: &TargetTable,
    draft: &Draft,
) -> Result<u64> {
    let name = &target.name;
    let Some(old) = session.transaction.temporary(name).cloned() else {
        return Err(name.missing());
    };
    let highest = old.schema.columns.iter().map(|column| column.id).max();
    let schema = draft.build(old.schema.name.clone(), Some(&target.table), highest);
    schema.validate().map_err(from_engine_write)?;
    let schema = Arc::new(schema);
    let made = TableName::new(name.database.clone(), format!("{HIDDEN}{}", name.table));
    let new =
        TargetTable::at(name.clone(), TableStorage::Temporary(made.clone()), SqlTable::of(&schema));
    put_empty(session, &made, &schema);
    match fill(session, (target, &new), draft, &old).await {
        Ok(records) => {
            drop_all(session, &target.table, name);
            move_all(session, &new.table, &made, name);
            keep_counters(session, (&target.table, &new.table), name, &old);
            Ok(records)
        }
        Err(error) => {
            drop_all(session, &new.table, &made);
            Err(error)
        }
    }
}

/// Keeps counters, so that no number is given twice.
fn keep_counters(
    session: &mut SessionState,
    (before, after): (&SqlTable, &SqlTable),
    name: &TableName,
    old: &TemporaryTable,
) {
    let counted = |table: &SqlTable| table.auto_increment().is_some();
    let rows = if counted(before) { old.next_row } else { old.next };
    let (next, next_row) = match (counted(before), counted(after)) {
        (true, true) => (old.next, rows),
        (false, true) => (1, rows),
        (_, false) => (rows, rows),
    };
    for (beside, least) in [(false, next), (true, next_row)] {
        if let Some(counter) = session.transaction.temporary_counter(name, beside) {
            *counter = (*counter).max(least);
        }
    }
}

/// Renames a temporary table; error 1050 if the session has one of the new name.
pub(super) fn rename(session: &mut SessionState, from: &TableName, to: &TableName) -> Result<()> {
    super::names::check_name(session, to)?;
    if session.transaction.temporary(to).is_some() {
        return Err(table_exists(&to.table));
    }
    let Some(table) = session.transaction.temporary(from) else { return Err(from.missing()) };
    let table = SqlTable::of(&table.schema);
    move_all(session, &table, from, to);
    Ok(())
}

/// Adds an empty table with the hidden tables of its unique keys.
fn put_empty(session: &mut SessionState, name: &TableName, schema: &Arc<Schema>) {
    let place = TableStorage::Temporary(name.clone());
    let tables =
        hidden(schema, &place).into_iter().map(|(place, schema)| (place, Arc::new(schema)));
    for (place, schema) in tables.chain([(place.clone(), Arc::clone(schema))]) {
        if let TableStorage::Temporary(name) = place {
            let rows = Arc::new(Overlay::default());
            session
                .transaction
                .put_temporary(name, TemporaryTable { schema, rows, next: 1, next_row: 1 });
        }
    }
}

/// Copies the rows of the old table, converted for the new one.
async fn fill(
    session: &mut SessionState,
    (target, new): (&TargetTable, &TargetTable),
    draft: &Draft,
    old: &TemporaryTable,
) -> Result<u64> {
    let mut maker = RowMaker::new(session, new, false).await?;
    let computed = Computed::of(new);
    let mut number = 0;
    for row in old.rows.rows() {
        session.check_progress()?;
        number += 1;
        let row = converted_row(session, target, draft, new, &mut maker, row, number)?;
        let mut rows: Vec<Row> = vec![row];
        computed.complete(session, new, &maker, &mut rows).await?;
        for row in rows {
            if let Some(duplicate) = new.duplicate(session, &row, None)? {
                return Err(duplicate.error);
            }
            new.insert(session, row)?;
        }
    }
    Ok(number)
}

/// The names of a temporary table and of its hidden tables.
fn names(table: &SqlTable, name: &TableName) -> Vec<TableName> {
    let place = TableStorage::Temporary(name.clone());
    let hidden = UniqueKey::of(table, &place).into_iter().filter_map(|unique| match unique.place {
        TableStorage::Temporary(name) => Some(name),
        TableStorage::Engine(_) => None,
    });
    hidden.chain([name.clone()]).collect()
}

fn drop_all(session: &mut SessionState, table: &SqlTable, name: &TableName) {
    for name in names(table, name) {
        session.transaction.drop_temporary(&name);
    }
}

fn move_all(session: &mut SessionState, table: &SqlTable, from: &TableName, to: &TableName) {
    for (from, to) in names(table, from).into_iter().zip(names(table, to)) {
        if let Some(moved) = session.transaction.drop_temporary(&from) {
            session.transaction.put_temporary(to, moved);
        }
    }
}
