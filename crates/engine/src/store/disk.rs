//! The store on disk: fjall, an LSM tree per keyspace and one journal before them all.
//!
//! ```text
//! store/             fjall's own files, of its disk format 3
//! keyspaces          "meta", "log", "rows-N" for table number N
//! key in a keyspace  the key itself; a key of nothing but n zero bytes (n from 0) has n + 1 there,
//!                    since fjall knows no empty key. The order of keys is the same.
//! ```
//! A batch is one record of the journal and so whole or absent after a crash. Recovery replays at
//! most about two journal files of 64 MB: memtables are small and hold no journal back for long.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use fjall::{
    CompressionType, Database, KeyspaceCreateOptions, PersistMode, Readable,
    config::{BlockSizePolicy, CompressionPolicy},
};
use parking_lot::RwLock;

use super::{
    EntryVisitor, Keyspace, Store, StoreBatch, StoreSnapshot, StoredBytes, poison::Poison,
};
use crate::{Error, Missing, Result};

/// Settings of the store on disk.
#[derive(Clone, Debug)]
pub(crate) struct StoreOptions {
    /// Bytes of the cache of blocks, shared by all keyspaces.
    pub cache_bytes: u64,
    /// Bytes of rows of one table in memory before they go to a file of their own.
    pub rows_memtable_bytes: u64,
    /// Bytes of the journal above which memtables are flushed to free it; at least 64 MiB.
    pub journal_bytes: u64,
    /// Threads that flush and compact; at least 2, so that one is always free to flush.
    pub worker_threads: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 32 << 20,
            rows_memtable_bytes: 16 << 20,
            journal_bytes: MIN_JOURNAL_BYTES,
            worker_threads: 2,
        }
    }
}

/// What fjall takes at least.
const MIN_JOURNAL_BYTES: u64 = 64 << 20;
/// Memtables below this in all are replayed in no time: flushing them would take longer.
const FLUSHED_BYTES: u64 = 1 << 20;
const SMALL_MEMTABLE_BYTES: u64 = 4 << 20;
const ROW_BLOCK_BYTES: u32 = 16 << 10;
const SMALL_BLOCK_BYTES: u32 = 4 << 10;
const ROWS_PREFIX: &str = "rows-";
/// The file that fjall puts into each of its directories.
const FJALL_MARKER: &str = "version";

/// fjall stops a writer for good at 4 sealed memtables or 30 files of the first level if its
/// workers have died; waiting here, below those, can see that and answer.
const MAX_SEALED_MEMTABLES: usize = 3;
const MAX_FIRST_LEVEL_FILES: usize = 26;
const BACKLOG_POLL: Duration = Duration::from_millis(2);

/// The store on disk.
pub(crate) struct DiskStore {
    // Before the database, which waits for its keyspaces when it is dropped.
    keyspaces: RwLock<Keyspaces>,
    database: Database,
    options: StoreOptions,
    poison: Poison,
}

type Keyspaces = Arc<BTreeMap<Keyspace, fjall::Keyspace>>;

