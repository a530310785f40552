//! The store on disk: fjall, with an LSM tree per keyspace and one journal for all of them.
//!
//! ```text
//! store/             fjall's own files, of its disk format 3
//! keyspaces          "meta", "log", "rows-N" for table number N, "small" for small tables (placement.rs)
//! key in a keyspace  the key itself; a key of n zero bytes and nothing else (n from 0) is stored as n + 1
//!                    zero bytes, because fjall has no empty key. The order of keys stays the same.
//! ```
//! A batch is one record of the journal, so after a crash it is there as a whole or not at all. Batches are numbered
//! without gaps; each stores its number in "meta" under "batches". Recovery replays at most about two journal files
//! of 64 MB: memtables are small, so none of them keeps journal files for long.
//!
//! **A full disk** is not damage: acknowledged data is synced, and the batch that met it is refused. But fjall writes
//! nothing more after a failed write, and may still buffer a part of that batch. So its database is reopened at once.
//! That replays the journal, and the number of the last batch tells whether the failed one is in it. If a flush or a
//! compaction fails meanwhile, the database is reopened again, with room or without; that removes what the failed one
//! wrote. A failed sync is different: the contents of the disk are unknown then, and the store takes no more writes.
//! fjall does not report why it stopped; if the disk is full, that was the reason.

mod directory;
mod error;
mod history;
mod opened;
mod placement;
mod room;
mod snapshots;
mod versions;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use fjall::{PersistMode, SeqNo};
use parking_lot::{Mutex, RwLock};

use self::{
    error::store_error, opened::Opened, placement::Keyspaces, snapshots::SnapshotSlots,
    versions::RowVersions,
};
use super::{
    Keyspace, MAX_KEY_BYTES, Store, StoreBatch, StoreChange, StoreSnapshot, poison::Poison,
};
use crate::{Error, Result, error::is_full};

/// Settings of the store on disk.
#[derive(Clone, Debug)]
pub(crate) struct StoreOptions {
    /// Bytes of the caches that all keyspaces share: half for blocks, half for rows.
    pub cache_bytes: u64,
    /// Bytes of a table's rows in memory (memtable) before they are flushed to a file.
    pub rows_memtable_bytes: u64,
    /// Bytes written to a table above which it gets a keyspace of its own.
    pub small_table_bytes: u64,
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
            small_table_bytes: 256 << 10,
            journal_bytes: MIN_JOURNAL_BYTES,
            worker_threads: 2,
        }
    }
}

/// The smallest journal limit that fjall accepts.
const MIN_JOURNAL_BYTES: u64 = 64 << 20;
/// If all memtables together are smaller, [`Store::flush`] does nothing: replaying them is faster.
const FLUSHED_BYTES: u64 = 1 << 20;
const SMALL_MEMTABLE_BYTES: u64 = 4 << 20;

/// fjall blocks a writer forever at 4 sealed memtables or 30 files of the first level if its workers have died. So
/// this store waits below those limits, where it can notice that and return an error.
const MAX_SEALED_MEMTABLES: usize = 3;
const MAX_FIRST_LEVEL_FILES: usize = 26;
const BACKLOG_POLL: Duration = Duration::from_millis(2);

/// Pauses between reopenings of a database that keeps stopping on a full disk: readers wait during each.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// The store on disk.
pub(crate) struct DiskStore {
    /// The open database; `None` if it could not be reopened.
    opened: RwLock<Option<Opened>>,
    directory: PathBuf,
    options: StoreOptions,
    poison: Poison,
    /// Why no writes are taken for now: the disk is full.
    refusal: Mutex<Option<String>>,
    /// The writer's lock. It is held until it is known whether a failed batch is in the journal.
    writing: Mutex<Writing>,
    slots: SnapshotSlots,
    /// Sequence number of the last change of rows. Older snapshots do not show the current rows.
    last_rows: AtomicU64,
    /// The sequence number of the last drop of a small table's rows, which is done without the lock
    /// `writing`.
    last_drop: AtomicU64,
    /// How often the store was reopened, or rows were dropped to make room.
    reopen_count: AtomicU64,
    /// Tables whose rows could not be dropped yet because the disk is full.
    undropped: Mutex<BTreeSet<u32>>,
}

