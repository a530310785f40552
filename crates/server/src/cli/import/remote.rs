//! A table of a running server as the target of an import.

use std::{cell::RefCell, sync::Arc};

use remora_engine::{Change, ChangeBatch, Schema};
use remora_protocol::line::quote;
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
}

impl RemoteTable {
    /// Connects, and logs in as a user or with the token, if one is given.
    pub(super) fn connect(address: &str, options: &ImportOptions) -> Result<Self> {
        let mut client = LineClient::connect(address)?;
        let of_environment = || std::env::var("REMORA_AUTH_ADMIN_TOKEN").ok();
        if let Some(user) = &options.user {
            client.log_in(user)?;
        } else if let Some(token) = options.token.clone().or_else(of_environment) {
            client.command(&format!("AUTH {}", quote(&token)))?;
        }
        Ok(Self { client: RefCell::new(client), schema: RefCell::default() })
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
        let schema = SchemaFile::parse(json)?.to_schema()?;
        *self.schema.borrow_mut() = Some(Arc::new(schema.clone()));
        Ok(Some(schema))
    }

    /// Creates a table and returns its definition as the server has it.
    pub(super) fn create(&self, schema: &Schema) -> Result<Schema> {
        let json = serde_json::to_string(&SchemaFile::from_schema(schema))
            .map_err(|error| Error::Remote(error.to_string()))?;
        self.client.borrow_mut().command(&format!("CREATE TABLE {} {json}", schema.name))?;
        let made = self.schema(&schema.name)?;
        made.ok_or_else(|| Error::Remote("the server did not make the table".to_owned()))
    }

    fn put(&self, batch: &ChangeBatch) -> Result<()> {
        let schema = self.schema.borrow().clone();
        let schema = schema.ok_or_else(|| Error::Remote("no table is open".to_owned()))?;
        for table in &batch.tables {
            let mut json = Vec::new();
            let mut writer = RowWriter::new(
                Arc::clone(&schema),
                Format::JsonLines,
                Compression::None,
                &mut json,
            )?;
            for change in &table.changes {
                if let Change::Put(row) = change {
                    writer.write(row)?;
                }
            }
            writer.finish()?;
            let rows = String::from_utf8_lossy(&json);
            let rows = rows.trim_end().replace('\n', ",");
            let from = match batch.positions.first() {
                Some(source) => {
                    let source = serde_json::to_string(source);
                    format!(" FROM {}", source.map_err(|e| Error::Remote(e.to_string()))?)
                }
                None => String::new(),
            };
            self.client.borrow_mut().command(&format!("PUT {}{from} [{rows}]", table.table))?;
        }
        Ok(())
    }
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
        self.put(&batch).map_err(|error| remora_source::Error::Sink(error.to_string()))
    }

    fn source_position(&self, source: &str) -> remora_source::Result<Option<String>> {
        let mut client = self.client.borrow_mut();
        let reply = client.command(&format!("SOURCE {}", quote(source)));
        let reply = reply.map_err(|error| remora_source::Error::Sink(error.to_string()))?;
        Ok(reply.strip_prefix("OK SOURCE ").map(str::to_owned))
    }

    fn is_empty(&self, table: &str) -> remora_source::Result<bool> {
        Ok(self.newest_key(table)?.is_none())
    }

    fn largest_row_number(&self, table: &str) -> remora_source::Result<u64> {
        match self.newest_key(table)?.map(|key| (key.parse(), key)) {
            None => Ok(0),
            Some((Ok(number), _)) => Ok(number),
            Some((Err(_), key)) => Err(remora_source::Error::Sink(format!(
                "the newest key of '{table}' is no row number: {key}"
            ))),
        }
    }
}
