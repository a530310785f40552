//! `remora import`: imports files into a table or a collection, of a data directory or of a running server; also the
//! indexes of a sphinx.conf and a tiedot database.

mod collection;
mod progress;
mod remote;
mod sphinx_conf;
mod sql_table;
mod tiedot;

use std::{path::Path, process::ExitCode, sync::Arc};

use remora_engine::{Database, Options, Schema};
use remora_source::{
    files::{
        self, Format, ImportReport, Importer, Input, KeyChoice, Reading, RowSink, Rows, Shape,
        infer_schema,
    },
    schema_file::SchemaFile,
};

use super::{
    ImportFormat, ImportOptions,
    output::{counted, thousands},
};
use crate::{
    Error, Result,
    dump::refuse_half_loaded,
    open::{claim, open_with_collations},
    requests::{MAX_COLLECTION_NAME_CHARS, is_collection_name},
    settings::Settings,
};
use collection::into_collection;
use progress::Display;
use remote::RemoteTable;
use sql_table::SqlSink;

/// Rows of a batch for a remote server. Its bytes are limited by the server's frame size.
const REMOTE_BATCH_ROWS: usize = 1000;
const REMOTE_BATCH_BYTES: usize = 384 << 10;

/// Imports the files.
///
/// # Errors
/// [`Error::Usage`] if there is no target or it may not be imported into, [`Error::Settings`] if a load of a dump was
/// interrupted, [`Error::Io`] or [`Error::Source`] if a file or a table description cannot be read or a row is refused,
/// [`Error::Engine`] if the database refuses, [`Error::Remote`] if a server does.
pub fn import(options: &ImportOptions) -> Result<ExitCode> {
    if let Some(path) = &options.config {
        return sphinx_conf::import(options, path);
    }
    if options.data.is_none() && options.to.is_none() {
        return Err(Error::Usage("name a target: --data or --to".to_owned()));
    }
    if let Some(directory) = &options.tiedot {
        return tiedot::import(options, directory);
    }
    check_collection(options)?;
    let mut inputs = Vec::new();
    for file in &options.files {
        // Checked before a data directory is created.
        if file.as_os_str() != "-" {
            std::fs::metadata(file).map_err(|source| Error::io("cannot read", file, source))?;
        }
        inputs.push(Input::new(&file.display().to_string())?);
    }
    let report = match (&options.data, &options.to) {
        (Some(data), _) => {
            let database = open(data)?;
            let result = match options.collection {
                Some(_) => into_collection(&database, options, &mut inputs),
                None => into_database(&database, options, &mut inputs),
            };
            database.close()?;
            result?
        }
        (None, Some(address)) => into_server(address, options, &mut inputs)?,
        (None, None) => return Err(Error::Usage("name a target: --data or --to".to_owned())),
    };
    print_report(options, &report);
    Ok(ExitCode::SUCCESS)
}

fn open(data: &Path) -> Result<Database> {
    let settings = Settings { data: data.to_owned(), ..Settings::default() };
    refuse_half_loaded(data)?;
    claim(data, &[])?;
    Ok(open_with_collations(data, engine_options(&settings))?)
}

/// An import is durable when it ends, and it is resumable, so its batches need no fsync.
fn engine_options(settings: &Settings) -> Options {
    let durability = remora_engine::Durability::Interval(std::time::Duration::from_millis(500));
    Options { durability, ..settings.engine_options() }
}

/// Checks the options for collections.
fn check_collection(options: &ImportOptions) -> Result<()> {
    let Some(name) = &options.collection else { return Ok(()) };
    if !is_collection_name(name) {
        return Err(Error::Usage(format!(
            "a collection cannot be named {name:?}: names have 1 to {MAX_COLLECTION_NAME_CHARS} characters, none of \
             / \\ . # ` and no space at their ends"
        )));
    }
    if options.key.len() > 1 {
        let message = "the id of a document is one value: name one path as --key".to_owned();
        return Err(Error::Usage(message));
    }
    Ok(())
}

fn into_database(
    database: &Database,
    options: &ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let is_new = !database.tables().iter().any(|name| name == options.table());
    if is_new {
        database.create_table(new_schema(options, inputs)?)?;
    }
    let schema = database.schema(options.table())?;
    if schema.declared.is_some() {
        refuse_followed(database, options.table())?;
        let sink = SqlSink::new(database, false)?;
        return run(&sink, schema, options, sql_table::sizes(), inputs);
    }
    let sink = files::DatabaseSink::new(database);
    let report = run(&sink, schema, options, files::ImportOptions::default(), inputs);
    if is_new && report.is_err() {
        drop_empty(database, options.table())?;
    }
    report
}

/// Refuses a table that follows a source.
fn refuse_followed(database: &Database, table: &str) -> Result<()> {
    match remora::Database::over(database.clone()).source_of(table) {
        None => Ok(()),
        Some(source) => Err(Error::Usage(format!(
            "table {table:?} follows the source {source:?}: its rows are written there"
        ))),
    }
}

