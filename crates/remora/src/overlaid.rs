//! A transaction of the engine with its own changes over its snapshot, so that later changes see earlier ones.

use std::{collections::HashMap, sync::Arc};

use remora_engine::{
    Change, ChangeBatch, Row, Schema, TableChanges, Transaction, Value, key_bytes,
};

use crate::{
    Error, Result,
    keyed::{Decide, KeyedRows, View},
};

/// An open transaction and its changes.
pub(crate) struct Overlaid {
    transaction: Transaction,
    tables: HashMap<Arc<str>, ChangedRows>,
}

/// The changed rows of a table.
#[derive(Default)]
struct ChangedRows {
    /// Keys and rows, each key once; `None` is a deleted row.
    rows: Vec<(Vec<Value>, Option<Arc<Row>>)>,
    /// Where a key is in `rows`, by its bytes: values of several types may be the same key.
    places: HashMap<Vec<u8>, usize>,
}

impl Overlaid {
    pub fn new(transaction: Transaction) -> Self {
        Self { transaction, tables: HashMap::new() }
    }

    /// Commits the changes and these positions.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another writer changed one of the rows since the transaction began.
    pub fn commit(self, positions: Vec<(String, String)>) -> Result<()> {
        let change = |(key, row): (Vec<Value>, Option<Arc<Row>>)| match row {
            Some(row) => Change::Put(Arc::unwrap_or_clone(row)),
            None => Change::Delete(key),
        };
        let tables = self.tables.into_iter().map(|(table, changed)| TableChanges {
            table,
            changes: changed.rows.into_iter().map(change).collect(),
        });
        let batch = ChangeBatch { tables: tables.collect(), positions };
        Ok(self.transaction.commit(batch).map(drop)?)
    }

    fn row(&self, table: &Arc<str>, key: &[Value]) -> Result<Option<Arc<Row>>> {
        let bytes = key_bytes(&*self.schema(table)?, key)?;
        let changed = self.tables.get(table);
        let known = changed.and_then(|it| it.rows.get(*it.places.get(&bytes)?));
        match known {
            Some((_, row)) => Ok(row.clone()),
            None => Ok(self.transaction.reader().get(table, key)?.map(Arc::new)),
        }
    }

    fn set(
        &mut self,
        table: &Arc<str>,
        schema: &Schema,
        key: Vec<Value>,
        row: Option<Row>,
    ) -> Result<()> {
        let bytes = key_bytes(schema, &key)?;
        let changed = self.tables.entry(Arc::clone(table)).or_default();
        let next = changed.rows.len();
        let place = *changed.places.entry(bytes).or_insert(next);
        let row = row.map(Arc::new);
        match changed.rows.get_mut(place) {
            Some((_, known)) => *known = row,
            None => changed.rows.push((key, row)),
        }
        Ok(())
    }

    /// The definition of a table. SQL may have declared keys of it since the work was given to the engine.
    fn schema(&self, table: &Arc<str>) -> Result<Arc<Schema>> {
        let schema = self.transaction.reader().schema(table)?;
        check_kept_by_engine(&schema)?;
        Ok(schema)
    }
}

/// Checks that the engine alone keeps what was declared of a table.
///
/// # Errors
/// [`Error::Conflict`] if SQL declared keys or conditions of it.
pub(crate) fn check_kept_by_engine(schema: &Schema) -> Result<()> {
    match schema.declared {
        None => Ok(()),
        Some(_) => Err(Error::conflict(format!(
            "SQL has just declared keys or conditions of {:?}: try again",
            schema.name
        ))),
    }
}

fn key_of(schema: &Schema, row: &[Value]) -> Vec<Value> {
    schema.primary_key.iter().filter_map(|&part| row.get(part).cloned()).collect()
}

impl KeyedRows for Overlaid {
    fn write(&mut self, table: &Arc<str>, changes: Vec<Change>) -> Result<()> {
        let schema = self.schema(table)?;
        for change in changes {
            match change {
                Change::Delete(key) => self.set(table, &schema, key, None)?,
                Change::Put(row) => self.set(table, &schema, key_of(&schema, &row), Some(row))?,
                Change::Insert(row) => {
                    let key = key_of(&schema, &row);
                    if self.row(table, &key)?.is_some() {
                        let message = format!("table {table:?} has a row with the key {key:?}");
                        return Err(Error::Exists(message.into()));
                    }
                    self.set(table, &schema, key, Some(row))?;
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, table: &Arc<str>, key: &[Value], decide: Decide<'_>) -> Result<bool> {
        let found = self.row(table, key)?.map(Arc::unwrap_or_clone);
        match decide(found)? {
            Some(change) => self.write(table, vec![change]).map(|()| true),
            None => Ok(false),
        }
    }

    fn view(&mut self, table: &Arc<str>) -> Result<View> {
        let changed = self.tables.get(table).map(|it| it.rows.clone()).unwrap_or_default();
        Ok(View { reader: self.transaction.reader().clone(), changed })
    }
}
