//! Documents into a collection: each as it is, under an id of its own or one that is made.

use remora::Collection;
use remora_engine::{Change, ChangeBatch, ColumnType, Database, Schema, Value};
use remora_source::files::{self, DatabaseSink, ImportReport, Input, RowSink};

use super::{drop_empty, run};
use crate::{Error, Result, cli::ImportOptions};

/// Imports the files.
pub(super) fn into_collection(
    database: &Database,
    options: &ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let name = options.table();
    let is_new = !database.tables().iter().any(|table| table == name);
    let collection = remora::Database::over(database.clone()).collection(name)?;
    let schema = database.schema(name)?;
    let sink = CollectionSink { rows: DatabaseSink::new(database), collection };
    let report = run(&sink, schema, options, files::ImportOptions::default(), inputs);
    if is_new && report.is_err() {
        drop_empty(database, name)?;
    }
    report
}

/// Whether a server's table has the columns of a collection.
pub(super) fn is_one(schema: &Schema) -> bool {
    let columns = schema.columns.iter().map(|column| (column.name.as_str(), column.kind));
    columns.eq([("id", ColumnType::Int(64)), ("doc", ColumnType::Json)])
}

/// What is said of a table that is none.
pub(super) fn no_collection(name: &str) -> String {
    format!("table {name:?} is no collection: import into it with --table")
}

/// A collection: rows without an id are given one.
struct CollectionSink<'d> {
    rows: DatabaseSink<'d>,
    collection: Collection,
}

impl CollectionSink<'_> {
    fn give_ids(&self, batch: &mut ChangeBatch) -> Result<()> {
        let changes = batch.tables.iter_mut().flat_map(|table| &mut table.changes);
        let cells = changes.filter_map(|change| match change {
            Change::Put(row) | Change::Insert(row) => row.first_mut(),
            Change::Delete(_) => None,
        });
        let missing: Vec<&mut Value> = cells.filter(|cell| cell.is_null()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let first = self.collection.reserve_ids(missing.len())?;
        for (cell, id) in missing.into_iter().zip(first..) {
            *cell = Value::Int(id);
        }
        Ok(())
    }
}

impl RowSink for CollectionSink<'_> {
    fn apply(&self, mut batch: ChangeBatch) -> remora_source::Result<()> {
        let given = self.give_ids(&mut batch);
        given.map_err(|error: Error| remora_source::Error::Sink(error.to_string()))?;
        self.rows.apply(batch)
    }

    fn finish(&self) -> remora_source::Result<()> {
        self.rows.finish()
    }

    fn source_position(&self, source: &str) -> remora_source::Result<Option<String>> {
        self.rows.source_position(source)
    }

    fn largest_row_number(&self, table: &str) -> remora_source::Result<u64> {
        self.rows.largest_row_number(table)
    }
}
