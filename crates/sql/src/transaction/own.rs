//! A transaction's changes as part of the tables that it reads, for statements to which the rows alone are not enough:
//! the weights of ranked search depend on the words of all rows.
//!
//! What was indexed is kept for the next statements, in levels. Each level holds the changes since the level below:
//!
//! ```text
//! snapshot < 10,000 rows < 300 rows < 12 rows     4 rows more:    snapshot < 10,000 < 300 < 12 < 4
//!                                                 30 rows more:   snapshot < 10,000 < 330 and some
//! ```
//! A level that is not much larger than the newer changes is indexed again together with them. So there are few levels,
//! and a row is indexed again a few times at most.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use remora_engine::{ChangeBatch, IndexedChanges, TableChanges};
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{Overlay, RowKey};
use crate::{Error, Result, catalog::Reader, error::from_engine};

/// A level stays as it is if it has more than this many times the changes above it.
const LEVEL_RATIO: usize = 2;

/// Keys of rows by the engine's table names.
type Keys = FxHashMap<Arc<str>, BTreeSet<RowKey>>;

/// The changes of a transaction at one moment. They are indexed when they are first needed, and then serve all
/// statements until the next change.
pub(crate) struct OwnChanges {
    tables: Vec<(Arc<str>, Arc<Overlay>)>,
    snapshot: Reader,
    /// The most memory for them and their index, in bytes.
    most_bytes: u64,
    /// What earlier statements indexed, as of the change with this number.
    kept: Arc<Mutex<KeptLevels>>,
    version: u64,
    indexed: OnceLock<Reader>,
}

/// What the statements of a transaction have indexed.
#[derive(Default)]
pub(super) struct KeptLevels {
    /// The oldest changes first.
    levels: Vec<Level>,
    /// The rows that were changed since the last level; of no use without levels.
    changed: Keys,
    /// Counts the changes.
    version: u64,
    /// Whether the transaction reads another snapshot than that of the levels' readers.
    is_moved: bool,
}

struct Level {
    keys: Keys,
    indexed: IndexedChanges,
    /// The snapshot with this level and those below.
    reader: Reader,
}

impl KeptLevels {
    /// Notes that a row was changed, or was changed back.
    pub(super) fn note(&mut self, table: &Arc<str>, key: &RowKey) {
        self.version += 1;
        if self.levels.is_empty() {
            return;
        }
        match self.changed.get_mut(table) {
            Some(keys) => _ = keys.insert(key.clone()),
            None => _ = self.changed.insert(Arc::clone(table), BTreeSet::from([key.clone()])),
        }
    }

    /// Notes that the transaction reads another snapshot, with the same definitions of the changed tables.
    pub(super) fn note_moved(&mut self) {
        self.version += 1;
        self.is_moved = true;
    }

    /// Makes the highest level part of the newer changes.
    fn open_level(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        for (table, keys) in level.keys {
            self.changed.entry(table).or_default().extend(keys);
        }
    }

    /// Opens the levels that hold a change which does not exist any more, and those that are small beside the newer
    /// changes.
    fn open_levels(&mut self, exists: impl Fn(&Arc<str>, &RowKey) -> bool) {
        let has_gone = |level: &Level, changed: &Keys| {
            changed.iter().any(|(table, keys)| {
                let known = level.keys.get(table);
                let gone = |key: &&RowKey| !exists(table, key);
                known.is_some_and(|known| keys.iter().filter(gone).any(|key| known.contains(key)))
            })
        };
        if let Some(lowest) = self.levels.iter().position(|it| has_gone(it, &self.changed)) {
            while self.levels.len() > lowest {
                self.open_level();
            }
        }
        while let Some(level) = self.levels.last()
            && count(&level.keys) <= LEVEL_RATIO * count(&self.changed)
        {
            self.open_level();
        }
    }

    fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.indexed.bytes()).sum()
    }
}

fn count(keys: &Keys) -> usize {
    keys.values().map(BTreeSet::len).sum()
}

