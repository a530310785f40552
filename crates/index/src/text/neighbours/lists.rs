//! The document list of one entry, as Rice-coded gaps or as a bitmap.
//!
//! ```text
//! list := documents:varint k:u8 rice(k)(gap){documents}     gap: document - previous - 1, the first: document
//!       | documents:varint 255:u8 word:u64{ceil(all / 64)}  where more than one in 8 documents is in it
//! ```
//! The code is that of `postings/bits`.

use std::sync::Arc;

use crate::{
    Bitmap, DocSet, IndexError, Result,
    text::postings::{BitReader, BitWriter, best_rice},
    varint::{self, VarintReader},
};

/// A list of more than one in this many documents is held as bits.
const BITS_SHARE: u32 = 8;
/// In the place of `k`.
const BITS: u8 = 255;
/// `documents` and `k` take no more bytes.
pub(super) const HEAD_BYTES: usize = 6;

/// A growing list of ascending documents, whose gaps lie elsewhere; about one byte each.
#[derive(Clone, Copy, Default)]
pub(crate) struct Growing {
    next: u32,
    count: u32,
}

impl Growing {
    /// Adds a document, unless it is the one that was added last, and appends its gap.
    #[inline]
    pub fn add(&mut self, doc: u32, gaps: &mut Vec<u8>) {
        if self.count > 0 && doc < self.next {
            return;
        }
        varint::push(gaps, doc - self.next);
        self.next = doc + 1;
        self.count += 1;
    }

    /// How many documents.
    pub fn count(self) -> u32 {
        self.count
    }
}

/// A list of documents.
pub(crate) struct DocumentGaps {
    count: u32,
    gaps: Vec<u8>,
}

impl DocumentGaps {
    /// A list of so many documents with these gaps.
    pub fn new(count: u32, gaps: Vec<u8>) -> Self {
        Self { count, gaps }
    }

    /// How many documents.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Appends the list.
    pub fn write(&self, doc_count: u32, out: &mut Vec<u8>) -> Result<()> {
        varint::push(out, self.count);
        let mut gaps = Vec::with_capacity(self.count as usize);
        let mut reader = VarintReader::new(&self.gaps, 0);
        for _ in 0..self.count {
            gaps.push(reader.next()?);
        }
        if self.count > doc_count / BITS_SHARE {
            out.push(BITS);
            let mut words = vec![0u64; doc_count.div_ceil(64) as usize];
            let mut next = 0;
            for gap in gaps {
                let doc = next + gap;
                words[doc as usize / 64] |= 1 << (doc % 64);
                next = doc + 1;
            }
            words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            return Ok(());
        }
        let k = best_rice(gaps.iter().copied());
        out.push(k as u8);
        let mut writer = BitWriter::new(out);
        gaps.iter().for_each(|&gap| writer.rice(gap, k));
        writer.finish();
        Ok(())
    }
}

/// The estimated size of a list of so many documents, in bytes.
pub(super) fn estimate(count: u32, doc_count: u32) -> usize {
    let gap_bits = (doc_count / count.max(1)).max(1).ilog2() as usize + 2;
    let bits = (count as usize * gap_bits).min(doc_count as usize);
    2 + bits.div_ceil(8)
}

/// The number of documents of a list, read from its head.
pub(super) fn count(head: &[u8], doc_count: u32) -> Result<u32> {
    let count = VarintReader::new(head, 0).next()?;
    if count == 0 || count > doc_count { Err(corrupt()) } else { Ok(count) }
}

/// The documents of a list.
pub(crate) fn read(list: &[u8], doc_count: u32) -> Result<DocSet> {
    let count = count(list, doc_count)?;
    let mut head = VarintReader::new(list, 0);
    head.next()?;
    let at = head.position();
    let &form = list.get(at).ok_or_else(corrupt)?;
    let body = &list[at + 1..];
    if form == BITS {
        let (words, rest) = body.as_chunks();
        if words.len() != doc_count.div_ceil(64) as usize || !rest.is_empty() {
            return Err(corrupt());
        }
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let bits = Bitmap::from_words(doc_count, words);
        return if bits.count() == count {
            Ok(DocSet::Bits(Arc::new(bits)))
        } else {
            Err(corrupt())
        };
    }
    if form > 31 {
        return Err(corrupt());
    }
    let mut docs = Vec::with_capacity(count as usize);
    let (mut reader, mut next) = (BitReader::new(body, 0), 0u32);
    for _ in 0..count {
        let doc = next.saturating_add(reader.rice(u32::from(form))?);
        docs.push(doc);
        next = doc.saturating_add(1);
    }
    match docs.last() {
        Some(&last) if last < doc_count => Ok(DocSet::ascending(docs, doc_count)),
        _ => Err(corrupt()),
    }
}

fn corrupt() -> IndexError {
    IndexError::corrupt("a list of documents with neighbours")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn documents_round_trip(
            docs in proptest::collection::btree_set(0u32..700, 1..600),
            behind in 0u32..90,
            cut: usize,
        ) {
            let all = docs.last().unwrap() + 1 + behind;
            let (mut growing, mut gaps) = (Growing::default(), Vec::new());
            docs.iter().for_each(|&doc| (0..1 + doc % 3).for_each(|_| growing.add(doc, &mut gaps)));
            prop_assert_eq!(growing.count() as usize, docs.len());
            let mut bytes = Vec::new();
            DocumentGaps::new(growing.count(), gaps).write(all, &mut bytes).unwrap();
            prop_assert_eq!(count(&bytes, all).unwrap() as usize, docs.len());
            let read_back = read(&bytes, all).unwrap();
            prop_assert!(read_back.iter().eq(docs.iter().copied()));
            // One that is cut is refused, or has as many documents of the segment as it says.
            if let Ok(docs) = read(&bytes[..cut % bytes.len()], all) {
                prop_assert!(docs.iter().all(|doc| doc < all));
            }
        }
    }
}
