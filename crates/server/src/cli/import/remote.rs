//! A table of a running server as the target of an import.

use std::{cell::RefCell, sync::Arc};

use remora_engine::{Change, ChangeBatch, Schema, TableChanges};
use remora_protocol::line::{code, quote};
use remora_source::{
    files::{Compression, Format, RowSink, RowWriter},
    schema_file::SchemaFile,
};

use crate::{
    Error, Result,
    cli::{ImportOptions, line_client::LineClient},
};

/// A server's table. Only one request is in flight at a time.
pub(super) struct RemoteTable {
    client: RefCell<LineClient>,
    schema: RefCell<Option<Arc<Schema>>>,
    /// The definition of a table that is made before the first rows are sent, so that an import without any leaves
    /// none.
    unmade: RefCell<Option<Schema>>,
}

impl RemoteTable {
    /// Connects, and logs in as a user or with the token, if one is given.
    pub(super) fn connect(address: &str, options: &ImportOptions) -> Result<Self> {
        let mut client = LineClient::connect(address)?;
        client.log_in_with(options.user.as_deref(), options.token.as_deref())?;
        let client = RefCell::new(client);
        Ok(Self { client, schema: RefCell::default(), unmade: RefCell::default() })
    }

    /// The definition of an existing table.
    pub(super) fn schema(&self, table: &str) -> Result<Option<Schema>> {
        let mut client = self.client.borrow_mut();
        let reply = client.ask(&format!("SCHEMA {}", quote(table)))?;
        if reply.starts_with("ERROR 4007 ") {
            return Ok(None);
        }
        let json = reply
            .strip_prefix("OK SCHEMA ")
            .ok_or_else(|| Error::Remote(format!("the server does not take rows: {reply}")))?;
        let file = SchemaFile::parse(json)?;
        let schema = match file.columns_of_sql() {
            Some(schema) => schema,
            None => file.to_schema()?,
        };
        *self.schema.borrow_mut() = Some(Arc::new(schema.clone()));
        Ok(Some(schema))
    }

    /// Creates a table before the first rows are sent.
    pub(super) fn create_for_rows(&self, schema: &Schema) {
        *self.schema.borrow_mut() = Some(Arc::new(schema.clone()));
        *self.unmade.borrow_mut() = Some(schema.clone());
    }

    /// Creates the table of [`Self::create_for_rows`], unless that is done.
    pub(super) fn make(&self) -> Result<()> {
        let unmade = self.unmade.borrow_mut().take();
        match unmade {
            Some(schema) => self.create(&schema).map(drop),
            None => Ok(()),
        }
    }

    /// Creates a table and returns its definition as the server has it.
    fn create(&self, schema: &Schema) -> Result<Schema> {
        let json = serde_json::to_string(&SchemaFile::from_schema(schema))
            .map_err(|error| Error::Remote(error.to_string()))?;
        let name = quote(&schema.name);
        self.client.borrow_mut().command(&format!("CREATE TABLE {name} {json}"))?;
        let made = self.schema(&schema.name)?;
        made.ok_or_else(|| Error::Remote("the server did not make the table".to_owned()))
    }

    /// Reserves ids of a collection, and returns the first.
    pub(super) fn reserve_ids(&self, collection: &str, count: usize) -> Result<i64> {
        self.make()?;
        let mut client = self.client.borrow_mut();
        let reply = client.command(&format!("IDS {} {count}", quote(collection)))?;
        let first = reply.strip_prefix("OK IDS ").and_then(|first| first.parse().ok());
        first.ok_or_else(|| Error::Remote(format!("the server gives no ids: {reply}")))
    }

