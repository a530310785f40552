//! Point lookups: rows by primary key.
//!
//! A segment finds the document of a key, and its columns hold the indexed values; the row store is
//! read only for columns that are not indexed. Many keys are sorted once and then looked up in one
//! segment after the other until each is found: the work depends only on the number of keys, and
//! neighbours lie in the same blocks. Keys are processed in groups. The columns of a group are
//! prefetched, so that the waits for memory overlap.

use std::cmp::Ordering;

use remora_index::BloomCounts;

use super::{
    adjacent,
    source::{ColumnSource, sources, wanted},
    texts::without_row,
};
use crate::{
    KeyValues, Result, Row, Value,
    encode::{append_key, decode_cell, decode_key, encode_key},
    snapshot::{SegmentView, TableView},
    storage::{rows::JsonVisitor, store::RowVersion},
};

/// Keys of one group. The values of their rows fit in the processor's nearest cache.
const KEYS_AT_ONCE: usize = 32;
/// Smaller groups gain nothing from prefetching.
const LEAST_LOADED: usize = 4;

/// The requested columns of the row with this key.
pub(crate) fn get(view: &TableView, key: &[Value], columns: &[usize]) -> Result<Option<Row>> {
    let sources = sources(&view.schema, columns)?;
    let key = encode_key(&view.schema, key)?;
    let Some((segment, doc)) = find_live(view, &key) else { return Ok(None) };
    let mut values = Row::with_capacity(columns.len());
    read(view, segment, doc, &key, &sources, &mut values)?;
    Ok(Some(values))
}

/// Calls `visit` with the JSON document in a column of the row with this key, or with `None` if the value is NULL or of
/// another type. Returns whether there is such a row.
pub(crate) fn visit_json(
    view: &TableView,
    key: &[Value],
    place: usize,
    visit: &mut JsonVisitor<'_>,
) -> Result<bool> {
    let key = encode_key(&view.schema, key)?;
    let Some((segment, doc)) = find_live(view, &key) else { return Ok(false) };
    let version = RowVersion { segment: segment.segment.number(), doc };
    match view.rows.visit_json(&key, version, place, visit)? {
        true => Ok(true),
        false => Err(without_row(view)),
    }
}

/// The live document that has the key, in its segment. Counts the look-up.
fn find_live<'v>(view: &'v TableView, key: &[u8]) -> Option<(&'v SegmentView, u32)> {
    let mut counts = BloomCounts::default();
    let mut segments = view.segments.iter();
    let found = segments.find_map(|segment| Some((segment, find(segment, key, &mut counts)?)));
    view.activity.looked_up(counts);
    view.usage.looked_up();
    found
}

/// Calls `visit` with the index in `keys` and the requested columns of each row that exists; `visit` may take the
/// values. Order: by segment, then by key.
pub(crate) fn get_many(
    view: &TableView,
    keys: &[KeyValues],
    columns: &[usize],
    visit: &mut dyn FnMut(usize, &mut Row) -> Result<()>,
) -> Result<()> {
    let sources = sources(&view.schema, columns)?;
    let keys = SortedKeys::new(view, keys)?;
    view.usage.looked_up();
    let mut missing = keys.distinct();
    let mut values = Row::with_capacity(columns.len());
    let (mut entries, mut docs) = (Vec::new(), Vec::new());
    for segment in &view.segments {
        let mut counts = BloomCounts::default();
        let mut left = Vec::new();
        for group in missing.chunks(KEYS_AT_ONCE) {
            entries.clear();
            docs.clear();
            for &entry in group {
                match find(segment, keys.key(entry), &mut counts) {
                    Some(doc) => {
                        entries.push(entry);
                        docs.push(doc);
                    }
                    None => left.push(entry),
                }
            }
            load(segment, &sources, &docs);
            for (&entry, &doc) in entries.iter().zip(&docs) {
                values.clear();
                read(view, segment, doc, keys.key(entry), &sources, &mut values)?;
                visit_each(keys.same(entry), &mut values, visit)?;
            }
        }
        missing = left;
        view.activity.looked_up(counts);
    }
    Ok(())
}

/// Calls `visit` for each request of one row; each may take its values.
fn visit_each(
    places: impl Iterator<Item = usize>,
    values: &mut Row,
    visit: &mut dyn FnMut(usize, &mut Row) -> Result<()>,
) -> Result<()> {
    let mut places = places.peekable();
    while let Some(place) = places.next() {
        match places.peek() {
            Some(_) => visit(place, &mut values.clone())?,
            None => visit(place, values)?,
        }
    }
    Ok(())
}

