//! Snapshots of the store that readers hold, and how they are revoked.
//!
//! An open keyspace keeps fjall's database open, and with it the lock on its directory. So readers hold a slot with a
//! snapshot, which the store can empty: when it is closed, and when it is reopened while readers hold snapshots.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use fjall::{Readable, SeqNo};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::{
    error::store_error,
    opened::{KeyspaceSnapshot, Opened},
    placement::{Keyspaces, key_of},
    versions::RowVersions,
};
use crate::{
    Error, Result,
    storage::store::{EntryVisitor, Keyspace, RowVersion, StoreSnapshot, StoredBytes},
};

/// How long to wait for running reads before snapshots are revoked. A scan reads a page at a time, so the time that
/// its visitor takes does not count.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of entries in the first page of a scan (many scans end early), and the most entries
/// of later pages.
const FIRST_PAGE_ENTRIES: usize = 16;
const PAGE_ENTRIES: usize = 1_024;
/// Bytes of keys and values at which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// The content of a reader's slot.
enum SnapshotSlot {
    Held(KeyspaceSnapshot),
    /// The snapshot was revoked, because rows had changed since it was taken when the store was
    /// reopened.
    Past,
    /// The store was closed.
    Closed,
}

/// The snapshot that a reader holds.
pub(super) struct DiskSnapshot {
    // The lock is read-held only during a read from disk. No thread holds two of these locks.
    slot: RwLock<SnapshotSlot>,
    versions: Arc<RowVersions>,
}

impl SnapshotSlot {
    /// Empties the slot; returns the snapshot's sequence number and keyspaces.
    fn take(&mut self) -> Option<(SeqNo, Vec<Keyspace>)> {
        let taken = std::mem::replace(self, Self::Past);
        match taken {
            Self::Held(snapshot) => {
                Some((snapshot.at.seqno(), snapshot.keyspaces.own.keys().copied().collect()))
            }
            Self::Past => None,
            Self::Closed => {
                *self = Self::Closed;
                None
            }
        }
    }
}

impl DiskSnapshot {
    fn read<T>(&self, read: impl FnOnce(&KeyspaceSnapshot) -> Result<T>) -> Result<T> {
        match &*self.slot.read() {
            SnapshotSlot::Held(snapshot) => read(snapshot),
            SnapshotSlot::Past => Err(Error::Conflict(
                "the row store was reopened after the disk was full, and this snapshot of it is \
                 gone: begin again"
                    .to_owned(),
            )),
            SnapshotSlot::Closed => Err(Error::Closed),
        }
    }
}

impl StoreSnapshot for DiskSnapshot {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>> {
        self.read(|snapshot| snapshot.get(keyspace, key))
    }

    fn get_version(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        version: RowVersion,
    ) -> Result<Option<StoredBytes>> {
        self.read(|snapshot| {
            if let Some(row) = self.versions.get(version) {
                return Ok(Some(row));
            }
            let found = snapshot.get(keyspace, key)?;
            found.iter().for_each(|row| self.versions.offer(version, row));
            Ok(found)
        })
    }

    fn scan(&self, keyspace: Keyspace, from: &[u8], visit: &mut EntryVisitor<'_>) -> Result<()> {
        let mut from = from.to_owned();
        let mut entries = FIRST_PAGE_ENTRIES;
        loop {
            let page = self.read(|snapshot| Ok(snapshot.page(keyspace, &from, entries)))?;
            for (key, value) in &page.entries {
                if !visit(key_of(key, page.is_small), value)? {
                    return Ok(());
                }
            }
            match (page.is_last?, page.entries.last()) {
                (false, Some((last, _))) => {
                    from = [key_of(last, page.is_small), [0].as_slice()].concat();
                }
                _ => return Ok(()),
            }
            entries = entries.saturating_mul(4).min(PAGE_ENTRIES);
        }
    }
}

/// Some entries of a keyspace, and whether they are the last ones, or the error that came next.
struct Page {
    entries: Vec<(StoredBytes, StoredBytes)>,
    /// Whether they are in the keyspace of small tables.
    is_small: bool,
    is_last: Result<bool>,
}

impl KeyspaceSnapshot {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>> {
        let Some(place) = self.keyspaces.place(keyspace) else { return Ok(None) };
        let found = self.at.get(place.tree, place.key(key));
        found.map_err(|error| damaged(error, keyspace, place.tree, key))
    }

