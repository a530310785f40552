//! A suffix array over the vocabulary: finds the terms that contain a piece.
//!
//! Suffixes are sorted by their first 8 bytes only. The suffixes that begin with a piece are one run, found
//! in about 1 us; the rest of a longer piece is compared in each term. A trigram index would be a third of
//! the size, but would need intersections; this one needs none and finds pieces of any length. The end of a
//! term is a byte (NUL) like any other.
//!
//! ```text
//! TSUF := width:u8 offset:width{suffixes}   little endian, 3 or 4 bytes each; empty if none
//! TSFN := u64{ceil(suffixes / 64)}          the first 8 bytes at every 64th, big endian
//! ```
//! A small vocabulary (up to 4096 bytes) has none and is scanned: 0.2 us at the most. Nor has a vocabulary of words whose
//! settings allow no query by a piece of a word: it is scanned too, should somebody ask.

use memchr::memmem;

use super::{
    keyed_order,
    sorted::{partition, prefix_key},
};
use crate::{
    IndexError, Result, SectionTag, SectionWriter, Sections, Slice,
    bytes::{read_u32, read_u64},
};

const SUFFIXES: SectionTag = SectionTag(*b"TSUF");
const FENCES: SectionTag = SectionTag(*b"TSFN");
const FENCE_SUFFIXES: usize = 64;
const SCANNED_BYTES: usize = 4096;

/// Writes the sections for the suffixes that begin at `offsets` of the blob.
pub(crate) fn write(
    blob: &[u8],
    offsets: impl Iterator<Item = u32> + Clone,
    id: u32,
    out: &mut SectionWriter,
) {
    if blob.len() <= SCANNED_BYTES {
        return write_none(id, out);
    }
    let keyed = keyed_order::suffixes(blob, offsets);
    let width = if blob.len() < 1 << 24 { 3 } else { 4 };
    let mut suffixes = Vec::with_capacity(1 + keyed.len() * width);
    suffixes.push(width as u8);
    for (_, offset) in &keyed {
        suffixes.extend_from_slice(&offset.to_le_bytes()[..width]);
    }
    let fences = keyed.iter().step_by(FENCE_SUFFIXES).flat_map(|(key, _)| key.to_le_bytes());
    out.add(FENCES, id, &fences.collect::<Vec<_>>());
    out.add(SUFFIXES, id, &suffixes);
}

/// Writes the sections of a vocabulary that is scanned.
pub(crate) fn write_none(id: u32, out: &mut SectionWriter) {
    out.add(SUFFIXES, id, &[]);
    out.add(FENCES, id, &[]);
}

/// The suffixes of a vocabulary.
#[derive(Clone)]
pub(crate) struct Suffixes {
    entries: Slice,
    fences: Slice,
    width: usize,
    count: usize,
}

impl Suffixes {
    /// Opens the suffixes of the text index `id`.
    pub fn open(sections: &Sections, id: u32) -> Result<Self> {
        let section = sections.require(SUFFIXES, id)?;
        let fences = sections.require(FENCES, id)?.clone();
        let width = section.first().map_or(0, |&width| usize::from(width));
        let entries = section.part(section.len().min(1)..section.len())?;
        let count = entries.len().checked_div(width).unwrap_or(0);
        let fitting = match width {
            0 => count == 0,
            3 | 4 => entries.len() == count * width,
            _ => false,
        };
        if !fitting || fences.len() / 8 != count.div_ceil(FENCE_SUFFIXES) {
            return Err(IndexError::corrupt("the suffixes' size"));
        }
        Ok(Self { entries, fences, width, count })
    }

    /// Whether every place visited for the piece is certain to contain it.
    pub fn proves(&self, piece: &[u8], at_end: bool) -> bool {
        self.width == 0 || piece.len() + usize::from(at_end) <= size_of::<u64>()
    }

    /// Calls `visit(offset)` for each place of the blob where the piece may begin within a term. This is a
    /// superset: the caller compares, and ignores places at the beginning of terms.
    pub fn for_each(&self, blob: &[u8], piece: &[u8], at_end: bool, mut visit: impl FnMut(usize)) {
        if self.width == 0 {
            return scan(blob, piece, visit);
        }
        let mut wanted = piece.to_vec();
        if at_end {
            wanted.push(0);
        }
        wanted.truncate(8);
        let low = prefix_key(&wanted);
        let high = low | u64::MAX.checked_shr(8 * wanted.len() as u32).unwrap_or(0);
        for index in self.bound(blob, |key| key < low)..self.bound(blob, |key| key <= high) {
            visit(self.offset(index));
        }
    }

    /// Whether some term contains the piece behind its first code point. If the vocabulary is scanned, also true
    /// if a term begins with it.
    pub fn any(&self, blob: &[u8], piece: &[u8]) -> bool {
        if self.width == 0 {
            return memmem::find(blob, piece).is_some();
        }
        let wanted = piece.get(..8).unwrap_or(piece);
        let low = prefix_key(wanted);
        let high = low | u64::MAX.checked_shr(8 * wanted.len() as u32).unwrap_or(0);
        let end = self.bound(blob, |key| key <= high);
        let mut places = self.bound(blob, |key| key < low)..end;
        let stands = |index: usize| {
            blob.get(self.offset(index)..).is_some_and(|suffix| suffix.starts_with(piece))
        };
        places.any(stands)
    }

    /// The first suffix whose key is not `below`.
    fn bound(&self, blob: &[u8], below: impl Fn(u64) -> bool) -> usize {
        let fences = self.fences.len() / 8;
        let fence = |index: usize| read_u64(&self.fences, index * 8).unwrap_or(u64::MAX);
        let block = partition(0, fences, |index| below(fence(index)));
        let (low, high) = (block.saturating_sub(1) * FENCE_SUFFIXES, block * FENCE_SUFFIXES);
        partition(low, high.min(self.count), |index| {
            below(prefix_key(blob.get(self.offset(index)..).unwrap_or(&[])))
        })
    }

    #[inline]
    fn offset(&self, index: usize) -> usize {
        let at = index * self.width;
        if self.width == 4 {
            return read_u32(&self.entries, at).unwrap_or(0) as usize;
        }
        match self.entries.get(at..at + 3) {
            Some(bytes) => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize,
            None => 0,
        }
    }
}

/// Every place, overlapping ones too.
fn scan(blob: &[u8], piece: &[u8], mut visit: impl FnMut(usize)) {
    let finder = memmem::Finder::new(piece);
    let mut at = 0;
    while let Some(found) = blob.get(at..).and_then(|rest| finder.find(rest)) {
        let offset = at + found;
        visit(offset);
        at = offset + 1;
    }
}
