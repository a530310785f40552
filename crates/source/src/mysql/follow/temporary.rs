//! Names that temporary tables have had, according to the binlog.
//!
//! A session that logs statements also logs those on its temporary tables, under names that other sessions use for base
//! tables. So a TRUNCATE or ALTER TABLE of such a name may mean either. The event header says which, but that alone is
//! not trusted. The names are kept for ever and stored with the position: forgetting one could lose rows.

use std::collections::BTreeSet;

use remora_engine::Database;
use serde::{Deserialize, Serialize};

use super::{
    positions::{Stored, temporary_key},
    shared::FollowState,
};
use crate::mysql::table_name::TableName;

/// The most names. Beyond that every name counts as one.
const MAX_NAMES: usize = 4_096;

/// The names of temporary tables.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Temporary {
    names: BTreeSet<(String, String)>,
    is_full: bool,
    #[serde(skip)]
    is_unstored: bool,
}

impl Temporary {
    /// Loads the stored names.
    pub fn load(database: &Database, source: &str) -> Self {
        let positions = database.source_positions();
        let stored = positions.get(&temporary_key(source));
        stored.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Notes the creation of a temporary table.
    pub fn add(&mut self, table: TableName, shared: &FollowState) {
        if self.is_full || !shared.selection.matches(&table.database, &table.table) {
            return;
        }
        self.is_unstored |= self.names.insert((table.database, table.table));
        if self.names.len() > MAX_NAMES {
            (self.names, self.is_full) = (BTreeSet::new(), true);
        }
    }

    /// Whether a temporary table may have had this name.
    pub fn has(&self, table: &TableName) -> bool {
        self.is_full || self.names.contains(&(table.database.clone(), table.table.clone()))
    }

    /// What must be stored with the next commit.
    pub fn take_unstored(&mut self, source: &str) -> Option<Stored> {
        std::mem::take(&mut self.is_unstored)
            .then(|| (temporary_key(source), serde_json::to_string(self).unwrap_or_default()))
    }
}
