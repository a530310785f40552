//! Rebuilds a table for changes that the engine cannot make in place.

use std::sync::Arc;

use remora_engine::{
    Change, ChangeBatch, Definition, Row, ScanRequest, Schema, TableChanges, Value,
};
use remora_mysql::{ErrorCode, messages};

use super::{create::hidden, define, draft::Draft, hidden_tables};
use crate::{
    Error, Result, SqlType,
    catalog::{DefaultSpec, SqlTable, TypeSpec},
    error::from_engine_write,
    state::SessionState,
    transaction::{RowKey as OverlayKey, TableStorage},
    write::{
        rows::{RowMaker, TargetTable, column_name, literal::CellExpr},
        unique::{UniqueKey, shown_key},
    },
};

/// Rows in a batch.
const ROWS_AT_ONCE: usize = 10_000;

/// Rebuilds the table: every row is converted, checked and written under a hidden name, which then replaces the old
/// table.
pub(super) async fn rebuild(
    session: &mut SessionState,
    target: &TargetTable,
    draft: &Draft,
    schema: &Schema,
) -> Result<u64> {
    let Some(engine_name) = target.engine_name().cloned() else { return Ok(0) };
    let shared = Arc::clone(&session.shared);
    let _alone = session.wait_for(shared.definitions.write()).await?;
    let temporary_name = format!("#alter.{engine_name}");
    let copy = Arc::new(Schema { name: temporary_name.clone(), ..schema.clone() });
    let place = TableStorage::Engine(temporary_name.as_str().into());
    let mut definitions = vec![Definition::Create(Schema::clone(&copy))];
    definitions
        .extend(hidden(&copy, &place).into_iter().map(|(_, schema)| Definition::Create(schema)));
    drop_leftover(session, &copy, &place).await?;
    define(session, definitions, Vec::new()).await?;
    let copied = copy_rows(session, target, draft, &copy, &place).await;
    let records = match copied {
        Ok(records) => records,
        Err(error) => {
            drop_leftover(session, &copy, &place).await?;
            return Err(error);
        }
    };
    let new = SqlTable::of(&copy);
    let kept = hidden_tables(&new, &target.place);
    let mut definitions: Vec<Definition> = hidden_tables(&target.table, &target.place)
        .into_iter()
        .filter(|name| !kept.contains(name))
        .map(Definition::Drop)
        .collect();
    let pairs = hidden_tables(&new, &place).into_iter().zip(kept);
    definitions.extend(pairs.map(|(from, to)| Definition::Rename { from, to }));
    definitions.push(Definition::Rename { from: temporary_name, to: engine_name.to_string() });
    define(session, definitions, Vec::new()).await?;
    shared.counters.forget(&engine_name);
    Ok(records)
}

/// Drops the leftovers of an interrupted rebuild.
async fn drop_leftover(
    session: &SessionState,
    copy: &Arc<Schema>,
    place: &TableStorage,
) -> Result<()> {
    let names = hidden_tables(&SqlTable::of(copy), place).into_iter().chain([copy.name.clone()]);
    let there = names.filter(|name| session.shared.database.schema(name).is_ok());
    let definitions: Vec<Definition> = there.map(Definition::Drop).collect();
    if definitions.is_empty() { Ok(()) } else { define(session, definitions, Vec::new()).await }
}