/// Prefetches the documents' values in the columns.
fn load(segment: &SegmentView, sources: &[ColumnSource], docs: &[u32]) {
    if docs.len() < LEAST_LOADED || sources.iter().any(ColumnSource::is_row) {
        return;
    }
    for source in sources {
        if let ColumnSource::Column { id, .. } = source
            && let Some(column) = segment.segment.column(*id)
        {
            column.load(docs);
        }
    }
}

/// The live document that has the key.
fn find(segment: &SegmentView, key: &[u8], counts: &mut BloomCounts) -> Option<u32> {
    segment.segment.keys().find_counted(key, counts).filter(|&doc| !segment.is_deleted(doc))
}

/// Appends the requested values of a live document.
pub(super) fn read(
    view: &TableView,
    segment: &SegmentView,
    doc: u32,
    key: &[u8],
    sources: &[ColumnSource],
    values: &mut Row,
) -> Result<()> {
    if sources.iter().any(ColumnSource::is_row) {
        let mut row = super::texts::row(view, (&segment.segment, doc), key, &wanted(sources))?;
        match sources.iter().map(ColumnSource::position).eq(0..row.len()) {
            true => values.append(&mut row),
            false => values.extend(adjacent::values(&mut row, sources)),
        }
        return Ok(());
    }
    for source in sources {
        values.push(match *source {
            ColumnSource::Column { id, kind, .. } => {
                let column = segment.segment.column(id);
                column.map_or(Value::Null, |column| decode_cell(kind, column.get(doc)))
            }
            ColumnSource::Key { part, .. } => {
                let parts = decode_key(&view.schema, key)?;
                parts.into_iter().nth(part).unwrap_or(Value::Null)
            }
            ColumnSource::Row { .. } => Value::Null,
        });
    }
    Ok(())
}

/// Encoded keys, sorted.
struct SortedKeys {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// A key.
struct Entry {
    /// Its first bytes; they decide most comparisons.
    head: u64,
    start: usize,
    length: u32,
    /// Its index in the request.
    place: u32,
}

impl SortedKeys {
    fn new(view: &TableView, keys: &[KeyValues]) -> Result<Self> {
        let mut bytes = Vec::with_capacity(keys.len() * 8);
        let mut entries = Vec::with_capacity(keys.len());
        for (place, key) in (0..).zip(keys) {
            let start = bytes.len();
            append_key(&view.schema, key, &mut bytes)?;
            let key = bytes.get(start..).unwrap_or_default();
            let (head, length) = (head(key), key.len() as u32);
            entries.push(Entry { head, start, length, place });
        }
        let mut sorted = Self { bytes, entries };
        let SortedKeys { bytes, entries } = &mut sorted;
        entries.sort_unstable_by(|a, b| compare(bytes, a, b));
        Ok(sorted)
    }

    /// The first entry of each key.
    fn distinct(&self) -> Vec<u32> {
        let differs = |at: usize| match at.checked_sub(1) {
            Some(before) => self.key(before as u32) != self.key(at as u32),
            None => true,
        };
        (0..self.entries.len()).filter(|&at| differs(at)).map(|at| at as u32).collect()
    }

    fn key(&self, entry: u32) -> &[u8] {
        self.entries.get(entry as usize).map_or(&[], |entry| bytes_of(&self.bytes, entry))
    }

    /// The request indexes of an entry and of the equal entries behind it.
    fn same(&self, entry: u32) -> impl Iterator<Item = usize> + '_ {
        let key = self.key(entry);
        let behind = self.entries.get(entry as usize..).unwrap_or_default().iter();
        let same = behind.take_while(move |other| bytes_of(&self.bytes, other) == key);
        same.map(|entry| entry.place as usize)
    }
}

fn bytes_of<'b>(bytes: &'b [u8], entry: &Entry) -> &'b [u8] {
    bytes.get(entry.start..entry.start + entry.length as usize).unwrap_or_default()
}

fn compare(bytes: &[u8], a: &Entry, b: &Entry) -> Ordering {
    let by_head = a.head.cmp(&b.head);
    by_head.then_with(|| bytes_of(bytes, a).cmp(bytes_of(bytes, b)))
}

/// The first eight bytes as a number; missing ones are zero.
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    head.iter_mut().zip(key).for_each(|(slot, byte)| *slot = *byte);
    u64::from_be_bytes(head)
}
