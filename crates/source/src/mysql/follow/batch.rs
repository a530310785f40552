//! The batch that goes to the engine: whole transactions, as many as arrived while the engine was busy.

use std::sync::Arc;

use remora_engine::{Change, TableChanges};
use rustc_hash::FxHashMap;

/// A batch of so many bytes of events is submitted whatever waits behind it.
pub(super) const FULL_BYTES: usize = 4 << 20;
/// A batch of so many changes is submitted whatever waits behind it.
pub(super) const FULL_CHANGES: usize = 16_384;

/// Changes of whole transactions and of the one that is being read.
#[derive(Default)]
pub(super) struct Batch {
    tables: Vec<TableBatch>,
    places: FxHashMap<Arc<str>, usize>,
    /// Of everything, and of the whole transactions among it.
    changes: usize,
    whole_changes: usize,
    bytes: usize,
    whole_bytes: usize,
}

/// The changes of one table.
struct TableBatch {
    table: Arc<str>,
    changes: Vec<Change>,
    /// How many of them belong to whole transactions.
    whole: usize,
}

impl Batch {
    /// Where changes of this table go: a place for [`Batch::push`], good until something is taken.
    pub fn place(&mut self, table: &Arc<str>) -> usize {
        if let Some(place) = self.places.get(table) {
            return *place;
        }
        let place = self.tables.len();
        self.tables.push(TableBatch { table: Arc::clone(table), changes: Vec::new(), whole: 0 });
        self.places.insert(Arc::clone(table), place);
        place
    }

    /// Appends a change of the transaction that is being read.
    pub fn push(&mut self, place: usize, change: Change) {
        if let Some(part) = self.tables.get_mut(place) {
            part.changes.push(change);
            self.changes += 1;
        }
    }

    /// The changes of a table that were not taken, in order.
    pub fn changes_of(&self, table: &Arc<str>) -> &[Change] {
        let part = self.places.get(table).and_then(|place| self.tables.get(*place));
        part.map(|part| part.changes.as_slice()).unwrap_or_default()
    }

    /// Takes the changes of one table that belong to the transaction that is being read.
    pub fn take_open(&mut self, table: &Arc<str>) -> Vec<Change> {
        let place = self.places.get(table).copied();
        let Some(part) = place.and_then(|place| self.tables.get_mut(place)) else {
            return Vec::new();
        };
        let taken = part.changes.split_off(part.whole);
        self.changes -= taken.len();
        taken
    }

    /// Bytes of the transaction that is being read.
    pub fn open_bytes(&self) -> usize {
        self.bytes - self.whole_bytes
    }

    /// Counts bytes of the transaction that is being read.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The transaction that was being read is whole.
    pub fn commit(&mut self) {
        self.tables.iter_mut().for_each(|part| part.whole = part.changes.len());
        (self.whole_changes, self.whole_bytes) = (self.changes, self.bytes);
    }

    /// The transaction that was being read did not happen.
    pub fn roll_back(&mut self) {
        self.tables.iter_mut().for_each(|part| part.changes.truncate(part.whole));
        (self.changes, self.bytes) = (self.whole_changes, self.whole_bytes);
    }

    /// Whether there are changes of whole transactions.
    pub fn has_whole(&self) -> bool {
        self.whole_changes > 0
    }

    /// Whether the whole transactions are enough for a batch.
    pub fn is_full(&self) -> bool {
        self.whole_changes >= FULL_CHANGES || self.whole_bytes >= FULL_BYTES
    }

    /// Whether the transaction that is being read is more than a batch by itself.
    pub fn is_large(&self) -> bool {
        self.changes - self.whole_changes >= 4 * FULL_CHANGES
            || self.bytes - self.whole_bytes >= 4 * FULL_BYTES
    }

    /// Takes the changes of whole transactions; those of the one that is being read stay.
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

    /// Takes everything, of the transaction that is being read too.
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
    fn what_is_taken_is_whole() {
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
