//! Reconstructs the sequence of terms of each document from the postings, without reading texts; or takes it from
//! the occurrences that the postings were made of ([`Occurrences`]), which costs a fifth.
//!
//! Some documents are reconstructed at a time, as many as fit into [`MOST_SLOTS`].

use super::super::postings::{Decoded, Postings, positions};
use crate::{IndexError, Result, bytes::Stored, text::offsets::Offsets};

/// Slots in memory at a time: 128 MiB.
const MOST_SLOTS: usize = 1 << 25;

/// The relevant content of an ordinal of a document: a word, two characters, or nothing.
///
/// For a word: the number of the longest frequent word that it ends with, of the longest that it begins with,
/// whether it is that word itself, and whether a single space precedes it. For characters: their number.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot(u32);

impl Slot {
    /// The bits of a word's number.
    pub const WORD_BITS: u32 = 14;
    const WORD: u32 = (1 << Self::WORD_BITS) - 1;
    const EXACT: u32 = 1 << 28;
    const SPACE: u32 = 1 << 29;
    const CHARACTERS: u32 = 1 << 31;

    /// A word that ends and begins with these, 0 for none.
    pub fn word(ends: u32, begins: u32, is_exact: bool) -> Self {
        Self(ends | begins << Self::WORD_BITS | if is_exact { Self::EXACT } else { 0 })
    }

    /// Characters of that number.
    pub fn characters(number: u32) -> Self {
        Self(number | Self::CHARACTERS)
    }

    /// The same behind a single space.
    pub fn behind_space(self) -> Self {
        let is_word = self.0 & Self::CHARACTERS == 0;
        Self(self.0 | if is_word { Self::SPACE } else { 0 })
    }

    /// For two words with a single space between them: the frequent word that the first ends with, the one
    /// that the second begins with, and whether they are exactly these.
    #[inline]
    pub fn words(self, behind: Self) -> Option<(u32, u32, bool)> {
        let (ends, begins) = (self.0 & Self::WORD, behind.0 >> Self::WORD_BITS & Self::WORD);
        let are_words = (self.0 | behind.0) & Self::CHARACTERS == 0 && behind.0 & Self::SPACE != 0;
        let are_exact = self.0 & behind.0 & Self::EXACT != 0;
        (are_words && ends != 0 && begins != 0).then_some((ends, begins, are_exact))
    }

    /// The numbers of two consecutive symbols. A symbol of two characters implies the first character of the
    /// next, so nothing is between them.
    #[inline]
    pub fn run(self, behind: Self) -> Option<(u32, u32)> {
        let are_characters = self.0 & behind.0 & Self::CHARACTERS != 0;
        are_characters.then_some((self.0 & !Self::CHARACTERS, behind.0 & !Self::CHARACTERS))
    }
}

/// The slots that a pass needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// All slots.
    All,
    /// Only those of frequent words and of characters; others may be empty.
    Frequent,
    /// Only those of characters.
    Characters,
}

impl Needed {
    fn has(self, slot: Slot) -> bool {
        let is_exact = slot.0 & Slot::EXACT != 0;
        let is_characters = slot.0 & Slot::CHARACTERS != 0;
        match self {
            Self::All => true,
            Self::Frequent => is_characters || is_exact,
            Self::Characters => is_characters,
        }
    }
}

/// The postings that a stream is made of.
pub(super) struct PostingsSource<'a> {
    /// The records of all terms.
    pub records: &'a [u8],
    /// The offset of each record.
    pub offsets: &'a Offsets,
    /// The places.
    pub positions: Stored,
    /// The slots of the relevant terms, ascending by term.
    pub terms: Vec<(u32, Slot)>,
    /// What the postings were made of, if it is still there.
    pub occurrences: Option<Occurrences<'a>>,
}

/// The occurrences of all terms in the order of documents.
#[derive(Clone, Copy)]
pub(crate) struct Occurrences<'a> {
    /// The number of the term of each occurrence.
    pub terms: &'a [u32],
    /// The position of each occurrence.
    pub positions: &'a [u32],
    /// The end of each document's occurrences.
    pub doc_ends: &'a [u32],
    /// The numbers of the terms in the vocabulary's order.
    pub order: &'a [u32],
}

