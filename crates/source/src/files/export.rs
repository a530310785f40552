//! Exports a table to a file: one record for each row, in key order, from one snapshot.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use remora_engine::{
    Database, Filter, Interrupt, Position, Reader, Row, ScanRequest, Schema, is_computed_name,
};

use super::{
    format::Format,
    row_writer::{Compression, RowWriter, visible_columns},
};
use crate::{Error, Result};

/// Rows in a batch, if a condition selects them.
const BATCH_ROWS: usize = 256;

/// Settings of an export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// JSON, JSON Lines, extended JSON, CSV or TSV.
    pub format: Format,
    /// The compression of the file.
    pub compression: Compression,
    /// Whether JSON is indented over several lines.
    pub pretty: bool,
    /// The names of the columns, in this order; empty means all.
    pub columns: Vec<String>,
    /// Only rows for which this is true.
    pub filter: Option<Filter>,
    /// Set it from any thread to cancel the export.
    pub cancel: Arc<AtomicBool>,
}

impl ExportOptions {
    /// All rows and columns.
    pub fn new(format: Format, compression: Compression) -> Self {
        let (columns, cancel) = (Vec::new(), Arc::default());
        Self { format, compression, pretty: false, columns, filter: None, cancel }
    }
}

/// The result of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportReport {
    /// Rows written.
    pub rows: u64,
    /// The position of the snapshot that was written.
    pub position: Position,
}

/// Exports the rows of a table. `progress` is called from time to time with their number. The memory does not depend on
/// the number of rows.
///
/// # Errors
/// The table cannot be read, a column does not exist, the filter is wrong, the file cannot be written, the format is
/// `Cirrus`, a value has no text form, or the export was cancelled.
pub fn export_table(
    database: &Database,
    table: &str,
    out: impl Write,
    options: &ExportOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<ExportReport> {
    // The definition and the rows are of one snapshot.
    let interrupt = Arc::clone(&options.cancel) as Arc<dyn Interrupt>;
    let reader = database.reader().with_interrupt(interrupt);
    let schema = reader.schema(table)?;
    let columns = places(&schema, &options.columns)?;
    let mut writer = RowWriter::new(Arc::clone(&schema), options.format, options.compression, out)?
        .columns(columns)
        .pretty(options.pretty)?;
    let mut rows = 0;
    let mut write = |row: &Row| {
        if options.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        writer.write(row)?;
        rows += 1;
        if rows % 1024 == 0 {
            progress(rows);
        }
        Ok(())
    };
    match &options.filter {
        None => all_rows(&reader, table, &mut write)?,
        Some(filter) => chosen_rows(&reader, &schema, filter, &mut write)?,
    }
    writer.finish()?;
    progress(rows);
    Ok(ExportReport { rows, position: reader.position() })
}

/// Checks an export before anything is written. Cost: that of planning the filter; no row is read.
///
/// # Errors
/// The table or a column does not exist, the filter is wrong, or the format cannot be written with these options.
pub fn check_export(database: &Database, table: &str, options: &ExportOptions) -> Result<()> {
    let interrupt = Arc::clone(&options.cancel) as Arc<dyn Interrupt>;
    let reader = database.reader().with_interrupt(interrupt);
    let schema = reader.schema(table)?;
    places(&schema, &options.columns)?;
    if let Some(filter) = &options.filter {
        if let Some(name) = filter.columns().into_iter().find(|name| is_computed_name(name)) {
            return Err(no_column(&schema, name));
        }
        // Plans it; rows would be read only if none needed to be.
        drop(reader.scan_within(scan_of(&schema, filter), 0)?);
    }
    let writer = RowWriter::new(schema, options.format, options.compression, std::io::sink())?;
    writer.pretty(options.pretty).map(drop)
}

fn all_rows(reader: &Reader, table: &str, write: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
    let mut failure = None;
    let visited = reader.visit_rows(table, &mut |row| {
        write(&row).map_err(|error| {
            let stop = remora_engine::Error::Io(error.to_string());
            failure = Some(error);
            stop
        })
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(visited?),
    }
}

fn chosen_rows(
    reader: &Reader,
    schema: &Schema,
    filter: &Filter,
    write: &mut dyn FnMut(&Row) -> Result<()>,
) -> Result<()> {
    for batch in reader.scan(scan_of(schema, filter))? {
        let batch = batch?;
        for place in 0..batch.rows {
            write(&batch.columns.iter().map(|column| column.value(place)).collect())?;
        }
    }
    Ok(())
}

/// The request for the rows that satisfy a filter.
fn scan_of(schema: &Schema, filter: &Filter) -> ScanRequest {
    ScanRequest {
        table: schema.name.clone(),
        filter: Some(filter.clone()),
        columns: (0..schema.columns.len()).collect(),
        batch_rows: BATCH_ROWS,
        in_key_order: true,
        ..ScanRequest::default()
    }
}

/// The error for a column that does not exist or is hidden.
fn no_column(schema: &Schema, name: &str) -> Error {
    let columns = visible_columns(schema).into_iter().filter_map(|place| schema.columns.get(place));
    let names: Vec<_> = columns.map(|column| column.name.as_str()).collect();
    let (table, names) = (&schema.name, names.join(", "));
    Error::Export(format!("table {table:?} has no column {name:?}: it has {names}"))
}

/// The positions of columns with these names.
fn places(schema: &Schema, names: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        let is_named = |place: &usize| {
            let column = schema.columns.get(*place);
            column.is_some_and(|column| column.name.eq_ignore_ascii_case(name))
        };
        visible_columns(schema).into_iter().find(is_named).ok_or_else(|| no_column(schema, name))
    };
    match names {
        [] => Ok(visible_columns(schema)),
        names => names.iter().map(place).collect(),
    }
}
