//! The terms of a segment in byte order, and the way to those that contain a piece.
//!
//! ```text
//! TBLB := (term 0x00)*                    the terms, ascending by bytes
//! TOFF := u32{terms + 1}                  where each begins in TBLB
//! TFEN := u64{ceil(terms / 32)}           first 8 bytes of every 32nd term, big endian, padded
//! TSMP := u32{ceil(blob / 64)}            the term that covers each 64th byte of TBLB
//! TSUF := width:u8 offset{suffixes}       see `suffixes`
//! TSFN := u64{ceil(suffixes / 64)}
//! ```
//! Terms of characters (see `terms`) are only ever found whole or by their beginning: they have
//! no suffixes. A NUL within a term does no harm: ends are taken from TOFF.

use std::ops::Range;

use super::{
    atoms::{AtomKind, atoms},
    pattern::TermMatch,
    suffixes::{self, Suffixes},
};
use crate::{
    IndexError, Result, SectionTag, SectionWriter, Sections, Slice,
    bytes::{read_u32, read_u64},
};

const BLOB: SectionTag = SectionTag(*b"TBLB");
const OFFSETS: SectionTag = SectionTag(*b"TOFF");
const FENCES: SectionTag = SectionTag(*b"TFEN");
const SAMPLES: SectionTag = SectionTag(*b"TSMP");

const FENCE_TERMS: usize = 32;
const SAMPLE_BYTES: usize = 64;

/// Collects the terms of a segment, ascending.
#[derive(Default)]
pub(crate) struct VocabularyWriter {
    blob: Vec<u8>,
    offsets: Vec<u32>,
}

impl VocabularyWriter {
    /// Appends the next term.
    pub fn push(&mut self, term: &[u8]) -> Result<()> {
        let offset = u32::try_from(self.blob.len());
        self.offsets.push(offset.map_err(|_| IndexError::Full("4 GiB of distinct terms"))?);
        self.blob.extend_from_slice(term);
        self.blob.push(0);
        Ok(())
    }

    /// Writes the sections of the text index `id`.
    pub fn finish(mut self, id: u32, out: &mut SectionWriter) -> Result<()> {
        let end = u32::try_from(self.blob.len());
        self.offsets.push(end.map_err(|_| IndexError::Full("4 GiB of distinct terms"))?);
        let offsets = self.offsets.iter().flat_map(|offset| offset.to_le_bytes());
        out.add(OFFSETS, id, &offsets.collect::<Vec<_>>());
        out.add(FENCES, id, &self.fences());
        out.add(SAMPLES, id, &self.samples());
        suffixes::write(&self.blob, self.suffix_offsets(), id, out);
        out.add(BLOB, id, &self.blob);
        Ok(())
    }

    fn terms(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.offsets
            .windows(2)
            .map(|pair| (pair[0], &self.blob[pair[0] as usize..pair[1] as usize - 1]))
    }

    fn fences(&self) -> Vec<u8> {
        let fences = self.terms().step_by(FENCE_TERMS);
        fences.flat_map(|(_, term)| prefix_key(term).to_le_bytes()).collect()
    }

    fn samples(&self) -> Vec<u8> {
        let mut samples = Vec::with_capacity(self.blob.len() / SAMPLE_BYTES * 4 + 4);
        let mut term = 0u32;
        for at in (0..self.blob.len()).step_by(SAMPLE_BYTES) {
            while self.offsets[term as usize + 1] as usize <= at {
                term += 1;
            }
            samples.extend_from_slice(&term.to_le_bytes());
        }
        samples
    }

    /// Where suffixes begin: at every code point of a word or separator but its first, which the
    /// order of the terms serves.
    fn suffix_offsets(&self) -> impl Iterator<Item = u32> + '_ {
        self.terms().filter(|(_, term)| !is_characters(term)).flat_map(|(start, term)| {
            let inner = term.iter().enumerate().skip(1);
            inner.filter(|(_, byte)| *byte & 0xc0 != 0x80).map(move |(at, _)| start + at as u32)
        })
    }
}

