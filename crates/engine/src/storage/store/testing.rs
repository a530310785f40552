//! An in-memory store for tests that fails on request.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
    time::Instant,
};

use parking_lot::Mutex;

use super::{
    EntryVisitor, Keyspace, Store, StoreBatch, StoreSnapshot, StoredBytes, poison::Poison,
};
use crate::{Error, Result};

type Entries = BTreeMap<(Keyspace, Vec<u8>), StoredBytes>;

/// Faults to inject, counted from 0 over the life of the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// This commit fails and leaves nothing.
    pub fail_commit: Option<u64>,
    /// This sync fails, alone or within a commit; everything written since the last one is lost.
    pub fail_sync: Option<u64>,
    /// A commit that would exceed this many bytes of keys and values meets a full disk: the store is reopened, and
    /// snapshots older than the last change of rows are revoked.
    pub capacity_bytes: Option<usize>,
    /// Each commit meets a full disk, but is in the journal.
    pub open_at_commits: bool,
}

/// A store in memory.
#[derive(Default)]
pub(crate) struct FaultyStore {
    state: Arc<Mutex<State>>,
    poison: Poison,
}

#[derive(Default)]
struct State {
    visible: Arc<Entries>,
    durable: Arc<Entries>,
    faults: Faults,
    commits: u64,
    syncs: u64,
    /// Snapshot reads until the store is reopened, as if by another thread.
    reads_left: Option<u64>,
    /// The number of row changes, and that number at the time of the oldest snapshot that is not revoked.
    rows: u64,
    oldest: u64,
    reopen_count: u64,
    refusal: Option<String>,
}

impl FaultyStore {
    /// An empty store with these faults.
    pub fn new(faults: Faults) -> Self {
        let store = Self::default();
        store.state.lock().faults = faults;
        store
    }

    /// Sets the size of the disk.
    pub fn limit(&self, capacity_bytes: usize) {
        self.state.lock().faults.capacity_bytes = Some(capacity_bytes);
    }

    /// Reopens the store after this many reads.
    pub fn open_at_read(&self, reads: u64) {
        self.state.lock().reads_left = Some(reads);
    }

    /// Frees room on the disk, so that all writes are taken again.
    pub fn free_room(&self) {
        self.state.lock().faults.capacity_bytes = None;
    }

    /// The store after a power loss: what was synced, without faults.
    pub fn after_power_loss(&self) -> Self {
        let durable = Arc::clone(&self.state.lock().durable);
        let state = State { visible: Arc::clone(&durable), durable, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), poison: Poison::default() }
    }
}

impl State {
    fn commit(&mut self, batch: StoreBatch, sync: bool) -> Result<()> {
        if let Some(reason) = &self.refusal {
            return Err(Error::Full(reason.clone()));
        }
        self.commits += 1;
        if self.faults.fail_commit == Some(self.commits - 1) {
            return Err(Error::Io("a commit was made to fail".to_owned()));
        }
        let mut next = Entries::clone(&self.visible);
        let has_rows = batch.changes.iter().any(|one| matches!(one.keyspace, Keyspace::Rows(_)));
        for change in batch.changes {
            let key = (change.keyspace, change.key.to_vec());
            match change.value {
                Some(value) => _ = next.insert(key, value),
                None => _ = next.remove(&key),
            }
        }
        let bytes: usize = next.iter().map(|((_, key), value)| key.len() + value.len()).sum();
        if self.faults.capacity_bytes.is_some_and(|capacity| bytes > capacity) {
            let reason = "no space left on device".to_owned();
            self.refusal = Some(reason.clone());
            self.reopen();
            return Err(Error::Full(reason));
        }
        self.rows += u64::from(has_rows);
        if self.faults.open_at_commits {
            self.reopen();
        }
        let before = std::mem::replace(&mut self.visible, Arc::new(next));
        if !sync {
            return Ok(());
        }
        // A batch whose sync fails never becomes visible.
        self.sync().inspect_err(|_| self.visible = before)
    }