impl Occurrences<'_> {
    /// The slot of each term by its number; empty for those that are not relevant.
    fn slots(&self, terms: &[(u32, Slot)]) -> Vec<Slot> {
        let mut slots = vec![Slot::default(); self.order.len()];
        for &(term, slot) in terms {
            let number = self.order.get(term as usize).map(|&number| number as usize);
            if let Some(place) = number.and_then(|number| slots.get_mut(number)) {
                *place = slot;
            }
        }
        slots
    }

    /// The numbers of the terms of a document, with their positions.
    fn of(&self, doc: u32) -> impl Iterator<Item = (u32, u32)> {
        let end = |doc: usize| self.doc_ends.get(doc).map_or(0, |&end| end as usize);
        let range = (doc as usize).checked_sub(1).map_or(0, end)..end(doc as usize);
        let terms = self.terms.get(range.clone()).unwrap_or_default();
        let positions = self.positions.get(range).unwrap_or_default();
        terms.iter().copied().zip(positions.iter().copied())
    }
}

/// The slots of all documents.
pub(super) struct Stream<'a> {
    source: PostingsSource<'a>,
    doc_count: u32,
    parts: Vec<DocumentRange>,
    /// The part that is in memory, and the slots that were filled.
    filled: Option<(usize, Needed)>,
    slots: Vec<Slot>,
}

/// Some documents.
struct DocumentRange {
    first: u32,
    /// Where each begins; one more at the end.
    starts: Vec<u32>,
}

impl<'a> Stream<'a> {
    /// `ordinals` is the number of ordinals of each document. `None` if a document exceeds the memory limit.
    pub fn new(ordinals: &[u32], source: PostingsSource<'a>) -> Option<Self> {
        Self::in_parts(ordinals, source, MOST_SLOTS)
    }

    fn in_parts(ordinals: &[u32], source: PostingsSource<'a>, most: usize) -> Option<Self> {
        let mut parts: Vec<DocumentRange> = Vec::new();
        let mut end = 0;
        for (&count, doc) in ordinals.iter().zip(0..) {
            if count as usize > most {
                return None;
            }
            if parts.is_empty() || end as usize + count as usize > most {
                parts.push(DocumentRange { first: doc, starts: vec![0] });
                end = 0;
            }
            end += count;
            parts.last_mut()?.starts.push(end);
        }
        let doc_count = ordinals.len() as u32;
        Some(Self { source, doc_count, parts, filled: None, slots: Vec::new() })
    }

    /// How many ordinals all documents have.
    pub fn slots(&self) -> u64 {
        self.parts.iter().map(|part| part.starts.last().map_or(0, |&end| u64::from(end))).sum()
    }

    /// Visits the slots of each document.
    pub fn for_each(&mut self, needed: Needed, mut visit: impl FnMut(u32, &[Slot])) -> Result<()> {
        (0..self.parts.len()).try_for_each(|at| self.visit_part(at, needed, &mut visit))
    }

    /// As [`Self::for_each`], but the documents do not ascend: the first ones come last, and their slots are kept
    /// for the next pass.
    pub fn for_each_in_any_order(
        &mut self,
        needed: Needed,
        mut visit: impl FnMut(u32, &[Slot]),
    ) -> Result<()> {
        (0..self.parts.len()).rev().try_for_each(|at| {
            let needed = if at == 0 { Needed::All } else { needed };
            self.visit_part(at, needed, &mut visit)
        })
    }

    fn visit_part(
        &mut self,
        at: usize,
        needed: Needed,
        visit: &mut impl FnMut(u32, &[Slot]),
    ) -> Result<()> {
        // A single part is filled once for all passes.
        let needed = if self.parts.len() == 1 { Needed::All } else { needed };
        if self.filled != Some((at, needed)) {
            self.filled = None;
            match self.source.occurrences {
                Some(occurrences) => self.fill_from(occurrences, at)?,
                None => self.fill(at, needed)?,
            }
            self.filled = Some((at, needed));
        }
        let part = &self.parts[at];
        for (range, doc) in part.starts.windows(2).zip(part.first..) {
            visit(doc, &self.slots[range[0] as usize..range[1] as usize]);
        }
        Ok(())
    }