fn is_characters(term: &[u8]) -> bool {
    let first = std::str::from_utf8(term).ok().and_then(|term| atoms(term).next());
    first.is_some_and(|(kind, _)| kind == AtomKind::Character)
}

/// The first 8 bytes as a number that orders as they do; shorter ones padded with zeros.
#[inline]
pub(crate) fn prefix_key(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(padded)
        }
    }
}

/// The terms of a segment.
#[derive(Clone)]
pub(crate) struct Vocabulary {
    blob: Slice,
    offsets: Slice,
    fences: Slice,
    samples: Slice,
    suffixes: Suffixes,
    terms: u32,
}

/// Term numbers: consecutive ones, or a sorted list with how often the piece is in each.
#[derive(Clone, Debug)]
pub(crate) enum TermSet {
    /// Each holds the piece once, at its beginning (or is it).
    Range(Range<u32>),
    /// (term, occurrences of the piece in it), ascending by term.
    List(Vec<(u32, u32)>),
}

impl TermSet {
    /// How many terms.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::List(list) => list.len(),
        }
    }

    /// The terms with their occurrences.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (range, list): (Range<u32>, &[(u32, u32)]) = match self {
            Self::Range(range) => (range.clone(), &[]),
            Self::List(list) => (0..0, list),
        };
        range.map(|term| (term, 1)).chain(list.iter().copied())
    }
}

impl Vocabulary {
    /// Opens the vocabulary of the text index `id`.
    pub fn open(sections: &Sections, id: u32) -> Result<Self> {
        let offsets = sections.require(OFFSETS, id)?.clone();
        let blob = sections.require(BLOB, id)?.clone();
        let count = (offsets.len() / 4).checked_sub(1);
        let terms = count.ok_or_else(|| IndexError::corrupt("no term offsets"))? as u32;
        let fences = sections.require(FENCES, id)?.clone();
        let samples = sections.require(SAMPLES, id)?.clone();
        if fences.len() / 8 != (terms as usize).div_ceil(FENCE_TERMS)
            || samples.len() / 4 != blob.len().div_ceil(SAMPLE_BYTES)
        {
            return Err(IndexError::corrupt("the vocabulary's size"));
        }
        let suffixes = Suffixes::open(sections, id, blob.len())?;
        Ok(Self { blob, offsets, fences, samples, suffixes, terms })
    }

    /// How many terms.
    pub fn len(&self) -> u32 {
        self.terms
    }

    fn offset(&self, term: u32) -> usize {
        read_u32(&self.offsets, term as usize * 4).unwrap_or(0) as usize
    }

    /// A term's bytes; empty past the end.
    #[inline]
    pub fn term(&self, term: u32) -> &[u8] {
        let end = self.offset(term.saturating_add(1)).saturating_sub(1);
        self.blob.get(self.offset(term)..end).unwrap_or(&[])
    }

    /// The first term that is not below `target`.
    pub fn lower_bound(&self, target: &[u8]) -> u32 {
        let key = prefix_key(target);
        let fence = |index: usize| read_u64(&self.fences, index * 8).unwrap_or(u64::MAX);
        let fences = self.fences.len() / 8;
        let below = partition(0, fences, |index| fence(index) < key);
        let not_above = partition(below, fences, |index| fence(index) <= key);
        let low = below.saturating_sub(1) * FENCE_TERMS;
        let high = (not_above * FENCE_TERMS).min(self.terms as usize);
        partition(low.min(high), high, |term| self.term(term as u32) < target) as u32
    }

    /// The terms of a match.
    pub fn find(&self, terms: &TermMatch) -> TermSet {
        match terms {
            TermMatch::Exact(term) => TermSet::Range(self.find_exact(term.as_bytes())),
            TermMatch::Prefix(prefix) => TermSet::Range(self.find_prefix(prefix.as_bytes())),
            TermMatch::Suffix(suffix) => TermSet::List(self.find_inner(suffix.as_bytes(), true)),
            TermMatch::Contains(piece) => TermSet::List(self.find_inner(piece.as_bytes(), false)),
        }
    }

    fn find_exact(&self, term: &[u8]) -> Range<u32> {
        let at = self.lower_bound(term);
        at..at + u32::from(at < self.terms && self.term(at) == term)
    }

