//! Writes the sections of a path, entry by entry.

use std::cmp::Ordering;

use super::{BLOCK_ENTRIES, ENTRIES, HEAD, PathSpec, SINGLE, compare_from};
use crate::{Bitmap, IndexError, Result, SectionWriter, varint};

/// Writes entries, which must come in the order of value and document.
pub(super) struct PathWriter {
    doc_count: u32,
    entry_count: u64,
    ends: Vec<u8>,
    entries: Vec<u8>,
    /// The most entries of a block.
    pub(super) block_entries: usize,
    /// Number of entries in the current block.
    in_block: usize,
    value: Vec<u8>,
    doc: u32,
    seen: Bitmap,
    single: bool,
}

impl PathWriter {
    /// A writer for a segment of so many documents, with capacity for so many bytes of entries.
    pub(super) fn with_room(doc_count: u32, bytes: usize) -> Self {
        Self {
            doc_count,
            entry_count: 0,
            ends: Vec::new(),
            entries: Vec::with_capacity(bytes),
            block_entries: BLOCK_ENTRIES,
            in_block: 0,
            value: Vec::new(),
            doc: 0,
            seen: Bitmap::new(doc_count),
            single: true,
        }
    }

    /// Appends the next entry; a repetition of the last one is ignored.
    pub(super) fn push(&mut self, value: &[u8], doc: u32) -> Result<()> {
        if doc >= self.doc_count {
            return Err(IndexError::corrupt("a path has a document that is not there"));
        }
        let is_first = self.entry_count == 0;
        let (shared, order) = match is_first {
            true => (0, Ordering::Greater),
            false => compare_from(0, value, &self.value),
        };
        let is_same = order.is_eq();
        if is_same && doc == self.doc {
            return Ok(());
        }
        if order.is_lt() || (is_same && doc < self.doc) {
            return Err(IndexError::corrupt("the values of a path do not ascend"));
        }
        let length =
            u32::try_from(value.len()).map_err(|_| IndexError::Full("4 GiB of a value"))?;
        if self.in_block == self.block_entries {
            self.end_block();
        }
        if self.in_block == 0 {
            varint::push(&mut self.entries, length);
            self.entries.extend_from_slice(value);
            varint::push(&mut self.entries, doc);
        } else if is_same {
            varint::push(&mut self.entries, 0);
            varint::push(&mut self.entries, doc - self.doc);
        } else {
            varint::push(&mut self.entries, length - shared as u32);
            varint::push(&mut self.entries, shared as u32);
            self.entries.extend_from_slice(&value[shared..]);
            varint::push(&mut self.entries, doc);
        }
        if !is_same {
            self.value.truncate(shared);
            self.value.extend_from_slice(&value[shared..]);
        }
        self.doc = doc;
        self.in_block += 1;
        self.entry_count += 1;
        self.single &= self.seen.insert(doc);
        Ok(())
    }

    fn end_block(&mut self) {
        self.ends.extend((self.entries.len() as u64).to_le_bytes());
        self.in_block = 0;
    }

    /// The two sections.
    pub(super) fn finish(mut self, label: &[u8]) -> (Vec<u8>, Vec<u8>) {
        if self.in_block > 0 {
            self.end_block();
        }
        let mut head = self.doc_count.to_le_bytes().to_vec();
        head.extend(((self.ends.len() / 8) as u32).to_le_bytes());
        head.extend(self.entry_count.to_le_bytes());
        head.extend([if self.single { SINGLE } else { 0 }, 0, 0, 0]);
        head.extend((label.len() as u32).to_le_bytes());
        head.extend_from_slice(label);
        head.append(&mut self.ends);
        (head, self.entries)
    }

    /// Adds the two sections to `out`.
    pub(super) fn add_to(self, spec: &PathSpec, out: &mut SectionWriter) {
        let (head, entries) = self.finish(&spec.label);
        out.add(HEAD, spec.id, &head);
        out.add(ENTRIES, spec.id, &entries);
    }
}
