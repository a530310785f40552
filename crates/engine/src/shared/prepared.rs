//! Batches in the writer's queue: validated and encoded.

use std::{
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use remora_index::segment::Segment;
use rustc_hash::FxBuildHasher;

use super::transactions::CommitPrecondition;
use crate::{
    Position, Result, Schema,
    encode::FittedRow,
    indexing::Indexing,
    storage::store::{Keyspace, StoreBatch, StoredBytes},
};

/// A batch, validated and encoded.
#[derive(Default)]
pub(crate) struct PreparedBatch {
    /// The changes, each table once.
    pub tables: Vec<PreparedTable>,
    /// As in [`crate::ChangeBatch::positions`].
    pub positions: Vec<(String, String)>,
    /// The approximate size of the batch in memory, in bytes.
    pub bytes: usize,
    /// Set when a batch of its pipeline has failed.
    pub broken: Option<Arc<AtomicBool>>,
    /// For a transaction's batch, what must not have been written since the transaction began.
    pub precondition: Option<CommitPrecondition>,
    /// Whether each key that it changes must have a row before.
    pub must_exist: bool,
}

/// The changes to one table.
pub(crate) struct PreparedTable {
    /// The table's number; the writer checks that the table still exists.
    pub number: u32,
    /// The definition of the table.
    pub schema: Arc<Schema>,
    /// The version of the definition: see `TableView::defined`.
    pub defined: Position,
    /// The changes in ascending key order, each key once.
    pub changes: Vec<PreparedChange>,
    /// For a large batch the segment of its rows; the changes then have no [`PreparedChange::row`].
    pub segment: Option<Arc<Segment>>,
    /// The segment of a large batch while it is still being built.
    pub indexing: Option<Indexing>,
    /// Bytes of indexed texts and path values.
    pub text_bytes: usize,
    /// The values of its rows at the table's unique paths, sorted.
    pub unique: Vec<UniqueValue>,
}

/// A value at a unique path. Sorted by path, value and change.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UniqueValue {
    /// The position of the path among the table's paths.
    pub path: usize,
    /// The value's bytes.
    pub value: Vec<u8>,
    /// The index of the change whose row has it.
    pub change: usize,
}

/// A change to one key.
pub(crate) struct PreparedChange {
    /// The encoded key.
    pub key: Vec<u8>,
    /// The encoded row, which the row store takes without a copy; `None` for a deletion.
    pub stored: Option<StoredBytes>,
    /// The row, if it is to be indexed by the writer.
    pub row: Option<FittedRow>,
    /// Whether the key must not exist before (an insert).
    pub must_be_absent: bool,
}

impl PreparedBatch {
    /// Marks its pipeline as broken, so that later batches of it are not applied.
    pub fn break_pipeline(&self) {
        if let Some(broken) = &self.broken {
            broken.store(true, Ordering::Release);
        }
    }

    /// Whether it belongs to a pipeline: see [`crate::Pipeline`].
    pub fn is_of_pipeline(&self) -> bool {
        self.broken.is_some()
    }

    /// Whether its rows are still being indexed by other threads.
    pub fn is_being_indexed(&self) -> bool {
        let mut indexings = self.tables.iter().filter_map(|table| table.indexing.as_ref());
        indexings.any(Indexing::is_under_way)
    }

    /// Waits until its rows are indexed.
    pub fn wait_until_indexed(&mut self) -> Result<()> {
        for table in &mut self.tables {
            if let Some(indexing) = table.indexing.take() {
                table.segment = indexing.wait()?;
            }
        }
        Ok(())
    }

    /// Whether an earlier batch of its pipeline failed.
    pub fn is_behind_failure(&self) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.load(Ordering::Acquire))
    }

    /// Whether it has preconditions on keys or unique values.
    pub fn expects(&self) -> bool {
        let has_unique = || self.tables.iter().any(|table| !table.unique.is_empty());
        self.precondition.is_some() || self.must_exist || has_unique() || self.inserts()
    }

    /// Whether it has inserts, whose keys must not exist.
    pub fn inserts(&self) -> bool {
        let mut changes = self.tables.iter().flat_map(|table| &table.changes);
        changes.any(|change| change.must_be_absent)
    }

    /// Whether applying it does nothing.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.tables.iter().all(|table| table.changes.is_empty())
    }

    /// Hashes of the keys that it changes or protects.
    pub fn key_hashes(&self) -> impl Iterator<Item = u64> + '_ {
        let changed = self.tables.iter().flat_map(|table| {
            table.changes.iter().map(|change| key_hash(table.number, &change.key))
        });
        let protected = self.precondition.iter().flat_map(|precondition| &precondition.protected);
        let protected =
            protected.flat_map(|table| table.keys.iter().map(|key| key_hash(table.number, key)));
        changed.chain(protected)
    }

    /// Hashes of everything that a later batch may have a precondition on: the keys of
    /// [`Self::key_hashes`], and unique values.
    pub fn claims(&self) -> impl Iterator<Item = u64> + '_ {
        let unique = self.tables.iter().flat_map(|table| {
            let of = |one: &UniqueValue| {
                FxBuildHasher.hash_one((table.number, one.path, one.value.as_slice()))
            };
            table.unique.iter().map(of)
        });
        self.key_hashes().chain(unique)
    }

    /// The number of keys that [`Self::key_hashes`] returns.
    pub fn key_count(&self) -> usize {
        let protected = self.precondition.iter().flat_map(|precondition| &precondition.protected);
        let protected: usize = protected.map(|table| table.keys.len()).sum();
        protected + self.tables.iter().map(|table| table.changes.len()).sum::<usize>()
    }
}

impl PreparedTable {
    /// Adds the rows to a commit.
    pub fn put_rows(&self, commit: &mut StoreBatch) {
        let rows = Keyspace::Rows(self.number);
        self.changes.iter().for_each(|change| match &change.stored {
            Some(row) => commit.put(rows, change.key.as_slice(), row.clone()),
            None => commit.delete(rows, change.key.as_slice()),
        });
    }

    /// The approximate size of the changes in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let changes = self.changes.iter();
        let stored: usize = changes
            .map(|change| change.key.len() + change.stored.as_deref().map_or(0, <[u8]>::len))
            .sum();
        let unique: usize = self.unique.iter().map(|one| size_of_val(one) + one.value.len()).sum();
        let rows = self.changes.iter().filter_map(|change| change.row.as_ref());
        let paths: usize = rows.map(|row| row.paths.bytes()).sum();
        // Values in memory take about as much again as their encoded bytes.
        2 * stored + 96 * self.changes.len() + unique + paths
    }

    /// Whether it changes the row with a key.
    pub fn changes_key(&self, key: &[u8]) -> bool {
        self.changes.binary_search_by(|change| change.key.as_slice().cmp(key)).is_ok()
    }
}

/// The hash under which a written key is recorded.
pub(crate) fn key_hash(table: u32, key: &[u8]) -> u64 {
    FxBuildHasher.hash_one((table, key))
}
