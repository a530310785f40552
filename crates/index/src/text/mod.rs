//! The text index: exact substring matching from a vocabulary and positions.
//!
//! Text is normalised ([`Normalization`]), cut into atoms ([`atoms`]) and indexed under terms with
//! positions that tell neighbours apart (`terms`). A pattern is cut the same way ([`Pattern`]) and
//! answered from the vocabulary (which terms contain, begin or end with its pieces) and the
//! positions (which of them stand next to each other): no text is read, and nothing is found that
//! is not there.

mod ascii_runs;
mod atoms;
mod builder;
mod characters;
mod characters_seen;
mod find;
mod fuzzy;
mod lockstep;
mod merge;
mod neighbours;
mod normalize;
mod offsets;
mod pattern;
mod phrase;
mod pieces;
mod postings;
mod suffixes;
mod terms;
mod union_counts;
mod unions;
mod variants;
mod vocabulary;
mod words;
mod writer;

pub use atoms::{AtomKind, atoms};
pub(crate) use builder::TextBuilder;
pub use characters_seen::{Images, simple_lower_case};
pub(crate) use merge::{GONE, TextSource, merge};
pub(crate) use neighbours::NEIGHBOUR_LISTS;
pub use normalize::{Normalization, Width};
pub use pattern::Pattern;
pub(crate) use union_counts::UNION_COUNTS;
pub use words::{WordPattern, word_runs};
pub(crate) use writer::POSITIONS;

/// What an index of keywords is made of too.
pub(crate) mod parts {
    pub(crate) use super::{
        builder::{Gathered, Interner, Ordered},
        merge::{TermInput, merge_terms},
        offsets::{Offsets, OffsetsWriter},
        postings::{Cursor, Decoded, Postings, PostingsWriter, positions},
        vocabulary::{Vocabulary, VocabularyWriter, prefix_key},
    };
}

use crate::{
    DocSet, IndexError, Result, Sections, Slice,
    bytes::{Stored, read_u64},
};
use characters_seen::Seen;
use neighbours::Neighbours;
use offsets::Offsets;
use postings::Postings;
use unions::Unions;
use vocabulary::Vocabulary;

/// The documents that hold a pattern.
pub struct Matches {
    /// The documents; deleted ones are still among them.
    pub docs: DocSet,
    /// The positions could not tell (a pattern that ends in a single space): `docs` is then a
    /// superset and the caller reads the texts of those documents.
    pub verify: bool,
}

/// One text index of a segment.
#[derive(Clone)]
pub struct TextIndex {
    doc_count: u32,
    vocabulary: Vocabulary,
    posting_offsets: Offsets,
    records: Slice,
    positions: Stored,
    lengths: Slice,
    length_bytes: usize,
    unions: Unions,
    neighbours: Option<Neighbours>,
    seen: Option<Seen>,
    statistics: TextStatistics,
    total_length: u64,
}

/// What a text index holds, for reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextStatistics {
    /// Distinct terms.
    pub terms: u64,
    /// Pairs of term and document.
    pub postings: u64,
    /// Occurrences.
    pub positions: u64,
    /// Posting lists held as bits.
    pub bitmap_lists: u64,
    /// Bytes of the whole text index.
    pub bytes: u64,
}

impl TextIndex {
    /// Opens the text index `id`, or `None` if the segment was written before it existed.
    pub(crate) fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Option<Self>> {
        let Some(statistics) = sections.get(writer::STATISTICS, id) else { return Ok(None) };
        let lengths = sections.require(writer::LENGTHS, id)?;
        let length_bytes = lengths.first().map_or(0, |&width| usize::from(width));
        let lengths = lengths.part(lengths.len().min(1)..lengths.len())?;
        let vocabulary = Vocabulary::open(sections, id)?;
        let posting_offsets = Offsets::open(sections.require(writer::POSTING_OFFSETS, id)?)?;
        if !matches!(length_bytes, 2 | 4)
            || lengths.len() != doc_count as usize * length_bytes
            || posting_offsets.len() != vocabulary.len()
        {
            return Err(IndexError::corrupt("the text index's size"));
        }
        let mine = sections.sizes().filter(|(tag, part, _)| tag.0[0] == b'T' && *part == id);
        Ok(Some(Self {
            statistics: TextStatistics {
                terms: u64::from(vocabulary.len()),
                postings: read_u64(statistics, 0)?,
                positions: read_u64(statistics, 8)?,
                bitmap_lists: read_u64(statistics, 16)?,
                bytes: mine.map(|(_, _, bytes)| bytes).sum(),
            },
            total_length: read_u64(statistics, 24)?,
            doc_count,
            neighbours: Neighbours::open(sections, id, vocabulary.len(), doc_count)?,
            vocabulary,
            posting_offsets,
            records: sections.require(writer::POSTINGS, id)?.clone(),
            positions: sections.require_stored(writer::POSITIONS, id)?.clone(),
            lengths,
            length_bytes,
            unions: Unions::open(sections, id, doc_count)?,
            seen: Seen::open(sections, id)?,
        }))
    }

    /// The documents in which some column's normalised text contains the pattern.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings or positions are damaged. [`IndexError::Io`] if
    /// positions lie in a file that cannot be read.
    pub fn find(&self, pattern: &Pattern) -> Result<Matches> {
        Ok(Matches { docs: find::documents(self, pattern, None)?, verify: pattern.verify })
    }