    fn put(&self, batch: &ChangeBatch) -> remora_source::Result<()> {
        let refused = |message: String| remora_source::Error::Sink(message);
        self.make().map_err(|error| refused(error.to_string()))?;
        let schema = self.schema.borrow().clone();
        let schema = schema.ok_or_else(|| refused("no table is open".to_owned()))?;
        // Without rows there is still the position, which a PUT of none stores.
        let none = [TableChanges { table: schema.name.as_str().into(), changes: Vec::new() }];
        let tables = match batch.tables.is_empty() && !batch.positions.is_empty() {
            true => &none[..],
            false => &batch.tables,
        };
        for table in tables {
            let rows = json_rows(&schema, &table.changes)?;
            let from = match batch.positions.first() {
                Some(source) => {
                    let source = serde_json::to_string(source);
                    format!(" FROM {}", source.map_err(|error| refused(error.to_string()))?)
                }
                None => String::new(),
            };
            let request = format!("PUT {}{from} [{rows}]", quote(&table.table));
            let mut client = self.client.borrow_mut();
            let reply = client.ask(&request).map_err(|error| refused(error.to_string()))?;
            if let Some(error) = reply.strip_prefix("ERROR ") {
                let is_large =
                    error.starts_with(&format!("{} request too large", code::BAD_REQUEST));
                let more = match is_large {
                    true => "; limits.max_request_bytes of the server says how large a row may be",
                    false => "",
                };
                let message = || refused(format!("the server answered: {error}{more}"));
                return Err(refused_row(error).unwrap_or_else(message));
            }
        }
        Ok(())
    }
}

/// The rows of a PUT, with commas between them.
fn json_rows(schema: &Arc<Schema>, changes: &[Change]) -> remora_source::Result<String> {
    let mut json = Vec::new();
    let writer =
        RowWriter::new(Arc::clone(schema), Format::JsonLines, Compression::None, &mut json)?;
    let mut writer = if schema.declared.is_some() { writer.for_sql() } else { writer };
    for change in changes {
        if let Change::Put(row) = change {
            writer.write(row)?;
        }
    }
    writer.finish()?;
    Ok(String::from_utf8_lossy(&json).trim_end().replace('\n', ","))
}

/// The row that a server refuses, by the error's code and message.
fn refused_row(error: &str) -> Option<remora_source::Error> {
    let error = error.strip_prefix(&format!("{} row ", code::INVALID_ARGUMENT))?;
    let (number, message) = error.split_once(": ")?;
    let place = number.parse::<usize>().ok()?.checked_sub(1)?;
    Some(remora_source::Error::Row { place, message: message.to_owned() })
}

impl RemoteTable {
    /// The greatest key of a table, as the server writes it; `None` if it has no rows.
    fn newest_key(&self, table: &str) -> remora_source::Result<Option<String>> {
        let newest = format!("SEARCH {} SORT DESC LIMIT 1", quote(table));
        let mut client = self.client.borrow_mut();
        let reply = client.command(&newest);
        let reply = reply.map_err(|error| remora_source::Error::Sink(error.to_string()))?;
        Ok(reply.split(' ').nth(3).map(str::to_owned))
    }
}

impl RowSink for RemoteTable {
    fn apply(&self, batch: ChangeBatch) -> remora_source::Result<()> {
        self.put(&batch)
    }

    fn source_position(&self, source: &str) -> remora_source::Result<Option<String>> {
        let mut client = self.client.borrow_mut();
        let reply = client.command(&format!("SOURCE {}", quote(source)));
        let reply = reply.map_err(|error| remora_source::Error::Sink(error.to_string()))?;
        Ok(reply.strip_prefix("OK SOURCE ").map(str::to_owned))
    }

    fn is_empty(&self, table: &str) -> remora_source::Result<bool> {
        if self.unmade.borrow().is_some() {
            return Ok(true);
        }
        Ok(self.newest_key(table)?.is_none())
    }

    fn largest_row_number(&self, table: &str) -> remora_source::Result<u64> {
        if self.unmade.borrow().is_some() {
            return Ok(0);
        }
        match self.newest_key(table)?.map(|key| (key.parse(), key)) {
            None => Ok(0),
            Some((Ok(number), _)) => Ok(number),
            Some((Err(_), key)) => Err(remora_source::Error::Sink(format!(
                "the newest key of '{table}' is no row number: {key}"
            ))),
        }
    }
}
