//! The keys that were written while transactions were open.
//!
//! A transaction conflicts with every write of its keys since its snapshot. While any transaction is open, the writer
//! records the hash and position of every key it writes. The writer looks for open transactions only after it has
//! published, and a transaction registers before it loads its snapshot: so an unrecorded write is visible to every
//! later transaction. A hash collision only makes a transaction start again.

use rustc_hash::FxHashMap;

use crate::{
    Position,
    shared::{OpenTransactions, PreparedBatch},
};

/// The most keys that are recorded: about 30 MB.
const MAX_NOTED: usize = 1 << 20;

/// The keys that were written while transactions were open.
#[derive(Default)]
pub(super) struct RecentWrites {
    /// Hashes of keys, and the position of their last write.
    keys: FxHashMap<u64, Position>,
    /// Tables in which any key may have been written, and the last position.
    tables: FxHashMap<u32, Position>,
    /// Writes up to this position are not known any more.
    pub forgotten: Position,
}

impl RecentWrites {
    /// Records the keys of batches that were just published, the first of them at `first`. Keys that a transaction
    /// protected count as written: of two transactions that protect the same key, one must start again.
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

    /// Records that any key of these tables may have been written, because there are too many to
    /// record each.
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

    /// Whether there is room for `count` more keys. If not, keys that no open transaction needs are removed; then
    /// half of the room must be free, so that this is not repeated soon.
    fn has_room(&mut self, count: usize, oldest: Position) -> bool {
        if self.keys.len().saturating_add(count) <= MAX_NOTED {
            return true;
        }
        self.keys.retain(|_, position| *position > oldest);
        self.keys.len().saturating_add(count) <= MAX_NOTED / 2
    }

    /// Whether a key with this hash was, or may have been, written after `since`.
    pub fn is_written(&self, table: u32, hash: u64, since: Position) -> bool {
        let after = |position: Option<&Position>| position.is_some_and(|at| *at > since);
        after(self.keys.get(&hash)) || self.is_table_written(table, since)
    }

    /// Whether any key of a table may have been written after `since`.
    pub fn is_table_written(&self, table: u32, since: Position) -> bool {
        self.tables.get(&table).is_some_and(|at| *at > since)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shared::{PreparedChange, PreparedTable, key_hash};

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
            unique: Vec::new(),
        };
        PreparedBatch { tables: vec![table], ..PreparedBatch::default() }
    }

    fn is_written(recent: &RecentWrites, key: u32, since: u64) -> bool {
        recent.is_written(1, key_hash(1, &key.to_be_bytes()), Position(since))
    }

    #[test]
    fn keys_are_recorded_while_a_transaction_is_open() {
        let mut recent = RecentWrites::default();
        let one = OpenTransactions::at(&[4]);
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
    fn the_recorded_keys_are_bounded() {
        let mut recent = RecentWrites::default();
        let (early, late) = (OpenTransactions::at(&[4, 6]), OpenTransactions::at(&[6]));
        let third = MAX_NOTED as u32 / 3;
        recent.note(&early, &[batch(0..third)], Position(5));
        recent.note(&early, &[batch(third..2 * third)], Position(6));
        assert!(is_written(&recent, 0, 4));
        // The first keys are not needed any more and make room.
        recent.note(&late, &[batch(2 * third..3 * third)], Position(7));
        recent.note(&late, &[batch(3 * third..3 * third + third / 2)], Position(8));
        assert!(is_written(&recent, 2 * third, 6) && recent.forgotten == Position(0));
        recent.note(&late, &[batch(0..third)], Position(9));
        recent.note(&late, &[batch(third..2 * third)], Position(10));
        assert_eq!((recent.forgotten, recent.keys.len()), (Position(10), 0));
    }
}
