//! `remora import`: files into a table, of a data directory or of a running server; a sphinx.conf's indexes.

mod progress;
mod remote;
mod sphinx_conf;

use std::{path::Path, process::ExitCode, sync::Arc};

use remora_engine::{Database, Options, Schema};
use remora_source::{
    files::{self, ImportReport, Importer, Input, KeyChoice, RowSink, infer_schema},
    schema_file::SchemaFile,
};

use super::{
    ImportOptions, OnError,
    output::{counted, thousands},
};
use crate::{
    Error, Result,
    dump::refuse_half_loaded,
    open::{keep_from_others, open_with_collations},
    settings::Settings,
};
use progress::Display;
use remote::RemoteTable;

/// Rows of a batch that goes over a wire; its bytes are limited by the server's frames.
const REMOTE_BATCH_ROWS: usize = 1000;
const REMOTE_BATCH_BYTES: usize = 384 << 10;

/// Imports the files.
///
/// # Errors
/// [`Error::Usage`] if there is no target or the table may not be imported into,
/// [`Error::Settings`] if a dump was loaded into the directory by halves, [`Error::Io`] or
/// [`Error::Source`] if a file or a description of a table cannot be read or a row is refused,
/// [`Error::Engine`] if the database refuses, [`Error::Remote`] if a server does.
pub fn import(options: &ImportOptions) -> Result<ExitCode> {
    if let Some(path) = &options.config {
        return sphinx_conf::import(options, path);
    }
    if options.data.is_none() && options.to.is_none() {
        return Err(Error::Usage("name a target: --data or --to".to_owned()));
    }
    let mut inputs = Vec::new();
    for file in &options.files {
        // Before a data directory is made for it.
        if file.as_os_str() != "-" {
            std::fs::metadata(file).map_err(|source| Error::io("cannot read", file, source))?;
        }
        inputs.push(Input::new(&file.display().to_string())?);
    }
    let report = match (&options.data, &options.to) {
        (Some(data), _) => {
            let database = open(data)?;
            let result = into_database(&database, options, &mut inputs);
            database.close()?;
            result?
        }
        (None, Some(address)) => into_server(address, options, &mut inputs)?,
        (None, None) => return Err(Error::Usage("name a target: --data or --to".to_owned())),
    };
    tell(options, &report);
    Ok(ExitCode::SUCCESS)
}

fn open(data: &Path) -> Result<Database> {
    let settings = Settings { data: data.to_owned(), ..Settings::default() };
    refuse_half_loaded(data)?;
    keep_from_others(data);
    Ok(open_with_collations(data, engine_options(&settings))?)
}

/// An import is durable when it ends and goes on where it stopped: it needs no fsync for each of
/// its batches.
fn engine_options(settings: &Settings) -> Options {
    let durability = remora_engine::Durability::Interval(std::time::Duration::from_millis(500));
    Options { durability, ..settings.engine_options() }
}

fn into_database(
    database: &Database,
    options: &ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let schema = if database.tables().iter().any(|name| name == options.table()) {
        database.schema(options.table())?
    } else {
        let schema = new_schema(options, inputs)?;
        database.create_table(schema)?;
        database.schema(options.table())?
    };
    if schema.declared.is_some() {
        return Err(Error::Usage(format!(
            "table {:?} was defined by SQL, or follows a source: its rows are written by SQL (LOAD DATA), or there",
            options.table()
        )));
    }
    let sink = files::DatabaseSink::new(database);
    run(&sink, schema, options, files::ImportOptions::default(), inputs)
}

fn into_server(
    address: &str,
    options: &ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let table = RemoteTable::connect(address, options)?;
    let schema = match table.schema(options.table())? {
        Some(schema) => schema,
        None => table.create(&new_schema(options, inputs)?)?,
    };
    let sizes = files::ImportOptions {
        batch_rows: REMOTE_BATCH_ROWS,
        batch_bytes: REMOTE_BATCH_BYTES,
        ..files::ImportOptions::default()
    };
    run(&table, Arc::new(schema), options, sizes, inputs)
}

/// The definition of a table that is to be made: the given one, or what the first rows hold.
fn new_schema(options: &ImportOptions, inputs: &mut [Input]) -> Result<Schema> {
    if let Some(path) = &options.schema {
        let mut file = SchemaFile::read(path)?;
        options.table().clone_into(&mut file.name);
        return Ok(file.to_schema()?);
    }
    let key = match options.primary_key.as_slice() {
        [] => KeyChoice::Auto,
        [row] if row == "_row" => KeyChoice::Generated,
        names => KeyChoice::Columns(names.to_vec()),
    };
    let inference = infer_schema(inputs, options.table(), &key, None)?;
    eprint!("{}", describe(&inference.schema, inference.records));
    Ok(inference.schema)
}

/// The inferred definition in a few lines.
fn describe(schema: &Schema, records: usize) -> String {
    let file = SchemaFile::from_schema(schema);
    let searched: Vec<&str> =
        file.texts.iter().flat_map(|text| text.columns.iter().map(String::as_str)).collect();
    let columns = file.columns.iter().map(|column| format!("{} {}", column.name, column.kind));
    format!(
        "Table '{}', from the first {} rows:\n  columns   {}\n  key       {}\n  searched  {}\n",
        schema.name,
        thousands(records as u64),
        columns.collect::<Vec<_>>().join(", "),
        file.primary_key.join(", "),
        if searched.is_empty() { "no column holds text".to_owned() } else { searched.join(", ") }
    )
}

fn run(
    sink: &dyn RowSink,
    schema: Arc<Schema>,
    options: &ImportOptions,
    sizes: files::ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let on_error = match options.on_error {
        OnError::Stop => files::OnError::Stop,
        OnError::Skip => files::OnError::Skip,
    };
    let importer = Importer::new(sink, schema, files::ImportOptions { on_error, ..sizes });
    let mut display = Display::new();
    let mut rows = 0;
    let report = importer.run(inputs, &mut |progress| {
        rows = progress.rows;
        display.show(progress);
    });
    display.finish();
    if let Err(remora_source::Error::Record(_)) = &report {
        eprintln!(
            "{} before the line that is no row stay in the table: mend it and import the file \
             again, or pass over such lines with --on-error skip",
            counted(rows, "row")
        );
    }
    Ok(report?)
}

fn tell(options: &ImportOptions, report: &ImportReport) {
    for problem in &report.problems {
        eprintln!("skipped {problem}");
    }
    if report.skipped > report.problems.len() as u64 {
        let more = report.skipped - report.problems.len() as u64;
        eprintln!("skipped {} more", thousands(more));
    }
    for (name, count) in &report.ignored {
        eprintln!("'{name}' is no column of the table: {} passed over", counted(*count, "value"));
    }
    if report.files_done_before > 0 {
        let files = counted(report.files_done_before as u64, "file");
        eprintln!("nothing new: {files} read to the end by an earlier import");
    }
    let skipped = match report.skipped {
        0 => String::new(),
        count => format!(", {} skipped", thousands(count)),
    };
    println!("{} into table '{}'{skipped}", counted(report.rows, "row"), options.table());
}
