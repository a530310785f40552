//! The vocabulary: the sorted terms of a segment, and look-ups by prefix, suffix and substring.
//!
//! Words and separators come first, in byte order. Then come the terms of characters, in a compact form of
//! their own (see `characters`).
//!
//! ```text
//! TBLB := (term 0x00)*                    words and separators, ascending by bytes
//! TOFF := offsets                         where each lies in TBLB, see `offsets`
//! TFEN := u64{ceil(terms / 32)}           first 8 bytes of every 32nd term, big endian, padded
//! TSMP := u32{ceil(blob / 256)}           the group of TOFF that covers each 256th byte of TBLB
//! TSUF := width:u8 offset{suffixes}       see `suffixes`
//! TSFN := u64{ceil(suffixes / 64)}
//! ```
//! A term may contain NUL, because ends are taken from TOFF.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, OnceLock},
};

use rustc_hash::FxHashSet;

use super::{
    atoms::{AtomKind, atoms},
    characters::{Characters, CharactersWriter},
    element::TermMatch,
    offsets::{Offsets, OffsetsWriter},
    sorted::{partition, prefix_key},
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
const SAMPLE_BYTES: usize = 256;

/// Collects the terms of a segment, in their order.
#[derive(Default)]
pub(crate) struct VocabularyWriter {
    blob: Vec<u8>,
    /// The end of each term in the blob, including its NUL.
    ends: Vec<u32>,
    offsets: OffsetsWriter,
    characters: CharactersWriter,
}

impl VocabularyWriter {
    /// Appends the next term.
    pub fn push(&mut self, term: &[u8]) -> Result<()> {
        if let (true, Ok(term)) = (is_characters(term), std::str::from_utf8(term)) {
            self.characters.push(term);
            return Ok(());
        }
        self.push_word(term)
    }

    /// Appends the next term and stores it as a word, whatever its characters are.
    pub fn push_word(&mut self, term: &[u8]) -> Result<()> {
        self.blob.extend_from_slice(term);
        self.blob.push(0);
        self.offsets.push(self.blob.len(), "4 GiB of distinct terms")?;
        self.ends.push(self.blob.len() as u32);
        Ok(())
    }

    /// The words and separators so far.
    pub fn words(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.terms().map(|(_, term)| term)
    }

    /// Writes the sections of the text index `id`. Without suffixes, pieces of terms are found by reading all terms.
    pub fn finish(self, id: u32, has_suffixes: bool, out: &mut SectionWriter) -> Result<()> {
        out.add(FENCES, id, &self.fences());
        match has_suffixes {
            true => suffixes::write(&self.blob, self.suffix_offsets(), id, out),
            false => suffixes::write_none(id, out),
        }
        out.add(BLOB, id, &self.blob);
        self.characters.finish(id, out);
        let section = Slice::new(self.offsets.finish());
        let offsets = Offsets::open(&section)?;
        out.add(OFFSETS, id, &section);
        out.add(SAMPLES, id, &offsets.samples(SAMPLE_BYTES, self.blob.len()));
        Ok(())
    }

    fn terms(&self) -> impl Iterator<Item = (u32, &[u8])> + Clone {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| (start, &self.blob[start as usize..end as usize - 1]))
    }

    fn fences(&self) -> Vec<u8> {
        let fences = self.terms().step_by(FENCE_TERMS);
        fences.flat_map(|(_, term)| prefix_key(term).to_le_bytes()).collect()
    }

    /// The offsets of suffixes: every code point except the first of each term. Beginnings of terms are found
    /// by the order of the terms.
    fn suffix_offsets(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.terms().flat_map(|(start, term)| {
            let inner = term.iter().enumerate().skip(1);
            inner.filter(|(_, byte)| *byte & 0xc0 != 0x80).map(move |(at, _)| start + at as u32)
        })
    }
}

/// Whether the term is one of characters.
#[inline]
pub(crate) fn is_characters(term: &[u8]) -> bool {
    if term.first().is_none_or(|&byte| byte < 0x80) {
        return false;
    }
    let first = std::str::from_utf8(term).ok().and_then(|term| atoms(term).next());
    first.is_some_and(|(kind, _)| kind == AtomKind::Character)
}

/// A number that orders terms as the vocabulary does. Terms with equal numbers are ordered by bytes.
pub(crate) fn order_key(term: &[u8]) -> u64 {
    u64::from(is_characters(term)) << 63 | prefix_key(term) >> 1
}

