//! PUT, DELETE, CREATE, SCHEMA, SOURCE and IDS: Remora's own commands for writing.

use std::{io::Write, sync::Arc};

use remora_engine::{Change, ChangeBatch, Position, Schema, TableChanges};
use remora_mysql::ErrorCode;
use remora_protocol::line::{LineError, WriteCommand, code};
use remora_source::{
    files::{Layout, RecordBatch, RowParser, Span, is_not_given},
    schema_file::SchemaFile,
};
use remora_sql::Access;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use super::Session;
use crate::{
    requests::{Answer, blocking, parse_key},
    sql_rows::{RefusedRows, SqlRows},
};

impl Session {
    pub(super) fn write(&mut self, command: &WriteCommand<'_>, out: &mut Vec<u8>) -> Answer {
        match command {
            WriteCommand::Put { table, from, json } => {
                blocking(|| self.put(table, *from, json, out))
            }
            WriteCommand::Delete { table, keys } => blocking(|| self.delete(table, keys, out)),
            WriteCommand::Create { table, json } => blocking(|| self.create(table, json, out)),
            WriteCommand::Schema(table) => self.schema(table, out),
            WriteCommand::Source(name) => self.source(name, out),
            WriteCommand::Ids { collection, count } => {
                blocking(|| self.ids(collection, *count, out))
            }
            WriteCommand::Export { table, json } => self.export(table, json, out),
        }
    }

    fn put(&self, table: &str, from: bool, json: &str, out: &mut Vec<u8>) -> Answer {
        let (source, rows) = if from { split_source(json)? } else { (None, json) };
        if let Some((name, _)) = &source {
            self.require_source(name)?;
        }
        let (table, schema) = self.unfollowed(table)?;
        let changes = parse_rows(&schema, rows)?;
        let count = changes.len();
        let position = match schema.declared {
            None => self.apply(&table, changes, source)?,
            Some(_) => self.apply_by_sql(&table, &schema, changes, source)?,
        };
        acknowledge(out, "PUT", count, position);
        Ok(())
    }

    fn delete(&self, table: &str, keys: &[String], out: &mut Vec<u8>) -> Answer {
        let (table, schema) = self.writable(table)?;
        let mut changes = Vec::with_capacity(keys.len());
        let settings = self.caller.settings();
        for key in keys {
            let key = parse_key(&schema, key, settings.time_zone.as_ref())?;
            changes.push(Change::Delete(key.into_vec()));
        }
        let position = self.apply(&table, changes, None)?;
        acknowledge(out, "DELETE", keys.len(), position);
        Ok(())
    }

    /// A table that may be written here, and its definition. A source's table would differ from the source for ever.
    fn unfollowed(&self, table: &str) -> Result<(String, Arc<Schema>), LineError> {
        let table = self.caller.resolve(table, Access::Write)?;
        if let Some((source, ..)) =
            self.caller.shared.sources.source_of(&table).filter(|of| of.1 == table)
        {
            let source = &source.name;
            let message =
                format!("Table '{table}' follows the source '{source}': write it at the source");
            return Err(LineError::new(code::PERMISSION_DENIED, message));
        }
        let schema = self.caller.shared.database.schema(&table)?;
        Ok((table, schema))
    }

    /// A table that may be written without SQL, which alone maintains what it declares beyond the engine's types, such
    /// as unique keys.
    fn writable(&self, table: &str) -> Result<(String, Arc<Schema>), LineError> {
        let (table, schema) = self.unfollowed(table)?;
        match schema.declared {
            None => Ok((table, schema)),
            Some(_) => Err(defined_by_sql(&table)),
        }
    }

    /// Writes rows as INSERT does, each in place of the one with its primary key.
    fn apply_by_sql(
        &self,
        table: &str,
        schema: &Schema,
        mut changes: Vec<Change>,
        source: Option<(String, String)>,
    ) -> Result<Position, LineError> {
        let shared = &self.caller.shared;
        let instance = shared.sql.lock().clone().ok_or_else(|| defined_by_sql(table))?;
        let mut are_given = true;
        for change in &mut changes {
            if let Change::Put(row) = change {
                row.truncate(schema.given_columns());
                are_given &= !row.iter().any(is_not_given);
            }
        }
        // Documents keep their form.
        let are_whole = are_given && self.is_collection(table)?;
        let identity = self.caller.identity.clone().unwrap_or_default();
        let tables = vec![TableChanges { table: Arc::from(table), changes }];
        let batch = ChangeBatch { tables, positions: source.into_iter().collect() };
        let mut rows = SqlRows::new(&instance, identity, are_whole);
        let applied = Handle::current().block_on(rows.apply(&batch));
        applied.map_err(|refused| match refused {
            RefusedRows::Row(place, message) => {
                let message = format!("row {}: {message}", place + 1);
                LineError::new(code::INVALID_ARGUMENT, message)
            }
            RefusedRows::Batch(error) => LineError::new(code_of(&error), error.to_string()),
        })?;
        Ok(shared.database.position())
    }

    fn is_collection(&self, table: &str) -> Result<bool, LineError> {
        let library = &self.caller.shared.library;
        let is_numbered = library.find_collection(table).map_err(of_library)?.is_some();
        Ok(is_numbered || library.find_keyed_collection(table).map_err(of_library)?.is_some())
    }

    /// Reserves ids of a collection.
    fn ids(&self, name: &str, count: usize, out: &mut Vec<u8>) -> Answer {
        let (table, _) = self.unfollowed(name)?;
        let collection = self.caller.shared.library.find_collection(&table).map_err(of_library)?;
        let collection = collection.ok_or_else(|| {
            let message = format!("Table '{table}' is no collection that makes ids");
            LineError::new(code::INVALID_ARGUMENT, message)
        })?;
        let first = collection.reserve_ids(count).map_err(of_library)?;
        // Writing into memory never fails.
        let _ = write!(out, "OK IDS {first}");
        Ok(())
    }

