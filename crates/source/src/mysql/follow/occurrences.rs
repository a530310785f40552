//! Counts equal rows of tables without a key, on their way to the engine.
//!
//! ```text
//! key := hash:16 occurrence:u32     big endian; the equal rows of one hash are 0, 1, 2 ... n - 1
//! ```
//! In a batch, such a change only says that a row with a certain hash was added or removed. When the batch is
//! submitted, its changes of each hash are summed: the difference adds occurrences at the end or removes the last ones.
//! So the order within a batch does not matter, and a rolled-back transaction is never counted.
//!
//! The engine's newest snapshot gives the number of rows of a hash, except for changes that were submitted and are not
//! visible yet: those counts are kept here. Counts of a copy are negative while rows are missing that the stream
//! removed before the copy read them.

use std::sync::Arc;

use remora_engine::{Change, Error, KeyValues, Reader, Row, Schema, TableChanges, Value};
use rustc_hash::FxHashMap;

use super::row_hash::{HASH_BYTES, RowHash};
use crate::Result;

/// The most counts that are kept although they are visible, because reading them from the engine costs more.
const MAX_KNOWN: usize = 1 << 16;
/// The most hashes that a large transaction may change, and the most rows that a copy may lack; about a hundred
/// megabytes. Beyond that the table is copied again.
pub(super) const MAX_HASHES: usize = 1 << 21;

/// The number of equal rows for recently changed hashes, by table.
#[derive(Default)]
pub(super) struct Occurrences {
    submitted: FxHashMap<Arc<str>, Counts>,
    /// The counts after the parts of the large transaction so far.
    large: FxHashMap<Arc<str>, Counts>,
}

/// The counts of a table's hashes.
#[derive(Default)]
struct Counts {
    counts: FxHashMap<RowHash, i32>,
    /// The number of negative counts.
    missing: usize,
}

impl Counts {
    fn set(&mut self, hash: RowHash, count: i32) {
        let before = self.counts.insert(hash, count);
        self.missing -= usize::from(before.is_some_and(|before| before < 0));
        self.missing += usize::from(count < 0);
    }
}

/// Why changes of a table cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountFailure {
    /// A removed row does not exist here.
    Missing,
    /// Too many hashes changed.
    TooMany,
}

/// How the changes of a table are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountMode {
    /// They belong to a large transaction, which may be rolled back.
    pub large: bool,
    /// They go to a copy, in which rows may be missing.
    pub partial: bool,
}

/// The effect of a batch on the equal rows of one hash.
#[derive(Default)]
struct Difference {
    rows: i32,
    /// One of the rows, if any were added.
    row: Option<Row>,
}

/// Whether the table counts equal rows.
pub(super) fn counts_rows(schema: &Schema) -> bool {
    schema.hidden_key().is_some_and(|place| schema.primary_key == [place])
}

/// A change that adds a row with this hash.
pub(super) fn insert_change(mut row: Row, hash: RowHash) -> Change {
    row.push(Value::Bytes(hash.as_slice().into()));
    Change::Put(row)
}

/// A change that removes a row with this hash.
pub(super) fn delete_change(hash: RowHash) -> Change {
    Change::Delete(vec![Value::Bytes(hash.as_slice().into())])
}

impl Occurrences {
    /// Converts a table's changes to those that the engine takes.
    pub fn count(
        &mut self,
        reader: &Reader,
        part: TableChanges,
        how: CountMode,
    ) -> Result<std::result::Result<TableChanges, CountFailure>> {
        let differences = differences(part.changes);
        let unknown =
            differences.keys().filter(|hash| self.known_count(&part.table, hash, how).is_none());
        let unknown: Vec<RowHash> = unknown.copied().collect();
        let found = stored_counts(reader, &part.table, &unknown)?;
        let found: FxHashMap<RowHash, i32> = unknown.into_iter().zip(found).collect();
        let mut changes = Vec::with_capacity(differences.len());
        for (hash, difference) in differences {
            let before = self.known_count(&part.table, &hash, how);
            let before = before.or_else(|| found.get(&hash).copied()).unwrap_or(0);
            let after = before.saturating_add(difference.rows);
            if after < 0 && !how.partial {
                return Ok(Err(CountFailure::Missing));
            }
            append_changes(&mut changes, &hash, before, after, difference.row);
            self.remember(&part.table, hash, after, how);
        }
        if self.is_too_much(&part.table, how) {
            return Ok(Err(CountFailure::TooMany));
        }
        Ok(Ok(TableChanges { table: part.table, changes }))
    }

