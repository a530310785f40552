//! Loads the rows of a plain index into its table, atomically.
//!
//! They go into a hidden table that finally replaces the previous one. A position that is stored with it records where
//! the table came from, so that a table with another origin is never replaced.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{Change, ChangeBatch, Database, Definition, Schema, TableChanges, Value};

use super::{
    SphinxConf,
    columns::{self, Column, Misfit},
    documents::{Document, DocumentSink},
    plan::Plan,
};
use crate::{
    Error, Result,
    files::{DatabaseSink, RowSink},
};

/// The prefix of a table's name while it is loaded.
const HIDDEN_PREFIX: &str = "#import.";
/// The prefix of a loaded table's position.
const POSITION_PREFIX: &str = "sphinx.conf:";
/// The most rows of a batch, and the bytes after which it ends.
const BATCH_ROWS: usize = 16_384;
const BATCH_BYTES: usize = 16 << 20;
/// The most warnings.
const MAX_WARNINGS: usize = 20;

/// The result, or the progress, of loading an index.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Rows of the table.
    pub rows: u64,
    /// Documents that were replaced by a later one with the same id.
    pub replaced: u64,
    /// Bytes of the documents.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl SphinxConf {
    /// Loads a plain index. If this fails, its table is as it was before. Runs the commands and queries of its sources.
    /// `progress` is called after each batch.
    ///
    /// # Errors
    /// - [`Error::Setting`] if there is no such index, or it uses unsupported keys.
    /// - [`Error::Format`] or [`Error::Io`] if a source's command fails or its output cannot be read.
    /// - [`Error::Schema`] if the existing table has another origin.
    /// - [`Error::Unreachable`], [`Error::AccessDenied`], [`Error::Requirement`] or [`Error::Statement`] of a MySQL.
    /// - [`Error::Engine`] if the database refuses.
    pub fn load(
        &self,
        database: &Database,
        index: &str,
        progress: &mut dyn FnMut(&Loaded),
    ) -> Result<Loaded> {
        let plan = Plan::of(self, self.index(index)?)?;
        refuse_other(database, index)?;
        let hidden = format!("{HIDDEN_PREFIX}{index}");
        // Left by an earlier run.
        drop_table(database, &hidden)?;
        let loaded = Loader::new(database, &plan, &hidden, progress).run(index);
        if loaded.is_err() {
            // The first error is reported; otherwise the next run drops it.
            let _ = drop_table(database, &hidden);
        }
        let (mut loaded, greatest) = loaded?;
        for source in &plan.sources {
            if let Err(error) = source.after_index(greatest) {
                loaded.warnings.push(format!("{}: sql_query_post_index: {error}", source.name));
            }
        }
        Ok(loaded)
    }
}

