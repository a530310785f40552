//! The row store: ordered keyspaces of bytes, changed by atomic batches.
//!
//! The engine knows the store only by these two traits. Behind them is an LSM tree on disk ([`disk`]); tests use an
//! in-memory store that can fail ([`testing`]).
//!
//! One thread writes; any number of threads read, each from a snapshot that no later write changes. After a failed
//! commit or sync the contents of the disk are unknown, so the store takes no writes until it is opened again
//! ([`crate::Error::Poisoned`]); reads continue. A full disk is the exception: the batch that met it is refused
//! ([`crate::Error::Full`]), and so are later ones until there is room.

mod disk;
mod poison;
#[cfg(test)]
pub(crate) mod testing;

use std::{sync::Arc, time::Instant};

pub(crate) use disk::{DiskStore, StoreOptions};

use crate::Result;

/// Bytes from the store, shared with its cache: a clone copies nothing.
pub(crate) type StoredBytes = fjall::Slice;

/// Called with a key and its value. Returning false ends the scan.
pub(crate) type EntryVisitor<'v> = dyn FnMut(&[u8], &[u8]) -> Result<bool> + 'v;

/// An ordered map of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Keyspace {
    /// Definitions and positions: few and small.
    Meta,
    /// The log of changed keys since the last checkpoint.
    Log,
    /// The rows of the table with this number.
    Rows(u32),
}

impl Keyspace {
    /// What it holds, for messages.
    pub fn describe(self) -> String {
        match self {
            Self::Meta => "the definitions and positions".to_owned(),
            Self::Log => "the change log".to_owned(),
            Self::Rows(table) => format!("the rows of table number {table}"),
        }
    }
}

/// One version of a row, identified by its document in a segment of this process. Its bytes never change, because a
/// rewritten row gets a new document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowVersion {
    /// [`remora_index::segment::Segment::number`].
    pub segment: u64,
    /// The document.
    pub doc: u32,
}

/// The most bytes of a key. fjall allows 65,535; a table's number may be added in front, or a zero
/// byte at the end.
pub(crate) const MAX_KEY_BYTES: usize = 65_530;

/// Puts and deletes that become visible and durable together. The last of several changes of a key wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreBatch {
    changes: Vec<StoreChange>,
}

/// A put, or a delete if there is no value.
#[derive(Clone, Debug)]
struct StoreChange {
    keyspace: Keyspace,
    key: StoredBytes,
    value: Option<StoredBytes>,
}

impl StoreBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key. Keys have at most [`MAX_KEY_BYTES`], values less than 4 GiB.
    /// [`StoredBytes`] are not copied.
    pub fn put(
        &mut self,
        keyspace: Keyspace,
        key: impl Into<StoredBytes>,
        value: impl Into<StoredBytes>,
    ) {
        self.changes.push(StoreChange { keyspace, key: key.into(), value: Some(value.into()) });
    }

    /// Bytes of keys and values.
    fn byte_count(&self) -> u64 {
        let bytes = |change: &StoreChange| {
            change.key.len() + change.value.as_deref().map_or(0, <[u8]>::len)
        };
        self.changes.iter().map(|change| bytes(change) as u64).sum()
    }

    /// Deletes a key, which may be missing.
    pub fn delete(&mut self, keyspace: Keyspace, key: impl Into<StoredBytes>) {
        self.changes.push(StoreChange { keyspace, key: key.into(), value: None });
    }

    /// Adds the changes of another batch after those of this one.
    pub fn append(&mut self, mut other: Self) {
        self.changes.append(&mut other.changes);
    }

    /// Whether it has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// A durable set of keyspaces. All methods may be called from any thread; one thread should make the commits.
pub(crate) trait Store: Send + Sync {
    /// Applies the batch as a whole or not at all. With `sync` it is durable on return; without, it survives the end
    /// of the process but not of the machine. Waits while flushes lag behind. An error poisons the store, except
    /// [`crate::Error::Full`] and, for a key or value that is too long, [`crate::Error::Request`]; nothing of the
    /// batch is there then.
    fn commit(&self, batch: StoreBatch, sync: bool) -> Result<()>;
    /// Makes every earlier commit durable. An error poisons the store.
    fn sync(&self) -> Result<()>;
    /// The state after the last commit. Holding it keeps replaced values on disk. When the store is closed, its reads
    /// return [`crate::Error::Closed`].
    fn snapshot(&self) -> Arc<dyn StoreSnapshot>;
    /// The numbers of the tables that have rows, ascending.
    fn row_tables(&self) -> Vec<u32>;
    /// Drops the rows of a table for good; existing snapshots still read them. Not part of a batch: commit the end of
    /// the table first; after a crash, drop rows without a table. Allowed on a full disk; what cannot be dropped then
    /// is dropped by a later [`Store::resume`].
    fn drop_rows(&self, table: u32) -> Result<()>;
    /// Flushes what only the journal holds to files, so that the next start has little to replay. Stops at
    /// `deadline`, which loses nothing.
    fn flush(&self, deadline: Instant) -> Result<()>;
    /// Bytes on disk, including the journal.
    fn disk_bytes(&self) -> u64;
    /// Bytes on disk of one table's rows, without the journal; for a small table about the bytes written to it.
    fn table_bytes(&self, table: u32) -> u64;
    /// Why the store takes no writes for now; `None` if it does.
    fn refusal(&self) -> Option<String> {
        None
    }
    /// Makes room if it can, and takes writes again if there is room. Otherwise returns the refusal
    /// as an error. Call it in the thread that commits.
    fn resume(&self) -> Result<()> {
        Ok(())
    }
    /// How often the store was reopened or rows were dropped to make room. If it changes, whoever publishes snapshots
    /// must take a new one: the old one may be revoked, or keep dropped rows on disk.
    fn reopen_count(&self) -> u64 {
        0
    }
}

/// The store at one position.
pub(crate) trait StoreSnapshot: Send + Sync {
    /// The value of a key.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>>;
    /// The value of a key whose value in this snapshot is this version of a row. A store may answer from a cache.
    fn get_version(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        _version: RowVersion,
    ) -> Result<Option<StoredBytes>> {
        self.get(keyspace, key)
    }
    /// Calls `visit(key, value)` in key order, starting at `from` (included), until it returns false.
    fn scan(&self, keyspace: Keyspace, from: &[u8], visit: &mut EntryVisitor<'_>) -> Result<()>;
}