    /// As [`TextIndex::find`], for a caller that wants only documents of `among`: others may be
    /// left out. Much cheaper for a pattern whose positions must be read
    /// ([`Pattern::is_sequence`]) where `among` is small.
    ///
    /// # Errors
    /// The same as those of [`TextIndex::find`].
    pub fn find_among(&self, pattern: &Pattern, among: &DocSet) -> Result<Matches> {
        Ok(Matches { docs: find::documents(self, pattern, Some(among))?, verify: pattern.verify })
    }

    /// Whether finding the documents of the pattern reads the postings of several terms: how often it
    /// occurs in them then costs little more.
    pub fn reads_postings(&self, pattern: &Pattern) -> bool {
        find::reads_postings(self, pattern)
    }

    /// How many documents hold the pattern, deleted ones included, where that is cheaper to know
    /// than which; `None` where it is not.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn count(&self, pattern: &Pattern) -> Result<Option<u32>> {
        find::count(self, pattern)
    }

    /// Appends (document, occurrences), in ascending order, of each document that holds the
    /// pattern; occurrences are the places where it begins, overlapping ones included. True means
    /// verify, as above (occurrences are then meaningless). Documents outside `among` may be left
    /// out, which is cheaper where it is small.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings, positions or counts are damaged. [`IndexError::Io`] if
    /// they lie in a file that cannot be read.
    pub fn occurrences(
        &self,
        pattern: &Pattern,
        among: Option<&DocSet>,
        out: &mut Vec<(u32, u32)>,
    ) -> Result<bool> {
        find::occurrences(self, pattern, among, out)?;
        Ok(pattern.verify)
    }

    /// How many documents it is of.
    pub(crate) fn doc_count(&self) -> u32 {
        self.doc_count
    }

    /// The length of a document's normalised text in code points, all columns together.
    #[inline]
    pub fn length(&self, doc: u32) -> u32 {
        let at = doc as usize * self.length_bytes;
        match self.lengths.get(at..at + self.length_bytes) {
            Some(&[low, high]) => u32::from(u16::from_le_bytes([low, high])),
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => 0,
        }
    }

    /// The sum of the lengths of all documents, deleted ones included.
    pub fn total_length(&self) -> u64 {
        self.total_length
    }

    /// The documents that have a word within `distance` (1 or 2) edits of `word` (normalised,
    /// one word atom).
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn find_similar_word(&self, word: &str, distance: u8) -> Result<DocSet> {
        let terms = fuzzy::similar_terms(&self.vocabulary, word, distance);
        find::unite(self, &vocabulary::TermSet::List(terms))
    }

    /// The documents that hold a character that is `wanted`, of those that become anything but
    /// their own lower case, or that joined the character before them: the others are normalised
    /// character by character. `None` if that is not known of this index.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the list of characters is damaged.
    pub fn documents_with(&self, wanted: &mut dyn FnMut(char) -> bool) -> Result<Option<DocSet>> {
        self.seen.as_ref().map(|seen| seen.documents(wanted)).transpose()
    }

    /// Whether [`TextIndex::documents_with`] knows.
    pub fn knows_characters(&self) -> bool {
        self.seen.is_some()
    }

    /// Whether it has the lists of neighbours that a segment of its size gets: those of earlier
    /// versions have none.
    pub fn knows_neighbours(&self) -> bool {
        self.neighbours.is_some() || self.doc_count < neighbours::MIN_DOCUMENTS
    }

    /// Whether the lists of neighbours are what the postings give; costs about as much as making
    /// them.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings, positions or lists are damaged. [`IndexError::Io`] if
    /// they lie in a file that cannot be read.
    pub fn has_right_neighbours(&self) -> Result<bool> {
        neighbours::are_right(self)
    }

    /// Terms and postings, for reports.
    pub fn statistics(&self) -> TextStatistics {
        self.statistics
    }

    fn postings(&self, term: u32) -> Result<Postings<'_>> {
        Postings::open(&self.records, self.posting_offsets.start(term), self.doc_count)
    }

    /// Calls `visit(postings, occurrences)` for each of the terms. Their records are touched a few
    /// at a time before they are read, so that the waits for memory overlap.
    #[inline]
    fn for_each_postings<'a>(
        &'a self,
        terms: &vocabulary::TermSet,
        mut visit: impl FnMut(&Postings<'a>, u32) -> Result<()>,
    ) -> Result<()> {
        const AT_ONCE: usize = 16;
        let mut terms = terms.iter();
        let mut next = [(0, 0); AT_ONCE];
        loop {
            let mut count = 0;
            for (slot, (term, times)) in next.iter_mut().zip(&mut terms) {
                *slot = (self.posting_offsets.start(term), times);
                count += 1;
            }
            let next = &next[..count];
            let first = |&(offset, _): &(usize, u32)| self.records.get(offset).copied();
            std::hint::black_box(next.iter().filter_map(first).fold(0, |all, byte| all ^ byte));
            for &(offset, times) in next {
                visit(&Postings::open(&self.records, offset, self.doc_count)?, times)?;
            }
            if count < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Bytes of the postings of consecutive terms: what reading them costs.
    fn postings_bytes(&self, terms: std::ops::Range<u32>) -> u64 {
        if terms.len() == 1 {
            return self.posting_offsets.bytes(terms.start) as u64;
        }
        let (start, end) = (terms.start, terms.end.max(terms.start));
        let (start, end) = (self.posting_offsets.start(start), self.posting_offsets.start(end));
        end.saturating_sub(start) as u64
    }
}