async fn copy_rows(
    session: &mut SessionState,
    target: &TargetTable,
    draft: &Draft,
    copy: &Arc<Schema>,
    place: &TableStorage,
) -> Result<u64> {
    let Some(engine_name) = target.engine_name().cloned() else { return Ok(0) };
    let new = TargetTable::at(target.name.clone(), place.clone(), SqlTable::of(copy));
    let mut maker = RowMaker::new(session, &new, false).await?;
    let computed = crate::write::rows::computed::Computed::of(&new);
    let request = ScanRequest {
        table: engine_name.to_string(),
        columns: (0..target.table.schema.columns.len()).collect(),
        batch_rows: ROWS_AT_ONCE,
        in_key_order: true,
        ..ScanRequest::default()
    };
    let scan = session.shared.database.reader().scan(request).map_err(from_engine_write)?;
    let columns = draft.columns.iter().enumerate();
    let kept: Vec<usize> =
        columns.filter(|(_, column)| column.id.is_some()).map(|(place, _)| place).collect();
    let uniques = UniqueKey::of(&new.table, place);
    let mut number = 0;
    for batch in scan {
        let batch = batch.map_err(from_engine_write)?;
        session.check_interrupted()?;
        maker.expect_rows(session, &new, &kept, batch.rows).await?;
        let mut converted = Vec::with_capacity(batch.rows);
        for at in 0..batch.rows {
            number += 1;
            let row: Row = batch.columns.iter().map(|column| column.value(at)).collect();
            converted.push(converted_row(session, target, draft, &new, &mut maker, &row, number)?);
        }
        maker.settle(session, &new, &mut converted).await?;
        computed.complete(session, &new, &maker, &mut converted).await?;
        // The engine finds duplicate keys, so the keys need not be held in memory.
        if !write(session, &uniques, place, inserts(&new, &uniques, &converted)).await? {
            return Err(duplicate(session, &new, (&uniques, place), &converted)?);
        }
    }
    Ok(number)
}

/// The changes that insert rows: those of each unique key's table, then those of the table.
fn inserts(new: &TargetTable, uniques: &[UniqueKey], rows: &[Row]) -> Vec<Vec<Change>> {
    let entries = uniques.iter().map(|unique| -> Vec<Change> {
        let entries = rows.iter().filter_map(|row| {
            let value = unique.value(row)?;
            Some(Change::Insert(Row::clone(&UniqueKey::entry(&value, &new.key(row)))))
        });
        entries.collect()
    });
    let inserted: Vec<Change> = rows.iter().cloned().map(Change::Insert).collect();
    entries.chain([inserted]).collect()
}

/// The error for the first of these rows whose key duplicates an earlier one.
fn duplicate(
    session: &SessionState,
    new: &TargetTable,
    (uniques, place): (&[UniqueKey], &TableStorage),
    rows: &[Row],
) -> Result<Error> {
    let reader = session.shared.database.reader();
    let is_there = |place: &TableStorage, key: &OverlayKey| match place {
        TableStorage::Engine(table) => {
            reader.get(table, &key.0).map(|row| row.is_some()).map_err(from_engine_write)
        }
        TableStorage::Temporary(_) => Ok(false),
    };
    let mut seen = rustc_hash::FxHashSet::default();
    for row in rows {
        let key = new.key(row);
        if is_there(place, &key)? || !seen.insert((usize::MAX, key)) {
            let shown = shown_key(&new.table.schema.primary_key, row);
            return Ok(new.duplicate_error(&shown, "PRIMARY"));
        }
        for (index, unique) in uniques.iter().enumerate() {
            let Some(value) = unique.value(row) else { continue };
            if is_there(&unique.place, &value)? || !seen.insert((index, value)) {
                return Ok(new.duplicate_error(&unique.shown(row), &unique.name));
            }
        }
    }
    Ok(Error::new(ErrorCode::DuplicateKey, "Two rows have the same key".to_owned()))
}

/// Writes changes; false if one of them inserts an existing key.
async fn write(
    session: &SessionState,
    uniques: &[UniqueKey],
    place: &TableStorage,
    changes: Vec<Vec<Change>>,
) -> Result<bool> {
    let places = uniques.iter().map(|unique| &unique.place).chain([place]);
    let tables = places.zip(changes).filter_map(|(place, changes)| match place {
        TableStorage::Engine(table) => Some(TableChanges { table: Arc::clone(table), changes }),
        TableStorage::Temporary(_) => None,
    });
    let batch = ChangeBatch { tables: tables.collect(), positions: Vec::new() };
    let database = session.shared.database.clone();
    let applied = tokio::task::spawn_blocking(move || database.apply_computed(batch)).await;
    let applied = applied.map_err(|error| Error::new(ErrorCode::Unknown, error.to_string()))?;
    match applied {
        Err(remora_engine::Error::Exists { .. }) => Ok(false),
        applied => applied.map(|_| true).map_err(from_engine_write),
    }
}