/// A term, ordered as the vocabulary orders it; almost always by its number alone.
///
/// ```text
/// number := first 63 bits of the word
///         | 1:1 first:41 second:22        characters; `second` is one more than the code point, or 0
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderedTerm<'a> {
    number: u64,
    /// The word; empty for characters.
    word: &'a [u8],
}

impl<'a> OrderedTerm<'a> {
    const CHARACTERS: u64 = 1 << 63;
    const SECOND_BITS: u32 = 22;

    fn word(word: &'a [u8]) -> Self {
        Self { number: prefix_key(word) >> 1, word }
    }

    fn characters(first: char, second: Option<char>) -> Self {
        let second = second.map_or(0, |second| u64::from(second) + 1);
        let number = Self::CHARACTERS | u64::from(first) << Self::SECOND_BITS | second;
        Self { number, word: &[] }
    }

    /// The bytes of the term. Those of a term of characters are written to `buffer`.
    pub fn bytes<'b>(&self, buffer: &'b mut String) -> &'b [u8]
    where
        'a: 'b,
    {
        if self.number & Self::CHARACTERS == 0 {
            return self.word;
        }
        let first = (self.number & !Self::CHARACTERS) >> Self::SECOND_BITS;
        let second = (self.number & ((1 << Self::SECOND_BITS) - 1)).checked_sub(1);
        let codes = [Some(first), second].into_iter().flatten();
        buffer.clear();
        buffer.extend(codes.filter_map(|code| char::from_u32(code as u32)));
        buffer.as_bytes()
    }
}

/// The terms of a segment.
#[derive(Clone)]
pub(crate) struct Vocabulary {
    blob: Slice,
    offsets: Offsets,
    fences: Slice,
    samples: Slice,
    suffixes: Suffixes,
    characters: Characters,
    /// The number of words and separators.
    words: u32,
    /// The letters beyond ASCII that occur in words and separators; computed at first use.
    letters: Arc<OnceLock<FxHashSet<char>>>,
}

/// Term numbers: a range, or a sorted list with occurrence counts.
#[derive(Clone, Debug)]
pub(crate) enum TermSet {
    /// Each term begins with the piece or equals it, which counts as one occurrence.
    Range(Range<u32>),
    /// (term, occurrences of the piece in it), ascending by term.
    List(Vec<(u32, u32)>),
}

