//! A session's uncommitted changes to a table over the snapshot, or all rows of a temporary table.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    sync::Arc,
};

use remora_engine::{Change, KeyValues, Row, Schema, Value, compare};

/// A primary key, ordered as the engine orders keys.
#[derive(Clone, Debug)]
pub(crate) struct RowKey(pub KeyValues);

/// The changed rows of one table, by key. Cloning costs time proportional to their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    changed: BTreeMap<RowKey, Option<Arc<Row>>>,
    live: usize,
    bytes: u64,
}

/// The memory of a changed row, without its values.
const CHANGE_BYTES: u64 = 256;

/// The approximate memory of a changed row.
pub(crate) fn change_bytes(row: Option<&Row>) -> u64 {
    let texts = row.iter().flat_map(|row| row.iter()).map(text_bytes).sum::<u64>();
    let values = row.map_or(0, |row| size_of_val(row.as_slice()) as u64);
    CHANGE_BYTES + values + texts
}

fn text_bytes(value: &Value) -> u64 {
    match value {
        Value::Text(text) | Value::Json(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        _ => 0,
    }
}

impl RowKey {
    /// The key of a row.
    pub(crate) fn of(schema: &Schema, row: &[Value]) -> Self {
        let part = |&position: &usize| row.get(position).cloned().unwrap_or(Value::Null);
        Self(schema.primary_key.iter().map(part).collect())
    }
}

impl Ord for RowKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let mut pairs = self.0.iter().zip(&other.0);
        let differs = pairs.find_map(|(a, b)| Some(compare(a, b)).filter(|order| order.is_ne()));
        differs.unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}

impl PartialOrd for RowKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RowKey {}

impl Hash for RowKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // Values that compare equal have the same text.
        self.0.iter().for_each(|part| part.to_string().hash(hasher));
    }
}

impl Overlay {
    /// The change of a key: `None` if there is none, else its row, or `None` within if it was deleted.
    pub(crate) fn get(&self, key: &RowKey) -> Option<Option<&Arc<Row>>> {
        self.changed.get(key).map(Option::as_ref)
    }

    /// Whether the snapshot's row with this key is hidden by a change.
    pub(crate) fn hides(&self, key: &RowKey) -> bool {
        self.changed.contains_key(key)
    }

    /// All changes, in key order. `None` is a deleted row.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&RowKey, Option<&Arc<Row>>)> {
        self.changed.iter().map(|(key, row)| (key, row.as_ref()))
    }

    /// The existing rows, in key order.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &Arc<Row>> {
        self.changed.values().flatten()
    }

    /// The number of existing rows.
    pub(crate) fn row_count(&self) -> usize {
        self.live
    }

    /// The number of changed keys.
    pub(crate) fn len(&self) -> usize {
        self.changed.len()
    }

    /// Sets or deletes the row of a key. Returns its previous change.
    pub(crate) fn set(&mut self, key: RowKey, row: Option<Arc<Row>>) -> Option<Option<Arc<Row>>> {
        self.live += usize::from(row.is_some());
        self.bytes = self.bytes.saturating_add(change_bytes(row.as_deref()));
        let before = self.changed.insert(key, row);
        self.without(before)
    }

    /// Removes the change of a key and returns it.
    pub(crate) fn forget(&mut self, key: &RowKey) -> Option<Option<Arc<Row>>> {
        let before = self.changed.remove(key);
        self.without(before)
    }

    fn without(&mut self, before: Option<Option<Arc<Row>>>) -> Option<Option<Arc<Row>>> {
        if let Some(row) = &before {
            self.live -= usize::from(row.is_some());
            self.bytes = self.bytes.saturating_sub(change_bytes(row.as_deref()));
        }
        before
    }

    /// The approximate memory of the changes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The changes, as the engine takes them.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.changed.iter().map(as_change).collect()
    }

    /// The changes of these keys, as the engine takes them.
    pub(crate) fn changes_of(&self, keys: &BTreeSet<RowKey>) -> Vec<Change> {
        keys.iter().filter_map(|key| self.changed.get_key_value(key)).map(as_change).collect()
    }
}

fn as_change((key, row): (&RowKey, &Option<Arc<Row>>)) -> Change {
    match row {
        Some(row) => Change::Put(Row::clone(row)),
        None => Change::Delete(key.0.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: i64) -> RowKey {
        RowKey([Value::Int(number)].into_iter().collect())
    }

    #[test]
    fn rows_are_counted_whatever_was_known_before() {
        let mut overlay = Overlay::default();
        let row = |number| Some(Arc::new(vec![Value::Int(number)]));
        assert_eq!(overlay.set(key(2), row(2)), None);
        assert_eq!(overlay.set(key(1), row(1)), None);
        assert_eq!(overlay.set(key(2), None), Some(row(2)));
        assert_eq!((overlay.row_count(), overlay.len()), (1, 2));
        assert!(overlay.hides(&key(2)) && !overlay.hides(&key(3)));
        let of_a_deletion = change_bytes(None);
        assert_eq!(overlay.bytes(), of_a_deletion + change_bytes(row(1).as_deref()));
        assert_eq!(overlay.forget(&key(1)), Some(row(1)));
        assert_eq!((overlay.row_count(), overlay.len(), overlay.bytes()), (0, 1, of_a_deletion));
        assert_eq!(overlay.changes(), [Change::Delete(vec![Value::Int(2)])]);
    }
}
