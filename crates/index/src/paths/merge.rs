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
    let mut inputs: Vec<(u64, Input<'_>)> = Vec::with_capacity(sources.len());
    for &(path, map) in sources {
        let mut input = Input { entries: path.at_block(0), map, doc: 0 };
        if let Some(first_bytes) = input.advance()? {
            inputs.push((first_bytes, input));
        }
    }
    let bytes = sources.iter().map(|(path, _)| path.entries.len()).sum();
    let mut writer = PathWriter::with_room(doc_count, bytes);
    let mut heap = Heap::of(inputs);
    while let Some((first_bytes, input)) = heap.first() {
        writer.push(&input.entries.value, input.doc)?;
        match input.advance()? {
            Some(next) => {
                *first_bytes = next;
                heap.sink(0);
            }
            None => heap.remove_first(),
        }
    }
    writer.add_to(spec, out);
    Ok(())
}

/// One input at its next entry, whose value is in the reader's buffer.
struct Input<'i> {
    entries: PathEntries<'i>,
    map: &'i [u32],
    /// The new number of its document.
    doc: u32,
}

impl Input<'_> {
    /// Goes to the next entry of a document that is not gone. Gives the first bytes of its value, which decide most
    /// comparisons; `None` at the end.
    fn advance(&mut self) -> Result<Option<u64>> {
        while self.entries.step()?.is_some() {
            match self.map.get(self.entries.doc as usize) {
                None | Some(&GONE) => {}
                Some(&new) => {
                    self.doc = new;
                    return Ok(Some(first_bytes(&self.entries.value)));
                }
            }
        }
        Ok(None)
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.entries.value.cmp(&other.entries.value).then(self.doc.cmp(&other.doc))
    }
}

/// A binary min-heap of inputs. Unlike the standard one, it replaces the top without moving it out and in, and what moves
/// in it is small: the inputs stay where they are.
struct Heap<'i> {
    inputs: Vec<Input<'i>>,
    /// The first bytes of each input's value, and which input it is.
    order: Vec<(u64, usize)>,
}

impl<'i> Heap<'i> {
    fn of(inputs: Vec<(u64, Input<'i>)>) -> Self {
        let order = inputs.iter().enumerate().map(|(at, (first_bytes, _))| (*first_bytes, at));
        let order: Vec<_> = order.collect();
        let inputs = inputs.into_iter().map(|(_, input)| input).collect();
        let mut heap = Self { inputs, order };
        (0..heap.order.len() / 2).rev().for_each(|place| heap.sink(place));
        heap
    }

    fn first(&mut self) -> Option<(&mut u64, &mut Input<'i>)> {
        let (first_bytes, at) = self.order.first_mut()?;
        Some((first_bytes, self.inputs.get_mut(*at)?))
    }

    fn remove_first(&mut self) {
        self.order.swap_remove(0);
        self.sink(0);
    }

    fn is_less(&self, one: (u64, usize), other: (u64, usize)) -> bool {
        if one.0 != other.0 {
            return one.0 < other.0;
        }
        match (self.inputs.get(one.1), self.inputs.get(other.1)) {
            (Some(one), Some(other)) => one.compare(other).is_lt(),
            _ => false,
        }
    }

    /// Restores the order after the entry at this place has grown.
    fn sink(&mut self, mut place: usize) {
        while let [left, rest @ ..] = self.order.get(2 * place + 1..).unwrap_or_default() {
            let is_right = rest.first().is_some_and(|right| self.is_less(*right, *left));
            let below = 2 * place + 1 + usize::from(is_right);
            match (self.order.get(below), self.order.get(place)) {
                (Some(child), Some(parent)) if self.is_less(*child, *parent) => {}
                _ => return,
            }
            self.order.swap(place, below);
            place = below;
        }
    }
}
