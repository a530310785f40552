//! `remora import --tiedot`: imports collections of a tiedot database, with their ids and indexes.

use std::{path::Path, process::ExitCode, sync::Arc, time::Instant};

use remora_engine::{Change, ChangeBatch, Database, Row, TableChanges, Value};
use remora_source::{
    files::{Progress, RowSink},
    tiedot::{self, Directory, Found, Reader},
};

use super::{collection::sink, open, progress::Display};
use crate::{
    Error, Result,
    cli::{
        ImportOptions,
        output::{counted, thousands},
    },
    requests::is_collection_name,
};

const BATCH_DOCUMENTS: usize = 16_384;
const BATCH_BYTES: usize = 16 << 20;
/// The most problems that are shown.
const SHOWN_PROBLEMS: u64 = 20;

/// Loads the named collections, or all. A new collection is loaded atomically.
///
/// # Errors
/// [`Error::Source`] if the directory or a file cannot be read, [`Error::Usage`] if there is no such collection, its
/// name is not valid here, or damage may not be skipped; [`Error::Library`] or [`Error::Engine`] if the data directory
/// cannot be opened or written.
pub(super) fn import(options: &ImportOptions, directory: &Path) -> Result<ExitCode> {
    let data = options.data.as_deref();
    let data = data.ok_or_else(|| Error::Usage("name a target: --data".to_owned()))?;
    let source = Directory::open(directory)?;
    let wanted = choose(options, directory, &source)?;
    let database = open(data)?;
    let mut left = options.skip_bad();
    let loaded = wanted.iter().try_for_each(|collection| load(&database, collection, &mut left));
    database.close()?;
    loaded.map(|()| ExitCode::SUCCESS)
}

/// The collections to load, whose names are valid here.
fn choose<'s>(
    options: &ImportOptions,
    directory: &Path,
    source: &'s Directory,
) -> Result<Vec<&'s tiedot::Collection>> {
    let mut wanted: Vec<&tiedot::Collection> = Vec::new();
    for name in &options.files {
        let name = name.display().to_string();
        let found = source.collections.iter().find(|collection| collection.name == name);
        wanted.push(found.ok_or_else(|| {
            let names: Vec<_> = source.collections.iter().map(|it| it.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Error::Usage(format!(
                "{} has no collection '{name}'; it has {names}",
                directory.display()
            ))
        })?);
    }
    if options.files.is_empty() {
        wanted.extend(&source.collections);
    }
    match wanted.iter().find(|collection| !is_collection_name(&collection.name)) {
        None => Ok(wanted),
        Some(collection) => Err(Error::Usage(format!(
            "a collection cannot be named {:?} here: rename it with tiedot, or name those to load",
            collection.name
        ))),
    }
}

fn load(database: &Database, source: &tiedot::Collection, left: &mut u64) -> Result<()> {
    let name = &source.name;
    if source.is_left_by_scrub {
        eprintln!(
            "collection '{name}' was left by a scrub that did not end; it is loaded under this name"
        );
    }
    let library = remora::Database::over(database.clone());
    let is_new = library.find_collection(name)?.is_none();
    let collection = library.collection(name)?;
    let schema = database.schema(name)?;
    let loaded = index(&collection, source).and_then(|()| {
        let (sink, _) = sink(database, &schema)?;
        let mut loading = Loading::new(sink, name, left);
        let read = Reader::new(source)
            .each(&mut |found| loading.take(found))
            .and_then(|()| loading.apply())
            .and_then(|()| loading.sink.finish());
        loading.display.finish();
        match read {
            // The problem that stopped it is reported in full.
            Err(_) if loading.stopped.is_some() => {
                Err(Error::Usage(loading.stopped.unwrap_or_default()))
            }
            Err(error) => Err(error.into()),
            Ok(()) => Ok((loading.documents, loading.skipped)),
        }
    });
    let (documents, skipped) = match loaded {
        Ok(counts) => counts,
        Err(error) => {
            if is_new {
                database.drop_table(name)?;
            }
            return Err(error);
        }
    };
    let skipped = match skipped {
        0 => String::new(),
        count => format!(", {} skipped", thousands(count)),
    };
    let indexes = counted(source.indexes.len() as u64, "indexed path");
    println!("{} into collection '{name}', {indexes}{skipped}", counted(documents, "document"));
    Ok(())
}

/// Creates tiedot's indexes before there are documents.
fn index(collection: &remora::Collection, source: &tiedot::Collection) -> Result<()> {
    for path in &source.indexes {
        collection.index(remora::path(path.iter().map(String::as_str)))?;
    }
    Ok(())
}

/// A collection being loaded.
struct Loading<'d> {
    name: &'d str,
    sink: Box<dyn RowSink + 'd>,
    rows: Vec<Row>,
    row_bytes: usize,
    documents: u64,
    bytes: u64,
    skipped: u64,
    /// How many problems may still be skipped.
    left: &'d mut u64,
    /// The problem that stopped it.
    stopped: Option<String>,
    started: Instant,
    display: Display,
}

impl<'d> Loading<'d> {
    fn new(sink: Box<dyn RowSink + 'd>, name: &'d str, left: &'d mut u64) -> Self {
        Self {
            name,
            sink,
            rows: Vec::new(),
            row_bytes: 0,
            documents: 0,
            bytes: 0,
            skipped: 0,
            left,
            stopped: None,
            started: Instant::now(),
            display: Display::new(),
        }
    }

    fn take(&mut self, found: Found) -> remora_source::Result<()> {
        match found {
            Found::Document { id, text, bytes } => {
                self.bytes += bytes;
                self.row_bytes += text.len();
                self.rows.push(vec![Value::Int(id), Value::Json(text.into())]);
                match self.rows.len() >= BATCH_DOCUMENTS || self.row_bytes >= BATCH_BYTES {
                    true => self.apply(),
                    false => Ok(()),
                }
            }
            Found::Problem(problem) if *self.left > 0 => {
                *self.left -= 1;
                self.skipped += 1;
                if self.skipped <= SHOWN_PROBLEMS {
                    eprintln!("skipped {problem}");
                }
                Ok(())
            }
            Found::Problem(problem) => {
                self.stopped = Some(format!(
                    "{problem}; pass over what cannot be read with --skip-bad N or --on-error skip"
                ));
                Err(remora_source::Error::Cancelled)
            }
        }
    }

    fn apply(&mut self) -> remora_source::Result<()> {
        let changes: Vec<Change> = self.rows.drain(..).map(Change::Put).collect();
        self.row_bytes = 0;
        let documents = changes.len() as u64;
        if documents > 0 {
            let tables = vec![TableChanges { table: Arc::from(self.name), changes }];
            self.sink.apply(ChangeBatch { tables, positions: Vec::new() })?;
        }
        self.documents += documents;
        self.display.show(&Progress {
            file: format!("collection '{}'", self.name),
            rows: self.documents,
            skipped: self.skipped,
            record_bytes: self.bytes,
            bytes: self.bytes,
            total_bytes: None,
            elapsed: self.started.elapsed(),
        });
        Ok(())
    }
}
