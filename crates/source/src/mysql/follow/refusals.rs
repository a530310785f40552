//! Rows that the engine refuses, such as one beyond its limits. Their table stops, the others continue.
//!
//! A refused batch does not tell which table's row it was. So the session restarts at the stored position and submits
//! table by table, as parts of large batches, until the table is found. That table stops, and the next session skips
//! its rows. If a copy would now get another definition than the altered table has, the table is copied instead. So is
//! a table with a row for which a functional key cannot be computed: the copy has no keys of that kind.

use std::sync::{Arc, atomic::Ordering};

use remora_engine::{ChangeBatch, ColumnDef, Error as EngineError, LargeBatch, TableChanges};

use super::{
    applier::Applier,
    positions::{STALE, copied_key, table_key},
    table::{FollowedTable, schema},
};
use crate::{Error, Result};

/// The number of batches that are submitted table by table.
const BATCHES_TABLE_BY_TABLE: u32 = 256;

impl Applier {
    /// Handles a refusal: the result is `Cancelled`, and the next session submits table by table.
    pub fn refused(&self, error: EngineError) -> Error {
        match error {
            EngineError::Request { message, .. } => {
                tracing::warn!("refused, and submitted again table by table: {message}");
                self.shared.batches_table_by_table.store(BATCHES_TABLE_BY_TABLE, Ordering::Relaxed);
                Error::Cancelled
            }
            error => error.into(),
        }
    }

    /// Whether batches are submitted table by table.
    pub fn applies_table_by_table(&self) -> bool {
        self.shared.batches_table_by_table.load(Ordering::Relaxed) > 0
    }

    /// Applies a batch table by table, atomically.
    pub fn apply_table_by_table(&mut self, batch: ChangeBatch) -> Result<()> {
        let left = self.shared.batches_table_by_table.load(Ordering::Relaxed);
        self.shared.batches_table_by_table.store(left.saturating_sub(1), Ordering::Relaxed);
        self.wait_for_submitted()?;
        let mut large = self.shared.database.begin_large()?;
        self.add_table_by_table(&mut large, batch.tables)?;
        large.commit(batch.positions)?;
        Ok(())
    }

    /// Adds to a large batch table by table.
    pub fn add_table_by_table(
        &mut self,
        large: &mut LargeBatch,
        tables: Vec<TableChanges>,
    ) -> Result<()> {
        for changes in tables {
            let name = Arc::clone(&changes.table);
            match large.add(vec![changes]) {
                Err(refusal @ EngineError::Request { .. }) => {
                    return Err(self.give_up_refused(&name, refusal));
                }
                added => added?,
            }
        }
        Ok(())
    }

    /// Stops the table whose rows are refused. The session restarts.
    fn give_up_refused(&self, name: &str, refusal: EngineError) -> Error {
        let is_of = |followed: &FollowedTable| {
            let hidden = followed.copy.as_ref().map(|copy| &*copy.hidden);
            *followed.name == *name || hidden == Some(name)
        };
        let mut tables = self.tables.iter();
        let Some((table, followed)) = tables.find(|(_, followed)| is_of(followed)) else {
            return refusal.into();
        };
        if self.is_outgrown(name, followed) {
            tracing::info!(table = &*followed.name, "copied anew: {refusal}");
        } else {
            tracing::warn!(table = &*followed.name, "not followed: {refusal}");
            self.shared.given_up.lock().insert(table.clone(), refusal.to_string());
            self.shared.failed_at.lock().insert(table.clone(), self.place.clone());
        }
        self.shared.refused.lock().insert(followed.name.to_string());
        Error::Cancelled
    }

    /// Whether a local table indexes a column that a copy would not index: it was short and has become long at the
    /// source.
    fn is_outgrown(&self, name: &str, followed: &FollowedTable) -> bool {
        let Ok(here) = self.shared.database.schema(name) else { return false };
        // A copy has no such keys. If a row is still refused, the reason is another.
        let computes = here.given_columns() < here.columns.len();
        if computes && here.computing_failure().is_some() {
            return true;
        }
        let start_over = schema(&self.shared.settings, &followed.source, name, None);
        let is_long = |column: &ColumnDef| {
            start_over.columns.iter().any(|now| now.name == column.name && !now.indexed)
        };
        here.columns.iter().any(|column| column.indexed && is_long(column))
    }
}

impl super::shared::FollowState {
    /// Stores that the refused tables are no longer fed. Nothing may be being written.
    pub fn store_refusals(&self) -> Result<()> {
        let source = &self.settings.name;
        let mut positions = Vec::new();
        for name in self.refused.lock().drain() {
            for key in [table_key(source, &name), copied_key(source, &name)] {
                if self.database.source_position(&key)?.is_some() {
                    positions.push((key, STALE.to_owned()));
                }
            }
        }
        if !positions.is_empty() {
            self.batches_table_by_table.store(0, Ordering::Relaxed);
            self.database.define(Vec::new(), positions)?;
        }
        Ok(())
    }
}
