//! `remora export`: exports a table's rows, or a collection's documents.

use std::{
    fs::File,
    io::{IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use remora::{Collection, DocumentId, Filter};
use remora_engine::Database;
use remora_source::files::{self, Compression, Format, RowWriter, export_table};

use super::{
    ExportFormat, ExportOptions,
    output::{counted, thousands},
};
use crate::{
    Error, Result, dump::refuse_half_loaded, open::open_with_collations, settings::Settings,
};

/// Rows between two progress updates.
const SHOWN_ROWS: u64 = 64 << 10;

/// Exports the table or the collection.
///
/// # Errors
/// [`Error::Usage`] if there is no data directory, [`Error::Settings`] if a load of a dump was interrupted,
/// [`Error::Io`] if the output cannot be created, [`Error::Source`] if the rows cannot be written, [`Error::Library`]
/// if there is no such collection or the condition is wrong, [`Error::Engine`] if there is no such table or the
/// database cannot be opened.
pub fn export(options: &ExportOptions) -> Result<ExitCode> {
    let settings = Settings { data: options.data.clone(), ..Settings::default() };
    super::require_data_directory(&options.data)?;
    refuse_half_loaded(&options.data)?;
    let database = open_with_collations(&options.data, settings.engine_options())?;
    let result = match &options.collection {
        Some(name) => documents(&database, name, options),
        None => rows(&database, options.table.as_deref().unwrap_or_default(), options),
    };
    database.close()?;
    eprintln!("{}", result?);
    Ok(ExitCode::SUCCESS)
}

/// Exports a table; returns a summary.
fn rows(database: &Database, table: &str, options: &ExportOptions) -> Result<String> {
    // Checked before a file is truncated.
    let schema = database.schema(table)?;
    let condition = options.condition.as_deref().map(Filter::parse).transpose()?;
    let filter = condition.map(|condition| condition.on_columns(&schema)).transpose()?;
    let columns = options.columns.clone();
    let (format, compression) = form_of(options);
    let export =
        files::ExportOptions { columns, filter, ..files::ExportOptions::new(format, compression) };
    let export = files::ExportOptions { pretty: options.pretty, ..export };
    files::check_export(database, table, &export)?;
    let counting = Counting::new(options);
    let report =
        export_table(database, table, output(options)?, &export, &mut |rows| counting.show(rows))?;
    counting.end();
    Ok(format!("{} of table '{table}'", counted(report.rows, "row")))
}

/// Exports a collection; returns a summary.
fn documents(database: &Database, name: &str, options: &ExportOptions) -> Result<String> {
    let library = remora::Database::over(database.clone());
    if let Some(collection) = library.find_collection(name)? {
        return documents_of(database, &collection, options, i64::to_string);
    }
    match library.find_keyed_collection(name)? {
        Some(collection) => documents_of(database, &collection, options, |id: &String| {
            serde_json::Value::from(id.as_str()).to_string()
        }),
        None => Err(Error::Usage(format!(
            "there is no collection {name:?}; a table is exported with --table"
        ))),
    }
}

/// Exports a collection, with ids in their JSON form.
fn documents_of<K: DocumentId>(
    database: &Database,
    collection: &Collection<K>,
    options: &ExportOptions,
    shown: fn(&K) -> String,
) -> Result<String> {
    let name = collection.name();
    let found = match &options.condition {
        Some(condition) => collection.find(condition),
        None => collection.all(),
    };
    let (format, compression) = form_of(options);
    if let Format::Csv | Format::Tsv = format {
        let message = "a collection has documents, which CSV and TSV have no form for: export it as json, jsonl or \
                       mongo, or its ids and documents with --table"
            .to_owned();
        return Err(Error::Usage(message));
    }
    // Errors in the condition are found before a file is truncated.
    check_document(collection, options)?;
    let schema = database.schema(name)?;
    RowWriter::new(std::sync::Arc::clone(&schema), format, compression, std::io::sink())?
        .pretty(options.pretty)?;
    let mut writer =
        RowWriter::new(schema, format, compression, output(options)?)?.pretty(options.pretty)?;
    let counting = Counting::new(options);
    let mut count = 0;
    found.each_json(|id, text| {
        match options.with_ids {
            true => writer.write_document(&format!("{{\"id\":{},\"doc\":{text}}}", shown(&id)))?,
            false => writer.write_document(text)?,
        }
        count += 1;
        counting.show(count);
        Ok::<(), Error>(())
    })?;
    writer.finish()?;
    counting.end();
    Ok(format!("{} of collection '{name}'", counted(count, "document")))
}

fn check_document<K: DocumentId>(
    collection: &Collection<K>,
    options: &ExportOptions,
) -> Result<()> {
    if let Some(condition) = &options.condition {
        collection.find(condition).explain()?;
    }
    Ok(())
}

/// The output.
fn output(options: &ExportOptions) -> Result<Box<dyn Write>> {
    match file_of(options) {
        None => Ok(Box::new(std::io::stdout().lock())),
        Some(path) => match File::create(path) {
            Ok(file) => Ok(Box::new(file)),
            Err(source) => Err(Error::io("cannot write", path, source)),
        },
    }
}

/// The output file; `None` for standard output.
fn file_of(options: &ExportOptions) -> Option<&Path> {
    options.output.as_deref().filter(|path| path.as_os_str() != "-")
}

/// The format: as requested, or by the file's name.
fn form_of(options: &ExportOptions) -> (Format, Compression) {
    let compression = file_of(options).map_or(Compression::None, compression_of);
    let format = match options.format {
        Some(ExportFormat::Jsonl) => Format::JsonLines,
        Some(ExportFormat::Json) => Format::Json,
        Some(ExportFormat::Mongo) => Format::Mongo,
        Some(ExportFormat::Csv) => Format::Csv,
        Some(ExportFormat::Tsv) => Format::Tsv,
        None => file_of(options).and_then(format_of).unwrap_or(match options.pretty {
            true => Format::Json,
            false => Format::JsonLines,
        }),
    };
    (format, compression)
}

fn format_of(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    Format::from_name(name.rsplit_once('.')?.1).filter(|format| *format != Format::Cirrus)
}

/// Shows the number of exported rows on a terminal.
struct Counting {
    is_shown: bool,
}

impl Counting {
    fn new(options: &ExportOptions) -> Self {
        Self { is_shown: std::io::stderr().is_terminal() && file_of(options).is_some() }
    }

    fn show(&self, rows: u64) {
        if self.is_shown && rows.is_multiple_of(SHOWN_ROWS) {
            eprint!("\r{} rows ", thousands(rows));
        }
    }

    fn end(&self) {
        if self.is_shown {
            eprint!("\r");
        }
    }
}

fn compression_of(path: &Path) -> Compression {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstd,
        _ => Compression::None,
    }
}
