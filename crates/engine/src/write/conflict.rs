//! Checks the preconditions of a batch (transaction conflicts). This runs in the writer thread, at
//! the batch's place in the commit order, so the result is exact and needs no lock.

use super::{
    prepare::exists,
    writer::{Writer, find_table},
};
use crate::{
    Error, Position, Result, Schema,
    encode::decode_key,
    error::no_table,
    shared::{CommitPrecondition, PreparedBatch, key_hash},
    snapshot::{Snapshot, TableView},
};

impl Writer<'_> {
    /// Refuses a batch whose preconditions do not hold: that its keys were not written since its
    /// snapshot, that its unique values are free, that the keys of its inserts are absent, and that rows exist which
    /// must.
    pub(super) fn check_expectations(&self, batch: &PreparedBatch) -> Result<()> {
        let current = self.shared.published.load();
        if let Some(precondition) = &batch.precondition {
            self.check_precondition(&current, batch, precondition)?;
        }
        batch.tables.iter().try_for_each(|table| self.check_unique(table))?;
        for table in &batch.tables {
            let Some(view) = find_table(&current, table.number) else { continue };
            for change in table.changes.iter().filter(|change| change.must_be_absent) {
                if has_row(view, &change.key)? {
                    return Err(exists(&table.schema, &change.key));
                }
            }
            if batch.must_exist {
                table.changes.iter().try_for_each(|change| must_have_row(view, &change.key))?;
            }
        }
        Ok(())
    }

    fn check_precondition(
        &self,
        current: &Snapshot,
        batch: &PreparedBatch,
        precondition: &CommitPrecondition,
    ) -> Result<()> {
        if precondition.position < self.recent.forgotten {
            let message = "too much was written since this transaction began: begin it again";
            return Err(Error::Conflict(message.to_owned()));
        }
        for table in &batch.tables {
            check_definition(current, table.number, &table.schema, table.defined)?;
            let keys = table.changes.iter().map(|change| &*change.key);
            self.check_keys(table.number, &table.schema, keys, precondition.position)?;
        }
        for table in &precondition.protected {
            check_definition(current, table.number, &table.schema, table.defined)?;
            let keys = table.keys.iter().map(|key| &**key);
            self.check_keys(table.number, &table.schema, keys, precondition.position)?;
        }
        Ok(())
    }

    fn check_keys<'k>(
        &self,
        table: u32,
        schema: &Schema,
        mut keys: impl Iterator<Item = &'k [u8]>,
        since: Position,
    ) -> Result<()> {
        let recent = &self.recent;
        match keys.find(|key| recent.is_written(table, key_hash(table, key), since)) {
            None => Ok(()),
            Some(key) => {
                let parts = decode_key(schema, key)?;
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                let (name, key) = (&schema.name, parts.join(", "));
                Err(Error::Conflict(format!(
                    "the row with the key ({key}) of table {name:?} was written since this \
                     transaction began: begin it again"
                )))
            }
        }
    }
}

/// Checks that a table is still the one the transaction began with.
fn check_definition(
    current: &Snapshot,
    number: u32,
    schema: &Schema,
    defined: Position,
) -> Result<()> {
    let name = &schema.name;
    match current.tables.get(name.as_str()) {
        None => Err(no_table(name)),
        Some(view) if view.number == number && view.defined == defined => Ok(()),
        Some(_) => Err(Error::Conflict(format!(
            "table {name:?} was altered since this transaction began: begin it again"
        ))),
    }
}

/// Refuses a change of a row that is gone.
fn must_have_row(view: &TableView, key: &[u8]) -> Result<()> {
    if has_row(view, key)? {
        return Ok(());
    }
    let parts: Vec<String> =
        decode_key(&view.schema, key)?.iter().map(ToString::to_string).collect();
    let (name, key) = (&view.schema.name, parts.join(", "));
    Err(Error::Conflict(format!(
        "the row with the key ({key}) of table {name:?} was deleted meanwhile"
    )))
}

/// Whether the key has a row, including rows that the table's condition hides.
fn has_row(view: &TableView, key: &[u8]) -> Result<bool> {
    if view.segments.iter().any(|segment| segment.has_live(key)) {
        return Ok(true);
    }
    Ok(view.schema.required.is_some() && view.rows.get(key, None, &|_| false)?.is_some())
}
