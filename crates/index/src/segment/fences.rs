//! Fences of a secondary index: beginnings of sort keys that tell between which documents a search has to look.
//!
//! ```text
//! section SIDF, id of the index; absent for fewer than 256 documents, and in segments of earlier versions:
//! fences := count:u32 shared_len:u32 shared end:u32{count} bytes    one fence for each block of 32 documents but the
//!                                                                   first: `shared`, then its part of the bytes
//! ```
//! A search in the index alone compares values that lie anywhere in the columns, and makes a sort key of each text. Fences
//! lie next to each other, so a search compares five or six values instead of one for each bit of the number of
//! documents.
//!
//! A fence is a beginning of the sort key ([`super::sort_key`]) of the first document of its block. The documents before
//! the block have lesser keys than the fence, or keys that begin with it; if one of them does, so do all between it and the
//! block. So the documents of a block whose fence differs from the one before may begin with a fence of a later block,
//! but its first document does not.

use crate::{IndexError, Result, Slice, bytes::read_u32, column::cursor::SectionCursor};

/// Documents between two fences.
const BLOCK: u32 = 32;
/// With fewer documents there are no fences: they would save a comparison or two.
const LEAST_DOCUMENTS: usize = 256;
/// The most bytes of a key that tell it from the one before.
const MOST_BYTES: usize = 64;

/// The documents in the order of an index, and its fences.
pub(super) struct OrderedDocuments {
    pub docs: Vec<u32>,
    /// The section; empty if there is none.
    pub fences: Vec<u8>,
}

impl OrderedDocuments {
    /// Makes the fences of sorted documents. Cost: two keys for each block; up to seven where documents are equal.
    pub fn new(docs: Vec<u32>, write_key: impl Fn(u32, &mut Vec<u8>)) -> Self {
        if docs.len() < LEAST_DOCUMENTS {
            return Self { docs, fences: Vec::new() };
        }
        let key = |position: usize, key: &mut Vec<u8>| {
            key.clear();
            docs.get(position).into_iter().for_each(|doc| write_key(*doc, key));
            key.truncate(MOST_BYTES);
        };
        let (mut ends, mut bytes, mut last) = (Vec::new(), Vec::new(), 0..0);
        let (mut first, mut before) = (Vec::new(), Vec::new());
        for start in (0..docs.len()).step_by(BLOCK as usize).skip(1) {
            key(start, &mut first);
            key(start - 1, &mut before);
            if first == before {
                let block = start - BLOCK as usize;
                key(block, &mut before);
                let fence: &[u8] = bytes.get(last.clone()).unwrap_or_default();
                // The documents that are equal to it begin in an earlier block, which has a fence for them, or in this.
                if first == before && !fence.is_empty() {
                    let range = last.clone();
                    bytes.extend_from_within(range);
                    last = last.end..bytes.len();
                    ends.push(bytes.len() as u32);
                    continue;
                }
                key_before_run(block, start, &first, &key, &mut before);
            }
            let length = shared_len(&first, &before) + 1;
            bytes.extend(first.iter().take(length));
            last = last.end..bytes.len();
            ends.push(bytes.len() as u32);
        }
        let fences = encode(&ends, &bytes);
        Self { docs, fences }
    }
}

/// Reads the key before the run of documents that are equal to `first`. The run begins behind `block` or, if there is
/// none before it, at the start; then the key stays empty.
fn key_before_run(
    block: usize,
    start: usize,
    first: &[u8],
    key: &impl Fn(usize, &mut Vec<u8>),
    before: &mut Vec<u8>,
) {
    let (mut low, mut high) = (block, start);
    while low < high {
        let middle = low + (high - low) / 2;
        key(middle, before);
        match before.as_slice() < first {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    before.clear();
    if let Some(position) = low.checked_sub(1) {
        key(position, before);
    }
}

fn shared_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

fn encode(ends: &[u32], bytes: &[u8]) -> Vec<u8> {
    let range = |at: usize| {
        let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        start as usize..ends.get(at).copied().unwrap_or(start) as usize
    };
    let fence = |at: usize| bytes.get(range(at)).unwrap_or_default();
    let Some(last) = ends.len().checked_sub(1) else { return Vec::new() };
    if u32::try_from(bytes.len()).is_err() {
        return Vec::new();
    }
    let shared = fence(0).get(..shared_len(fence(0), fence(last))).unwrap_or_default();
    let mut section = (ends.len() as u32).to_le_bytes().to_vec();
    section.extend((shared.len() as u32).to_le_bytes());
    section.extend(shared);
    for (at, end) in ends.iter().enumerate() {
        let dropped = (at + 1) * shared.len();
        section.extend((*end as usize - dropped).to_le_bytes().iter().take(4));
    }
    for at in 0..ends.len() {
        section.extend(fence(at).iter().skip(shared.len()));
    }
    section
}

/// The fences of an index in a segment.
pub(super) struct Fences {
    section: Slice,
    count: u32,
    shared: Slice,
    ends: Slice,
    bytes: Slice,
}

impl Fences {
    /// Opens the section.
    pub fn open(section: &Slice, doc_count: u32) -> Result<Self> {
        let mut cursor = SectionCursor::new(section);
        let (count, shared) = (cursor.u32()?, cursor.u32()? as usize);
        if count != doc_count.saturating_sub(1) / BLOCK {
            return Err(IndexError::corrupt("the number of fences"));
        }
        let (shared, ends) = (cursor.slice(shared)?, cursor.slice(count as usize * 4)?);
        let last =
            (count as usize).checked_sub(1).map_or(Ok(0), |last| read_u32(&ends, last * 4))?;
        let bytes = cursor.slice(last as usize)?;
        cursor.finish()?;
        Ok(Self { section: section.clone(), count, shared, ends, bytes })
    }

    /// Whether the section has these bytes.
    pub fn are(&self, section: &[u8]) -> bool {
        *self.section == *section
    }

    /// Positions between which a boundary lies, both included: that of the first document whose key is not below `key`
    /// or, if `past_equal`, of the first one above it whose key does not begin with it. `key` ends with a whole part.
    pub fn around(&self, key: &[u8], past_equal: bool, doc_count: u32) -> (u32, u32) {
        let Some(rest) = key.strip_prefix(&*self.shared) else {
            let is_below = match self.shared.starts_with(key) {
                true => past_equal,
                false => *self.shared < *key,
            };
            return match is_below {
                true => (self.count * BLOCK + 1, doc_count),
                false => (0, BLOCK.min(doc_count)),
            };
        };
        let next = self.partition_point(self.count, |fence| {
            fence < rest || past_equal && fence.starts_with(rest)
        });
        let end = if next < self.count { (next + 1) * BLOCK } else { doc_count };
        let Some(last) = next.checked_sub(1) else { return (0, end) };
        let fence = self.fence(last);
        let start = match fence.len() < rest.len() && rest.starts_with(fence) {
            // Documents before its block may begin with the fence as well, back to the first block that has it, and in the
            // block before that.
            true => match self.partition_point(last, |earlier| earlier < fence) {
                0 => 0,
                first => first * BLOCK + 1,
            },
            false => next * BLOCK + 1,
        };
        (start.min(doc_count), end)
    }

    fn fence(&self, at: u32) -> &[u8] {
        let end = |at: u32| read_u32(&self.ends, at as usize * 4).unwrap_or(0) as usize;
        let start = at.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(at)).unwrap_or_default()
    }

    /// The first of `count` fences for which `holds` is false.
    fn partition_point(&self, count: u32, holds: impl Fn(&[u8]) -> bool) -> u32 {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            match holds(self.fence(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}