/// State behind the writer's lock.
struct Writing {
    /// The number of the last committed batch.
    batches: u64,
    /// When a stopped database is reopened even if the disk is still full, and the pause before the
    /// time after that.
    next_reopening: Option<Instant>,
    pause: Duration,
    /// Bytes written since old versions were last forgotten.
    written_bytes: u64,
}

/// A batch that may or may not be in the journal.
struct InDoubtBatch {
    number: u64,
    has_rows: bool,
    /// [`DiskStore::last_rows`] before the batch.
    last_rows: SeqNo,
}

impl DiskStore {
    /// Opens or creates the store in `directory`. The caller holds the lock of the data directory, because only one
    /// process may open it. Cost: the journal is replayed.
    pub fn open(directory: &Path, options: StoreOptions) -> Result<Self> {
        let opened = Opened::open(directory, &options)?;
        let batches = opened.batches()?;
        let slots = SnapshotSlots::new(RowVersions::new(options.cache_bytes / 2));
        Ok(Self {
            last_rows: AtomicU64::new(opened.database.visible_seqno()),
            last_drop: AtomicU64::new(0),
            opened: RwLock::new(Some(opened)),
            directory: directory.to_owned(),
            options,
            poison: Poison::default(),
            refusal: Mutex::default(),
            writing: Mutex::new(Writing {
                batches,
                next_reopening: None,
                pause: FIRST_PAUSE,
                written_bytes: 0,
            }),
            slots,
            reopen_count: AtomicU64::new(0),
            undropped: Mutex::default(),
        })
    }

    /// Returns an error if the store takes no writes.
    fn check(&self) -> Result<()> {
        self.poison.check()?;
        self.refusal().map_or(Ok(()), |reason| Err(Error::Full(reason)))
    }

    /// Calls `run` with the open database.
    fn with<T>(&self, run: impl FnOnce(&Opened) -> T) -> Result<T> {
        match &*self.opened.read_recursive() {
            Some(opened) => Ok(run(opened)),
            // After a full disk, opening is tried again later.
            None => Err(self.refusal().map_or_else(not_opened, Error::Full)),
        }
    }

    /// Writes the batch to the operating system; with `sync` it is durable on return.
    fn write(&self, mut batch: StoreBatch, sync: bool) -> Result<()> {
        let ready = self.wait_for_backlog(&batch)?;
        // Wait for the current writer: it may be finding out why fjall has stopped.
        let mut writing = self.writing.lock();
        ready.map_err(|error| self.failed(error))?;
        // Another thread's batch may have met the full disk meanwhile.
        self.check()?;
        let asked = InDoubtBatch {
            number: writing.batches + 1,
            has_rows: batch.changes.iter().any(|one| matches!(one.keyspace, Keyspace::Rows(_))),
            last_rows: self.last_rows.load(Ordering::Acquire),
        };
        batch.put(Keyspace::Meta, opened::BATCHES, asked.number.to_le_bytes());
        writing.written_bytes += batch.byte_count();
        let written = self.with(|opened| {
            opened.write(batch, &self.options).map_err(|error| self.failed(error))?;
            if asked.has_rows {
                self.last_rows.fetch_max(opened.database.visible_seqno(), Ordering::AcqRel);
            }
            if sync { self.persist(opened) } else { Ok(()) }
        })?;
        match written {
            Err(Error::Full(reason)) => {
                // The reopening syncs what is in the journal.
                let there = self.reopen(Some(&asked)).map_err(|error| self.end(error))?;
                if there < asked.number {
                    return Err(Error::Full(reason));
                }
            }
            other => other?,
        }
        writing.batches = asked.number;
        if writing.written_bytes >= self.options.rows_memtable_bytes && self.forget_versions() {
            writing.written_bytes = 0;
        }
        Ok(())
    }