    fn find_prefix(&self, prefix: &[u8]) -> Range<u32> {
        // No UTF-8 byte is 0xff, so the prefix followed by it is above all it begins.
        let behind: Vec<u8> = prefix.iter().copied().chain([0xff]).collect();
        self.lower_bound(prefix)..self.lower_bound(&behind)
    }

    /// The terms that contain the piece (or end with it), with how often.
    fn find_inner(&self, piece: &[u8], at_end: bool) -> Vec<(u32, u32)> {
        let starting = if at_end { self.find_exact(piece) } else { self.find_prefix(piece) };
        let mut found: Vec<u32> = starting.collect();
        self.suffixes.for_each(&self.blob, piece, at_end, |offset| {
            let term = self.term_at(offset);
            let end = self.offset(term + 1).saturating_sub(1);
            let behind = offset + piece.len();
            let fits = if at_end { behind == end } else { behind <= end };
            let inner = offset > self.offset(term);
            if inner && fits && self.blob.get(offset..behind) == Some(piece) {
                found.push(term);
            }
        });
        found.sort_unstable();
        count_runs(&found)
    }

    /// The term that covers a byte of the blob.
    fn term_at(&self, offset: usize) -> u32 {
        let mut term = read_u32(&self.samples, offset / SAMPLE_BYTES * 4).unwrap_or(0);
        while term + 1 < self.terms && self.offset(term + 1) <= offset {
            term += 1;
        }
        term
    }
}

fn count_runs(sorted: &[u32]) -> Vec<(u32, u32)> {
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
}

/// The first index in `low..high` for which `below` is false.
#[inline]
pub(crate) fn partition(low: usize, high: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low.midpoint(high);
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn vocabulary(terms: &BTreeSet<String>) -> Vocabulary {
        let mut writer = VocabularyWriter::default();
        terms.iter().for_each(|term| writer.push(term.as_bytes()).unwrap());
        let mut out = SectionWriter::new();
        writer.finish(3, &mut out).unwrap();
        Vocabulary::open(&Sections::open(out.finish()).unwrap(), 3).unwrap()
    }

    fn starts(term: &str, piece: &str) -> u32 {
        term.char_indices().filter(|(at, _)| term[*at..].starts_with(piece)).count() as u32
    }

    fn check(terms: &BTreeSet<String>, piece: &str) {
        let vocabulary = vocabulary(terms);
        let of = |set: TermSet| set.iter().collect::<Vec<_>>();
        let expect = |holds: &dyn Fn(&str) -> u32| {
            let counted = terms.iter().enumerate().map(|(at, term)| (at as u32, holds(term)));
            counted.filter(|(_, count)| *count > 0).collect::<Vec<_>>()
        };
        let find = |terms| of(vocabulary.find(&terms));
        let piece_owned = || piece.to_owned();
        assert_eq!(find(TermMatch::Exact(piece_owned())), expect(&|t| u32::from(t == piece)));
        let prefix = expect(&|t| u32::from(t.starts_with(piece)));
        assert_eq!(find(TermMatch::Prefix(piece_owned())), prefix);
        let suffix = expect(&|t| u32::from(t.ends_with(piece)));
        assert_eq!(find(TermMatch::Suffix(piece_owned())), suffix);
        assert_eq!(find(TermMatch::Contains(piece_owned())), expect(&|t| starts(t, piece)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn pieces_are_found_as_by_reading_every_term(
            terms in proptest::collection::btree_set("[abé]{1,12}|[-. \u{0}]{1,3}", 0..400),
            piece in "[abé]{1,10}|[-. \u{0}]{1,2}",
        ) {
            check(&terms, &piece);
        }
    }

    #[test]
    fn a_large_vocabulary_is_searched_by_its_suffixes() {
        let terms: BTreeSet<String> =
            (0..20_000u64).map(|i| format!("{:x}", i.wrapping_mul(0x9e37_79b9_7f4a))).collect();
        for piece in ["7", "ab", "9e3", "0000", "f4a", "deadbeef", "79b97f4a", "9e3779b97f4a"] {
            check(&terms, piece);
        }
    }
}