impl TermSet {
    /// The number of terms.
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
        let offsets = Offsets::open(sections.require(OFFSETS, id)?)?;
        let blob = sections.require(BLOB, id)?.clone();
        let words = offsets.len();
        let fences = sections.require(FENCES, id)?.clone();
        let samples = sections.require(SAMPLES, id)?.clone();
        let characters = Characters::open(sections, id)?;
        if fences.len() / 8 != (words as usize).div_ceil(FENCE_TERMS)
            || samples.len() / 4 != blob.len().div_ceil(SAMPLE_BYTES)
            || words.checked_add(characters.len()).is_none()
        {
            return Err(IndexError::corrupt("the vocabulary's size"));
        }
        let suffixes = Suffixes::open(sections, id)?;
        let letters = Arc::default();
        Ok(Self { blob, offsets, fences, samples, suffixes, characters, words, letters })
    }

    /// The number of terms.
    pub fn len(&self) -> u32 {
        self.words + self.characters.len()
    }

    /// The number of words and separators, which come first.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// The bytes of a word or separator; empty past the last.
    #[inline]
    pub fn word(&self, term: u32) -> &[u8] {
        let Range { start, end } = self.offsets.range(term);
        self.blob.get(start..end.saturating_sub(1)).unwrap_or(&[])
    }

    /// A term's bytes; empty past the end.
    pub fn term(&self, term: u32) -> Cow<'_, [u8]> {
        match term.checked_sub(self.words) {
            None => Cow::Borrowed(self.word(term)),
            Some(character) => Cow::Owned(self.characters.term(character).into_bytes()),
        }
    }

    /// A term for a merge of vocabularies.
    pub fn ordered_term(&self, term: u32) -> OrderedTerm<'_> {
        match term.checked_sub(self.words) {
            None => OrderedTerm::word(self.word(term)),
            Some(term) => {
                let (first, second) = self.characters.pair(term);
                OrderedTerm::characters(first.unwrap_or_default(), second)
            }
        }
    }

    /// The first word or separator that is not below `target`.
    pub fn lower_bound(&self, target: &[u8]) -> u32 {
        let key = prefix_key(target);
        let fence = |index: usize| read_u64(&self.fences, index * 8).unwrap_or(u64::MAX);
        let fences = self.fences.len() / 8;
        let below = partition(0, fences, |index| fence(index) < key);
        let not_above = partition(below, fences, |index| fence(index) <= key);
        let low = below.saturating_sub(1) * FENCE_TERMS;
        let high = (not_above * FENCE_TERMS).min(self.words as usize);
        partition(low.min(high), high, |term| self.word(term as u32) < target) as u32
    }

    /// The terms of a match.
    pub fn find(&self, terms: &TermMatch) -> TermSet {
        match terms {
            TermMatch::Exact(term) => TermSet::Range(self.find_exact(term)),
            TermMatch::Prefix(prefix) => TermSet::Range(self.find_prefix(prefix)),
            TermMatch::Suffix(suffix) => TermSet::List(self.find_inner(suffix, true)),
            TermMatch::Contains(piece) => TermSet::List(self.find_inner(piece, false)),
            TermMatch::Word(word) => self.find_word(word),
            TermMatch::Terms(terms) => TermSet::List(terms.to_vec()),
        }
    }

    /// Whether some term has this prefix.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        !self.find_prefix(prefix).is_empty()
    }

    /// Whether some term may contain the character. The first call scans all words.
    pub fn may_hold(&self, c: char) -> bool {
        let letters = || {
            let chunks = self.blob.utf8_chunks();
            chunks.flat_map(|chunk| chunk.valid().chars()).filter(|c| !c.is_ascii()).collect()
        };
        c.is_ascii()
            || self.letters.get_or_init(letters).contains(&c)
            || is_characters(c.encode_utf8(&mut [0; 4]).as_bytes())
    }

    /// Whether some word or separator contains the piece.
    pub fn has_piece(&self, piece: &str) -> bool {
        self.has_prefix(piece) || self.suffixes.any(&self.blob, piece.as_bytes())
    }

    fn find_exact(&self, term: &str) -> Range<u32> {
        if is_characters(term.as_bytes()) {
            return self.behind_words(self.characters.find_exact(term));
        }
        let at = self.lower_bound(term.as_bytes());
        at..at + u32::from(at < self.words && self.word(at) == term.as_bytes())
    }

    fn find_prefix(&self, prefix: &str) -> Range<u32> {
        if is_characters(prefix.as_bytes()) {
            return self.behind_words(self.characters.find_prefix(prefix));
        }
        self.words_with_prefix(prefix)
    }

    /// The number of the term that is exactly this word or separator.
    pub fn word_number(&self, word: &str) -> Option<u32> {
        let at = self.lower_bound(word.as_bytes());
        (at < self.words && self.word(at) == word.as_bytes()).then_some(at)
    }

    /// The number of the term of two characters.
    pub fn pair_number(&self, first: char, second: char) -> Option<u32> {
        self.behind_words(self.characters.find_pair(first, Some(second))).next()
    }

    /// The words with this prefix.
    pub fn words_with_prefix(&self, prefix: &str) -> Range<u32> {
        // No UTF-8 byte is 0xff, so the prefix followed by 0xff is above all terms with the prefix.
        let behind: Vec<u8> = prefix.bytes().chain([0xff]).collect();
        self.lower_bound(prefix.as_bytes())..self.lower_bound(&behind)
    }

    /// The terms of the word: alone, or with the character that directly follows it.
    fn find_word(&self, word: &str) -> TermSet {
        let exact = self.find_exact(word);
        let joined: Vec<u8> = word.bytes().chain([0x80]).collect();
        let behind: Vec<u8> = word.bytes().chain([0xff]).collect();
        let joined = self.lower_bound(&joined)..self.lower_bound(&behind);
        let is_joined = |&term: &u32| {
            let rest = self.word(term).get(word.len()..).unwrap_or_default();
            is_characters(rest)
        };
        let joined: Vec<(u32, u32)> = joined.filter(is_joined).map(|term| (term, 1)).collect();
        if joined.is_empty() {
            return TermSet::Range(exact);
        }
        TermSet::List(exact.map(|term| (term, 1)).chain(joined).collect())
    }

    fn behind_words(&self, characters: Range<u32>) -> Range<u32> {
        self.words + characters.start..self.words + characters.end
    }

    /// The words that contain the piece, in order.
    pub fn words_with_piece(&self, piece: &str) -> Vec<u32> {
        let found = self.inner(self.words_with_prefix(piece), piece, false);
        found.into_iter().map(|(word, _)| word).collect()
    }

    /// The terms that contain the piece, or end with it if `at_end`, with occurrence counts.
    fn find_inner(&self, piece: &str, at_end: bool) -> Vec<(u32, u32)> {
        let starting = if at_end { self.find_exact(piece) } else { self.find_prefix(piece) };
        self.inner(starting, piece, at_end)
    }

    /// As [`Self::find_inner`]; `starting` are the terms that begin with the piece.
    fn inner(&self, starting: Range<u32>, piece: &str, at_end: bool) -> Vec<(u32, u32)> {
        let mut found: Vec<u32> = starting.collect();
        let piece = piece.as_bytes();
        let proved = self.suffixes.proves(piece, at_end);
        // Offsets fit in 32 bits.
        let mut places = Vec::new();
        self.suffixes.for_each(&self.blob, piece, at_end, |offset| places.push(offset as u32));
        // Term order keeps consecutive terms near each other in memory.
        places.sort_unstable();
        for place in places {
            let offset = place as usize;
            let (term, range) = self.term_at(offset);
            let end = range.end.saturating_sub(1);
            let behind = offset + piece.len();
            let fits = if at_end { behind == end } else { behind <= end };
            let inner = offset > range.start;
            if inner && fits && (proved || self.blob.get(offset..behind) == Some(piece)) {
                found.push(term);
            }
        }
        // A stable sort merges these two sorted runs.
        found.sort();
        count_runs(&found)
    }

    /// The term that covers a byte of the blob, and its byte range.
    fn term_at(&self, offset: usize) -> (u32, Range<usize>) {
        let group = read_u32(&self.samples, offset / SAMPLE_BYTES * 4).unwrap_or(0);
        self.offsets.covering(group, offset)
    }
}

