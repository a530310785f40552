//! What a batch expects of its keys, checked by the writer thread where the batch stands in the
//! order of all: so the answer is exact and takes no lock.
//!
//! A transaction reads one snapshot and collides with whoever wrote one of its keys after it. For
//! as long as any transaction is open the writer notes the hash of every key it writes, with the
//! position. It looks whether one is open only after it has published what it wrote, and a
//! transaction enters the register before it loads its snapshot: so what is not noted, every later
//! transaction sees. Two keys of one hash only make a transaction begin again.

use std::{collections::BTreeMap, hash::BuildHasher, sync::Arc};

use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{
    prepare::{PreparedBatch, exists},
    writer::{Writer, find_table},
};
use crate::{
    Error, Position, Result, Schema,
    encode::decode_key,
    error::no_table,
    published::Published,
    snapshot::{Snapshot, TableView},
};

/// Most keys that are noted: some 30 MB.
const MAX_NOTED: usize = 1 << 20;

/// The moments at which the open transactions began.
#[derive(Default)]
pub(crate) struct OpenTransactions(Mutex<BTreeMap<Position, usize>>);

impl OpenTransactions {
    /// Enters one that begins now, at the snapshot that is answered.
    pub fn begin(&self, published: &Published) -> Arc<Snapshot> {
        let mut open = self.0.lock();
        let snapshot = published.load();
        *open.entry(snapshot.position).or_default() += 1;
        snapshot
    }

    /// One that began at this position has ended.
    pub fn end(&self, began: Position) {
        let mut open = self.0.lock();
        if let Some(count) = open.get_mut(&began) {
            *count -= 1;
            if *count == 0 {
                open.remove(&began);
            }
        }
    }

    fn oldest(&self) -> Option<Position> {
        self.0.lock().first_key_value().map(|(position, _)| *position)
    }
}

/// What a transaction's batch must not collide with.
pub(crate) struct Since {
    /// The moment the transaction reads.
    pub position: Position,
    /// Keys that it does not change and that nobody else may have written either.
    pub protected: Vec<ProtectedKeys>,
}

/// Keys of one table.
pub(crate) struct ProtectedKeys {
    /// The table's number.
    pub number: u32,
    /// Its definition.
    pub schema: Arc<Schema>,
    /// Which one that is: see `TableView::defined`.
    pub defined: Position,
    /// The encoded keys.
    pub keys: Vec<Vec<u8>>,
}

/// The keys that were written while transactions were open.
#[derive(Default)]
pub(super) struct RecentWrites {
    /// Hashes of keys and when they were written last.
    keys: FxHashMap<u64, Position>,
    /// Tables of which any key may have been written, and when last.
    tables: FxHashMap<u32, Position>,
    /// What was written up to here is not known any more.
    forgotten: Position,
}

impl RecentWrites {
    /// Notes what batches wrote that were published just now, the first of them at `first`. The
    /// keys that a transaction protected count as written: of two that protect the same key one
    /// begins again.
    pub fn note(&mut self, open: &OpenTransactions, batches: &[PreparedBatch], first: Position) {
        let Some(oldest) = open.oldest() else { return self.forget_all() };
        let count: usize = batches.iter().map(PreparedBatch::key_count).sum();
        let last = Position(first.0 + batches.len().saturating_sub(1) as u64);
        if !self.has_room(count, oldest) {
            self.forget_all();
            self.forgotten = last;
            return;
        }
        for (position, batch) in (first.0..).map(Position).zip(batches) {
            self.keys.extend(batch.key_hashes().map(|key| (key, position)));
        }
    }

    /// Notes that keys of these tables were written, too many to be told.
    pub fn note_tables(
        &mut self,
        open: &OpenTransactions,
        tables: impl Iterator<Item = u32>,
        position: Position,
    ) {
        match open.oldest() {
            None => self.forget_all(),
            Some(_) => self.tables.extend(tables.map(|table| (table, position))),
        }
    }