    /// Waits until fjall can take the changes of a batch. No lock is held between two looks.
    fn wait_for_backlog(&self, batch: &StoreBatch) -> Result<fjall::Result<()>> {
        let touched: BTreeSet<Keyspace> = batch.changes.iter().map(|one| one.keyspace).collect();
        loop {
            match self.with(|opened| opened.is_ready(&touched, &self.options))? {
                Ok(false) => std::thread::sleep(BACKLOG_POLL),
                ready => return Ok(ready.map(drop)),
            }
        }
    }

    /// Frees the memtables that no snapshot reads. Returns false if the database is in use; the
    /// caller tries again after the next batch.
    fn forget_versions(&self) -> bool {
        // The lock excludes opening a snapshot, and reading without one.
        let Some(opened) = self.opened.try_write() else { return false };
        let snapshots = self.slots.held();
        let Some(keyspaces) = opened.as_ref().map(Opened::keyspaces) else { return true };
        let own = keyspaces.own.iter().map(|(keyspace, tree)| (Some(*keyspace), tree));
        for (keyspace, tree) in own.chain(keyspaces.small.iter().map(|tree| (None, tree))) {
            // A snapshot cannot read a tree that was created after it.
            let can_read = |other: &Keyspaces| keyspaces.shares(keyspace, other);
            let readers = snapshots.iter().filter(|(_, keyspaces)| can_read(keyspaces));
            let mut numbers: Vec<SeqNo> = readers.map(|(number, _)| *number).collect();
            numbers.dedup();
            history::forget_versions(tree, &numbers);
        }
        true
    }

    /// Syncs the journal. Everything is already written to the operating system, so an error is one of the sync
    /// itself, unless fjall stopped before.
    fn persist(&self, opened: &Opened) -> Result<()> {
        opened.database.persist(PersistMode::SyncData).map_err(|error| match error {
            fjall::Error::Poisoned => self.failed(error),
            other => self.poison.set(store_error(other)),
        })
    }

