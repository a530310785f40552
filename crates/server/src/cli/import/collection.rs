//! Imports documents into a collection, under their own ids or generated ones.

use remora::{Collection, DocumentId};
use remora_engine::{Change, ChangeBatch, ColumnType, Database, Schema, Value};
use remora_source::files::{self, DatabaseSink, ImportReport, Input, RowSink};

use super::{
    drop_empty, refuse_followed, run,
    sql_table::{self, SqlSink},
};
use crate::{Error, Result, cli::ImportOptions};

/// Imports the files.
pub(super) fn into_collection(
    database: &Database,
    options: &ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let name = options.table();
    let is_new = !database.tables().iter().any(|table| table == name);
    let library = remora::Database::over(database.clone());
    let ids = match library.find_keyed_collection(name)? {
        None if is_new && options.text_ids => Ids::Texts,
        None if options.text_ids => {
            let message =
                format!("the ids of collection {name:?} are numbers: leave --text-ids out");
            return Err(Error::Usage(message));
        }
        None => Ids::Numbers(library.collection(name)?),
        Some(_) => Ids::Texts,
    };
    if matches!(ids, Ids::Texts) {
        if options.key.is_empty() && !options.with_ids {
            let message = format!(
                "the ids of collection {name:?} are texts, which are not made: name the path to them with --key, or \
                 import with --with-ids"
            );
            return Err(Error::Usage(message));
        }
        library.keyed_collection(name)?;
    }
    let schema = database.schema(name)?;
    let (rows, sizes) = sink(database, &schema)?;
    let sink = CollectionSink { rows, ids };
    let report = run(&sink, schema, options, sizes, inputs);
    if is_new && report.is_err() {
        drop_empty(database, name)?;
    }
    report
}

/// Where the rows of a collection go: to SQL, if it declared keys of them.
pub(super) fn sink<'d>(
    database: &'d Database,
    schema: &Schema,
) -> Result<(Box<dyn RowSink + 'd>, files::ImportOptions)> {
    if schema.declared.is_none() {
        return Ok((Box::new(DatabaseSink::new(database)), files::ImportOptions::default()));
    }
    refuse_followed(database, &schema.name)?;
    Ok((Box::new(SqlSink::new(database, true)?), sql_table::sizes()))
}

/// Whether a server's table has the columns of a collection.
pub(super) fn is_collection(schema: &Schema) -> bool {
    let columns = schema.columns.iter().map(|column| (column.name.as_str(), column.kind));
    let of = |id: ColumnType| [("id", id), ("doc", ColumnType::Json)];
    columns.clone().eq(of(ColumnType::Int(64))) || columns.eq(of(ColumnType::Text))
}

/// The message for a table that is not a collection.
pub(super) fn not_a_collection(name: &str) -> String {
    format!("table {name:?} is no collection: import into it with --table")
}

/// The ids of the collection.
enum Ids {
    /// Numbers, generated for rows without one.
    Numbers(Collection),
    /// Texts, which every row has.
    Texts,
}

/// A collection.
struct CollectionSink<'d> {
    rows: Box<dyn RowSink + 'd>,
    ids: Ids,
}

impl CollectionSink<'_> {
    fn assign_ids(&self, batch: &mut ChangeBatch) -> Result<()> {
        let changes = batch.tables.iter_mut().flat_map(|table| &mut table.changes);
        let cells = changes.filter_map(|change| match change {
            Change::Put(row) | Change::Insert(row) => row.first_mut(),
            Change::Delete(_) => None,
        });
        let collection = match &self.ids {
            Ids::Numbers(collection) => collection,
            Ids::Texts => {
                for cell in cells {
                    check_text(cell)?;
                }
                return Ok(());
            }
        };
        let missing: Vec<&mut Value> = cells.filter(|cell| cell.is_null()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let first = collection.reserve_ids(missing.len())?;
        for (cell, id) in missing.into_iter().zip(first..) {
            *cell = Value::Int(id);
        }
        Ok(())
    }
}

/// Refuses an invalid id of a collection with text ids.
fn check_text(cell: &Value) -> Result<()> {
    let id = <String as DocumentId>::of(cell)
        .ok_or_else(|| Error::Usage("a document has no id, or one that is no text".to_owned()))?;
    <String as DocumentId>::value(&id)?;
    Ok(())
}

impl RowSink for CollectionSink<'_> {
    fn apply(&self, mut batch: ChangeBatch) -> remora_source::Result<()> {
        let given = self.assign_ids(&mut batch);
        given.map_err(|error: Error| remora_source::Error::Sink(error.to_string()))?;
        self.rows.apply(batch)
    }

    fn finish(&self) -> remora_source::Result<()> {
        self.rows.finish()
    }

    fn source_position(&self, source: &str) -> remora_source::Result<Option<String>> {
        self.rows.source_position(source)
    }

    fn is_empty(&self, table: &str) -> remora_source::Result<bool> {
        self.rows.is_empty(table)
    }

    fn largest_row_number(&self, table: &str) -> remora_source::Result<u64> {
        self.rows.largest_row_number(table)
    }
}
