//! fjall's database and its keyspaces, opened.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use fjall::{
    AbstractTree, CompressionType, Database, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode,
    config::{
        BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy,
        FilterPolicyEntry, PartitioningPolicy, RestartIntervalPolicy,
    },
};
use parking_lot::RwLock;

use super::{
    BACKLOG_POLL, MAX_FIRST_LEVEL_FILES, MAX_SEALED_MEMTABLES, MIN_JOURNAL_BYTES,
    SMALL_MEMTABLE_BYTES, StoreOptions,
    directory::{self, JOURNAL, not_ours},
    error::store_error,
    placement::{Keyspaces, SMALL, SmallTables},
};
use crate::{
    Error, Result,
    error::is_full,
    storage::store::{Keyspace, StoreBatch},
};

const ROW_BLOCK_BYTES: u32 = 4 << 10;
const SMALL_BLOCK_BYTES: u32 = 4 << 10;
/// One in this many keys of a block is stored whole; the others store only their difference from
/// the previous key.
const WHOLE_KEYS: u8 = 4;
/// Bits per key in the bloom filters. Filters of files that were written in key order, for example
/// by a copy, stay in memory.
const FILTER_BITS: f32 = 8.0;
const META: &str = "meta";
const LOG: &str = "log";
const ROWS_PREFIX: &str = "rows-";
/// The key in "meta" of the last batch's number.
pub(super) const BATCHES: &[u8] = b"batches";
/// How long the threads of a dropped database may take to close its journal.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A snapshot: the keyspaces, and the sequence number up to which their changes are visible.
pub(super) struct KeyspaceSnapshot {
    pub at: fjall::Snapshot,
    pub keyspaces: Arc<Keyspaces>,
}

/// An open database. Dropping it closes it, unless a snapshot of it is held.
pub(super) struct Opened {
    // Declared before the database, which waits for its keyspaces when it is dropped.
    keyspaces: RwLock<Arc<Keyspaces>>,
    small: SmallTables,
    pub database: Database,
}

