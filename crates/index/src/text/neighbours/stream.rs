//! Reconstructs the sequence of terms of each document from the postings, without reading texts.
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
pub(super) struct Source<'a> {
    /// The records of all terms.
    pub records: &'a [u8],
    /// The offset of each record.
    pub offsets: &'a Offsets,
    /// The places.
    pub positions: Stored,
    /// The slots of the relevant terms, ascending by term.
    pub terms: Vec<(u32, Slot)>,
}

/// The slots of all documents.
pub(super) struct Stream<'a> {
    source: Source<'a>,
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
    pub fn new(ordinals: &[u32], source: Source<'a>) -> Option<Self> {
        Self::in_parts(ordinals, source, MOST_SLOTS)
    }

    fn in_parts(ordinals: &[u32], source: Source<'a>, most: usize) -> Option<Self> {
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
        // A single part is filled once for all passes.
        let needed = if self.parts.len() == 1 { Needed::All } else { needed };
        for at in 0..self.parts.len() {
            if self.filled != Some((at, needed)) {
                self.fill(at, needed)?;
            }
            let part = &self.parts[at];
            for (range, doc) in part.starts.windows(2).zip(part.first..) {
                visit(doc, &self.slots[range[0] as usize..range[1] as usize]);
            }
        }
        Ok(())
    }

    fn fill(&mut self, at: usize, needed: Needed) -> Result<()> {
        self.filled = None;
        let (part, source) = (&self.parts[at], &self.source);
        let documents = part.first..part.first + (part.starts.len() - 1) as u32;
        let covered = documents.start..=documents.end;
        self.slots.clear();
        self.slots.resize(part.starts.last().map_or(0, |&end| end as usize), Slot::default());
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
        if !inside {
            return Err(IndexError::corrupt("a place behind its document"));
        }
        self.filled = Some((at, needed));
        Ok(())
    }
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
            let source = Source {
                records: &records,
                offsets: &offsets,
                positions,
                terms: (0..terms - 1).map(|term| (term, slot(term))).collect(),
            };
            let ordinals: Vec<u32> = documents.iter().map(|slots| slots.len() as u32).collect();
            prop_assert_eq!(
                Stream::in_parts(&ordinals, source, most).map(|mut stream| {
                    for needed in [Needed::Frequent, Needed::All, Needed::Characters, Needed::All] {
                        let mut seen = 0;
                        stream.for_each(needed, |doc, slots| {
                            assert_eq!(doc, seen);
                            seen += 1;
                            let expected = &documents[doc as usize];
                            assert_eq!(slots.len(), expected.len());
                            for (found, &(term, spaced)) in slots.iter().zip(expected) {
                                let spaced_slot = slot(term).behind_space();
                                let full = if spaced { spaced_slot } else { slot(term) };
                                let is_empty = found.0 == 0 && !needed.has(full);
                                let is_full = found.0 == full.0 && term < terms - 1;
                                assert!(is_full || is_empty || found.0 == 0 && term == terms - 1);
                            }
                        }).unwrap();
                        assert_eq!(seen, 400);
                    }
                    stream.slots()
                }),
                Some(ordinals.iter().map(|&count| u64::from(count)).sum())
            );
        }
    }

    #[test]
    fn a_document_that_is_too_long_is_refused() {
        let (records, offsets, positions) =
            written(&[vec![(0, false)], vec![(0, true); 5], vec![(0, false)]], 1);
        let source = Source { records: &records, offsets: &offsets, positions, terms: Vec::new() };
        assert!(Stream::in_parts(&[1, 5, 1], source, 4).is_none());
    }
}