impl DiskStore {
    /// Opens or makes the store in `directory`. Only one process may: the caller holds the lock of
    /// the data directory. Cost: the journal is replayed.
    pub fn open(directory: &Path, options: StoreOptions) -> Result<Self> {
        refuse_strangers(directory)?;
        let open = || open_database(directory, &options);
        // Recovery asserts what it reads; a damaged directory must not end the process.
        let database = catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
            let message = format!("the row store in {} cannot be recovered", directory.display());
            Err(Error::Corrupt(message))
        })?;
        let mut keyspaces = BTreeMap::new();
        for name in database.list_keyspace_names() {
            let keyspace = keyspace_of(&name).ok_or_else(|| not_ours(directory))?;
            keyspaces.insert(keyspace, open_keyspace(&database, keyspace, &options)?);
        }
        for keyspace in [Keyspace::Meta, Keyspace::Log] {
            keyspaces.insert(keyspace, open_keyspace(&database, keyspace, &options)?);
        }
        let keyspaces = RwLock::new(Arc::new(keyspaces));
        Ok(Self { keyspaces, database, options, poison: Poison::default() })
    }

    fn try_commit(&self, batch: StoreBatch, sync: bool) -> Result<()> {
        let mut writes = self.database.batch().durability(Some(persist_mode(sync)));
        let mut touched = BTreeMap::new();
        for change in batch.changes {
            let keyspace = match touched.get(&change.keyspace) {
                Some(keyspace) => keyspace,
                None => touched.entry(change.keyspace).or_insert(self.keyspace(change.keyspace)?),
            };
            let key = match store_key(&change.key) {
                Cow::Owned(key) => key,
                Cow::Borrowed(_) => change.key,
            };
            match change.value {
                Some(value) => writes.insert(keyspace, key, value),
                None => writes.remove(keyspace, key),
            }
        }
        touched.values().try_for_each(|keyspace| self.wait_for_backlog(keyspace))?;
        writes.commit().map_err(store_error)
    }

    /// The keyspace, made if it is not there.
    fn keyspace(&self, keyspace: Keyspace) -> Result<fjall::Keyspace> {
        if let Some(open) = self.keyspaces.read().get(&keyspace) {
            return Ok(open.clone());
        }
        let mut keyspaces = self.keyspaces.write();
        if let Some(open) = keyspaces.get(&keyspace) {
            return Ok(open.clone());
        }
        let made = open_keyspace(&self.database, keyspace, &self.options)?;
        Arc::make_mut(&mut keyspaces).insert(keyspace, made.clone());
        Ok(made)
    }

    fn wait_for_backlog(&self, keyspace: &fjall::Keyspace) -> Result<()> {
        while keyspace.sealed_memtable_count() >= MAX_SEALED_MEMTABLES
            || keyspace.l0_table_count() >= MAX_FIRST_LEVEL_FILES
        {
            // Says whether the workers have failed, in which case the backlog never shrinks.
            self.database.persist(PersistMode::Buffer).map_err(store_error)?;
            std::thread::sleep(BACKLOG_POLL);
        }
        Ok(())
    }
}

impl Store for DiskStore {
    fn commit(&self, batch: StoreBatch, sync: bool) -> Result<()> {
        self.poison.check()?;
        refuse_oversized(&batch)?;
        if batch.is_empty() {
            return if sync { self.sync() } else { Ok(()) };
        }
        self.try_commit(batch, sync).map_err(|error| self.poison.set(error))
    }

    fn sync(&self) -> Result<()> {
        self.poison.check()?;
        let synced = self.database.persist(PersistMode::SyncData);
        synced.map_err(|error| self.poison.set(store_error(error)))
    }

    fn snapshot(&self) -> Arc<dyn StoreSnapshot> {
        let moment = self.database.snapshot();
        let keyspaces = Arc::clone(&self.keyspaces.read());
        Arc::new(DiskSnapshot { moment, keyspaces })
    }

    fn row_tables(&self) -> Vec<u32> {
        let table = |keyspace: &Keyspace| match *keyspace {
            Keyspace::Rows(table) => Some(table),
            Keyspace::Meta | Keyspace::Log => None,
        };
        self.keyspaces.read().keys().filter_map(table).collect()
    }

    fn drop_rows(&self, table: u32) -> Result<()> {
        self.poison.check()?;
        let removed = Arc::make_mut(&mut self.keyspaces.write()).remove(&Keyspace::Rows(table));
        let Some(removed) = removed else { return Ok(()) };
        let dropped = self.database.delete_keyspace(removed);
        dropped.map_err(|error| self.poison.set(store_error(error)))
    }

    fn flush(&self, deadline: Instant) -> Result<()> {
        self.poison.check()?;
        if self.database.write_buffer_size() < FLUSHED_BYTES {
            return Ok(());
        }
        let keyspaces = Arc::clone(&self.keyspaces.read());
        for keyspace in keyspaces.values() {
            keyspace.rotate_memtable().map_err(|error| self.poison.set(store_error(error)))?;
        }
        let is_done = |keyspace: &fjall::Keyspace| keyspace.sealed_memtable_count() == 0;
        while Instant::now() < deadline && !keyspaces.values().all(is_done) {
            std::thread::sleep(BACKLOG_POLL);
        }
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        // The journal is the only part that is asked of the file system, and it may just have
        // been removed; the figure without it is then the truer one.
        let journal = self.database.journal_disk_space().unwrap_or(0);
        let trees: u64 = self.keyspaces.read().values().map(fjall::Keyspace::disk_space).sum();
        journal.saturating_add(trees)
    }