    fn apply(
        &self,
        table: &str,
        changes: Vec<Change>,
        source: Option<(String, String)>,
    ) -> Result<Position, LineError> {
        let tables = vec![TableChanges { table: Arc::from(table), changes }];
        let positions = source.into_iter().collect();
        Ok(self.caller.shared.database.apply(ChangeBatch { tables, positions })?)
    }

    fn create(&self, table: &str, definition: &str, out: &mut Vec<u8>) -> Answer {
        if !self.caller.may(table, Access::Define) {
            return Err(self.caller.denied(Access::Define, table));
        }
        let refused = |error: remora_source::Error| LineError::new(code::CONFIG, error.to_string());
        let mut file = SchemaFile::parse(definition).map_err(refused)?;
        table.clone_into(&mut file.name);
        self.caller.shared.database.create_table(file.to_schema().map_err(refused)?)?;
        out.extend_from_slice(b"OK CREATED ");
        out.extend_from_slice(table.as_bytes());
        Ok(())
    }

    fn schema(&self, table: &str, out: &mut Vec<u8>) -> Answer {
        let schema =
            self.caller.shared.database.schema(&self.caller.resolve(table, Access::Read)?)?;
        out.extend_from_slice(b"OK SCHEMA ");
        let json = serde_json::to_string(&SchemaFile::from_schema(&schema))
            .map_err(|error| LineError::new(code::CONFIG, error.to_string()))?;
        out.extend_from_slice(json.as_bytes());
        Ok(())
    }

    fn source(&self, name: &str, out: &mut Vec<u8>) -> Answer {
        self.require_source(name)?;
        out.extend_from_slice(b"OK SOURCE");
        if let Some(position) = self.caller.shared.database.source_position(name)? {
            out.push(b' ');
            out.extend_from_slice(position.as_bytes());
        }
        Ok(())
    }
}

fn defined_by_sql(table: &str) -> LineError {
    let message = format!(
        "Table '{table}' was defined by SQL, which keeps its keys, lengths and conditions: \
         write it by SQL"
    );
    LineError::new(code::PERMISSION_DENIED, message)
}

/// The code of an error that is no row's.
fn code_of(error: &remora_sql::Error) -> u16 {
    match error.code {
        ErrorCode::Deadlock => code::ALREADY_EXISTS,
        ErrorCode::OutOfMemory | ErrorCode::Interrupted => code::BUSY,
        ErrorCode::DiskFull => code::STORAGE_IO,
        ErrorCode::ServerShutdown => code::SHUTTING_DOWN,
        _ => code::INVALID_ARGUMENT,
    }
}

/// An error of the library, with the code of its kind.
pub(super) fn of_library(error: remora::Error) -> LineError {
    let code = match error {
        remora::Error::NotFound(_) => code::TABLE_NOT_FOUND,
        remora::Error::Busy(_) => code::BUSY,
        remora::Error::Closed => code::SHUTTING_DOWN,
        remora::Error::Full(_) | remora::Error::Io(_) => code::STORAGE_IO,
        remora::Error::ReadOnly(_) => code::STORAGE,
        remora::Error::Corrupt(_) => code::STORAGE_CORRUPT,
        _ => code::INVALID_ARGUMENT,
    };
    LineError::new(code, error.to_string())
}

/// `OK PUT <rows> <position>`
fn acknowledge(out: &mut Vec<u8>, verb: &str, count: usize, position: Position) {
    // Writing into memory never fails.
    let _ = write!(out, "OK {verb} {count} {}", position.0);
}

/// The source before the rows, and the rows.
#[expect(clippy::type_complexity, reason = "the engine's own type of a source")]
fn split_source(json: &str) -> Result<(Option<(String, String)>, &str), LineError> {
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<(String, String)>();
    match values.next() {
        Some(Ok(source)) => {
            let rows = json.get(values.byte_offset()..).unwrap_or("");
            Ok((Some(source), rows.trim_start()))
        }
        _ => Err(LineError::syntax("write it as: PUT <table> FROM [\"name\",\"position\"] <rows>")),
    }
}

/// The changes in a JSON object, or in an array of objects.
fn parse_rows(schema: &Schema, json: &str) -> Result<Vec<Change>, LineError> {
    let wrong = |message: String| LineError::new(code::INVALID_ARGUMENT, message);
    let objects: Vec<&RawValue> = if json.starts_with('[') {
        serde_json::from_str(json)
    } else {
        serde_json::from_str(json).map(|object| vec![object])
    }
    .map_err(|error| wrong(format!("not JSON: {error}")))?;
    let mut parser = RowParser::new(schema, &Layout::Object);
    let mut changes = Vec::with_capacity(objects.len());
    let mut records = RecordBatch::default();
    for (number, object) in (1u64..).zip(objects) {
        records.clear();
        let span = Span { line: number, offset: 0, end_line: number + 1, end_offset: 0 };
        records.push(span, [object.get().as_bytes()]);
        for record in records.iter() {
            let row = parser.parse(&record, number);
            changes
                .push(Change::Put(row.map_err(|error| wrong(format!("row {number}: {error}")))?));
        }
    }
    match parser.ignored().keys().next() {
        Some(name) => {
            Err(wrong(format!("table '{}' has no column '{name}': take it out", schema.name)))
        }
        None => Ok(changes),
    }
}
