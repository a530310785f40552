//! Merges the ordered values of a path in one pass, with renumbered documents.

use std::cmp::Ordering;

use super::{PathEntries, PathIndex, PathSpec, damaged, first_bytes, writer::PathWriter};
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
    while !heap.order.is_empty() {
        heap.take_run(|input| writer.push(&input.entries.value, input.doc))?;
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

/// A binary min-heap of inputs. Unlike the standard one, it lets the top advance in place. The
/// inputs themselves never move; only small entries that stand for them do. As long as an input
/// stays the first, it is compared only with the second.
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

    /// Visits the entries of the first input while it stays the first, and advances past them.
    fn take_run(&mut self, mut visit: impl FnMut(&Input<'i>) -> Result<()>) -> Result<()> {
        let Some(&(_, at)) = self.order.first() else { return Ok(()) };
        let second = self.least_below(0);
        loop {
            let Some(input) = self.inputs.get_mut(at) else { return Err(damaged()) };
            visit(input)?;
            let Some(first_bytes) = input.advance()? else {
                self.order.swap_remove(0);
                self.sink(0);
                return Ok(());
            };
            let Some(first) = self.order.first_mut() else { return Ok(()) };
            first.0 = first_bytes;
            let first = *first;
            if let Some(second) = second
                && let Some(&other) = self.order.get(second)
                && self.is_less(other, first)
            {
                self.order.swap(0, second);
                self.sink(second);
                return Ok(());
            }
        }
    }

    /// The place of the lesser of the two entries below a place.
    fn least_below(&self, place: usize) -> Option<usize> {
        let left = 2 * place + 1;
        let first = *self.order.get(left)?;
        let is_right = self.order.get(left + 1).is_some_and(|right| self.is_less(*right, first));
        Some(left + usize::from(is_right))
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
        while let Some(below) = self.least_below(place) {
            match (self.order.get(below), self.order.get(place)) {
                (Some(child), Some(parent)) if self.is_less(*child, *parent) => {}
                _ => return,
            }
            self.order.swap(place, below);
            place = below;
        }
    }
}
