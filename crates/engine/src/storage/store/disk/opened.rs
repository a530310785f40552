//! fjall's database and its keyspaces, opened.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use fjall::{
    CompressionType, Database, KeyspaceCreateOptions, PersistMode,
    config::{BlockSizePolicy, CompressionPolicy, PartitioningPolicy, RestartIntervalPolicy},
};
use parking_lot::RwLock;

use super::{
    BACKLOG_POLL, MAX_FIRST_LEVEL_FILES, MAX_SEALED_MEMTABLES, MIN_JOURNAL_BYTES,
    SMALL_MEMTABLE_BYTES, StoreOptions,
    directory::{self, JOURNAL, not_ours},
    error::store_error,
    store_key,
};
use crate::{
    Error, Result,
    error::is_full,
    storage::store::{Keyspace, StoreBatch},
};

const ROW_BLOCK_BYTES: u32 = 4 << 10;
const SMALL_BLOCK_BYTES: u32 = 4 << 10;
/// Of so many keys of a block one is stored whole, not as what it adds to the one before.
const WHOLE_KEYS: u8 = 4;
const ROWS_PREFIX: &str = "rows-";
/// Where each batch leaves its number, in "meta".
pub(super) const BATCHES: &[u8] = b"batches";
/// How long the threads of a database that was dropped get to let go of its journal.
const LET_GO: Duration = Duration::from_secs(5);

/// The trees of the keyspaces that there are.
pub(super) type Keyspaces = Arc<BTreeMap<Keyspace, fjall::Keyspace>>;

/// The trees as they were, and the moment up to which their changes count.
pub(super) struct Moment {
    pub at: fjall::Snapshot,
    pub keyspaces: Keyspaces,
}

/// An open database. Dropping it closes it, if no moment of it is held.
pub(super) struct Opened {
    // Before the database, which waits for its keyspaces when it is dropped.
    keyspaces: RwLock<Keyspaces>,
    pub database: Database,
}

impl Opened {
    /// Opens or makes the database in `directory`. Cost: the journal is replayed.
    pub fn open(directory: &Path, options: &StoreOptions) -> Result<Self> {
        directory::examine(directory)?;
        let open = || open_database(directory, options);
        // Recovery asserts what it reads; a damaged directory must not end the process.
        let database = catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
            Err(Error::Corrupt("the row store cannot be recovered".to_owned()))
        });
        let database = database.map_err(|error| in_directory(error, directory))?;
        let mut keyspaces = BTreeMap::new();
        for name in database.list_keyspace_names() {
            let keyspace = keyspace_of(&name).ok_or_else(|| not_ours(directory))?;
            let opened = open_keyspace(&database, keyspace, options);
            let opened = opened.map_err(|error| in_directory(store_error(error), directory))?;
            keyspaces.insert(keyspace, opened);
        }
        for keyspace in [Keyspace::Meta, Keyspace::Log] {
            let opened = open_keyspace(&database, keyspace, options).map_err(store_error)?;
            keyspaces.insert(keyspace, opened);
        }
        Ok(Self { keyspaces: RwLock::new(Arc::new(keyspaces)), database })
    }

    /// The state after the last commit.
    pub fn moment(&self) -> Moment {
        let at = self.database.snapshot();
        Moment { at, keyspaces: self.keyspaces() }
    }

    /// The keyspaces that there are.
    pub fn keyspaces(&self) -> Keyspaces {
        Arc::clone(&self.keyspaces.read())
    }

    /// The number of the last batch that was written.
    pub fn batches(&self) -> Result<u64> {
        let keyspaces = self.keyspaces();
        let Some(meta) = keyspaces.get(&Keyspace::Meta) else { return Ok(0) };
        let Some(stored) = meta.get(BATCHES).map_err(store_error)? else { return Ok(0) };
        let number = stored.as_ref().try_into().map(u64::from_le_bytes);
        number.map_err(|_| Error::Corrupt("the number of the row store's last batch".to_owned()))
    }

    /// Drops a keyspace; false if there is none. Its files go with the last moment that has it.
    pub fn drop_keyspace(&self, keyspace: Keyspace) -> fjall::Result<bool> {
        let Some(open) = self.keyspaces.read().get(&keyspace).cloned() else { return Ok(false) };
        self.database.delete_keyspace(open)?;
        Arc::make_mut(&mut self.keyspaces.write()).remove(&keyspace);
        Ok(true)
    }

    /// Waits until fjall can take a change of these keyspaces.
    pub fn wait_for_backlog(
        &self,
        batch: &StoreBatch,
        options: &StoreOptions,
    ) -> fjall::Result<()> {
        for keyspace in self.touched(batch, options)?.values() {
            while keyspace.sealed_memtable_count() >= MAX_SEALED_MEMTABLES
                || keyspace.l0_table_count() >= MAX_FIRST_LEVEL_FILES
            {
                // Says whether the workers have failed, in which case the backlog never shrinks.
                self.database.persist(PersistMode::Buffer)?;
                std::thread::sleep(BACKLOG_POLL);
            }
        }
        Ok(())
    }

    /// Hands the batch to the system.
    pub fn write(&self, batch: StoreBatch, options: &StoreOptions) -> fjall::Result<()> {
        let touched = self.touched(&batch, options)?;
        let mut writes = self.database.batch().durability(Some(PersistMode::Buffer));
        for change in batch.changes {
            let Some(keyspace) = touched.get(&change.keyspace) else { continue };
            let key = match store_key(&change.key) {
                Cow::Owned(key) => key,
                Cow::Borrowed(_) => change.key,
            };
            match change.value {
                Some(value) => writes.insert(keyspace, key, value),
                None => writes.remove(keyspace, key),
            }
        }
        writes.commit()
    }

    /// The keyspaces that a batch changes, made if they are not there.
    fn touched(
        &self,
        batch: &StoreBatch,
        options: &StoreOptions,
    ) -> fjall::Result<BTreeMap<Keyspace, fjall::Keyspace>> {
        let mut touched = BTreeMap::new();
        for change in &batch.changes {
            if let Entry::Vacant(place) = touched.entry(change.keyspace) {
                place.insert(self.keyspace(change.keyspace, options)?);
            }
        }
        Ok(touched)
    }

    fn keyspace(
        &self,
        keyspace: Keyspace,
        options: &StoreOptions,
    ) -> fjall::Result<fjall::Keyspace> {
        if let Some(open) = self.keyspaces.read().get(&keyspace) {
            return Ok(open.clone());
        }
        let mut keyspaces = self.keyspaces.write();
        if let Some(open) = keyspaces.get(&keyspace) {
            return Ok(open.clone());
        }
        let made = open_keyspace(&self.database, keyspace, options)?;
        Arc::make_mut(&mut keyspaces).insert(keyspace, made.clone());
        Ok(made)
    }

    /// Closes the database, of which nobody holds a moment any more. False if a thread of it still
    /// has its journal: what that writes at last must not meet what another writes there.
    pub fn close(self, directory: &Path) -> bool {
        drop(self);
        let deadline = Instant::now() + LET_GO;
        while is_journal_open(directory) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(BACKLOG_POLL);
        }
        true
    }
}

