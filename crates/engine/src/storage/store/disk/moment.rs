//! Snapshots of the store that readers hold, and how they are revoked.
//!
//! A held keyspace keeps fjall's database open, with the lock on its directory. So readers hold a slot with a snapshot
//! that the store can empty: when it is closed, and when it is reopened behind readers.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use fjall::{Readable, SeqNo};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::{
    error::store_error,
    opened::{Moment, Opened},
    places::key_of,
    versions::RowVersions,
};
use crate::{
    Error, Result,
    storage::store::{EntryVisitor, Keyspace, RowVersion, StoreSnapshot, StoredBytes},
};

/// Reads of the disk that run get this long to end before the moment they read is taken away. A scan
/// reads a page at a time: who visits its entries, and for how long, does not matter.
const PATIENCE: Duration = Duration::from_secs(5);
/// Entries of the first page of a scan, since many a scan ends soon, and of the later ones.
const FIRST_PAGE_ENTRIES: usize = 16;
const PAGE_ENTRIES: usize = 1_024;
/// Bytes of keys and values at which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// What a reader's place for a moment holds.
enum HeldMoment {
    Held(Moment),
    /// The store was opened anew, and had changed since.
    Past,
    /// The store was closed.
    Closed,
}

/// A moment in a reader's hands.
pub(super) struct DiskSnapshot {
    // Read-locked while the disk is read and no longer: no thread ever has two.
    place: RwLock<HeldMoment>,
    versions: Arc<RowVersions>,
}

impl HeldMoment {
    /// Empties it; answers which moment it was, and of which keyspaces.
    fn take(&mut self) -> Option<(SeqNo, Vec<Keyspace>)> {
        let taken = std::mem::replace(self, Self::Past);
        match taken {
            Self::Held(moment) => {
                Some((moment.at.seqno(), moment.keyspaces.own.keys().copied().collect()))
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
    fn read<T>(&self, read: impl FnOnce(&Moment) -> Result<T>) -> Result<T> {
        match &*self.place.read() {
            HeldMoment::Held(moment) => read(moment),
            HeldMoment::Past => Err(Error::Conflict(
                "the row store was opened anew after the disk was full, and this moment of it is \
                 gone: begin again"
                    .to_owned(),
            )),
            HeldMoment::Closed => Err(Error::Closed),
        }
    }
}

impl StoreSnapshot for DiskSnapshot {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>> {
        self.read(|moment| moment.get(keyspace, key))
    }

    fn get_version(
        &self,
        keyspace: Keyspace,
        key: &[u8],
        version: RowVersion,
    ) -> Result<Option<StoredBytes>> {
        self.read(|moment| {
            if let Some(row) = self.versions.get(version) {
                return Ok(Some(row));
            }
            let found = moment.get(keyspace, key)?;
            found.iter().for_each(|row| self.versions.offer(version, row));
            Ok(found)
        })
    }

    fn scan(&self, keyspace: Keyspace, from: &[u8], visit: &mut EntryVisitor<'_>) -> Result<()> {
        let mut from = from.to_owned();
        let mut entries = FIRST_PAGE_ENTRIES;
        loop {
            let page = self.read(|moment| Ok(moment.page(keyspace, &from, entries)))?;
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

/// Entries of a keyspace, and whether there is none behind them, or what cannot be read there.
struct Page {
    entries: Vec<(StoredBytes, StoredBytes)>,
    /// Whether they are among those of small tables.
    is_small: bool,
    is_last: Result<bool>,
}

impl Moment {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<StoredBytes>> {
        let Some(place) = self.keyspaces.place(keyspace) else { return Ok(None) };
        let found = self.at.get(place.tree, place.key(key));
        found.map_err(|error| damaged(error, keyspace, place.tree, key))
    }

    /// At most so many entries from a key on.
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

/// An error of a read, with the place where damage was met.
fn damaged(error: fjall::Error, keyspace: Keyspace, tree: &fjall::Keyspace, key: &[u8]) -> Error {
    match store_error(error) {
        Error::Corrupt(what) => {
            let (part, path) = (keyspace.describe(), tree.path().display());
            Error::Corrupt(format!("{what}, in {path} ({part}), at or behind key {key:02x?}"))
        }
        other => other,
    }
}

/// The moments that are held.
pub(super) struct Moments {
    held: Mutex<Vec<Weak<DiskSnapshot>>>,
    /// What their readers have read lately.
    versions: Arc<RowVersions>,
}

impl Moments {
    /// No moment yet.
    pub fn new(versions: Arc<RowVersions>) -> Self {
        Self { held: Mutex::default(), versions }
    }

    /// Hands out a moment; without one the reader is told that it is gone.
    pub fn hold(&self, moment: Option<Moment>) -> Arc<DiskSnapshot> {
        let place = moment.map_or(HeldMoment::Past, HeldMoment::Held);
        let snapshot = Arc::new(DiskSnapshot {
            place: RwLock::new(place),
            versions: Arc::clone(&self.versions),
        });
        let mut held = self.held.lock();
        // Forgets those that were dropped whenever the list would grow: so each costs little.
        if held.len() == held.capacity() {
            held.retain(|one| one.strong_count() > 0);
        }
        held.push(Arc::downgrade(&snapshot));
        snapshot
    }

    fn live(&self) -> Vec<Arc<DiskSnapshot>> {
        self.held.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Takes all moments away for good. A read that does not end keeps its own.
    pub fn close(&self) {
        let deadline = Instant::now() + PATIENCE;
        for snapshot in self.live() {
            if let Some(mut place) = snapshot.place.try_write_until(deadline) {
                *place = HeldMoment::Closed;
            }
        }
    }

    /// Takes all moments away, has the store opened anew, and gives back those that show the rows as
    /// they are then: none that is older than what `open` answers beside the store. `None` if a read
    /// does not end: nothing happened then. Readers wait meanwhile.
    pub fn exchange<T>(
        &self,
        open: impl FnOnce() -> Result<(Opened, SeqNo, T)>,
    ) -> Option<Result<(Opened, T)>> {
        let deadline = Instant::now() + PATIENCE;
        let live = self.live();
        let mut places: Vec<RwLockWriteGuard<'_, HeldMoment>> = Vec::with_capacity(live.len());
        for snapshot in &live {
            places.push(snapshot.place.try_write_until(deadline)?);
        }
        let taken: Vec<_> = places.iter_mut().map(|place| place.take()).collect();
        Some(open().map(|(opened, oldest, told)| {
            for (place, taken) in places.iter_mut().zip(taken) {
                let Some((at, keyspaces)) = taken else { continue };
                let moment = opened.moment();
                let has = |keyspace: &Keyspace| moment.keyspaces.own.contains_key(keyspace);
                if at >= oldest && keyspaces.iter().all(has) {
                    **place = HeldMoment::Held(moment);
                }
            }
            (opened, told)
        }))
    }
}
