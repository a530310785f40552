//! Occurrence counts for the precomputed unions.
//!
//! Without them, counting `a` in a large segment would read every term that contains it, and a
//! score needs that count. So the counts of each union are stored, half a byte for each document,
//! and are read from the file only when a score is computed.
//!
//! ```text
//! TUNC   := start:u64{unions + 1} counts{unions}
//! counts := nibble{documents of the union} count:u32{nibbles that are 15}
//! ```
//! The first nibble of a byte is the low one.

use rustc_hash::FxHashMap;

use crate::{
    Bitmap, DocSet, IndexError, Result, SectionTag,
    bytes::{Stored, read_u32, read_u64},
};

/// The section.
pub(crate) const UNION_COUNTS: SectionTag = SectionTag(*b"TUNC");
const ESCAPE: u8 = 15;

/// Sums the occurrences of one piece, in one byte for each document: documents come in random order, and a
/// small array stays in the cache.
pub(crate) struct PieceCounts {
    /// The count of each document up to 255; the rest is in `excess`.
    counts: Vec<u8>,
    excess: FxHashMap<u32, u32>,
}

impl PieceCounts {
    /// Counts for a segment of `doc_count` documents.
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

    /// The documents that have a count.
    pub fn documents(&self) -> Bitmap {
        let words = self.counts.chunks(64).map(|counts| {
            let bits = counts.iter().zip(0..).map(|(&count, at)| u64::from(count > 0) << at);
            bits.fold(0, |word, bit| word | bit)
        });
        Bitmap::from_words(self.counts.len() as u32, words)
    }

    /// Appends the documents with their counts.
    pub fn append_to(&self, out: &mut Vec<(u32, u32)>) {
        const AT_ONCE: usize = 64;
        let first = out.len();
        for (chunk, counts) in self.counts.chunks(AT_ONCE).enumerate() {
            // Every document is written, and the write position advances only for those with a count: whether
            // a document has one is random, and a branch would be mispredicted.
            let mut some = [(0, 0); AT_ONCE + 1];
            let mut place = 0;
            for (doc, &count) in counts.iter().enumerate() {
                some[place] = ((chunk * AT_ONCE + doc) as u32, u32::from(count));
                place += usize::from(count > 0);
            }
            out.extend_from_slice(&some[..place]);
        }
        if !self.excess.is_empty() {
            let full = out[first..].iter_mut().filter(|(_, count)| *count == u32::from(u8::MAX));
            full.for_each(|(doc, count)| {
                *count = count.saturating_add(self.excess.get(doc).copied().unwrap_or(0));
            });
        }
    }