    /// Translates the error of a failed write. A full disk makes the store refuse writes until
    /// there is room; any other error, for good.
    fn failed(&self, error: fjall::Error) -> Error {
        let cause = match &error {
            fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error))
                if is_full(error) =>
            {
                error.to_string()
            }
            // A flush, a compaction or the sync before it failed, and fjall does not say why. On a full disk its
            // leftovers stay until the database is reopened. Once the disk is known to be full, every such stop is
            // treated as one.
            fjall::Error::Poisoned
                if self.refusal().is_some() || room::is_used_up(&self.directory) =>
            {
                "rows in memory could not be written to it".to_owned()
            }
            _ => return self.poison.set(store_error(error)),
        };
        self.refuse(&cause)
    }

    fn refuse(&self, cause: &str) -> Error {
        let needed = room::NEEDED_BYTES >> 20;
        let reason = format!(
            "the disk is full ({cause}): nothing is written until {needed} MiB are free on the disk \
             of the data directory; reads continue"
        );
        let mut refusal = self.refusal.lock();
        if refusal.is_none() {
            tracing::error!(directory = %self.directory.display(), "{reason}");
        }
        Error::Full(refusal.get_or_insert(reason).clone())
    }

    /// Reopens the database; `writing` must be held. What fjall has not written by then is never written. Returns the
    /// number of the last batch that is there. Readers keep their snapshot if no row has changed since, not even by
    /// the batch `asked`.
    fn reopen(&self, asked: Option<&InDoubtBatch>) -> Result<u64> {
        let mut opened = self.opened.write();
        let last_rows = self.last_rows.load(Ordering::Acquire);
        let open = || {
            if opened.take().is_some_and(|opened| !opened.close(&self.directory)) {
                return Err(Error::Io("a thread of the row store did not end in time".to_owned()));
            }
            let opened = Opened::open(&self.directory, &self.options)?;
            let (there, now) = (opened.batches()?, opened.database.visible_seqno());
            let oldest = match asked {
                None => last_rows,
                Some(asked) if asked.has_rows && there >= asked.number => SeqNo::MAX,
                Some(asked) => asked.last_rows.max(self.last_drop.load(Ordering::Acquire)),
            };
            // Before any reader finds its snapshot revoked, so that it can tell why.
            self.reopen_count.fetch_add(1, Ordering::AcqRel);
            Ok((opened, oldest, (there, now)))
        };
        let unended = || Error::Busy("a read of the row store did not end in time".to_owned());
        let (again, (there, now)) = self.slots.exchange(open).ok_or_else(unended)??;
        self.last_rows.store(now, Ordering::Release);
        self.last_drop.store(0, Ordering::Release);
        *opened = Some(again);
        Ok(there)
    }

    /// Ends writing, because it is unknown whether a batch is in the journal. Whatever kept the
    /// database from being reopened, the error must not invite the caller to retry.
    fn end(&self, error: Error) -> Error {
        self.poison.set(match error {
            Error::Full(what) | Error::Busy(what) => Error::Poisoned(what),
            other => other,
        })
    }

    /// Whether fjall has stopped writing.
    fn is_stopped(&self) -> bool {
        let persist = |opened: &Opened| opened.database.persist(PersistMode::Buffer);
        !matches!(self.with(persist), Ok(Ok(())))
    }

    /// Reopens a stopped database: at once if there is room, otherwise after growing pauses.
    fn reopen_stopped(&self, writing: &mut Writing) -> Result<()> {
        let is_due = writing.next_reopening.is_none_or(|at| at <= Instant::now());
        if !self.is_stopped() || !(is_due || room::has_room(&self.directory)) {
            return Ok(());
        }
        writing.next_reopening = Some(Instant::now() + writing.pause);
        writing.pause = writing.pause.saturating_mul(2).min(LAST_PAUSE);
        match self.reopen(None) {
            // Reopening is tried again later.
            Ok(_) | Err(Error::Full(_) | Error::Busy(_)) => Ok(()),
            Err(error) => Err(self.poison.set(error)),
        }
    }

    /// Drops a table's rows; returns whether it had any. Its own keyspace goes first: while a table is marked as
    /// small, that keyspace is empty.
    fn drop_where_they_are(&self, opened: &Opened, table: u32) -> fjall::Result<bool> {
        let had_own = opened.drop_own(table, &self.options)?;
        // This writes to the journal and frees nothing: on a full disk it would stop fjall again.
        let is_full = || self.refusal().is_some() && !room::has_room(&self.directory);
        if opened.is_small(table) && is_full() {
            self.undropped.lock().insert(table);
            return Ok(had_own);
        }
        let note = |at: SeqNo| {
            self.last_rows.fetch_max(at, Ordering::AcqRel);
            self.last_drop.fetch_max(at, Ordering::AcqRel);
        };
        // After a reopening an older snapshot must not be renewed, because it would lack these rows. This also holds
        // if it is unknown whether they were dropped. A database that had stopped before wrote nothing.
        let was_small = opened.drop_small(table).inspect_err(|error| {
            if !matches!(error, fjall::Error::Poisoned) {
                note(SeqNo::MAX);
            }
        })?;
        if was_small {
            note(opened.database.visible_seqno());
        }
        Ok(had_own || was_small)
    }

    /// Drops what could not be dropped earlier.
    fn drop_rest(&self) -> Result<()> {
        let undropped = std::mem::take(&mut *self.undropped.lock());
        undropped.into_iter().try_for_each(|table| self.drop_rows(table))
    }
}

fn not_opened() -> Error {
    Error::Poisoned("the row store could not be reopened".to_owned())
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        // Otherwise a reader's snapshot would keep the directory locked.
        self.slots.close();
    }
}

impl Store for DiskStore {
    fn commit(&self, batch: StoreBatch, sync: bool) -> Result<()> {
        self.check()?;
        refuse_oversized(&batch)?;
        match batch.is_empty() {
            true if sync => self.sync(),
            true => Ok(()),
            false => self.write(batch, sync),
        }
    }