/// Whether a value is the empty text in an ENUM without such a label. It may not be written, but
/// existing ones stay.
fn is_unlabelled(value: &Value, kind: &TypeSpec) -> bool {
    kind.sql == SqlType::Enum
        && matches!(value, Value::Text(text) if text.is_empty())
        && !kind.labels.iter().any(|label| label.is_empty())
}

/// The error for NULL in a column that becomes NOT NULL. If no type changes, MySQL alters the table in place and notices
/// it before it copies rows.
fn null_refused(target: &TargetTable, draft: &Draft, truncated: String) -> Error {
    let was = |id: u32| {
        let place = target.table.schema.columns.iter().position(|old| old.id == id)?;
        target.table.columns.get(place)
    };
    let is_kept = draft.columns.iter().all(|column| {
        let was = column.id.and_then(was);
        was.is_none_or(|was| was.kind == column.spec.kind)
    });
    if is_kept && target.engine_name().is_some() {
        return Error::new(ErrorCode::InvalidUseOfNull, "Invalid use of NULL value");
    }
    Error::new(ErrorCode::DataTruncated, truncated)
}

/// A row of the old table, converted for the new one.
pub(super) fn converted_row(
    session: &mut SessionState,
    target: &TargetTable,
    draft: &Draft,
    new: &TargetTable,
    maker: &mut RowMaker,
    row: &[Value],
    number: u64,
) -> Result<Row> {
    let (mut columns, mut given) = (Vec::new(), Vec::new());
    // Columns whose ENUM value is the empty text of an invalid label.
    let mut unlabelled = Vec::new();
    let converter = crate::write::convert::Converter::quiet(session);
    for (place, column) in draft.columns.iter().enumerate() {
        let was = target.table.schema.columns.iter().position(|old| Some(old.id) == column.id);
        let spec = &column.spec;
        let implicit = spec.not_null && spec.default == DefaultSpec::None;
        if column.id.is_none() && implicit && spec.generated.is_none() && !spec.auto_increment {
            columns.push(place);
            given.push(CellExpr::Value(converter.implicit(&spec.kind)));
            continue;
        }
        let Some(value) = was.and_then(|was| row.get(was)) else { continue };
        if column.spec.generated.is_some() {
            continue;
        }
        columns.push(place);
        if value.is_null() && spec.not_null && !spec.auto_increment {
            let message = messages::data_truncated(column_name(new, place), number);
            if session.variables.sql_mode.is_strict() {
                return Err(null_refused(target, draft, message));
            }
            session.warn(ErrorCode::DataTruncated, message);
            given.push(CellExpr::Value(converter.implicit(&spec.kind)));
            continue;
        }
        if is_unlabelled(value, &spec.kind) {
            unlabelled.push(place);
            given.push(CellExpr::Value(converter.implicit(&spec.kind)));
        } else {
            given.push(CellExpr::Value(value.clone()));
        }
    }
    let mut made = maker.row(session, new, &columns, &given, number)?;
    for place in unlabelled {
        if let Some(slot) = made.get_mut(place) {
            *slot = Value::Text("".into());
        }
    }
    // A hidden row number keeps its value.
    let was = target.table.row_number.and_then(|place| row.get(place));
    if let (Some(was), Some(place)) = (was, new.table.row_number)
        && let Some(slot) = made.get_mut(place)
    {
        *slot = was.clone();
    }
    Ok(made)
}