    fn clear(&mut self, at: usize) {
        let slots = self.parts[at].starts.last().map_or(0, |&end| end as usize);
        self.slots.clear();
        self.slots.resize(slots, Slot::default());
    }

    fn fill_from(&mut self, occurrences: Occurrences<'_>, at: usize) -> Result<()> {
        self.clear(at);
        let of_terms = occurrences.slots(&self.source.terms);
        let part = &self.parts[at];
        for (range, doc) in part.starts.windows(2).zip(part.first..) {
            let slots = &mut self.slots[range[0] as usize..range[1] as usize];
            for (term, position) in occurrences.of(doc) {
                let slot = of_terms.get(term as usize).copied().unwrap_or_default();
                let there = slots.get_mut(position as usize / 2).ok_or_else(behind)?;
                *there = if position & 1 == 1 { slot.behind_space() } else { slot };
            }
        }
        Ok(())
    }

    fn fill(&mut self, at: usize, needed: Needed) -> Result<()> {
        self.clear(at);
        let (part, source) = (&self.parts[at], &self.source);
        let documents = part.first..part.first + (part.starts.len() - 1) as u32;
        let covered = documents.start..=documents.end;
        let slots = &mut self.slots;
        let mut inside = true;
        let mut put = |slot: Slot, doc: u32, places: &[u32]| {
            if !documents.contains(&doc) {
                return;
            }
            let start = part.starts[(doc - documents.start) as usize];
            let spaced = slot.behind_space();
            for position in positions(places) {
                match slots.get_mut(start.saturating_add(position / 2) as usize) {
                    Some(there) => *there = if position & 1 == 1 { spaced } else { slot },
                    None => inside = false,
                }
            }
        };
        let mut decoded = Decoded::default();
        for &(term, slot) in source.terms.iter().filter(|one| needed.has(one.1)) {
            let offset = source.offsets.start(term);
            let postings = Postings::open(source.records, offset, self.doc_count)?;
            decoded.clear();
            postings.decode_covering(&covered, &source.positions, &mut decoded)?;
            decoded.for_each_document(|doc, places| put(slot, doc, places));
        }
        if inside { Ok(()) } else { Err(behind()) }
    }
}