    /// At most `most` entries from a key on.
    fn page(&self, keyspace: Keyspace, from: &[u8], most: usize) -> Page {
        let mut page = Page { entries: Vec::new(), is_small: false, is_last: Ok(true) };
        let Some(place) = self.keyspaces.place(keyspace) else { return page };
        page.is_small = place.is_small();
        let mut bytes = 0;
        for entry in self.at.range(place.tree, place.keys_from(from)) {
            match entry.into_inner() {
                Ok((key, value)) => {
                    bytes += key.len() + value.len();
                    page.entries.push((key, value));
                }
                Err(error) => {
                    let last = page.entries.last();
                    let last = last.map_or(from, |(key, _)| key_of(key, page.is_small));
                    page.is_last = Err(damaged(error, keyspace, place.tree, last));
                    return page;
                }
            }
            if page.entries.len() >= most || bytes >= PAGE_BYTES {
                page.is_last = Ok(false);
                return page;
            }
        }
        page
    }
}

/// Adds the place of the damage to a read error.
fn damaged(error: fjall::Error, keyspace: Keyspace, tree: &fjall::Keyspace, key: &[u8]) -> Error {
    match store_error(error) {
        Error::Corrupt(what) => {
            let (part, path) = (keyspace.describe(), tree.path().display());
            Error::Corrupt(format!("{what}, in {path} ({part}), at or after key {key:02x?}"))
        }
        other => other,
    }
}

/// All snapshots that readers hold.
pub(super) struct SnapshotSlots {
    held: Mutex<Vec<Weak<DiskSnapshot>>>,
    /// Recently read row versions, shared by all snapshots.
    versions: Arc<RowVersions>,
}

impl SnapshotSlots {
    /// No snapshot is held yet.
    pub fn new(versions: Arc<RowVersions>) -> Self {
        Self { held: Mutex::default(), versions }
    }

    /// Hands out a snapshot. Without one, its reads return an error.
    pub fn hold(&self, snapshot: Option<KeyspaceSnapshot>) -> Arc<DiskSnapshot> {
        let slot = snapshot.map_or(SnapshotSlot::Past, SnapshotSlot::Held);
        let snapshot = Arc::new(DiskSnapshot {
            slot: RwLock::new(slot),
            versions: Arc::clone(&self.versions),
        });
        let mut held = self.held.lock();
        // Removes dropped ones only when the list would grow, so that each call costs little.
        if held.len() == held.capacity() {
            held.retain(|one| one.strong_count() > 0);
        }
        held.push(Arc::downgrade(&snapshot));
        snapshot
    }

    fn live(&self) -> Vec<Arc<DiskSnapshot>> {
        self.held.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// The sequence numbers of all snapshots with the trees that each can read, ascending. No
    /// snapshot may be handed out meanwhile.
    pub fn held(&self) -> Vec<(SeqNo, Arc<Keyspaces>)> {
        let held = |snapshot: &Arc<DiskSnapshot>| match &*snapshot.slot.read_recursive() {
            SnapshotSlot::Held(held) => Some((held.at.seqno(), Arc::clone(&held.keyspaces))),
            SnapshotSlot::Past | SnapshotSlot::Closed => None,
        };
        let mut all: Vec<_> = self.live().iter().filter_map(held).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    /// Revokes all snapshots for good. A read that does not end keeps its own.
    pub fn close(&self) {
        let deadline = Instant::now() + READ_TIMEOUT;
        for snapshot in self.live() {
            if let Some(mut slot) = snapshot.slot.try_write_until(deadline) {
                *slot = SnapshotSlot::Closed;
            }
        }
    }

    /// Revokes all snapshots and reopens the store by `open`. Then it renews those that still show the current rows:
    /// at least as new as the sequence number that `open` returns. `None` if a running read does not end: then
    /// nothing was done. Readers wait meanwhile.
    pub fn exchange<T>(
        &self,
        open: impl FnOnce() -> Result<(Opened, SeqNo, T)>,
    ) -> Option<Result<(Opened, T)>> {
        let deadline = Instant::now() + READ_TIMEOUT;
        let live = self.live();
        let mut slots: Vec<RwLockWriteGuard<'_, SnapshotSlot>> = Vec::with_capacity(live.len());
        for snapshot in &live {
            slots.push(snapshot.slot.try_write_until(deadline)?);
        }
        let taken: Vec<_> = slots.iter_mut().map(|slot| slot.take()).collect();
        Some(open().map(|(opened, oldest, result)| {
            for (slot, taken) in slots.iter_mut().zip(taken) {
                let Some((at, keyspaces)) = taken else { continue };
                let snapshot = opened.snapshot();
                let has = |keyspace: &Keyspace| snapshot.keyspaces.own.contains_key(keyspace);
                if at >= oldest && keyspaces.iter().all(has) {
                    **slot = SnapshotSlot::Held(snapshot);
                }
            }
            (opened, result)
        }))
    }
}