    fn reopen(&mut self) {
        (self.oldest, self.reopen_count) = (self.rows, self.reopen_count + 1);
    }

    /// A read of a snapshot taken after this many row changes.
    fn read(&mut self, taken: u64) -> Result<()> {
        let left = self.reads_left.take();
        self.reads_left = left.and_then(|left| left.checked_sub(1));
        if left == Some(0) {
            self.rows += 1;
            self.reopen();
        }
        match taken < self.oldest {
            true => Err(Error::Conflict("this moment of the store is gone".to_owned())),
            false => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.syncs += 1;
        if self.faults.fail_sync == Some(self.syncs - 1) {
            return Err(Error::Io("a sync was made to fail".to_owned()));
        }
        self.durable = Arc::clone(&self.visible);
        Ok(())
    }
}

impl Store for FaultyStore {
    fn commit(&self, batch: StoreBatch, sync: bool) -> Result<()> {
        self.poison.check()?;
        self.state.lock().commit(batch, sync).map_err(|error| match error {
            full @ Error::Full(_) => full,
            other => self.poison.set(other),
        })
    }

    fn sync(&self) -> Result<()> {
        self.poison.check()?;
        self.state.lock().sync().map_err(|error| self.poison.set(error))
    }

    fn refusal(&self) -> Option<String> {
        self.state.lock().refusal.clone()
    }

    fn resume(&self) -> Result<()> {
        let mut state = self.state.lock();
        if let (Some(_), Some(reason)) = (state.faults.capacity_bytes, &state.refusal) {
            return Err(Error::Full(reason.clone()));
        }
        state.refusal = None;
        Ok(())
    }

    fn flush(&self, _deadline: Instant) -> Result<()> {
        self.poison.check()
    }

    fn snapshot(&self) -> Arc<dyn StoreSnapshot> {
        let state = self.state.lock();
        let (entries, taken) = (Arc::clone(&state.visible), state.rows);
        Arc::new(MemorySnapshot { entries, taken, state: Arc::clone(&self.state) })
    }

    fn reopen_count(&self) -> u64 {
        self.state.lock().reopen_count
    }

    fn row_tables(&self) -> Vec<u32> {
        let table = |key: &(Keyspace, Vec<u8>)| match key.0 {
            Keyspace::Rows(table) => Some(table),
            Keyspace::Meta | Keyspace::Log => None,
        };
        let tables: BTreeSet<u32> = self.state.lock().visible.keys().filter_map(table).collect();
        tables.into_iter().collect()
    }

    fn drop_rows(&self, table: u32) -> Result<()> {
        self.poison.check()?;
        let mut state = self.state.lock();
        Arc::make_mut(&mut state.visible).retain(|key, _| key.0 != Keyspace::Rows(table));
        Arc::make_mut(&mut state.durable).retain(|key, _| key.0 != Keyspace::Rows(table));
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        let visible = Arc::clone(&self.state.lock().visible);
        visible.iter().map(|((_, key), value)| (key.len() + value.len()) as u64).sum()
    }

    fn table_bytes(&self, table: u32) -> u64 {
        let visible = Arc::clone(&self.state.lock().visible);
        let rows = visible.iter().filter(|(key, _)| key.0 == Keyspace::Rows(table));
        rows.map(|((_, key), value)| (key.len() + value.len()) as u64).sum()
    }
}

struct MemorySnapshot {
    entries: Arc<Entries>,
    /// The number of row changes when it was taken.
    taken: u64,
    state: Arc<Mutex<State>>,
}

impl StoreSnapshot for MemorySnapshot {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>> {
        self.state.lock().read(self.taken)?;
        Ok(self.entries.get(&(keyspace, key.to_vec())).cloned())
    }

    fn scan(&self, keyspace: Keyspace, from: &[u8], visit: &mut EntryVisitor<'_>) -> Result<()> {
        self.state.lock().read(self.taken)?;
        let start = Bound::Included((keyspace, from.to_vec()));
        for ((found, key), value) in self.entries.range((start, Bound::Unbounded)) {
            if *found != keyspace || !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }
}
