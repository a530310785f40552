//! `remora export`: a table's rows into a file.

use std::{
    fs::File,
    io::{IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use remora_engine::Database;
use remora_source::files::{self, Compression, Format, export_table};

use super::{
    ExportFormat, ExportOptions,
    output::{counted, thousands},
};
use crate::{
    Error, Result, dump::refuse_half_loaded, open::open_with_collations, settings::Settings,
};

/// Exports the table.
///
/// # Errors
/// [`Error::Usage`] if there is no data directory, [`Error::Settings`] if a dump was loaded into it
/// by halves, [`Error::Io`] if the output cannot be made, [`Error::Source`] if the rows cannot be
/// written, [`Error::Engine`] if there is no such table or the database cannot be opened.
pub fn export(options: &ExportOptions) -> Result<ExitCode> {
    let settings = Settings { data: options.data.clone(), ..Settings::default() };
    super::require_data_directory(&options.data)?;
    refuse_half_loaded(&options.data)?;
    let database = open_with_collations(&options.data, settings.engine_options())?;
    let result = write(&database, options);
    database.close()?;
    let rows = result?;
    eprintln!("{} of table '{}'", counted(rows, "row"), options.table);
    Ok(ExitCode::SUCCESS)
}

fn write(database: &Database, options: &ExportOptions) -> Result<u64> {
    // Before a file is emptied for it.
    database.schema(&options.table)?;
    let format = match options.format {
        ExportFormat::Jsonl => Format::JsonLines,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Tsv => Format::Tsv,
    };
    let compression = options.output.as_deref().map_or(Compression::None, compression_of);
    let out: Box<dyn Write> = match &options.output {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => {
            Box::new(File::create(path).map_err(|source| Error::io("cannot write", path, source))?)
        }
    };
    let shown = std::io::stderr().is_terminal() && options.output.is_some();
    let settings = files::ExportOptions { format, compression, cancel: Default::default() };
    let report = export_table(database, &options.table, out, &settings, &mut |rows| {
        if shown && rows % (64 << 10) == 0 {
            eprint!("\r{} rows ", thousands(rows));
        }
    })?;
    if shown {
        eprint!("\r");
    }
    Ok(report.rows)
}

fn compression_of(path: &Path) -> Compression {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstd,
        _ => Compression::None,
    }
}
