//! Merges the values of a path: entries in one ordered pass, documents renumbered.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{PathEntries, PathIndex, PathSpec, writer::PathWriter};
use crate::{Result, SectionWriter, text::GONE};

/// Writes the merged sections of a path for `doc_count` documents. An input is its values, and the new number of each
/// of its documents, ascending, or [`GONE`].
pub(crate) fn merge(
    sources: &[(&PathIndex, &[u32])],
    doc_count: u32,
    spec: &PathSpec,
    out: &mut SectionWriter,
) -> Result<()> {
    let mut inputs: Vec<(PathEntries<'_>, &[u32])> = Vec::with_capacity(sources.len());
    let mut next: BinaryHeap<Reverse<(Vec<u8>, u32, usize)>> = BinaryHeap::new();
    for (path, map) in sources {
        inputs.push((path.entries()?, map));
    }
    for (number, (entries, map)) in inputs.iter_mut().enumerate() {
        if let Some(found) = live(entries, map, Vec::new())? {
            next.push(Reverse((found.0, found.1, number)));
        }
    }
    let mut writer = PathWriter::new(doc_count);
    while let Some(Reverse((value, doc, number))) = next.pop() {
        writer.push(&value, doc)?;
        if let Some((entries, map)) = inputs.get_mut(number)
            && let Some(found) = live(entries, map, value)?
        {
            next.push(Reverse((found.0, found.1, number)));
        }
    }
    writer.add_to(spec, out);
    Ok(())
}

/// The next entry of a document that is not gone, by its new number. The value is written into `room`.
fn live(
    entries: &mut PathEntries<'_>,
    map: &[u32],
    mut room: Vec<u8>,
) -> Result<Option<(Vec<u8>, u32)>> {
    while let Some((value, doc)) = entries.next()? {
        match map.get(doc as usize) {
            None | Some(&GONE) => {}
            Some(&new) => {
                room.clear();
                room.extend_from_slice(value);
                return Ok(Some((room, new)));
            }
        }
    }
    Ok(None)
}