    fn known_count(&self, table: &Arc<str>, hash: &RowHash, how: CountMode) -> Option<i32> {
        let of =
            |tables: &FxHashMap<Arc<str>, Counts>| tables.get(table)?.counts.get(hash).copied();
        let large = if how.large { of(&self.large) } else { None };
        large.or_else(|| of(&self.submitted))
    }

    fn remember(&mut self, table: &Arc<str>, hash: RowHash, count: i32, how: CountMode) {
        let counts = if how.large { &mut self.large } else { &mut self.submitted };
        counts.entry(Arc::clone(table)).or_default().set(hash, count);
    }

    fn is_too_much(&self, table: &Arc<str>, how: CountMode) -> bool {
        let large = self.large.get(table).map_or(0, |large| large.counts.len());
        large > MAX_HASHES || how.partial && self.missing(table) > MAX_HASHES
    }

    /// The number of hashes with missing rows in a copy's table.
    pub fn missing(&self, table: &str) -> usize {
        self.submitted.get(table).map_or(0, |counts| counts.missing)
    }

    /// Whether visible counts should be dropped to save memory.
    pub fn is_full(&self) -> bool {
        let visible = self.submitted.values().map(|known| known.counts.len() - known.missing);
        visible.sum::<usize>() > MAX_KNOWN
    }

    /// Notes that everything submitted is visible.
    pub fn forget_visible(&mut self) {
        self.submitted.retain(|_, counts| {
            if counts.missing < counts.counts.len() {
                counts.counts.retain(|_, count| *count < 0);
            }
            counts.missing > 0
        });
    }

    /// Notes that the table was replaced.
    pub fn forget_table(&mut self, table: &str) {
        self.submitted.remove(table);
        self.large.remove(table);
    }

    /// Notes that the large transaction is visible.
    pub fn commit_large(&mut self) {
        for (table, counts) in std::mem::take(&mut self.large) {
            let submitted = self.submitted.entry(table).or_default();
            counts.counts.into_iter().for_each(|(hash, count)| submitted.set(hash, count));
        }
        self.forget_visible();
    }

    /// Notes that the large transaction was rolled back.
    pub fn roll_back_large(&mut self) {
        self.large.clear();
    }
}

/// The total effect of changes on each hash.
fn differences(changes: Vec<Change>) -> FxHashMap<RowHash, Difference> {
    let mut differences: FxHashMap<RowHash, Difference> = FxHashMap::default();
    for change in changes {
        match change {
            Change::Put(mut row) | Change::Insert(mut row) => {
                let Some(hash) = row.pop().as_ref().and_then(hash_of) else { continue };
                let difference = differences.entry(hash).or_default();
                difference.rows = difference.rows.saturating_add(1);
                difference.row = Some(row);
            }
            Change::Delete(key) => {
                let Some(hash) = key.first().and_then(hash_of) else { continue };
                let difference = differences.entry(hash).or_default();
                difference.rows = difference.rows.saturating_sub(1);
            }
        }
    }
    differences.retain(|_, difference| difference.rows != 0);
    differences
}

fn hash_of(value: &Value) -> Option<RowHash> {
    match value {
        Value::Bytes(bytes) => RowHash::try_from(&bytes[..]).ok(),
        _ => None,
    }
}

/// Appends the changes from `before` to `after` equal rows. Negative counts mean none.
fn append_changes(
    changes: &mut Vec<Change>,
    hash: &RowHash,
    before: i32,
    after: i32,
    row: Option<Row>,
) {
    let (before, after) = (before.max(0), after.max(0));
    for occurrence in after..before {
        changes.push(Change::Delete(vec![key(hash, occurrence)]));
    }
    let Some(row) = row else { return };
    for occurrence in before..after {
        let mut row = row.clone();
        row.push(key(hash, occurrence));
        changes.push(Change::Put(row));
    }
}