impl Opened {
    /// Opens or creates the database in `directory`. Cost: the journal is replayed.
    pub fn open(directory: &Path, options: &StoreOptions) -> Result<Self> {
        directory::examine(directory)?;
        let open = || open_database(directory, options);
        // fjall's recovery panics on damaged data. That must not end the process.
        let database = catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
            Err(Error::Corrupt("the row store cannot be recovered".to_owned()))
        });
        let database = database.map_err(|error| in_directory(error, directory))?;
        let mut own = BTreeMap::new();
        for name in database.list_keyspace_names().iter().filter(|name| &***name != SMALL) {
            let keyspace = keyspace_of(name).ok_or_else(|| not_ours(directory))?;
            let opened = open_keyspace(&database, keyspace, options);
            let opened = opened.map_err(|error| in_directory(store_error(error), directory))?;
            own.insert(keyspace, opened);
        }
        let log = open_keyspace(&database, Keyspace::Log, options).map_err(store_error)?;
        own.insert(Keyspace::Log, log);
        let meta = open_keyspace(&database, Keyspace::Meta, options).map_err(store_error)?;
        let tables = SmallTables::read(&database, &meta);
        let tables = tables.map_err(|error| in_directory(error, directory))?;
        own.insert(Keyspace::Meta, meta);
        // A keyspace that was created for a grown table, but whose batch did not come. The rows are
        // still in [`SMALL`].
        let is_unfilled = |keyspace: &Keyspace| matches!(*keyspace, Keyspace::Rows(table) if tables.contains(table));
        own.retain(|keyspace, _| !is_unfilled(keyspace));
        // Creating the keyspace now would hide that rows are lost.
        if !tables.is_empty() && !database.keyspace_exists(SMALL) {
            let lost = Error::Corrupt("the rows of small tables are missing".to_owned());
            return Err(in_directory(lost, directory));
        }
        // The keyspace is created with the first rows for it, so that an empty database stays
        // small.
        let small = match database.keyspace_exists(SMALL) {
            true => Some(open_small(&database, options).map_err(store_error)?),
            false => None,
        };
        let keyspaces = RwLock::new(Arc::new(Keyspaces { own, small }));
        Ok(Self { keyspaces, small: tables, database })
    }

    /// The state after the last commit.
    pub fn snapshot(&self) -> KeyspaceSnapshot {
        // No batch may move rows between keyspaces between these two steps.
        let keyspaces = self.keyspaces.read();
        KeyspaceSnapshot { at: self.database.snapshot(), keyspaces: Arc::clone(&keyspaces) }
    }

    /// The current keyspaces.
    pub fn keyspaces(&self) -> Arc<Keyspaces> {
        Arc::clone(&self.keyspaces.read())
    }

    /// The number of the last batch.
    pub fn batches(&self) -> Result<u64> {
        let keyspaces = self.keyspaces();
        let Some(meta) = keyspaces.own.get(&Keyspace::Meta) else { return Ok(0) };
        let Some(stored) = meta.get(BATCHES).map_err(store_error)? else { return Ok(0) };
        let number = stored.as_ref().try_into().map(u64::from_le_bytes);
        number.map_err(|_| Error::Corrupt("the number of the row store's last batch".to_owned()))
    }

    /// The numbers of tables that have rows.
    pub fn row_tables(&self) -> BTreeSet<u32> {
        let mut tables = self.small.numbers();
        tables.extend(self.keyspaces().own.keys().filter_map(|keyspace| match *keyspace {
            Keyspace::Rows(table) => Some(table),
            Keyspace::Meta | Keyspace::Log => None,
        }));
        tables
    }

    /// Bytes of a table's rows: the files of its keyspace, or for a small table the bytes written to it.
    pub fn table_bytes(&self, table: u32) -> u64 {
        let keyspaces = self.keyspaces();
        match keyspaces.own.get(&Keyspace::Rows(table)) {
            Some(own) => own.disk_space(),
            None => self.small.bytes(&self.database, &keyspaces, table),
        }
    }

    /// Drops the keyspace of a table; false if it has none. Its files are deleted with the last snapshot that uses
    /// them.
    pub fn drop_own(&self, table: u32, options: &StoreOptions) -> fjall::Result<bool> {
        let rows = Keyspace::Rows(table);
        // A keyspace that was created for rows which never came is not in `keyspaces`.
        if !self.database.keyspace_exists(&name_of(rows)) {
            return Ok(false);
        }
        self.database.delete_keyspace(open_keyspace(&self.database, rows, options)?)?;
        Arc::make_mut(&mut self.keyspaces.write()).own.remove(&rows);
        Ok(true)
    }

    /// Whether the table is a small one.
    pub fn is_small(&self, table: u32) -> bool {
        self.small.contains(table)
    }

    /// Drops the rows of a small table; false if it is none.
    pub fn drop_small(&self, table: u32) -> fjall::Result<bool> {
        if !self.small.contains(table) {
            return Ok(false);
        }
        let keyspaces = self.keyspaces();
        for tree in keyspaces.own.get(&Keyspace::Meta).into_iter().chain(&keyspaces.small) {
            while !self.is_tree_ready(tree)? {
                std::thread::sleep(BACKLOG_POLL);
            }
        }
        let mut writes = self.database.batch().durability(Some(PersistMode::Buffer));
        self.small.drop_rows(&self.database, &keyspaces, table, &mut writes);
        writes.commit()?;
        self.small.dropped(table);
        Ok(true)
    }

    /// Whether fjall can take changes of these keyspaces now.
    pub fn is_ready(
        &self,
        touched: &BTreeSet<Keyspace>,
        options: &StoreOptions,
    ) -> fjall::Result<bool> {
        let keyspaces = self.keyspaces();
        for &keyspace in touched {
            let Some(place) = keyspaces.place(keyspace) else { continue };
            // fjall leaves this to a worker. While all workers compact, the memtable would grow
            // beyond its limit.
            let most = memtable_bytes_of(keyspace, options);
            if place.tree.tree.active_memtable().size() > most {
                place.tree.rotate_memtable()?;
            }
            if !self.is_tree_ready(place.tree)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_tree_ready(&self, tree: &fjall::Keyspace) -> fjall::Result<bool> {
        let is_ready = tree.sealed_memtable_count() < MAX_SEALED_MEMTABLES
            && tree.l0_table_count() < MAX_FIRST_LEVEL_FILES;
        if !is_ready {
            // Returns an error if the workers have failed: then the backlog never shrinks.
            self.database.persist(PersistMode::Buffer)?;
        }
        Ok(is_ready)
    }

    /// Writes the batch to the operating system. One thread at a time.
    pub fn write(&self, batch: StoreBatch, options: &StoreOptions) -> fjall::Result<()> {
        let before = self.keyspaces();
        let bytes = options.small_table_bytes;
        let moves = self.small.moves(&self.database, &before, &batch, bytes);
        let before = if moves.has_small() { self.with_small(options)? } else { before };
        let mut writes = self.database.batch().durability(Some(PersistMode::Buffer));
        if moves.grown.is_empty() {
            moves.write(&mut writes, &before, &before);
            fill(&mut writes, batch, &before);
            writes.commit()?;
        } else {
            let mut made = Vec::with_capacity(moves.grown.len());
            for grown in &moves.grown {
                let rows = Keyspace::Rows(grown.table);
                made.push((rows, open_keyspace(&self.database, rows, options)?));
            }
            // A snapshot must be from before or after the whole move.
            let mut keyspaces = self.keyspaces.write();
            let mut after = Keyspaces::clone(&keyspaces);
            after.own.extend(made);
            moves.write(&mut writes, &before, &after);
            fill(&mut writes, batch, &after);
            writes.commit()?;
            *keyspaces = Arc::new(after);
        }
        self.small.moved(moves);
        Ok(())
    }

    /// The keyspaces, including the one of small tables, which is created if it is missing.
    fn with_small(&self, options: &StoreOptions) -> fjall::Result<Arc<Keyspaces>> {
        let keyspaces = self.keyspaces();
        if keyspaces.small.is_some() {
            return Ok(keyspaces);
        }
        let small = open_small(&self.database, options)?;
        let mut keyspaces = self.keyspaces.write();
        Arc::make_mut(&mut keyspaces).small = Some(small);
        Ok(Arc::clone(&keyspaces))
    }

    /// Closes the database, whose snapshots are all revoked. False if one of its threads still has the journal open:
    /// its last writes must not mix with those of a reopened database.
    pub fn close(self, directory: &Path) -> bool {
        drop(self);
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        while is_journal_open(directory) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(BACKLOG_POLL);
        }
        true
    }
}

