//! Reads rows whose keys lie close together by one walk over the row store, which costs less for each row than a look-up.

use super::{
    order::DocumentAddress,
    source::{ColumnSource, wanted},
};
use crate::{Result, Row, Value, interrupt::InterruptCheck, snapshot::TableView};

/// Fewer rows are looked up.
const LEAST_ROWS: usize = 64;
/// The walk ends after this many rows between those that are wanted for each of these, and [`LEAST_ROWS`] more.
const MOST_BETWEEN: usize = 2;

/// The requested values of the first of these rows, which are live: of as many as a walk finds sooner than look-ups, and
/// up to about `most_bytes`. None if their keys do not ascend.
pub(super) fn walked(
    view: &TableView,
    places: &[DocumentAddress],
    sources: &[ColumnSource],
    (most_bytes, unless): (usize, &InterruptCheck),
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if places.len() < LEAST_ROWS || !sources.iter().any(ColumnSource::is_row) {
        return Ok(rows);
    }
    let Some(keys) = SortedKeys::of(view, places) else { return Ok(rows) };
    let (mut between, mut bytes) = (0, 0);
    view.rows.scan_columns(keys.get(0), &wanted(sources), &mut |key, mut row| {
        unless.check()?;
        if key != keys.get(rows.len()) {
            between += 1;
            return Ok(between <= MOST_BETWEEN * rows.len() + LEAST_ROWS);
        }
        let values = values(&mut row, sources);
        bytes += values.iter().map(bytes_of).sum::<usize>();
        rows.push(values);
        Ok(rows.len() < places.len() && bytes <= most_bytes)
    })?;
    Ok(rows)
}

/// The requested values of a row of all columns.
pub(super) fn values(row: &mut Row, sources: &[ColumnSource]) -> Row {
    let value = |(at, source): (usize, &ColumnSource)| {
        let place = source.position();
        let comes_again = sources.iter().skip(at + 1).any(|other| other.position() == place);
        match row.get_mut(place) {
            Some(value) if comes_again => value.clone(),
            Some(value) => std::mem::replace(value, Value::Null),
            None => Value::Null,
        }
    };
    sources.iter().enumerate().map(value).collect()
}

fn bytes_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) | Value::Json(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
}

/// Encoded keys, ascending.
struct SortedKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SortedKeys {
    /// The keys of these rows; `None` if they do not ascend.
    fn of(view: &TableView, places: &[DocumentAddress]) -> Option<Self> {
        let mut keys = Self { bytes: Vec::new(), ends: Vec::with_capacity(places.len()) };
        let mut key = Vec::new();
        for place in places {
            place.read_key(view, &mut key);
            if !keys.ends.is_empty() && *keys.get(keys.ends.len() - 1) >= *key {
                return None;
            }
            keys.bytes.extend_from_slice(&key);
            keys.ends.push(keys.bytes.len());
        }
        Some(keys)
    }

    fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(at).copied().unwrap_or(self.bytes.len());
        self.bytes.get(start.unwrap_or(0)..end).unwrap_or_default()
    }
}