fn key(hash: &RowHash, occurrence: i32) -> Value {
    let mut key = [0; HASH_BYTES + 4];
    let bytes = hash.iter().chain(&occurrence.to_be_bytes()).copied().collect::<Vec<_>>();
    key.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    Value::Bytes(key.as_slice().into())
}

/// The number of the table's rows with each hash. Occurrences have no gaps, so the number is found by doubling and
/// bisecting, for all hashes together.
fn stored_counts(reader: &Reader, table: &str, hashes: &[RowHash]) -> Result<Vec<i32>> {
    let mut counts: Vec<Search> = hashes.iter().map(|_| Search::default()).collect();
    loop {
        let open = counts.iter().enumerate().filter_map(|(at, search)| Some((at, search.next()?)));
        let open: Vec<(usize, i32)> = open.collect();
        if open.is_empty() {
            return Ok(counts.iter().map(|search| search.least).collect());
        }
        let keys =
            open.iter().filter_map(|&(at, occurrence)| Some(key(hashes.get(at)?, occurrence)));
        let keys: Vec<KeyValues> = keys.map(|key| KeyValues::from_iter([key])).collect();
        let mut there = vec![false; keys.len()];
        reader.get_many(table, &keys, &[], &mut |place, _| {
            there.get_mut(place).into_iter().for_each(|there| *there = true);
            Ok::<(), Error>(())
        })?;
        for ((at, occurrence), there) in open.into_iter().zip(there) {
            counts
                .get_mut(at)
                .into_iter()
                .for_each(|search| search.record_result(occurrence, there));
        }
    }
}

/// The search for a count.
#[derive(Default)]
struct Search {
    /// The lower bound.
    least: i32,
    /// The upper bound, if there is one.
    most: Option<i32>,
}

impl Search {
    /// The occurrence to look up next; `None` once the count is known.
    fn next(&self) -> Option<i32> {
        match self.most {
            None => Some(self.least.saturating_mul(2).saturating_sub(1).max(self.least)),
            Some(most) if most > self.least => Some(self.least + (most - self.least) / 2),
            Some(_) => None,
        }
    }

    fn record_result(&mut self, occurrence: i32, there: bool) {
        match there {
            true => self.least = occurrence.saturating_add(1),
            false => self.most = Some(occurrence),
        }
        if self.least == i32::MAX {
            self.most = Some(i32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrence_count_is_found_by_binary_search() {
        for count in [0, 1, 2, 3, 4, 5, 7, 8, 100, 1_000_000] {
            let (mut search, mut steps) = (Search::default(), 0);
            while let Some(occurrence) = search.next() {
                search.record_result(occurrence, occurrence < count);
                steps += 1;
            }
            assert_eq!(search.least, count);
            assert!(steps <= 45, "{count}: {steps}");
        }
    }

    #[test]
    fn changes_of_a_batch_are_combined_per_hash() {
        let (a, b) = ([1; HASH_BYTES], [2; HASH_BYTES]);
        let row = vec![Value::Int(1)];
        let changes = vec![
            delete_change(a),
            insert_change(row.clone(), a),
            insert_change(row.clone(), b),
            insert_change(row.clone(), b),
            delete_change(b),
        ];
        let differences = differences(changes);
        let found: Vec<_> = differences.iter().map(|(hash, one)| (*hash, one.rows)).collect();
        assert_eq!(found, [(b, 1)]);
        let mut changes = Vec::new();
        append_changes(&mut changes, &b, -1, 2, Some(row.clone()));
        append_changes(&mut changes, &a, 2, -1, None);
        let put = |occurrence| Change::Put(vec![Value::Int(1), key(&b, occurrence)]);
        let delete = |occurrence| Change::Delete(vec![key(&a, occurrence)]);
        assert_eq!(changes, [put(0), put(1), delete(0), delete(1)]);
    }
}