fn behind() -> IndexError {
    IndexError::corrupt("a place behind its document")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Slice,
        text::{offsets::OffsetsWriter, postings::PostingsWriter},
    };

    /// Terms at all ordinals of each document, each with a space before it or none.
    type Documents = Vec<Vec<(u32, bool)>>;

    fn written(documents: &[Vec<(u32, bool)>], terms: u32) -> (Vec<u8>, Offsets, Stored) {
        let mut writer = PostingsWriter::new(documents.len() as u32);
        let mut offsets = OffsetsWriter::default();
        for term in 0..terms {
            let mut postings = Decoded::default();
            for (slots, doc) in documents.iter().zip(0..) {
                let stands = slots.iter().zip(0..).filter(|(slot, _)| slot.0 == term);
                let at: Vec<u32> = stands.map(|(slot, at)| at * 2 + u32::from(slot.1)).collect();
                if let Some(&first) = at.first() {
                    postings.docs.push(doc);
                    postings.tfs.push(at.len() as u32);
                    postings.places.push(first);
                    postings.places.extend(at.windows(2).map(|two| two[1] - two[0]));
                }
            }
            writer.write(&postings, &vec![9; documents.len()]).unwrap();
            offsets.push(writer.records.len(), "").unwrap();
        }
        let offsets = Offsets::open(&Slice::new(offsets.finish())).unwrap();
        (writer.records, offsets, Stored::Memory(Slice::new(writer.positions)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn document_values_round_trip(seed: u64, most in 12usize..4000) {
            // Each term stands somewhere; the last does not matter.
            let terms = 60;
            let mut state = seed;
            let mut random = move |below: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u32 % below
            };
            let documents: Documents = (0..400u32)
                .map(|doc| {
                    let rest = (0..random(8)).map(|_| random(terms)).collect::<Vec<_>>();
                    let all = [doc % terms, random(4), random(4)].into_iter().chain(rest);
                    all.map(|term| (term, random(2) == 0)).collect()
                })
                .collect();
            let (records, offsets, positions) = written(&documents, terms);
            let slot = |term: u32| match term % 2 {
                0 => Slot::word(term + 1, 0, term.is_multiple_of(4)),
                _ => Slot::characters(term),
            };
            let ordinals: Vec<u32> = documents.iter().map(|slots| slots.len() as u32).collect();
            let occurred = occurred(&documents, terms);
            let occurrences = Occurrences {
                terms: &occurred.0,
                positions: &occurred.1,
                doc_ends: &occurred.2,
                order: &occurred.3,
            };
            for occurrences in [None, Some(occurrences)] {
                let source = PostingsSource {
                    records: &records,
                    offsets: &offsets,
                    positions: positions.clone(),
                    terms: (0..terms - 1).map(|term| (term, slot(term))).collect(),
                    occurrences,
                };
                let mut stream = Stream::in_parts(&ordinals, source, most).unwrap();
                let all = ordinals.iter().map(|&count| u64::from(count)).sum::<u64>();
                prop_assert_eq!(stream.slots(), all);
                let check = |needed: Needed, doc: u32, slots: &[Slot]| {
                    let expected = &documents[doc as usize];
                    assert_eq!(slots.len(), expected.len());
                    for (found, &(term, spaced)) in slots.iter().zip(expected) {
                        let spaced_slot = slot(term).behind_space();
                        let full = if spaced { spaced_slot } else { slot(term) };
                        let is_nothing = found.0 & !Slot::SPACE == 0;
                        let is_empty = is_nothing && !needed.has(full);
                        let is_full = found.0 == full.0 && term < terms - 1;
                        assert!(is_full || is_empty || is_nothing && term == terms - 1);
                    }
                };
                let mut seen = std::collections::BTreeSet::new();
                stream.for_each_in_any_order(Needed::Frequent, |doc, slots| {
                    assert!(seen.insert(doc));
                    check(Needed::Frequent, doc, slots);
                }).unwrap();
                assert_eq!(seen.len(), 400);
                for needed in [Needed::All, Needed::Frequent, Needed::Characters, Needed::All] {
                    let mut seen = 0;
                    stream.for_each(needed, |doc, slots| {
                        assert_eq!(doc, seen);
                        seen += 1;
                        check(needed, doc, slots);
                    }).unwrap();
                    assert_eq!(seen, 400);
                }
            }
        }
    }

    /// The occurrences of the documents, whose terms are numbered backwards: the number of each, the positions, the
    /// ends of documents, and the order of the numbers.
    fn occurred(
        documents: &[Vec<(u32, bool)>],
        terms: u32,
    ) -> (Vec<u32>, Vec<u32>, Vec<u32>, Vec<u32>) {
        let (mut numbers, mut positions, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for slots in documents {
            for (&(term, spaced), at) in slots.iter().zip(0..) {
                numbers.push(terms - 1 - term);
                positions.push(at * 2 + u32::from(spaced));
            }
            ends.push(numbers.len() as u32);
        }
        (numbers, positions, ends, (0..terms).rev().collect())
    }

    #[test]
    fn a_document_that_is_too_long_is_refused() {
        let (records, offsets, positions) =
            written(&[vec![(0, false)], vec![(0, true); 5], vec![(0, false)]], 1);
        let source = PostingsSource {
            records: &records,
            offsets: &offsets,
            positions,
            terms: Vec::new(),
            occurrences: None,
        };
        assert!(Stream::in_parts(&[1, 5, 1], source, 4).is_none());
    }
}
