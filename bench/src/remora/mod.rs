//! Remora as the system under test: as a library in this process and as a separate server.

mod engine;
mod server;
mod throughput;
mod writes;

pub use engine::Engine;
pub use server::{Server, announced_address, announced_sql_port, binary};
pub use throughput::throughput;
pub use writes::under_writes;

use std::sync::Arc;

use remora_engine::{ColumnDef, ColumnType, Normalization, Row, Schema, TextDef, Value};

use crate::corpus::Document;

/// The table's name.
pub const TABLE: &str = "docs";

/// The table of documents: title and text joined by a space are searched, the rest are columns.
fn schema() -> Schema {
    let column = |(id, (name, kind, nullable, indexed)): (usize, (&str, _, _, _))| ColumnDef {
        id: id as u32 + 1,
        name: name.to_owned(),
        kind,
        nullable,
        indexed,
        declared: None,
    };
    let columns = [
        ("id", ColumnType::Uint(64), false, true),
        ("title", ColumnType::Text, false, false),
        ("text", ColumnType::Text, false, false),
        ("lang", ColumnType::Text, false, true),
        ("year", ColumnType::Int(32), true, true),
        ("category", ColumnType::Text, true, true),
        ("page_id", ColumnType::Uint(64), true, true),
    ];
    Schema {
        name: TABLE.to_owned(),
        columns: columns.into_iter().enumerate().map(column).collect(),
        primary_key: vec![0],
        texts: vec![TextDef {
            id: 1,
            columns: vec![1, 2],
            delimiter: Some(" ".to_owned()),
            normalization: Normalization::default(),
        }],
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    }
}

/// A document as a row of the table, with this id.
fn row(document: &Document, id: u64) -> Row {
    let text = |text: &str| Value::Text(Arc::from(text));
    vec![
        Value::Uint(id),
        text(&document.title),
        text(&document.text),
        text(&document.language),
        document.year.map_or(Value::Null, Value::Int),
        document.category.as_deref().map_or(Value::Null, text),
        document.page_id.map_or(Value::Null, Value::Uint),
    ]
}