/// Whether this process has a journal of the directory open. Where the system does not say, a moment
/// is waited: fjall's threads end right behind the database.
fn is_journal_open(directory: &Path) -> bool {
    let (Ok(directory), Ok(open)) = (directory.canonicalize(), std::fs::read_dir("/proc/self/fd"))
    else {
        std::thread::sleep(Duration::from_secs(1));
        return false;
    };
    open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).any(|path| {
        path.extension().is_some_and(|extension| extension == JOURNAL)
            && path.parent() == Some(&directory)
    })
}

fn open_database(directory: &Path, options: &StoreOptions) -> Result<Database> {
    let opened = Database::builder(directory)
        .cache_size(options.cache_bytes)
        .journal_compression(CompressionType::Lz4)
        .max_journaling_size(options.journal_bytes.max(MIN_JOURNAL_BYTES))
        .worker_threads(options.worker_threads.max(2))
        .open();
    opened.map_err(|error| match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error))
            if is_full(&error) =>
        {
            Error::Full(format!("the row store cannot be opened: {error}"))
        }
        other => store_error(other),
    })
}

fn open_keyspace(
    database: &Database,
    keyspace: Keyspace,
    options: &StoreOptions,
) -> fjall::Result<fjall::Keyspace> {
    let (name, memtable_bytes, block_bytes) = match keyspace {
        Keyspace::Meta => ("meta".to_owned(), SMALL_MEMTABLE_BYTES, SMALL_BLOCK_BYTES),
        Keyspace::Log => ("log".to_owned(), SMALL_MEMTABLE_BYTES, SMALL_BLOCK_BYTES),
        Keyspace::Rows(table) => {
            (format!("{ROWS_PREFIX}{table}"), options.rows_memtable_bytes, ROW_BLOCK_BYTES)
        }
    };
    let create = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(memtable_bytes)
            .data_block_size_policy(BlockSizePolicy::all(block_bytes))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            // Of a table of 64 MiB the places of its small blocks are a megabyte, of which a read needs one block. Those
            // of the first two levels stay in memory.
            .index_block_partitioning_policy(PartitioningPolicy::new([false, false, true]))
            .filter_block_partitioning_policy(PartitioningPolicy::new([false, true]))
            // A read decodes the rows between two whole keys up to its own.
            .data_block_restart_interval_policy(RestartIntervalPolicy::all(WHOLE_KEYS))
            // The index knows which keys there are, so a read almost never misses.
            .expect_point_read_hits(true)
    };
    database.keyspace(&name, create)
}

fn keyspace_of(name: &str) -> Option<Keyspace> {
    match name {
        "meta" => Some(Keyspace::Meta),
        "log" => Some(Keyspace::Log),
        _ => name.strip_prefix(ROWS_PREFIX)?.parse().ok().map(Keyspace::Rows),
    }
}

/// Damage with the place.
fn in_directory(error: Error, directory: &Path) -> Error {
    match error {
        Error::Corrupt(what) => Error::Corrupt(format!("{what}, in {}", directory.display())),
        other => other,
    }
}
