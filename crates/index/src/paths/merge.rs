//! Merges the ordered values of a path in one pass, with renumbered documents.

use std::cmp::Ordering;

use super::{PathEntries, PathIndex, PathSpec, first_bytes, writer::PathWriter};
use crate::{Result, SectionWriter, text::GONE};

/// Writes the merged sections of a path for `doc_count` documents. Each input has the new number of each of
/// its documents, ascending, or [`GONE`].
pub(crate) fn merge(
    sources: &[(&PathIndex, &[u32])],
    doc_count: u32,
    spec: &PathSpec,
    out: &mut SectionWriter,
) -> Result<()> {
    let mut inputs: Vec<Input<'_>> = Vec::with_capacity(sources.len());
    for &(path, map) in sources {
        let mut input = Input { entries: path.at_block(0), map, first_bytes: 0, doc: 0 };
        if input.advance()? {
            inputs.push(input);
        }
    }
    let bytes = sources.iter().map(|(path, _)| path.entries.len()).sum();
    let mut writer = PathWriter::with_room(doc_count, bytes);
    let mut heap = Heap::of(inputs);
    while let Some(input) = heap.first() {
        writer.push(&input.entries.value, input.doc)?;
        match input.advance()? {
            true => heap.settle_first(),
            false => heap.remove_first(),
        }
    }
    writer.add_to(spec, out);
    Ok(())
}

/// One input at its next entry, whose value is in the reader's buffer.
struct Input<'i> {
    entries: PathEntries<'i>,
    map: &'i [u32],
    /// The first bytes of the value; they decide most comparisons.
    first_bytes: u64,
    /// The new number of its document.
    doc: u32,
}

impl Input<'_> {
    /// Goes to the next entry of a document that is not gone; false at the end.
    fn advance(&mut self) -> Result<bool> {
        while self.entries.step()?.is_some() {
            match self.map.get(self.entries.doc as usize) {
                None | Some(&GONE) => {}
                Some(&new) => {
                    self.doc = new;
                    self.first_bytes = first_bytes(&self.entries.value);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_value = || self.entries.value.cmp(&other.entries.value);
        let by_first = self.first_bytes.cmp(&other.first_bytes);
        by_first.then_with(by_value).then(self.doc.cmp(&other.doc))
    }
}

/// A binary min-heap of inputs. Unlike the standard one, it replaces the top without moving it out and in.
struct Heap<'i>(Vec<Input<'i>>);

impl<'i> Heap<'i> {
    fn of(inputs: Vec<Input<'i>>) -> Self {
        let mut heap = Self(inputs);
        (0..heap.0.len() / 2).rev().for_each(|place| heap.sink(place));
        heap
    }

    fn first(&mut self) -> Option<&mut Input<'i>> {
        self.0.first_mut()
    }

    /// Restores the heap after the top's entry has grown.
    fn settle_first(&mut self) {
        self.sink(0);
    }

    fn remove_first(&mut self) {
        self.0.swap_remove(0);
        self.sink(0);
    }

    fn sink(&mut self, mut place: usize) {
        while let [left, rest @ ..] = self.0.get(2 * place + 1..).unwrap_or_default() {
            let is_right = rest.first().is_some_and(|right| right.compare(left).is_lt());
            let below = 2 * place + 1 + usize::from(is_right);
            match (self.0.get(below), self.0.get(place)) {
                (Some(child), Some(parent)) if child.compare(parent).is_lt() => {}
                _ => return,
            }
            self.0.swap(place, below);
            place = below;
        }
    }
}