impl OwnChanges {
    /// The changes of these tables since a snapshot.
    pub(super) fn new(
        tables: Vec<(Arc<str>, Arc<Overlay>)>,
        snapshot: Reader,
        most_bytes: u64,
        kept: Arc<Mutex<KeptLevels>>,
    ) -> Self {
        let version = kept.lock().version;
        Self { tables, snapshot, most_bytes, kept, version, indexed: OnceLock::new() }
    }

    /// The statement's reader, with the changes. Cost of the first call: encodes and indexes the rows that were
    /// changed since the last statement that did so, and at times more. The reader's interrupt ends it.
    ///
    /// # Errors
    /// Those with which a commit would refuse the rows; 1038 if the changes and their index take too much memory; the
    /// one of an interrupt.
    pub(crate) fn seen_by(&self, reader: &Reader) -> Result<Reader> {
        if let Some(indexed) = self.indexed.get() {
            return Ok(reader.reading_as(indexed));
        }
        let mut kept = self.kept.lock();
        if let Some(indexed) = self.indexed.get() {
            return Ok(reader.reading_as(indexed));
        }
        let indexed = match kept.version == self.version {
            true => self.index(&mut kept, reader),
            // These changes are not the newest.
            false => self.index(&mut KeptLevels::default(), reader),
        };
        let indexed = indexed?;
        Ok(reader.reading_as(self.indexed.get_or_init(|| indexed)))
    }

    /// Indexes what the levels lack.
    fn index(&self, kept: &mut KeptLevels, reader: &Reader) -> Result<Reader> {
        let overlay = |table: &Arc<str>| {
            let mut tables = self.tables.iter();
            tables.find_map(|(name, overlay)| (name == table).then_some(overlay))
        };
        kept.open_levels(|table, key| overlay(table).is_some_and(|overlay| overlay.hides(key)));
        self.move_levels(kept, reader)?;
        if kept.levels.is_empty() {
            let keys = |overlay: &Overlay| overlay.all().map(|(key, _)| key.clone()).collect();
            let all = self.tables.iter();
            kept.changed = all.map(|(table, it)| (Arc::clone(table), keys(it))).collect();
        }
        let below = kept.levels.last().map_or(&self.snapshot, |level| &level.reader);
        let below = reader.reading_as(below);
        let changes = kept.changed.iter().filter_map(|(table, keys)| {
            let changes = overlay(table)?.changes_of(keys);
            Some(TableChanges { table: Arc::clone(table), changes })
        });
        let batch = ChangeBatch { tables: changes.collect(), positions: Vec::new() };
        let room = self.most_bytes.saturating_sub(kept.bytes());
        let indexed = below.index_changes(batch, room).map_err(|error| from_engine(&error))?;
        let Some(indexed) = indexed else { return Err(self.too_large()) };
        let made = below.with_changes(&indexed).map_err(|error| from_engine(&error))?;
        let reader = self.snapshot.reading_as(&made);
        let keys = std::mem::take(&mut kept.changed);
        kept.levels.push(Level { keys, indexed, reader: reader.clone() });
        Ok(reader)
    }

    /// Puts the levels on this snapshot.
    fn move_levels(&self, kept: &mut KeptLevels, reader: &Reader) -> Result<()> {
        if kept.is_moved {
            let mut below = reader.reading_as(&self.snapshot);
            for level in &mut kept.levels {
                below = below.with_changes(&level.indexed).map_err(|error| from_engine(&error))?;
                level.reader = self.snapshot.reading_as(&below);
            }
            kept.is_moved = false;
        }
        Ok(())
    }

    fn too_large(&self) -> Error {
        let message = format!(
            "a search within a transaction indexes its changes, which takes more than {} bytes: raise \
             sql.max_query_memory_mb or commit more often",
            self.most_bytes
        );
        Error::new(ErrorCode::OutOfMemory, message)
    }
}
