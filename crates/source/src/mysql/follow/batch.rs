//! The batch for the engine: the complete transactions that arrived while the engine was busy.

use std::sync::Arc;

use remora_engine::{Change, TableChanges};
use rustc_hash::FxHashMap;

/// A batch with this many bytes of events is submitted at once.
pub(super) const FULL_BYTES: usize = 4 << 20;
/// A batch with this many changes is submitted at once.
pub(super) const FULL_CHANGES: usize = 16_384;

/// Changes of complete transactions and of the one being read.
#[derive(Default)]
pub(super) struct Batch {
    tables: Vec<TableBatch>,
    places: FxHashMap<Arc<str>, usize>,
    /// The number of all changes, and of those of complete transactions.
    changes: usize,
    whole_changes: usize,
    bytes: usize,
    whole_bytes: usize,
}

/// The changes of one table.
struct TableBatch {
    table: Arc<str>,
    changes: Vec<Change>,
    /// The number of changes that belong to complete transactions.
    whole: usize,
}

impl Batch {
    /// The index of a table for [`Batch::push`], valid until changes are taken.
    pub fn place(&mut self, table: &Arc<str>) -> usize {
        if let Some(place) = self.places.get(table) {
            return *place;
        }
        let place = self.tables.len();
        self.tables.push(TableBatch { table: Arc::clone(table), changes: Vec::new(), whole: 0 });
        self.places.insert(Arc::clone(table), place);
        place
    }

    /// Appends a change of the transaction being read.
    pub fn push(&mut self, place: usize, change: Change) {
        if let Some(part) = self.tables.get_mut(place) {
            part.changes.push(change);
            self.changes += 1;
        }
    }

    /// The changes of a table that were not taken yet, in order.
    pub fn changes_of(&self, table: &Arc<str>) -> &[Change] {
        let part = self.places.get(table).and_then(|place| self.tables.get(*place));
        part.map(|part| part.changes.as_slice()).unwrap_or_default()
    }

    /// Takes the changes of one table in the transaction being read.
    pub fn take_open(&mut self, table: &Arc<str>) -> Vec<Change> {
        let place = self.places.get(table).copied();
        let Some(part) = place.and_then(|place| self.tables.get_mut(place)) else {
            return Vec::new();
        };
        let taken = part.changes.split_off(part.whole);
        self.changes -= taken.len();
        taken
    }

    /// The bytes of the transaction being read.
    pub fn open_bytes(&self) -> usize {
        self.bytes - self.whole_bytes
    }

    /// Counts bytes of the transaction being read.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Marks the transaction being read as complete.
    pub fn commit(&mut self) {
        self.tables.iter_mut().for_each(|part| part.whole = part.changes.len());
        (self.whole_changes, self.whole_bytes) = (self.changes, self.bytes);
    }

    /// Discards the transaction being read.
    pub fn roll_back(&mut self) {
        self.tables.iter_mut().for_each(|part| part.changes.truncate(part.whole));
        (self.changes, self.bytes) = (self.whole_changes, self.whole_bytes);
    }

    /// Whether there are changes of complete transactions.
    pub fn has_whole(&self) -> bool {
        self.whole_changes > 0
    }

    /// Whether the complete transactions fill a batch.
    pub fn is_full(&self) -> bool {
        self.whole_changes >= FULL_CHANGES || self.whole_bytes >= FULL_BYTES
    }

    /// Whether the transaction being read is larger than a batch.
    pub fn is_large(&self) -> bool {
        self.changes - self.whole_changes >= 4 * FULL_CHANGES
            || self.bytes - self.whole_bytes >= 4 * FULL_BYTES
    }

    /// Takes the changes of complete transactions. Those of the one being read stay.
    pub fn take_whole(&mut self) -> Vec<TableChanges> {
        let mut taken = Vec::with_capacity(self.tables.len());
        for part in &mut self.tables {
            let rest = part.changes.split_off(part.whole);
            let changes = std::mem::replace(&mut part.changes, rest);
            part.whole = 0;
            if !changes.is_empty() {
                taken.push(TableChanges { table: Arc::clone(&part.table), changes });
            }
        }
        self.changes -= self.whole_changes;
        self.bytes -= self.whole_bytes;
        (self.whole_changes, self.whole_bytes) = (0, 0);
        if self.changes == 0 {
            self.tables.clear();
            self.places.clear();
        }
        taken
    }

    /// Takes all changes, including those of the transaction being read.
    pub fn take_all(&mut self) -> Vec<TableChanges> {
        self.commit();
        self.take_whole()
    }
}

#[cfg(test)]
mod tests {
    use remora_engine::Value;

    use super::*;

    fn change(number: i64) -> Change {
        Change::Put(vec![Value::Int(number)])
    }

    fn flat(taken: Vec<TableChanges>) -> Vec<(String, Vec<Change>)> {
        taken.into_iter().map(|part| (part.table.to_string(), part.changes)).collect()
    }

    #[test]
    fn taken_batches_have_whole_transactions() {
        let mut batch = Batch::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let place = batch.place(&a);
        batch.push(place, change(1));
        assert!(!batch.has_whole());
        batch.commit();
        let place = batch.place(&a);
        batch.push(place, change(2));
        let place = batch.place(&b);
        batch.push(place, change(3));
        assert_eq!(flat(batch.take_whole()), [("a".to_owned(), vec![change(1)])]);
        let place = batch.place(&b);
        batch.push(place, change(4));
        batch.commit();
        let place = batch.place(&b);
        batch.push(place, change(5));
        batch.roll_back();
        let whole =
            [("a".to_owned(), vec![change(2)]), ("b".to_owned(), vec![change(3), change(4)])];
        assert_eq!(flat(batch.take_whole()), whole);
        assert!(batch.take_all().is_empty());
    }
}