    fn sync(&self) -> Result<()> {
        self.poison.check()?;
        let _writing = self.writing.lock();
        self.with(|opened| self.persist(opened))?
    }

    fn snapshot(&self) -> Arc<dyn StoreSnapshot> {
        let opened = self.opened.read_recursive();
        self.slots.hold(opened.as_ref().map(Opened::snapshot))
    }

    fn row_tables(&self) -> Vec<u32> {
        let tables = |opened: &Opened| opened.row_tables().into_iter().collect();
        self.with(tables).unwrap_or_default()
    }

    fn drop_rows(&self, table: u32) -> Result<()> {
        self.poison.check()?;
        // Allowed on a full disk too, because it makes room.
        let dropped = self.with(|opened| self.drop_where_they_are(opened, table));
        let dropped = dropped.and_then(|dropped| dropped.map_err(|error| self.failed(error)));
        match dropped {
            Err(Error::Full(error)) => {
                tracing::warn!(table, %error, "the rows of a dropped table cannot be removed yet");
                self.undropped.lock().insert(table);
                Ok(())
            }
            Ok(true) if self.refusal().is_some() => {
                // The files are deleted once the last snapshot that uses them is gone.
                self.reopen_count.fetch_add(1, Ordering::AcqRel);
                Ok(())
            }
            dropped => dropped.map(|_| ()),
        }
    }

    fn flush(&self, deadline: Instant) -> Result<()> {
        self.check()?;
        self.with(|opened| {
            if opened.database.write_buffer_size() < FLUSHED_BYTES {
                return Ok(());
            }
            let keyspaces = opened.keyspaces();
            for keyspace in keyspaces.trees() {
                keyspace.rotate_memtable().map_err(|error| self.failed(error))?;
            }
            let is_done = |keyspace: &fjall::Keyspace| keyspace.sealed_memtable_count() == 0;
            while Instant::now() < deadline && !keyspaces.trees().all(is_done) {
                std::thread::sleep(BACKLOG_POLL);
            }
            Ok(())
        })?
    }

    fn disk_bytes(&self) -> u64 {
        let bytes = self.with(|opened| {
            // The journal's size is read from the file system, and a journal file may just have been removed; then it
            // counts as 0.
            let journal = opened.database.journal_disk_space().unwrap_or(0);
            let trees: u64 = opened.keyspaces().trees().map(fjall::Keyspace::disk_space).sum();
            journal.saturating_add(trees)
        });
        bytes.unwrap_or(0)
    }

    fn table_bytes(&self, table: u32) -> u64 {
        self.with(|opened| opened.table_bytes(table)).unwrap_or(0)
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }

    fn resume(&self) -> Result<()> {
        self.poison.check()?;
        let Some(reason) = self.refusal() else { return Ok(()) };
        let mut writing = self.writing.lock();
        // Even without room: reopening and dropping may make some.
        self.reopen_stopped(&mut writing)?;
        self.drop_rest()?;
        if self.is_stopped() || !room::has_room(&self.directory) {
            return Err(Error::Full(reason));
        }
        (writing.next_reopening, writing.pause) = (None, FIRST_PAUSE);
        *self.refusal.lock() = None;
        tracing::info!(directory = %self.directory.display(), "the disk has room again: writing continues");
        Ok(())
    }

    fn reopen_count(&self) -> u64 {
        self.reopen_count.load(Ordering::Acquire)
    }
}

/// Refuses keys and values that are too long. It is the caller's error and poisons nothing.
fn refuse_oversized(batch: &StoreBatch) -> Result<()> {
    let fits = |change: &StoreChange| {
        let value = change.value.as_deref().map_or(0, <[u8]>::len);
        change.key.len() <= MAX_KEY_BYTES && u32::try_from(value).is_ok()
    };
    if batch.changes.iter().all(fits) {
        return Ok(());
    }
    let message = format!(
        "a key is above {MAX_KEY_BYTES} bytes or a value above 4 GiB: make the row smaller"
    );
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

#[cfg(test)]
mod tests;
