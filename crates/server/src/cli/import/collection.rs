//! Imports documents into a collection, under their own ids or generated ones.

use std::sync::Arc;

use remora::DocumentId;
use remora_engine::{Change, ChangeBatch, ColumnDef, ColumnType, Database, Schema, Value};
use remora_source::files::{self, DatabaseSink, ImportReport, Input, RowSink};

use super::{
    drop_empty, refuse_followed,
    remote::RemoteTable,
    remote_sizes, run,
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
        None if options.text_ids => return Err(ids_are_numbers(name)),
        None => {
            let collection = library.collection(name)?;
            Ids::Numbers(Box::new(move |count| Ok(collection.reserve_ids(count)?)))
        }
        Some(_) => Ids::Texts,
    };
    if matches!(ids, Ids::Texts) {
        require_ids(options)?;
        library.keyed_collection(name)?;
    }
    let schema = database.schema(name)?;
    let (rows, sizes) = sink(database, &schema)?;
    let sink = CollectionSink { rows: &*rows, ids };
    let report = run(&sink, schema, options, sizes, inputs);
    if is_new && report.is_err() {
        drop_empty(database, name)?;
    }
    report
}

/// Imports the files into a collection of a server, which is created there if it does not exist.
pub(super) fn into_server(
    table: &RemoteTable,
    options: &ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let name = options.table();
    let schema = match table.schema(name)? {
        Some(schema) => schema,
        None => {
            let schema = definition(name, options.text_ids);
            table.create_for_rows(&schema);
            schema
        }
    };
    let has_texts = schema.columns.first().is_some_and(|id| id.kind == ColumnType::Text);
    if !is_collection(&schema) {
        let message = format!("table {name:?} is no collection: import into it with --table");
        return Err(Error::Usage(message));
    }
    if options.text_ids && !has_texts {
        return Err(ids_are_numbers(name));
    }
    let ids = match has_texts {
        true => {
            require_ids(options)?;
            Ids::Texts
        }
        false => Ids::Numbers(Box::new(|count| table.reserve_ids(name, count))),
    };
    let sink = CollectionSink { rows: table, ids };
    let sizes = remote_sizes(&schema);
    let report = run(&sink, Arc::new(schema), options, sizes, inputs)?;
    table.make()?;
    Ok(report)
}

/// The definition of a new collection.
fn definition(name: &str, text_ids: bool) -> Schema {
    let column = |id, name: &str, kind, indexed| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed,
        declared: None,
    };
    let id = if text_ids { ColumnType::Text } else { ColumnType::Int(64) };
    let columns = vec![column(1, "id", id, true), column(2, "doc", ColumnType::Json, false)];
    Schema::over(name, columns, vec![0])
}

fn ids_are_numbers(name: &str) -> Error {
    Error::Usage(format!("the ids of collection {name:?} are numbers: leave --text-ids out"))
}

/// Requires ids in the documents or beside them, as a collection with texts as ids does.
fn require_ids(options: &ImportOptions) -> Result<()> {
    if !options.key.is_empty() || options.with_ids {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "the ids of collection {:?} are texts, which are not made: name the path to them with --key, or import with \
         --with-ids",
        options.table()
    )))
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
fn is_collection(schema: &Schema) -> bool {
    let columns = schema.columns.iter().map(|column| (column.name.as_str(), column.kind));
    let of = |id: ColumnType| [("id", id), ("doc", ColumnType::Json)];
    columns.clone().eq(of(ColumnType::Int(64))) || columns.eq(of(ColumnType::Text))
}

/// The ids of the collection.
enum Ids<'d> {
    /// Numbers. For rows without one, so many are reserved, of which this returns the first.
    Numbers(Box<dyn Fn(usize) -> Result<i64> + 'd>),
    /// Texts, which every row has.
    Texts,
}

/// A collection.
struct CollectionSink<'d> {
    rows: &'d dyn RowSink,
    ids: Ids<'d>,
}

impl CollectionSink<'_> {
    fn assign_ids(&self, batch: &mut ChangeBatch) -> Result<()> {
        let changes = batch.tables.iter_mut().flat_map(|table| &mut table.changes);
        let cells = changes.filter_map(|change| match change {
            Change::Put(row) | Change::Insert(row) => row.first_mut(),
            Change::Delete(_) => None,
        });
        let reserve = match &self.ids {
            Ids::Numbers(reserve) => reserve,
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
        let first = reserve(missing.len())?;
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