fn count_runs(sorted: &[u32]) -> Vec<(u32, u32)> {
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn vocabulary(terms: &BTreeSet<String>, has_suffixes: bool) -> Vocabulary {
        let mut writer = VocabularyWriter::default();
        in_order(terms).iter().for_each(|term| writer.push(term.as_bytes()).unwrap());
        let mut out = SectionWriter::new();
        writer.finish(3, has_suffixes, &mut out).unwrap();
        Vocabulary::open(&Sections::open(out.finish()).unwrap(), 3).unwrap()
    }

    fn in_order(terms: &BTreeSet<String>) -> Vec<&str> {
        let mut terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        terms.sort_by_key(|term| (order_key(term.as_bytes()), term.as_bytes()));
        terms
    }

    fn starts(term: &str, piece: &str) -> u32 {
        term.char_indices().filter(|(at, _)| term[*at..].starts_with(piece)).count() as u32
    }

    fn check(terms: &BTreeSet<String>, piece: &str) {
        [true, false].iter().for_each(|has_suffixes| check_one(terms, piece, *has_suffixes));
    }

    fn check_one(terms: &BTreeSet<String>, piece: &str, has_suffixes: bool) {
        let vocabulary = vocabulary(terms, has_suffixes);
        let of = |set: TermSet| set.iter().collect::<Vec<_>>();
        let terms = in_order(terms);
        let ordered: Vec<_> = (0..vocabulary.len()).map(|n| vocabulary.ordered_term(n)).collect();
        assert!(ordered.is_sorted());
        for (ordered, term) in ordered.iter().zip(&terms) {
            assert_eq!(ordered.bytes(&mut String::new()), term.as_bytes());
        }
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
        fn piece_searches_match_a_scan_of_all_terms(
            terms in proptest::collection::btree_set("[abé]{1,12}|[-. \u{0}]{1,3}|[日本東]{1,2}", 0..400),
            piece in "[abé]{1,10}|[-. \u{0}]{1,2}",
        ) {
            check(&terms, &piece);
        }
    }

    #[test]
    fn vocabulary_finds_words_and_characters() {
        let terms: BTreeSet<String> =
            ["日", "日本", "東京", "한국", "ｚ", "zebra", "。"].map(str::to_owned).into();
        for piece in ["日", "日本", "本", "京", "東京", "국", "한"] {
            let vocabulary = vocabulary(&terms, true);
            let find = |terms: TermMatch| vocabulary.find(&terms).iter().collect::<Vec<_>>();
            let expect = |holds: &dyn Fn(&str) -> bool| {
                let numbered = in_order(&terms).into_iter().enumerate();
                let held = numbered.filter(|(_, term)| holds(term));
                held.map(|(number, _)| (number as u32, 1)).collect::<Vec<_>>()
            };
            let (exact, prefix) = (piece.to_owned(), piece.to_owned());
            assert_eq!(find(TermMatch::Exact(exact)), expect(&|term| term == piece));
            assert_eq!(find(TermMatch::Prefix(prefix)), expect(&|term| term.starts_with(piece)));
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