    fn forget_all(&mut self) {
        self.keys = FxHashMap::default();
        self.tables.clear();
    }

    /// Whether `count` more keys have room, if need be after those are gone that no transaction
    /// asks for. Then half of the room must be free, so that this is not done again soon.
    fn has_room(&mut self, count: usize, oldest: Position) -> bool {
        if self.keys.len().saturating_add(count) <= MAX_NOTED {
            return true;
        }
        self.keys.retain(|_, position| *position > oldest);
        self.keys.len().saturating_add(count) <= MAX_NOTED / 2
    }

    fn is_written(&self, table: u32, hash: u64, since: Position) -> bool {
        let after = |position: Option<&Position>| position.is_some_and(|at| *at > since);
        after(self.keys.get(&hash)) || after(self.tables.get(&table))
    }
}

impl PreparedBatch {
    /// Whether it is to be refused where its keys are not as it expects.
    pub fn expects(&self) -> bool {
        let inserts = || self.tables.iter().flat_map(|table| &table.changes);
        self.since.is_some() || inserts().any(|change| change.must_be_absent)
    }

    /// Whether nothing happens if it is applied.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.tables.iter().all(|table| table.changes.is_empty())
    }

    /// Hashes of the keys that it changes or protects.
    pub fn key_hashes(&self) -> impl Iterator<Item = u64> + '_ {
        let changed = self.tables.iter().flat_map(|table| {
            table.changes.iter().map(|change| key_hash(table.number, &change.key))
        });
        let protected = self.since.iter().flat_map(|since| &since.protected);
        let protected =
            protected.flat_map(|table| table.keys.iter().map(|key| key_hash(table.number, key)));
        changed.chain(protected)
    }

    fn key_count(&self) -> usize {
        let protected = self.since.iter().flat_map(|since| &since.protected);
        let protected: usize = protected.map(|table| table.keys.len()).sum();
        protected + self.tables.iter().map(|table| table.changes.len()).sum::<usize>()
    }
}

fn key_hash(table: u32, key: &[u8]) -> u64 {
    FxBuildHasher.hash_one((table, key))
}

impl Writer<'_> {
    /// Refuses a batch whose keys are not as it expects.
    pub(super) fn check_expectations(&self, batch: &PreparedBatch) -> Result<()> {
        let current = self.shared.published.load();
        if let Some(since) = &batch.since {
            self.check_since(&current, batch, since)?;
        }
        for table in &batch.tables {
            let Some(view) = find_table(&current, table.number) else { continue };
            for change in table.changes.iter().filter(|change| change.must_be_absent) {
                if has_row(view, &change.key)? {
                    return Err(exists(&table.schema, &change.key));
                }
            }
        }
        Ok(())
    }

    fn check_since(&self, current: &Snapshot, batch: &PreparedBatch, since: &Since) -> Result<()> {
        if since.position < self.recent.forgotten {
            let message = "too much was written since this transaction began: begin it again";
            return Err(Error::Conflict(message.to_owned()));
        }
        for table in &batch.tables {
            check_definition(current, table.number, &table.schema, table.defined)?;
            let keys = table.changes.iter().map(|change| &*change.key);
            self.check_keys(table.number, &table.schema, keys, since.position)?;
        }
        for table in &since.protected {
            check_definition(current, table.number, &table.schema, table.defined)?;
            let keys = table.keys.iter().map(|key| &**key);
            self.check_keys(table.number, &table.schema, keys, since.position)?;
        }
        Ok(())
    }

    fn check_keys<'k>(
        &self,
        table: u32,
        schema: &Schema,
        mut keys: impl Iterator<Item = &'k [u8]>,
        since: Position,
    ) -> Result<()> {
        let recent = &self.recent;
        match keys.find(|key| recent.is_written(table, key_hash(table, key), since)) {
            None => Ok(()),
            Some(key) => {
                let parts = decode_key(schema, key)?;
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                let (name, key) = (&schema.name, parts.join(", "));
                Err(Error::Conflict(format!(
                    "the row with the key ({key}) of table {name:?} was written since this \
                     transaction began: begin it again"
                )))
            }
        }
    }
}