    fn table_bytes(&self, table: u32) -> u64 {
        self.keyspaces.read().get(&Keyspace::Rows(table)).map_or(0, fjall::Keyspace::disk_space)
    }
}

/// The trees as they were, and the moment up to which their changes count.
struct DiskSnapshot {
    moment: fjall::Snapshot,
    keyspaces: Keyspaces,
}

impl StoreSnapshot for DiskSnapshot {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>> {
        let Some(keyspace) = self.keyspaces.get(&keyspace) else { return Ok(None) };
        self.moment.get(keyspace, store_key(key)).map_err(store_error)
    }

    fn scan(&self, keyspace: Keyspace, from: &[u8], visit: &mut EntryVisitor<'_>) -> Result<()> {
        let Some(keyspace) = self.keyspaces.get(&keyspace) else { return Ok(()) };
        for entry in self.moment.range(keyspace, store_key(from)..) {
            let (key, value) = entry.into_inner().map_err(store_error)?;
            if !visit(original_key(&key), &value)? {
                break;
            }
        }
        Ok(())
    }
}

fn refuse_strangers(directory: &Path) -> Result<()> {
    let mut entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Error::Io(format!("cannot read {}: {error}", directory.display())));
        }
    };
    let ours = entries.next().is_none() || directory.join(FJALL_MARKER).is_file();
    if ours { Ok(()) } else { Err(not_ours(directory)) }
}

fn not_ours(directory: &Path) -> Error {
    let directory = directory.display();
    let message = format!("{directory} is not a Remora row store: name an empty directory or one");
    Error::missing(Missing::Path, message)
}

fn open_database(directory: &Path, options: &StoreOptions) -> Result<Database> {
    let opened = Database::builder(directory)
        .cache_size(options.cache_bytes)
        .journal_compression(CompressionType::Lz4)
        .max_journaling_size(options.journal_bytes.max(MIN_JOURNAL_BYTES))
        .worker_threads(options.worker_threads.max(2))
        .open();
    opened.map_err(store_error)
}

fn open_keyspace(
    database: &Database,
    keyspace: Keyspace,
    options: &StoreOptions,
) -> Result<fjall::Keyspace> {
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
            // The index knows which keys there are, so a read almost never misses.
            .expect_point_read_hits(true)
    };
    database.keyspace(&name, create).map_err(store_error)
}

fn keyspace_of(name: &str) -> Option<Keyspace> {
    match name {
        "meta" => Some(Keyspace::Meta),
        "log" => Some(Keyspace::Log),
        _ => name.strip_prefix(ROWS_PREFIX)?.parse().ok().map(Keyspace::Rows),
    }
}

fn persist_mode(sync: bool) -> PersistMode {
    if sync { PersistMode::SyncData } else { PersistMode::Buffer }
}

/// Too long a key or value is the caller's mistake: it harms nothing that is stored.
fn refuse_oversized(batch: &StoreBatch) -> Result<()> {
    let fits = |change: &super::StoreChange| {
        let value = change.value.as_ref().map_or(0, Vec::len);
        change.key.len() < usize::from(u16::MAX) && u32::try_from(value).is_ok()
    };
    if batch.changes.iter().all(fits) {
        return Ok(());
    }
    let message = "a key is above 65,534 bytes or a value above 4 GiB: make the row smaller";
    Err(Error::request(crate::RequestPart::Row, message))
}

fn store_key(key: &[u8]) -> Cow<'_, [u8]> {
    if key.iter().any(|&byte| byte != 0) {
        return Cow::Borrowed(key);
    }
    Cow::Owned(vec![0; key.len() + 1])
}

fn original_key(stored: &[u8]) -> &[u8] {
    if stored.iter().any(|&byte| byte != 0) {
        return stored;
    }
    stored.get(1..).unwrap_or_default()
}

fn store_error(error: fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            Error::Io(format!("the row store: {error}"))
        }
        fjall::Error::Poisoned => {
            Error::Poisoned("an earlier write or flush of the row store failed".to_owned())
        }
        fjall::Error::Locked => {
            Error::Conflict("the row store is in use by another process".to_owned())
        }
        other => Error::Corrupt(format!("the row store: {other:?}")),
    }
}

#[cfg(test)]
mod tests;