/// Drops a table that was created for an import that stored nothing.
fn drop_empty(database: &Database, table: &str) -> Result<()> {
    if database.statistics(table)?.rows == 0 {
        database.drop_table(table)?;
    }
    Ok(())
}

fn into_server(
    address: &str,
    options: &ImportOptions,
    inputs: &mut [Input],
) -> Result<ImportReport> {
    let table = RemoteTable::connect(address, options)?;
    if options.collection.is_some() {
        return collection::into_server(&table, options, inputs);
    }
    let schema = match table.schema(options.table())? {
        Some(schema) => schema,
        None => {
            let schema = new_schema(options, inputs)?;
            table.create_for_rows(&schema);
            schema
        }
    };
    let sizes = remote_sizes(&schema);
    let report = run(&table, Arc::new(schema), options, sizes, inputs)?;
    table.make()?;
    Ok(report)
}

/// How much is sent to a server at once. In a request each row has the names of all columns.
fn remote_sizes(schema: &Schema) -> files::ImportOptions {
    let names = schema.columns.iter().map(|column| column.name.len() + r#""":,"#.len());
    let batch_rows = (REMOTE_BATCH_BYTES / names.sum::<usize>().max(1)).clamp(1, REMOTE_BATCH_ROWS);
    files::ImportOptions {
        batch_rows,
        batch_bytes: REMOTE_BATCH_BYTES,
        ..files::ImportOptions::default()
    }
}

/// The definition of a new table: the given one, or one inferred from the first rows.
fn new_schema(options: &ImportOptions, inputs: &mut [Input]) -> Result<Schema> {
    if let Some(path) = &options.schema {
        let mut file = SchemaFile::read(path)?;
        options.table().clone_into(&mut file.name);
        return Ok(file.to_schema()?);
    }
    let key = match options.key.as_slice() {
        [] => KeyChoice::Auto,
        [row] if row == "_row" => KeyChoice::Generated,
        names => KeyChoice::Columns(names.to_vec()),
    };
    let inference = infer_schema(inputs, options.table(), &key, &reading(options))?;
    eprint!("{}", describe(&inference.schema, inference.records));
    Ok(inference.schema)
}

/// The format options of the files.
fn reading(options: &ImportOptions) -> Reading {
    let format = options.format.map(|format| match format {
        ImportFormat::Jsonl => Format::JsonLines,
        ImportFormat::Json => Format::Json,
        ImportFormat::Mongo => Format::Mongo,
        ImportFormat::Csv => Format::Csv,
        ImportFormat::Tsv => Format::Tsv,
        ImportFormat::Cirrus => Format::Cirrus,
    });
    let rows = match (&options.collection, options.flatten) {
        (Some(_), _) if options.with_ids => Rows::IdsAndDocuments,
        (Some(_), _) => Rows::Documents,
        (None, true) => Rows::FlatMembers,
        (None, false) => Rows::Members,
    };
    let is_path = |name: &&String| rows == Rows::Documents || name.contains('.');
    let key = match rows {
        // The dotted path is a column's name already.
        Rows::FlatMembers => Vec::new(),
        _ => options.key.iter().filter(is_path).cloned().collect(),
    };
    Reading { format, shape: Shape { rows, key } }
}

/// The inferred definition in a few lines.
fn describe(schema: &Schema, records: usize) -> String {
    let file = SchemaFile::from_schema(schema);
    let searched: Vec<&str> =
        file.texts.iter().flat_map(|text| text.columns.iter().map(String::as_str)).collect();
    let columns = file.columns.iter().map(|column| format!("{} {}", column.name, column.kind));
    format!(
        "Table '{}', from the first {} rows:\n  columns   {}\n  key       {}{}\n  searched  {}\n",
        schema.name,
        thousands(records as u64),
        columns.collect::<Vec<_>>().join(", "),
        file.primary_key.join(", "),
        if file.primary_key == ["_row"] {
            ", which numbers the rows; --key names another"
        } else {
            ""
        },
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
    let (reading, skip_bad) = (reading(options), options.skip_bad());
    let importer = Importer::new(sink, schema, files::ImportOptions { reading, skip_bad, ..sizes });
    let mut display = Display::new();
    let mut rows = 0;
    let report = importer.run(inputs, &mut |progress| {
        rows = progress.rows;
        display.show(progress);
    });
    display.finish();
    if let Err(remora_source::Error::Record(_)) = &report {
        eprintln!(
            "{} of earlier batches stay, and nothing of the batch with what is no row: mend it and import the file \
             again, or pass over such lines with --skip-bad N or --on-error skip",
            counted(rows, "row")
        );
    }
    Ok(report?)
}

fn print_report(options: &ImportOptions, report: &ImportReport) {
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
    let (count, name) = (report.rows, options.table());
    match options.collection {
        Some(_) => println!("{} into collection '{name}'{skipped}", counted(count, "document")),
        None => println!("{} into table '{name}'{skipped}", counted(count, "row")),
    }
}
