//! `remora export`: exports a table's rows, or a collection's documents, of a data directory or of a running server.

mod output_file;

use std::{
    io::{IsTerminal, Read},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use remora_source::files::{Compression, Format, PackedFile};

use super::{
    ExportFormat, ExportOptions,
    line_client::LineClient,
    output::{counted, thousands},
};
use crate::{
    Error, Result,
    dump::refuse_half_loaded,
    export::{Export, ExportRequest},
    open::open_with_collations,
    settings::Settings,
};
use output_file::OutputFile;

/// Rows between two progress updates.
const SHOWN_ROWS: u64 = 64 << 10;
/// How much of a server's export is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// Exports the table or the collection.
///
/// # Errors
/// [`Error::Usage`] if there is no data directory, [`Error::Settings`] if a load of a dump was interrupted,
/// [`Error::Io`] if the output cannot be written or the server is not reached, [`Error::Source`] if the rows cannot be
/// written, [`Error::Library`] if there is no such collection or the condition is wrong, [`Error::Engine`] if there is no
/// such table or the database cannot be opened, [`Error::Remote`] if the server refuses or does not send everything.
pub fn export(options: &ExportOptions) -> Result<ExitCode> {
    let rows = match (&options.data, &options.from) {
        (Some(data), _) => from_directory(data, options)?,
        (None, Some(address)) => from_server(address, options)?,
        (None, None) => return Err(Error::Usage("name a source: --data or --from".to_owned())),
    };
    let name = options.name();
    eprintln!(
        "{}",
        match options.collection {
            Some(_) => format!("{} of collection '{name}'", counted(rows, "document")),
            None => format!("{} of table '{name}'", counted(rows, "row")),
        }
    );
    Ok(ExitCode::SUCCESS)
}

impl ExportOptions {
    /// The name of the table or collection.
    fn name(&self) -> &str {
        self.table.as_deref().or(self.collection.as_deref()).unwrap_or_default()
    }

    fn request(&self) -> ExportRequest {
        ExportRequest {
            documents: self.collection.is_some(),
            with_ids: self.with_ids,
            format: format_of(self),
            pretty: self.pretty,
            columns: self.columns.clone(),
            condition: self.condition.clone(),
        }
    }
}

/// Returns the number of rows.
fn from_directory(data: &Path, options: &ExportOptions) -> Result<u64> {
    let settings = Settings { data: data.to_owned(), ..Settings::default() };
    super::require_data_directory(data)?;
    refuse_half_loaded(data)?;
    let database = open_with_collations(data, settings.engine_options())?;
    let export = || {
        let compression = compression_of(options);
        let (name, request) = (options.name(), options.request());
        let export = Export::new(&database, name, request, compression, Arc::default())?;
        let mut output = OutputFile::create(file_of(options))?;
        let counting = Counting::new(options);
        let rows = export.write(&mut output, &mut |rows| counting.show(rows))?;
        counting.end();
        output.finish()?;
        Ok(rows)
    };
    let rows = export();
    database.close()?;
    rows
}

/// Returns the number of rows. The server writes their form; it is compressed here.
fn from_server(address: &str, options: &ExportOptions) -> Result<u64> {
    let mut client = LineClient::connect(address)?;
    client.log_in_with(options.user.as_deref(), options.token.as_deref())?;
    let request = serde_json::to_string(&options.request());
    let request = request.map_err(|error| Error::Usage(error.to_string()))?;
    // The file is created when the server has checked the request.
    let mut bytes = client.export(options.name(), &request)?;
    let output = OutputFile::create(file_of(options))?;
    let path = output.path().to_owned();
    let unwritten = |source| Error::io("cannot write", &path, source);
    let mut packed = PackedFile::new(compression_of(options), output).map_err(unwritten)?;
    let mut chunk = vec![0; READ_BYTES];
    let rows = loop {
        let count = bytes.read(&mut chunk).map_err(|error| {
            Error::Remote(format!("the export is not whole: the server at {address}: {error}"))
        })?;
        packed.write_all(chunk.get(..count).unwrap_or_default()).map_err(unwritten)?;
        if let (0, Some(rows)) = (count, bytes.rows()) {
            break rows;
        }
    };
    packed.finish().map_err(unwritten)?.finish()?;
    Ok(rows)
}

/// The output file; `None` for standard output.
fn file_of(options: &ExportOptions) -> Option<&Path> {
    options.output.as_deref().filter(|path| path.as_os_str() != "-")
}

/// The format: as requested, or by the file's name.
fn format_of(options: &ExportOptions) -> Format {
    match options.format {
        Some(ExportFormat::Jsonl) => Format::JsonLines,
        Some(ExportFormat::Json) => Format::Json,
        Some(ExportFormat::Mongo) => Format::Mongo,
        Some(ExportFormat::Csv) => Format::Csv,
        Some(ExportFormat::Tsv) => Format::Tsv,
        None => file_of(options).and_then(format_of_name).unwrap_or(match options.pretty {
            true => Format::Json,
            false => Format::JsonLines,
        }),
    }
}

fn format_of_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    Format::from_name(name.rsplit_once('.')?.1).filter(|format| *format != Format::Cirrus)
}

/// The compression, by the file's name.
fn compression_of(options: &ExportOptions) -> Compression {
    let extension = file_of(options).and_then(Path::extension);
    match extension.and_then(|extension| extension.to_str()) {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstd,
        _ => Compression::None,
    }
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