/// A transaction's table must be what it was.
fn check_definition(
    current: &Snapshot,
    number: u32,
    schema: &Schema,
    defined: Position,
) -> Result<()> {
    let name = &schema.name;
    match current.tables.get(name.as_str()) {
        None => Err(no_table(name)),
        Some(view) if view.number == number && view.defined == defined => Ok(()),
        Some(_) => Err(Error::Conflict(format!(
            "table {name:?} was altered since this transaction began: begin it again"
        ))),
    }
}

/// Whether there is a row of the key; one that is not in the view is one too.
fn has_row(view: &TableView, key: &[u8]) -> Result<bool> {
    if view.segments.iter().any(|segment| segment.has_live(key)) {
        return Ok(true);
    }
    Ok(view.schema.required.is_some() && view.rows.get(key, &|_| false)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::prepare::{PreparedChange, PreparedTable};

    fn batch(keys: std::ops::Range<u32>) -> PreparedBatch {
        let change = |key: u32| PreparedChange {
            key: key.to_be_bytes().to_vec(),
            stored: None,
            row: None,
            must_be_absent: false,
        };
        let kinds = [crate::ColumnType::Uint(32)];
        let table = PreparedTable {
            number: 1,
            schema: Arc::new(crate::encode::strategies::table(&kinds)),
            defined: Position(0),
            changes: keys.map(change).collect(),
            segment: None,
            indexing: None,
            text_bytes: 0,
        };
        PreparedBatch { tables: vec![table], ..PreparedBatch::default() }
    }

    fn is_written(recent: &RecentWrites, key: u32, since: u64) -> bool {
        recent.is_written(1, key_hash(1, &key.to_be_bytes()), Position(since))
    }

    fn open(positions: &[u64]) -> OpenTransactions {
        let open = OpenTransactions::default();
        positions.iter().for_each(|&at| _ = open.0.lock().insert(Position(at), 1));
        open
    }

    #[test]
    fn keys_are_noted_while_a_transaction_is_open() {
        let mut recent = RecentWrites::default();
        let one = open(&[4]);
        recent.note(&one, &[batch(0..3), batch(2..5)], Position(5));
        assert!(is_written(&recent, 1, 4) && !is_written(&recent, 1, 5));
        assert!(is_written(&recent, 2, 5) && !is_written(&recent, 2, 6));
        assert!(!is_written(&recent, 9, 4));
        recent.note_tables(&one, [1].into_iter(), Position(7));
        assert!(is_written(&recent, 9, 6) && !is_written(&recent, 9, 7));
        one.end(Position(4));
        recent.note(&one, &[batch(0..1)], Position(8));
        assert!(!is_written(&recent, 0, 4) && recent.keys.is_empty());
    }

    #[test]
    fn what_is_noted_is_bounded() {
        let mut recent = RecentWrites::default();
        let (early, late) = (open(&[4, 6]), open(&[6]));
        let third = MAX_NOTED as u32 / 3;
        recent.note(&early, &[batch(0..third)], Position(5));
        recent.note(&early, &[batch(third..2 * third)], Position(6));
        assert!(is_written(&recent, 0, 4));
        // The first ones are of no use any more and make room.
        recent.note(&late, &[batch(2 * third..3 * third)], Position(7));
        recent.note(&late, &[batch(3 * third..3 * third + third / 2)], Position(8));
        assert!(is_written(&recent, 2 * third, 6) && recent.forgotten == Position(0));
        recent.note(&late, &[batch(0..third)], Position(9));
        recent.note(&late, &[batch(third..2 * third)], Position(10));
        assert_eq!((recent.forgotten, recent.keys.len()), (Position(10), 0));
    }
}
