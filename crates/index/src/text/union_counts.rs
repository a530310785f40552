//! How often the dearest pieces begin in each document of their union.
//!
//! Counting `a` in a large segment reads every term that contains it; the score of a row needs
//! the number. For pieces that dear it is kept, half a byte a document, and read from the file
//! when a score is asked for.
//!
//! ```text
//! TUNC   := start:u64{unions + 1} counts{unions}
//! counts := nibble{documents of the union} count:u32{nibbles that are 15}
//!                                   nothing where the piece is not dear enough
//! ```
//! The first nibble of a byte is the low one.

use rustc_hash::FxHashMap;

use crate::{
    Bitmap, IndexError, Result, SectionTag,
    bytes::{Stored, read_u32, read_u64},
};

/// The section.
pub(crate) const UNION_COUNTS: SectionTag = SectionTag(*b"TUNC");
const ESCAPE: u8 = 15;

/// Adds up the occurrences of one piece.
pub(crate) struct PieceCounts {
    /// Up to 255 for each document; what is more is in `excess`.
    counts: Vec<u8>,
    excess: FxHashMap<u32, u32>,
}

impl PieceCounts {
    /// For a segment of `doc_count` documents.
    pub fn new(doc_count: u32) -> Self {
        Self { counts: vec![0; doc_count as usize], excess: FxHashMap::default() }
    }

    /// Adds occurrences to a document.
    #[inline]
    pub fn add(&mut self, doc: u32, times: u32) {
        let Some(count) = self.counts.get_mut(doc as usize) else { return };
        let fitting = times.min(u32::from(u8::MAX - *count));
        *count += fitting as u8;
        if fitting < times {
            let excess = self.excess.entry(doc).or_default();
            *excess = excess.saturating_add(times - fitting);
        }
    }

    /// Appends the counts of the documents of `union`.
    pub fn write(&self, union: &Bitmap, out: &mut Vec<u8>) {
        let mut escaped = Vec::new();
        let mut low = None;
        for doc in union.iter() {
            let count = self.counts.get(doc as usize).copied().unwrap_or(0);
            let nibble = count.min(ESCAPE);
            if nibble == ESCAPE {
                let excess = self.excess.get(&doc).copied().unwrap_or(0);
                escaped.push(excess.saturating_add(u32::from(count)));
            }
            match low.take() {
                None => low = Some(nibble),
                Some(low) => out.push(low | nibble << 4),
            }
        }
        out.extend(low);
        escaped.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
    }
}

/// The section for these counts; `None` where the piece is not dear enough.
pub(crate) fn encode(unions: &[Bitmap], counts: &[Option<PieceCounts>]) -> Vec<u8> {
    let mut starts = Vec::with_capacity((unions.len() + 1) * 8);
    let mut bytes = Vec::new();
    let head = ((unions.len() + 1) * 8) as u64;
    for (union, counts) in unions.iter().zip(counts) {
        starts.extend_from_slice(&(head + bytes.len() as u64).to_le_bytes());
        if let Some(counts) = counts {
            counts.write(union, &mut bytes);
        }
    }
    starts.extend_from_slice(&(head + bytes.len() as u64).to_le_bytes());
    starts.extend_from_slice(&bytes);
    starts
}

/// Visits the documents of the union `index` with their counts; false if they were not kept.
pub(crate) fn for_each(
    section: &Stored,
    index: usize,
    union: &Bitmap,
    visit: &mut dyn FnMut(u32, u32),
) -> Result<bool> {
    let starts = section.read(index as u64 * 8, 16)?;
    let (start, end) = (read_u64(&starts, 0)?, read_u64(&starts, 8)?);
    if start == end {
        return Ok(false);
    }
    let corrupt = || IndexError::corrupt("the counts of a union");
    let length = end.checked_sub(start).and_then(|length| usize::try_from(length).ok());
    // No more than half a byte and an escape for each document.
    let length = length.filter(|&length| length <= union.len() as usize * 5).ok_or_else(corrupt)?;
    let bytes = section.read(start, length)?;
    let mut escaped = (union.count() as usize).div_ceil(2);
    for (place, doc) in union.iter().enumerate() {
        let byte = bytes.get(place / 2).ok_or_else(corrupt)?;
        let nibble = byte >> (place % 2 * 4) & ESCAPE;
        let mut count = u32::from(nibble);
        if nibble == ESCAPE {
            count = read_u32(&bytes, escaped)?;
            escaped += 4;
        }
        visit(doc, count);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slice;

    #[test]
    fn counts_come_back_however_large() {
        let times = [(3, 1), (4, 14), (9, 15), (10, 255), (11, 256), (12, 70_000), (40, 2)];
        let mut union = Bitmap::new(64);
        let mut counts = PieceCounts::new(64);
        for (doc, times) in times {
            union.insert(doc);
            counts.add(doc, times / 2);
            counts.add(doc, times - times / 2);
        }
        let unions = [Bitmap::new(64), union];
        let section = Stored::Memory(Slice::new(encode(&unions, &[None, Some(counts)])));
        let mut found = Vec::new();
        let kept = for_each(&section, 1, &unions[1], &mut |doc, count| found.push((doc, count)));
        assert!(kept.unwrap());
        assert_eq!(found, times);
        assert!(!for_each(&section, 0, &unions[0], &mut |_, _| ()).unwrap());
    }
}
