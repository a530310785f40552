//! The keys that changed while a chunk was read (between its watermarks). The stream has their newer values.

use std::collections::VecDeque;

use remora_engine::{Row, Value};
use rustc_hash::FxHashMap;

/// The most recorded keys. Chunks of windows with more changes are read again.
const MAX_KEYS: usize = 1 << 20;
/// The most recorded foreign key actions, likewise.
const MAX_CASCADES: usize = 4_096;

/// The open windows of one copy.
#[derive(Default)]
pub(crate) struct Windows {
    open: VecDeque<Window>,
    /// The time of each key's last change, by the clock.
    changed: FxHashMap<Box<[u8]>, u64>,
    /// Counts changes.
    clock: u64,
    opened: u64,
    /// Windows that were opened before this time have changes that are no longer recorded.
    forgotten_before: u64,
    /// Foreign key actions on rows that may not be copied yet, by the clock.
    cascades: Vec<(u64, Cascade)>,
}

/// A foreign key action on all rows with certain values.
#[derive(Clone, Debug)]
pub(crate) struct Cascade {
    /// Columns and the values to match.
    pub old_values: Vec<(usize, Value)>,
    /// Their new values; `None` if the rows are deleted.
    pub new_values: Option<Vec<Value>>,
}

impl Cascade {
    /// The row afterwards; `None` if it is deleted.
    pub fn apply(&self, mut row: Row) -> Option<Row> {
        if self.old_values.iter().any(|(place, value)| row.get(*place) != Some(value)) {
            return Some(row);
        }
        for ((place, _), value) in self.old_values.iter().zip(self.new_values.as_ref()?) {
            if let Some(cell) = row.get_mut(*place) {
                cell.clone_from(value);
            }
        }
        Some(row)
    }
}

struct Window {
    number: u64,
    since: u64,
}

impl Windows {
    /// Opens a window.
    pub fn open(&mut self) -> u64 {
        self.opened += 1;
        self.open.push_back(Window { number: self.opened, since: self.clock });
        self.opened
    }

    /// The number of open windows.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Records a change if a window is open. `key` has the form of [`write_key`].
    pub fn record(&mut self, key: &[u8]) {
        if self.open.is_empty() {
            return;
        }
        self.clock += 1;
        if let Some(last) = self.changed.get_mut(key) {
            *last = self.clock;
            return;
        }
        if self.changed.len() >= MAX_KEYS {
            self.changed.clear();
            self.forgotten_before = self.clock;
        }
        self.changed.insert(key.into(), self.clock);
    }

    /// Records a foreign key action if a window is open.
    pub fn cascade(&mut self, cascade: Cascade) {
        if self.open.is_empty() {
            return;
        }
        self.clock += 1;
        if self.cascades.len() >= MAX_CASCADES {
            self.cascades.clear();
            self.forgotten_before = self.clock;
        }
        self.cascades.push((self.clock, cascade));
    }

    /// Filters a chunk that was read in this window: rows whose keys did not change in it. `None` if that is unknown
    /// and the chunk must be read again.
    pub fn unchanged(&self, window: u64, rows: Vec<Row>, key: &[usize]) -> Option<Vec<Row>> {
        let since = self.open.iter().find(|open| open.number == window)?.since;
        if since < self.forgotten_before {
            return None;
        }
        if self.changed.is_empty() && self.cascades.is_empty() {
            return Some(rows);
        }
        let mut written = Vec::new();
        let unchanged = |row: &Row| {
            write_key(&mut written, row, key);
            self.changed.get(written.as_slice()).is_none_or(|last| *last <= since)
        };
        let cascaded = |row: Row| {
            let later = self.cascades.iter().filter(|(clock, _)| *clock > since);
            later.map(|(_, cascade)| cascade).try_fold(row, |row, cascade| cascade.apply(row))
        };
        Some(rows.into_iter().filter(unchanged).filter_map(cascaded).collect())
    }

    /// Closes a window.
    pub fn close(&mut self, window: u64) {
        self.open.retain(|open| open.number != window);
        if self.open.is_empty() {
            self.changed.clear();
            self.cascades.clear();
        }
    }
}

/// Writes the key's values so that the bytes are equal if and only if the values are.
pub(crate) fn write_key(written: &mut Vec<u8>, row: &[Value], key: &[usize]) {
    written.clear();
    for value in key.iter().filter_map(|place| row.get(*place)) {
        match value {
            Value::Int(number) => written.extend_from_slice(&number.to_le_bytes()),
            Value::Uint(number) => written.extend_from_slice(&number.to_le_bytes()),
            Value::Time(micros) | Value::Timestamp(micros) => {
                written.extend_from_slice(&micros.to_le_bytes());
            }
            Value::Text(text) => write_bytes(written, text.as_bytes()),
            Value::Bytes(bytes) => write_bytes(written, bytes),
            other => write_bytes(written, other.to_string().as_bytes()),
        }
    }
}

fn write_bytes(written: &mut Vec<u8>, bytes: &[u8]) {
    written.extend_from_slice(&bytes.len().to_le_bytes());
    written.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: i64) -> Row {
        vec![Value::Int(key), Value::Null]
    }

    fn record(windows: &mut Windows, key: i64) {
        let mut written = Vec::new();
        write_key(&mut written, &row(key), &[0]);
        windows.record(&written);
    }

    #[test]
    fn window_drops_rows_changed_while_open() {
        let mut windows = Windows::default();
        record(&mut windows, 1);
        let first = windows.open();
        record(&mut windows, 2);
        let second = windows.open();
        record(&mut windows, 3);
        let rows = || vec![row(1), row(2), row(3)];
        assert_eq!(windows.unchanged(first, rows(), &[0]), Some(vec![row(1)]));
        assert_eq!(windows.unchanged(second, rows(), &[0]), Some(vec![row(1), row(2)]));
        windows.close(first);
        windows.close(second);
        let third = windows.open();
        assert_eq!(windows.unchanged(third, rows(), &[0]), Some(rows()));
        assert_eq!(windows.unchanged(first, rows(), &[0]), None);
    }

    #[test]
    fn foreign_key_actions_are_applied_to_read_chunks() {
        let referring = |key: i64, to: i64| vec![Value::Int(key), Value::Int(to)];
        let mut windows = Windows::default();
        let first = windows.open();
        let old_values = |to: i64| vec![(1, Value::Int(to))];
        windows.cascade(Cascade { old_values: old_values(7), new_values: None });
        let second = windows.open();
        windows.cascade(Cascade { old_values: old_values(8), new_values: Some(vec![Value::Null]) });
        let rows = || vec![referring(1, 7), referring(2, 8), referring(3, 9)];
        let nulled = vec![Value::Int(2), Value::Null];
        let expected = vec![nulled.clone(), referring(3, 9)];
        assert_eq!(windows.unchanged(first, rows(), &[0]), Some(expected));
        let expected = vec![referring(1, 7), nulled, referring(3, 9)];
        assert_eq!(windows.unchanged(second, rows(), &[0]), Some(expected));
    }

    #[test]
    fn composite_keys_are_unambiguous() {
        let written = |parts: [&str; 2]| {
            let row: Row = parts.iter().map(|part| Value::Text((*part).into())).collect();
            let mut written = Vec::new();
            write_key(&mut written, &row, &[0, 1]);
            written
        };
        assert_ne!(written(["a", "bc"]), written(["ab", "c"]));
    }
}
