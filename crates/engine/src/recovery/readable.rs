//! Reads a table that is partly damaged.

use crate::{Error, Result, Row, snapshot::SegmentView, storage::rows::RowReader};

/// Like [`RowReader::scan`], but continues past damage. `visit` gets the rows that can be read. `failed` gets each
/// error; its own error ends the scan.
///
/// After an error the scan continues at the next key of `segments` whose row can be read; each unreadable key before
/// it is one more error. Rows that no segment has may lie in between, so the end of the damage is searched by trial
/// reads. Rows between two close damages may be missed.
pub(crate) fn scan_readable(
    rows: &dyn RowReader,
    segments: &[SegmentView],
    visit: &mut dyn FnMut(&[u8], Row) -> Result<bool>,
    failed: &mut dyn FnMut(Error) -> Result<()>,
) -> Result<()> {
    let mut from = Vec::new();
    loop {
        let mut last = from.clone();
        // An error of `visit` is not damage: it is returned.
        let mut of_visitor = None;
        let scanned = rows.scan(&from, &mut |key, row| {
            last.clear();
            last.extend_from_slice(key);
            visit(key, row).or_else(|error| {
                of_visitor = Some(error);
                Ok(false)
            })
        });
        if let Some(error) = of_visitor {
            return Err(error);
        }
        let Err(error) = scanned else { return Ok(()) };
        failed(error)?;
        let known = next_readable(rows, segments, last.clone(), failed)?;
        match end_of_damage(rows, &last, known) {
            Some(key) => from = key,
            None => return Ok(()),
        }
    }
}

/// The first key after `last` that a segment has and whose row can be read.
fn next_readable(
    rows: &dyn RowReader,
    segments: &[SegmentView],
    last: Vec<u8>,
    failed: &mut dyn FnMut(Error) -> Result<()>,
) -> Result<Option<Vec<u8>>> {
    let mut last = last;
    while let Some(key) = segments.iter().filter_map(|view| live_after(view, &last)).min() {
        match rows.get(&key, None, &|_| true) {
            Ok(_) => return Ok(Some(key)),
            Err(error) => failed(error)?,
        }
        last = key;
    }
    Ok(None)
}

/// Leading bytes of a key that the search for the end of damage varies.
const SOUGHT_BYTES: usize = 16;

/// Where rows can be read again after `last`, the last readable key: at `known` or before it. `None` if nowhere.
/// Cost: a few hundred reads.
fn end_of_damage(rows: &dyn RowReader, last: &[u8], known: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let first_bytes = |key: &[u8]| {
        let mut bytes = [0; SOUGHT_BYTES];
        bytes.iter_mut().zip(key).for_each(|(byte, &of_key)| *byte = of_key);
        u128::from_be_bytes(bytes)
    };
    let is_readable = |from: u128| rows.scan(&from.to_be_bytes(), &mut |_, _| Ok(false)).is_ok();
    let start = first_bytes(last);
    let end = known.as_deref().map_or(u128::MAX, first_bytes);
    // In growing steps, so that the nearest end is found if there are several.
    let steps = (0..u128::BITS).map(|bit| start.saturating_add(1 << bit).min(end));
    let (mut damaged, mut readable) = (start, None);
    for from in steps.filter(|&from| from > start) {
        if is_readable(from) {
            readable = Some(from);
            break;
        }
        damaged = damaged.max(from);
        if from == end {
            break;
        }
    }
    let Some(mut readable) = readable else { return known };
    while readable - damaged > 1 {
        let middle = damaged + (readable - damaged) / 2;
        if is_readable(middle) { readable = middle } else { damaged = middle }
    }
    Some(readable.to_be_bytes().to_vec())
}

/// The first live key of a segment after `last`.
fn live_after(view: &SegmentView, last: &[u8]) -> Option<Vec<u8>> {
    let keys = view.segment.keys();
    let after = [last, &[0]].concat();
    let doc = (keys.lower_bound(&after)..keys.len()).find(|&doc| !view.is_deleted(doc))?;
    let mut key = Vec::new();
    keys.read(doc, &mut key);
    Some(key)
}
