//! Rows by their keys.
//!
//! A segment says which of its documents has a key, and its columns hold what is indexed of it; so
//! a row is read from the row store only if something is asked that is not indexed. Many keys are
//! sorted once and then asked of one segment after the other, in order, each until it is found:
//! the work grows with the keys alone, and neighbours lie in the same blocks.

use std::cmp::Ordering;

use remora_index::BloomCounts;

use super::source::{Source, sources, wanted};
use crate::{
    KeyValues, Result, Row, Value,
    encode::{append_key, decode_cell, decode_key, encode_key},
    snapshot::{SegmentView, TableView},
};

/// The asked columns of the row with this key.
pub(crate) fn get(view: &TableView, key: &[Value], columns: &[usize]) -> Result<Option<Row>> {
    let sources = sources(&view.schema, columns)?;
    let key = encode_key(&view.schema, key)?;
    let mut counts = BloomCounts::default();
    let mut segments = view.segments.iter();
    let found = segments.find_map(|segment| Some((segment, find(segment, &key, &mut counts)?)));
    view.activity.looked_up(counts);
    let Some((segment, doc)) = found else { return Ok(None) };
    let mut values = Row::with_capacity(columns.len());
    read(view, segment, doc, &key, &sources, &mut values)?;
    Ok(Some(values))
}

/// Calls `visit` with the place in `keys` and the asked columns of each row there is; segment by
/// segment, in key order within each.
pub(crate) fn get_many(
    view: &TableView,
    keys: &[KeyValues],
    columns: &[usize],
    visit: &mut dyn FnMut(usize, &[Value]) -> Result<()>,
) -> Result<()> {
    let sources = sources(&view.schema, columns)?;
    let keys = SortedKeys::new(view, keys)?;
    let mut missing = keys.distinct();
    let mut values = Row::with_capacity(columns.len());
    for segment in &view.segments {
        let mut counts = BloomCounts::default();
        let mut kept = 0;
        for at in 0..missing.len() {
            let entry = missing[at];
            let key = keys.key(entry);
            let Some(doc) = find(segment, key, &mut counts) else {
                missing[kept] = entry;
                kept += 1;
                continue;
            };
            values.clear();
            read(view, segment, doc, key, &sources, &mut values)?;
            keys.same(entry).try_for_each(|place| visit(place, &values))?;
        }
        missing.truncate(kept);
        view.activity.looked_up(counts);
    }
    Ok(())
}

/// The live document that has the key.
fn find(segment: &SegmentView, key: &[u8], counts: &mut BloomCounts) -> Option<u32> {
    segment.segment.keys().find_counted(key, counts).filter(|&doc| !segment.is_deleted(doc))
}

/// Appends the asked values of a live document.
pub(super) fn read(
    view: &TableView,
    segment: &SegmentView,
    doc: u32,
    key: &[u8],
    sources: &[Source],
    values: &mut Row,
) -> Result<()> {
    if sources.iter().any(Source::is_row) {
        let row = super::texts::row(view, key, &wanted(sources))?;
        let value = |source: &Source| row.get(source.position()).cloned().unwrap_or(Value::Null);
        values.extend(sources.iter().map(value));
        return Ok(());
    }
    for source in sources {
        values.push(match *source {
            Source::Column { id, kind, .. } => {
                let column = segment.segment.column(id);
                column.map_or(Value::Null, |column| decode_cell(kind, column.get(doc)))
            }
            Source::Key { part, .. } => {
                let parts = decode_key(&view.schema, key)?;
                parts.into_iter().nth(part).unwrap_or(Value::Null)
            }
            Source::Row { .. } => Value::Null,
        });
    }
    Ok(())
}

/// Encoded keys in their order.
struct SortedKeys {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// A key.
struct Entry {
    /// What it begins with: tells most keys apart without a look at their bytes.
    head: u64,
    start: usize,
    length: u32,
    /// Where it was asked for.
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

    /// The places of an entry and of those behind it that have the same key.
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

/// The first eight bytes as a number, missing ones zero.
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    head.iter_mut().zip(key).for_each(|(slot, byte)| *slot = *byte);
    u64::from_be_bytes(head)
}