fn drop_table(database: &Database, name: &str) -> Result<()> {
    match database.drop_table(name) {
        Ok(()) | Err(remora_engine::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses to replace a table that was not loaded from an index.
fn refuse_other(database: &Database, index: &str) -> Result<()> {
    let Ok(schema) = database.schema(index) else { return Ok(()) };
    let position = database.source_position(&format!("{POSITION_PREFIX}{index}"))?;
    match position.is_some() && schema.declared.is_none() {
        true => Ok(()),
        false => Err(Error::Schema(format!(
            "table '{index}' was not loaded from a sphinx.conf, or was changed by SQL since: drop it (DROP TABLE), or \
             give the index another name"
        ))),
    }
}

struct Loader<'l> {
    database: &'l Database,
    sink: DatabaseSink<'l>,
    plan: &'l Plan,
    hidden: &'l str,
    progress: &'l mut dyn FnMut(&Loaded),
    started: Instant,
    loaded: Loaded,
    documents: u64,
    /// The current source.
    source: String,
    /// The table's columns, once a source has given them.
    columns: Option<Vec<Column>>,
    /// For each of them, its position in the current source.
    order: Vec<usize>,
    changes: Vec<Change>,
    bytes: usize,
    greatest: u64,
    /// The number of texts that are not valid JSON, in all columns.
    misfits: u64,
}

impl<'l> Loader<'l> {
    fn new(
        database: &'l Database,
        plan: &'l Plan,
        hidden: &'l str,
        progress: &'l mut dyn FnMut(&Loaded),
    ) -> Self {
        Self {
            database,
            sink: DatabaseSink::new(database),
            plan,
            hidden,
            progress,
            started: Instant::now(),
            loaded: Loaded::default(),
            documents: 0,
            source: String::new(),
            columns: None,
            order: Vec::new(),
            changes: Vec::new(),
            bytes: 0,
            greatest: 0,
            misfits: 0,
        }
    }

    /// Loads all sources. Returns the greatest document id too.
    fn run(mut self, index: &str) -> Result<(Loaded, u64)> {
        let plan = self.plan;
        for source in &plan.sources {
            self.source.clone_from(&source.name);
            source.read(&mut self)?;
        }
        self.apply()?;
        self.sink.finish()?;
        self.loaded.rows = self.database.statistics(self.hidden)?.rows;
        self.loaded.replaced = self.documents.saturating_sub(self.loaded.rows);
        let rename = Definition::Rename { from: self.hidden.to_owned(), to: index.to_owned() };
        let position = (format!("{POSITION_PREFIX}{index}"), format!("rows={}", self.loaded.rows));
        self.database.define(vec![rename], vec![position])?;
        if self.misfits > 0 {
            let message = format!("{} texts are no JSON and count as none", self.misfits);
            self.loaded.warnings.push(message);
        }
        self.loaded.elapsed = self.started.elapsed();
        Ok((self.loaded, self.greatest))
    }

    fn apply(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.changes);
        self.loaded.bytes += std::mem::take(&mut self.bytes) as u64;
        let tables = vec![TableChanges { table: Arc::from(self.hidden), changes }];
        self.sink.apply(ChangeBatch { tables, positions: Vec::new() })?;
        self.loaded.rows = self.documents;
        self.loaded.elapsed = self.started.elapsed();
        (self.progress)(&self.loaded);
        Ok(())
    }

    fn value(&mut self, column: &Column, text: &[u8], place: &str) -> Result<Value> {
        let problem = match column.value(text) {
            Ok(value) => return Ok(value),
            Err(Misfit::NotJson) if !self.plan.is_json_strict => {
                self.misfits += 1;
                return Ok(Value::Null);
            }
            Err(Misfit::NotJson) => "is no JSON, and on_json_attr_error is fail_index",
            Err(Misfit::TooManyNumbers) => "has more than 65,536 numbers",
            Err(Misfit::NotUtf8) => {
                "is not UTF-8: let the source give UTF-8, as a command by iconv"
            }
        };
        Err(Error::format(&self.source, format!("{place}: column '{}' {problem}", column.name)))
    }
}

impl DocumentSink for Loader<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        let wanted = match &self.columns {
            Some(wanted) => wanted,
            None => {
                let schema: Schema = self.plan.schema(self.hidden, &self.source, columns)?;
                self.database.create_table(schema)?;
                self.columns.insert(columns.to_vec())
            }
        };
        let place = |wanted: &Column| {
            let same = |it: &Column| it.name == wanted.name && it.kind == wanted.kind;
            columns.iter().position(same)
        };
        let order: Option<Vec<usize>> = wanted.iter().map(place).collect();
        match order.filter(|order| order.len() == columns.len()) {
            Some(order) => self.order = order,
            None => {
                let names = |columns: &[Column]| -> Vec<String> {
                    columns.iter().map(|it| format!("{} ({:?})", it.name, it.kind)).collect()
                };
                return Err(Error::format(
                    &self.source,
                    format!(
                        "its columns are not those of the index's first source: {} instead of {}",
                        names(columns).join(", "),
                        names(wanted).join(", ")
                    ),
                ));
            }
        }
        Ok(())
    }

    fn document(&mut self, document: &Document) -> Result<()> {
        let Some(number) = columns::document_number(&document.number) else {
            let text = String::from_utf8_lossy(&document.number);
            let text: String = text.chars().take(30).collect();
            let message = format!(
                "{}: the document's number is '{text}': it is to be a whole number above 0",
                document.place
            );
            return Err(Error::format(&self.source, message));
        };
        self.greatest = self.greatest.max(number);
        self.documents += 1;
        let columns = self.columns.take().unwrap_or_default();
        let mut values = Vec::with_capacity(columns.len() + 1);
        for (column, at) in columns.iter().zip(self.order.clone()) {
            let text = document.cells.get(at).map(Vec::as_slice).unwrap_or_default();
            self.bytes += text.len();
            values.push(self.value(column, text, &document.place)?);
        }
        self.columns = Some(columns);
        self.changes.push(Change::Put(columns::row(number, values.into_iter())));
        match self.changes.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            true => self.apply(),
            false => Ok(()),
        }
    }

    fn warning(&mut self, message: String) {
        if self.loaded.warnings.len() < MAX_WARNINGS {
            self.loaded.warnings.push(format!("{}: {message}", self.source));
        }
    }
}