/// Adds the changes of a batch to their keyspaces.
fn fill(writes: &mut OwnedWriteBatch, batch: StoreBatch, keyspaces: &Keyspaces) {
    for change in batch.changes {
        let Some(place) = keyspaces.place(change.keyspace) else { continue };
        let key = match place.key(&change.key) {
            Cow::Owned(key) => key.into(),
            Cow::Borrowed(_) => change.key,
        };
        match change.value {
            Some(value) => writes.insert(place.tree, key, value),
            None => writes.remove(place.tree, key),
        }
    }
}

/// Whether this process has a journal of the directory open. If the system cannot tell, it waits a second: fjall's
/// threads end shortly after the database.
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
        .cache_size(options.cache_bytes / 2)
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
    let block_bytes = match keyspace {
        Keyspace::Meta | Keyspace::Log => SMALL_BLOCK_BYTES,
        Keyspace::Rows(_) => ROW_BLOCK_BYTES,
    };
    let memtable_bytes = memtable_bytes_of(keyspace, options);
    open_tree(database, &name_of(keyspace), memtable_bytes, block_bytes)
}

fn memtable_bytes_of(keyspace: Keyspace, options: &StoreOptions) -> u64 {
    match keyspace {
        Keyspace::Meta | Keyspace::Log => SMALL_MEMTABLE_BYTES.min(options.rows_memtable_bytes),
        Keyspace::Rows(_) => options.rows_memtable_bytes,
    }
}

fn open_small(database: &Database, options: &StoreOptions) -> fjall::Result<fjall::Keyspace> {
    open_tree(database, SMALL, options.rows_memtable_bytes, ROW_BLOCK_BYTES)
}

fn open_tree(
    database: &Database,
    name: &str,
    memtable_bytes: u64,
    block_bytes: u32,
) -> fjall::Result<fjall::Keyspace> {
    let create = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(memtable_bytes)
            .data_block_size_policy(BlockSizePolicy::all(block_bytes))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            // The block index of a table of 64 MiB with small blocks takes a megabyte, of which a read needs one
            // block. So only that of the first two levels stays in memory.
            .index_block_partitioning_policy(PartitioningPolicy::new([false, false, true]))
            .filter_block_partitioning_policy(PartitioningPolicy::new([false, true]))
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
                BloomConstructionPolicy::BitsPerKey(FILTER_BITS),
            )))
            // A read decodes the keys from the last whole key up to its own.
            .data_block_restart_interval_policy(RestartIntervalPolicy::all(WHOLE_KEYS))
            // The segments know which keys exist, so a read almost never misses.
            .expect_point_read_hits(true)
    };
    database.keyspace(name, create)
}

fn name_of(keyspace: Keyspace) -> String {
    match keyspace {
        Keyspace::Meta => META.to_owned(),
        Keyspace::Log => LOG.to_owned(),
        Keyspace::Rows(table) => format!("{ROWS_PREFIX}{table}"),
    }
}

fn keyspace_of(name: &str) -> Option<Keyspace> {
    match name {
        META => Some(Keyspace::Meta),
        LOG => Some(Keyspace::Log),
        _ => name.strip_prefix(ROWS_PREFIX)?.parse().ok().map(Keyspace::Rows),
    }
}

/// Adds the directory to an error of damage.
fn in_directory(error: Error, directory: &Path) -> Error {
    match error {
        Error::Corrupt(what) => Error::Corrupt(format!("{what}, in {}", directory.display())),
        other => other,
    }
}
