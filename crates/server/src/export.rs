//! Exports the rows of a table or the documents of a collection, for the command line and for clients.

use std::{
    io::Write,
    sync::{Arc, atomic::AtomicBool},
};

use remora::{Collection, DocumentId, Filter, Find};
use remora_engine::Database;
use remora_source::files::{self, Compression, Format, RowWriter, export_table};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What is exported, and in which form: the options of the command EXPORT.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ExportRequest {
    /// Whether documents of a collection are exported instead of rows of a table.
    pub documents: bool,
    /// Whether each document has its id next to it.
    pub with_ids: bool,
    /// The form of the file.
    pub format: Format,
    /// Whether JSON is indented over several lines.
    pub pretty: bool,
    /// The columns; empty means all.
    pub columns: Vec<String>,
    /// The condition, in the language of the library's filters.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

impl Default for ExportRequest {
    fn default() -> Self {
        Self {
            documents: false,
            with_ids: false,
            format: Format::JsonLines,
            pretty: false,
            columns: Vec::new(),
            condition: None,
        }
    }
}

/// An export that was checked.
pub(crate) struct Export {
    database: Database,
    name: String,
    request: ExportRequest,
    compression: Compression,
    cancel: Arc<AtomicBool>,
    target: Target,
}

/// What is exported.
enum Target {
    Table(Box<files::ExportOptions>),
    Numbered(Collection),
    Keyed(Collection<String>),
}

impl Export {
    /// Checks an export before anything is written. Setting `cancel` ends it.
    ///
    /// # Errors
    /// There is no such table, collection or column, the condition is wrong, or the format cannot be written with these
    /// options.
    pub(crate) fn new(
        database: &Database,
        name: &str,
        request: ExportRequest,
        compression: Compression,
        cancel: Arc<AtomicBool>,
    ) -> Result<Self> {
        let target = match request.documents {
            true => Self::documents(database, name, &request)?,
            false => Self::table(database, name, &request, compression, &cancel)?,
        };
        let (database, name) = (database.clone(), name.to_owned());
        Ok(Self { database, name, request, compression, cancel, target })
    }

    fn table(
        database: &Database,
        name: &str,
        request: &ExportRequest,
        compression: Compression,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Target> {
        let schema = database.schema(name)?;
        let condition = request.condition.as_deref().map(Filter::parse).transpose()?;
        let options = files::ExportOptions {
            columns: request.columns.clone(),
            filter: condition.map(|condition| condition.on_columns(&schema)).transpose()?,
            pretty: request.pretty,
            cancel: Arc::clone(cancel),
            ..files::ExportOptions::new(request.format, compression)
        };
        files::check_export(database, name, &options)?;
        Ok(Target::Table(Box::new(options)))
    }

    fn documents(database: &Database, name: &str, request: &ExportRequest) -> Result<Target> {
        if let Format::Csv | Format::Tsv = request.format {
            let message = "a collection has documents, which CSV and TSV have no form for: export it as json, jsonl \
                           or mongo, or its ids and documents as a table"
                .to_owned();
            return Err(Error::Usage(message));
        }
        if !request.columns.is_empty() {
            let message = "documents have no columns: leave them out".to_owned();
            return Err(Error::Usage(message));
        }
        let library = remora::Database::over(database.clone());
        let target = match library.find_collection(name)? {
            Some(collection) => {
                found(&collection, request).explain()?;
                Target::Numbered(collection)
            }
            None => match library.find_keyed_collection(name)? {
                Some(collection) => {
                    found(&collection, request).explain()?;
                    Target::Keyed(collection)
                }
                None => {
                    return Err(Error::Usage(format!(
                        "there is no collection {name:?}: a table is not exported as documents"
                    )));
                }
            },
        };
        let schema = database.schema(name)?;
        RowWriter::new(schema, request.format, Compression::None, std::io::sink())?
            .pretty(request.pretty)?;
        Ok(target)
    }

    /// Writes the export, of one snapshot. `progress` is called with the number of rows. Returns that number.
    ///
    /// # Errors
    /// The table cannot be read any more, the output cannot be written, a value has no text form, or the export was
    /// cancelled.
    pub(crate) fn write(self, out: &mut dyn Write, progress: &mut dyn FnMut(u64)) -> Result<u64> {
        match &self.target {
            Target::Table(options) => {
                Ok(export_table(&self.database, &self.name, out, options, progress)?.rows)
            }
            Target::Numbered(collection) => {
                self.write_documents(collection, out, progress, i64::to_string)
            }
            Target::Keyed(collection) => {
                let shown = |id: &String| serde_json::Value::from(id.as_str()).to_string();
                self.write_documents(collection, out, progress, shown)
            }
        }
    }

    /// Writes documents, with ids in their JSON form.
    fn write_documents<K: DocumentId>(
        &self,
        collection: &Collection<K>,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
        shown: impl Fn(&K) -> String,
    ) -> Result<u64> {
        // Of documents the writer needs no definition: they are of one moment whatever it says.
        let schema = self.database.schema(&self.name)?;
        let mut writer = RowWriter::new(schema, self.request.format, self.compression, out)?
            .pretty(self.request.pretty)?;
        let mut count = 0;
        let moment = collection.now().until(Arc::clone(&self.cancel));
        found(collection, &self.request).at(&moment).each_json(|id, text| {
            match self.request.with_ids {
                true => {
                    writer.write_document(&format!("{{\"id\":{},\"doc\":{text}}}", shown(&id)))?;
                }
                false => writer.write_document(text)?,
            }
            count += 1;
            progress(count);
            Ok::<(), Error>(())
        })?;
        writer.finish()?;
        Ok(count)
    }
}

fn found<K: DocumentId>(collection: &Collection<K>, request: &ExportRequest) -> Find<K> {
    match &request.condition {
        Some(condition) => collection.find(condition),
        None => collection.all(),
    }
}
