//! The terms of a segment's documents side by side again, made of the postings: no text is read.

use super::super::postings::{Decoded, Postings, positions};
use crate::{IndexError, Result, bytes::Stored, text::offsets::Offsets};

/// What stands at each ordinal of each document.
pub(super) struct Stream {
    /// Where each document begins; one more at the end.
    starts: Vec<usize>,
    /// (term + 1) * 2 + (a single space stands before it); below 2 where none that counts stands.
    slots: Vec<u32>,
}

impl Stream {
    /// Nothing at all, of documents with so many ordinals.
    pub fn new(ordinals: &[u32]) -> Self {
        let mut starts = Vec::with_capacity(ordinals.len() + 1);
        let mut start = 0;
        for &count in ordinals {
            starts.push(start);
            start += count as usize;
        }
        starts.push(start);
        Self { starts, slots: vec![0; start] }
    }

    /// Puts a term everywhere it stands.
    pub fn put(
        &mut self,
        term: u32,
        (records, offsets): (&[u8], &Offsets),
        stored: &Stored,
        decoded: &mut Decoded,
    ) -> Result<()> {
        let doc_count = (self.starts.len() - 1) as u32;
        decoded.clear();
        Postings::open(records, offsets.start(term), doc_count)?
            .decode_unchecked(stored, decoded)?;
        let mut inside = true;
        let (starts, slots) = (&self.starts, &mut self.slots);
        decoded.for_each_document(|doc, places| {
            let start = starts.get(doc as usize).copied().unwrap_or(usize::MAX);
            for position in positions(places) {
                match slots.get_mut(start.saturating_add(position as usize / 2)) {
                    Some(slot) => *slot = (term + 1) << 1 | position & 1,
                    None => inside = false,
                }
            }
        });
        if inside { Ok(()) } else { Err(IndexError::corrupt("a place behind its document")) }
    }

    /// Visits the slots of each document.
    pub fn for_each(&self, mut visit: impl FnMut(u32, &[u32])) {
        for (range, doc) in self.starts.windows(2).zip(0..) {
            visit(doc, &self.slots[range[0]..range[1]]);
        }
    }

    /// The same, to be changed.
    pub fn for_each_mut(&mut self, mut visit: impl FnMut(u32, &mut [u32])) {
        for (range, doc) in self.starts.windows(2).zip(0..) {
            visit(doc, &mut self.slots[range[0]..range[1]]);
        }
    }
}
