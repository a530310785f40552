//! The row store: ordered keyspaces of bytes that change by atomic batches.
//!
//! The engine knows the store only by these two traits. Behind them is an LSM tree on disk ([`disk`]); tests use an
//! in-memory store that can fail ([`testing`]).
//!
//! One thread writes; any number of threads read, each from a snapshot that no later write changes. After a commit or a
//! sync has failed, the contents of the disk are unknown, so the store takes no write until it is opened again
//! ([`crate::Error::Poisoned`]); reads go on. A full disk is the exception: the batch that met it is refused
//! ([`crate::Error::Full`]), and so are later ones until there is room.

mod disk;
mod poison;
#[cfg(test)]
pub(crate) mod testing;

use std::{sync::Arc, time::Instant};

pub(crate) use disk::{DiskStore, StoreOptions};

use crate::Result;

/// Bytes out of the store, shared with its cache: cloning copies nothing.
pub(crate) type StoredBytes = fjall::Slice;

/// Takes a key and its value; false ends the scan.
pub(crate) type EntryVisitor<'v> = dyn FnMut(&[u8], &[u8]) -> Result<bool> + 'v;

/// An ordered map of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Keyspace {
    /// Definitions, positions: small and few.
    Meta,
    /// The change log since the last checkpoint.
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

/// One version of a row: the document that has it, of a segment of this process. Its bytes never change, because a row that
/// is written anew gets a new document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowVersion {
    /// [`remora_index::segment::Segment::number`].
    pub segment: u64,
    /// The document.
    pub doc: u32,
}

/// Most bytes of a key: fjall takes 65,535, before which a table's number may stand, or behind which a zero byte.
pub(crate) const MAX_KEY_BYTES: usize = 65_530;

/// Puts and deletes that become visible and durable together. Of several changes to one key the
/// last one stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreBatch {
    changes: Vec<StoreChange>,
}

/// One put (a value) or delete (none).
#[derive(Clone, Debug)]
struct StoreChange {
    keyspace: Keyspace,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl StoreBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key now has this value. Keys have at most [`MAX_KEY_BYTES`], values below 4 GiB.
    pub fn put(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.changes.push(StoreChange { keyspace, key: key.into(), value: Some(value.into()) });
    }

    /// The key is gone, whether it was there or not.
    pub fn delete(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>) {
        self.changes.push(StoreChange { keyspace, key: key.into(), value: None });
    }

    /// What another batch changes, behind what is here.
    pub fn append(&mut self, mut other: Self) {
        self.changes.append(&mut other.changes);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// A durable set of keyspaces. All methods may be called from any thread; commits are meant to
/// come from one.
pub(crate) trait Store: Send + Sync {
    /// Applies the batch whole or not at all; with `sync` it is durable on return, without it
    /// survives the end of the process but not of the machine. An error poisons the store, save that
    /// of a full disk: nothing of the batch is there then. Waits while flushes lag behind.
    fn commit(&self, batch: StoreBatch, sync: bool) -> Result<()>;
    /// Makes every earlier commit durable. An error poisons the store.
    fn sync(&self) -> Result<()>;
    /// The state after the last commit. Holding it keeps replaced values on disk. Once the store is
    /// gone it answers [`crate::Error::Closed`].
    fn snapshot(&self) -> Arc<dyn StoreSnapshot>;
    /// The numbers of the tables that have rows here, ascending.
    fn row_tables(&self) -> Vec<u32>;
    /// Drops the rows of a table for good; snapshots taken before still read them. Not part of any
    /// batch: first commit that the table is gone, and after a crash drop what has no table. On a full
    /// disk as well; what cannot be done then is done by a later [`Store::resume`].
    fn drop_rows(&self, table: u32) -> Result<()>;
    /// Moves what the journal alone holds to files of its own, so that the next start has little to
    /// replay. Gives up at `deadline`: nothing is lost then.
    fn flush(&self, deadline: Instant) -> Result<()>;
    /// Bytes on disk, the journal included.
    fn disk_bytes(&self) -> u64;
    /// Bytes on disk of one table's rows, the journal not included; of a small table about what was written
    /// to it.
    fn table_bytes(&self, table: u32) -> u64;
    /// Why the disk takes no write for now; `None` if it does.
    fn refusal(&self) -> Option<String> {
        None
    }
    /// Makes what room it can, and takes writes again if there is room on the disk; the refusal if
    /// there is none. By the thread that commits.
    fn resume(&self) -> Result<()> {
        Ok(())
    }
    /// How often the store was opened anew behind its callers, or rows were dropped to make room: who
    /// publishes a snapshot takes a new one then, for the old one may be gone, or hold those rows.
    fn openings(&self) -> u64 {
        0
    }
}

/// The store at one moment.
pub(crate) trait StoreSnapshot: Send + Sync {
    /// The value of a key.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>>;
    /// The value of a key that is this version of a row at this moment. A store may keep it in memory and answer from there.
    fn get_version(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        _version: RowVersion,
    ) -> Result<Option<StoredBytes>> {
        self.get(keyspace, key)
    }
    /// Calls `visit(key, value)` in key order, from `from` on (included), until it answers false.
    fn scan(&self, keyspace: Keyspace, from: &[u8], visit: &mut EntryVisitor<'_>) -> Result<()>;
}
