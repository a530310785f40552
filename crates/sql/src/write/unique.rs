//! Unique keys. Each is a hidden table: its primary key is the value of the unique key, and its row names the owning
//! row.
//!
//! The engine commits only one of two transactions that write the same key. So a duplicate is found either here, in the
//! snapshot and the session's own changes, or at the commit, which then fails. This is exact and takes no lock. Texts
//! are stored as collation sort keys. The primary key has such a table too if its texts do not compare by bytes.
//!
//! ```text
//! key  := part+
//! part := escaped* 0x00 0x00
//! escaped := 0x01..0xff | 0x00 0xff
//! ```

use std::sync::Arc;

use remora_engine::{ColumnDef, ColumnType, KeyValues, Row, Schema, Value};
use remora_mysql::Collation;

use crate::{
    catalog::{KeyKind, SqlTable, TableName, TypeSpec},
    meaning::collation,
    transaction::{RowKey, TableStorage},
};

/// The prefix of these tables' names.
const HIDDEN: &str = "#unique.";

/// A unique key of a table.
#[derive(Clone, Debug)]
pub(crate) struct UniqueKey {
    /// Its name.
    pub name: String,
    /// Where its hidden table is stored.
    pub place: TableStorage,
    parts: Vec<UniqueColumn>,
}

#[derive(Clone, Debug)]
struct UniqueColumn {
    column: usize,
    collation: Collation,
    prefix: Option<usize>,
}

impl UniqueKey {
    /// The unique keys of a table that need a hidden table.
    pub(crate) fn of(table: &SqlTable, place: &TableStorage) -> Vec<Self> {
        let keys = table.keys.iter().filter(|key| match key.kind {
            KeyKind::Unique => true,
            // If SQL did not declare the table, its key is the engine's, which compares by bytes.
            KeyKind::Primary => table.schema.declared.is_some() && !is_by_bytes(table),
            _ => false,
        });
        let made = keys.filter_map(|key| {
            let parts = key.parts.iter().enumerate().map(|(nth, part)| {
                let column = table.key_part(key, nth)?;
                let kind = &table.columns.get(column)?.kind;
                let prefix = part.prefix.and_then(|prefix| usize::try_from(prefix).ok());
                Some(UniqueColumn { column, collation: collation_of(kind), prefix })
            });
            let place = hidden_place(place, &key.name);
            Some(Self { name: key.name.clone(), place, parts: parts.collect::<Option<_>>()? })
        });
        made.collect()
    }

    /// The key's value in a row; `None` if a part is NULL, because such values are never duplicates.
    pub(crate) fn value(&self, row: &[Value]) -> Option<RowKey> {
        let mut bytes = Vec::new();
        for part in &self.parts {
            let value = row.get(part.column).filter(|value| !value.is_null())?;
            part.append(value, &mut bytes);
        }
        Some(RowKey(KeyValues::from_iter([Value::Bytes(bytes.into())])))
    }

    /// A row of the hidden table.
    pub(crate) fn entry(value: &RowKey, owner: &RowKey) -> Arc<Row> {
        Arc::new(value.0.iter().chain(&owner.0).cloned().collect())
    }

    /// The primary key of the row that an entry names.
    pub(crate) fn owner(entry: &[Value]) -> RowKey {
        RowKey(entry.iter().skip(1).cloned().collect())
    }

    /// The key's value in a row, as error 1062 prints it.
    pub(crate) fn shown(&self, row: &[Value]) -> String {
        let columns: Vec<usize> = self.parts.iter().map(|part| part.column).collect();
        shown_key(&columns, row)
    }
}

impl UniqueColumn {
    fn append(&self, value: &Value, out: &mut Vec<u8>) {
        let text;
        let key: std::borrow::Cow<'_, [u8]> = match value {
            Value::Text(whole) => {
                let end = match self.prefix {
                    Some(prefix) => {
                        whole.char_indices().nth(prefix).map_or(whole.len(), |(at, _)| at)
                    }
                    None => whole.len(),
                };
                collation::key(whole.get(..end).unwrap_or_default(), self.collation)
            }
            Value::Bytes(bytes) => {
                let end = self.prefix.unwrap_or(usize::MAX).min(bytes.len());
                bytes.get(..end).unwrap_or_default().into()
            }
            other => {
                text = other.to_string();
                text.as_bytes().into()
            }
        };
        for &byte in key.iter() {
            out.push(byte);
            if byte == 0 {
                out.push(0xff);
            }
        }
        out.extend([0, 0]);
    }
}

/// The values of key columns, as error 1062 prints them.
pub(crate) fn shown_key(columns: &[usize], row: &[Value]) -> String {
    let shown = |column: &usize| row.get(*column).map_or(String::new(), super::convert::shown);
    columns.iter().map(shown).collect::<Vec<_>>().join("-")
}

/// Whether primary keys are equal only if their bytes are.
fn is_by_bytes(table: &SqlTable) -> bool {
    let by_bytes = |column: &usize| {
        let kind = table.columns.get(*column).map(|column| &column.kind);
        kind.is_none_or(|kind| !kind.is_text() || collation::is_bytes(kind.collation))
    };
    let whole = table.keys.iter().filter(|key| key.kind == KeyKind::Primary);
    let whole = whole.flat_map(|key| &key.parts).all(|part| part.prefix.is_none());
    whole && table.schema.primary_key.iter().all(by_bytes)
}

fn collation_of(kind: &TypeSpec) -> Collation {
    if kind.is_text() { kind.collation } else { Collation::BINARY }
}

/// Where the hidden table of a unique key is stored.
pub(crate) fn hidden_place(place: &TableStorage, key: &str) -> TableStorage {
    match place {
        TableStorage::Engine(table) => {
            TableStorage::Engine(format!("{HIDDEN}{table}.{key}").into())
        }
        TableStorage::Temporary(name) => TableStorage::Temporary(TableName::new(
            name.database.clone(),
            format!("{HIDDEN}{}.{key}", name.table),
        )),
    }
}

/// The definition of a unique key's hidden table. `owner` is the table with the key.
pub(crate) fn hidden_schema(name: String, owner: &Schema) -> Schema {
    let value = ColumnDef {
        id: 0,
        name: "value".to_owned(),
        kind: ColumnType::Bytes,
        nullable: false,
        indexed: true,
        declared: None,
    };
    let parts = owner.primary_key.iter().filter_map(|&part| owner.columns.get(part));
    let parts = parts.zip(1..).map(|(column, id)| ColumnDef {
        id,
        name: format!("key{id}"),
        kind: column.kind,
        nullable: false,
        indexed: false,
        declared: None,
    });
    Schema::over(name, std::iter::once(value).chain(parts).collect(), vec![0])
}