    /// Appends the counts of the documents of `union`.
    fn write(&self, union: &Bitmap, out: &mut Vec<u8>) {
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

/// Writes the counts union by union.
#[derive(Default)]
pub(crate) struct UnionCountsWriter {
    /// The offset of each union's counts, relative to the end of the offsets.
    starts: Vec<u64>,
    bytes: Vec<u8>,
}

impl UnionCountsWriter {
    /// Writes the counts of the next union.
    pub fn push(&mut self, union: &Bitmap, counts: &PieceCounts) {
        self.starts.push(self.bytes.len() as u64);
        counts.write(union, &mut self.bytes);
    }

    /// The section.
    pub fn finish(mut self) -> Vec<u8> {
        self.starts.push(self.bytes.len() as u64);
        let head = self.starts.len() as u64 * 8;
        let starts = self.starts.iter().flat_map(|start| (head + start).to_le_bytes());
        starts.chain(self.bytes.iter().copied()).collect()
    }
}

/// Appends the documents of the union `index` with their counts. Documents outside `among` may be omitted.
pub(crate) fn append(
    section: &Stored,
    index: usize,
    union: &Bitmap,
    among: Option<&DocSet>,
    out: &mut Vec<(u32, u32)>,
) -> Result<()> {
    let starts = section.read(index as u64 * 8, 16)?;
    let (start, end) = (read_u64(&starts, 0)?, read_u64(&starts, 8)?);
    let corrupt = || IndexError::corrupt("the counts of a union");
    let length = end.checked_sub(start).and_then(|length| usize::try_from(length).ok());
    // A document takes at most half a byte and one escape.
    let length = length.filter(|&length| length <= union.len() as usize * 5).ok_or_else(corrupt)?;
    let bytes = section.read(start, length)?;
    let nibbles = (union.count() as usize).div_ceil(2);
    let (nibbles, escaped) = bytes.split_at_checked(nibbles).ok_or_else(corrupt)?;
    let mut counts = CountsReader { nibbles, escaped, place: 0, escapes: 0 };
    let Some(DocSet::List(docs)) = among else {
        out.reserve(union.count() as usize);
        for doc in union.iter() {
            out.push((doc, counts.next()?));
        }
        return Ok(());
    };
    let (mut words, mut before) = (0, 0);
    for &doc in docs.iter().filter(|&&doc| union.contains(doc)) {
        let word = doc as usize / 64;
        let passed = union.words()[words..word].iter().map(|word| word.count_ones() as usize);
        before += passed.sum::<usize>();
        words = word;
        let within = union.words()[word] & ((1 << (doc % 64)) - 1);
        counts.skip_to(before + within.count_ones() as usize);
        out.push((doc, counts.next()?));
    }
    Ok(())
}

/// Reads the counts of one union in the order of its documents.
struct CountsReader<'a> {
    nibbles: &'a [u8],
    escaped: &'a [u8],
    /// The next document of the union.
    place: usize,
    /// The number of escapes before it.
    escapes: usize,
}

impl CountsReader<'_> {
    #[inline]
    fn next(&mut self) -> Result<u32> {
        let nibble = self.nibble(self.place);
        self.place += 1;
        if nibble != ESCAPE {
            return Ok(u32::from(nibble));
        }
        self.escapes += 1;
        read_u32(self.escaped, (self.escapes - 1) * 4)
    }

    #[inline]
    fn nibble(&self, place: usize) -> u8 {
        self.nibbles.get(place / 2).map_or(0, |byte| byte >> (place % 2 * 4) & ESCAPE)
    }

    /// Moves forward to a place, and counts the escapes on the way.
    fn skip_to(&mut self, place: usize) {
        if self.place < place && self.place % 2 == 1 {
            self.escapes += usize::from(self.nibble(self.place) == ESCAPE);
            self.place += 1;
        }
        let whole = self.nibbles.get(self.place / 2..place / 2).unwrap_or(&[]);
        let escapes = whole
            .iter()
            .map(|byte| usize::from(byte & ESCAPE == ESCAPE) + usize::from(byte >> 4 == ESCAPE));
        self.escapes += escapes.sum::<usize>();
        if self.place < place && place % 2 == 1 {
            self.escapes += usize::from(self.nibble(place - 1) == ESCAPE);
        }
        self.place = self.place.max(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slice;

    #[test]
    fn counts_of_any_size_round_trip() {
        let times = [(3, 1), (4, 14), (9, 15), (10, 255), (11, 256), (12, 70_000), (40, 2)];
        let mut union = Bitmap::new(64);
        let mut counts = PieceCounts::new(64);
        for (doc, times) in times {
            union.insert(doc);
            counts.add(doc, times / 2);
            counts.add(doc, times - times / 2);
        }
        let mut writer = UnionCountsWriter::default();
        writer.push(&Bitmap::new(64), &PieceCounts::new(64));
        writer.push(&union, &counts);
        let mut collected = Vec::new();
        counts.append_to(&mut collected);
        assert_eq!(collected, times);
        let section = Stored::Memory(Slice::new(writer.finish()));
        let read = |index: usize, union: &Bitmap, among: Option<&DocSet>| {
            let mut found = Vec::new();
            append(&section, index, union, among, &mut found).unwrap();
            found
        };
        assert_eq!(read(1, &union, None), times);
        assert_eq!(read(0, &Bitmap::new(64), None), []);
        for subset in 0..1u32 << times.len() {
            let chosen = |at: &usize| subset >> at & 1 == 1;
            let wanted: Vec<(u32, u32)> =
                (0..times.len()).filter(chosen).map(|at| times[at]).collect();
            let mut docs: Vec<u32> = wanted.iter().map(|one| one.0).collect();
            docs.push(41);
            assert_eq!(read(1, &union, Some(&DocSet::List(docs))), wanted);
        }
    }
}
