//! The text index: exact substring matching from a vocabulary and positions.
//!
//! Text is normalised ([`Normalization`]), cut into atoms ([`atoms`]) and indexed as terms with positions
//! (`terms`). A pattern ([`Pattern`]) is cut the same way. The vocabulary gives the terms that contain, begin
//! or end with its pieces; positions tell which of them are adjacent. No text is read, and there are no false
//! positives, except where [`Matches::verify`] says so.

mod any_term;
mod ascii_runs;
mod atoms;
mod boundaries;
mod builder;
mod character;
mod characters;
mod characters_seen;
mod element;
mod find;
mod fuzzy;
mod keyed_order;
mod lockstep;
mod merge;
mod neighbours;
mod normalize;
mod offsets;
mod pattern;
mod phrase;
mod pieces;
mod postings;
mod sorted;
mod stable;
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

/// The parts that the keyword index is built from as well.
pub(crate) mod parts {
    pub(crate) use super::{
        builder::{Gathered, Interner, OrderedOccurrences},
        keyed_order::begins,
        merge::{TermInput, merge_terms},
        neighbours::lists,
        offsets::{Offsets, OffsetsWriter},
        postings::{Decoded, Postings, PostingsCursor, PostingsWriter, positions},
        sorted::prefix_key,
        vocabulary::{Vocabulary, VocabularyWriter},
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

/// The documents that contain a pattern.
pub struct Matches {
    /// The documents, deleted ones included.
    pub docs: DocSet,
    /// Whether positions cannot decide, because the pattern ends in a single space. Then `docs` is
    /// a superset, and the caller must read the texts of these documents.
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

/// Statistics of a text index, for reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextStatistics {
    /// Distinct terms.
    pub terms: u64,
    /// The number of postings: pairs of term and document.
    pub postings: u64,
    /// The number of positions.
    pub positions: u64,
    /// Posting lists stored as bitmaps.
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

    /// As [`TextIndex::find`], but documents outside `among` may be omitted. Much cheaper if positions must
    /// be read ([`Pattern::is_sequence`]) and `among` is small.
    ///
    /// # Errors
    /// The same as those of [`TextIndex::find`].
    pub fn find_among(&self, pattern: &Pattern, among: &DocSet) -> Result<Matches> {
        Ok(Matches { docs: find::documents(self, pattern, Some(among))?, verify: pattern.verify })
    }

    /// Whether finding the pattern reads the postings of several terms. Then counting its occurrences costs
    /// little more.
    pub fn reads_postings(&self, pattern: &Pattern) -> bool {
        find::reads_postings(self, pattern)
    }

    /// The number of documents that contain the pattern, deleted ones included; `None` if it is not cheaper
    /// to compute than the documents themselves.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn count(&self, pattern: &Pattern) -> Result<Option<u32>> {
        find::count(self, pattern)
    }

    /// Appends the documents that contain the pattern, ascending, each with the number of places where it
    /// begins; overlapping occurrences count. True means that texts must be verified ([`Matches::verify`]);
    /// the counts are then meaningless. Documents outside `among` may be omitted, which is cheaper if it is
    /// small.
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

    /// The number of documents of the segment.
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

    /// The documents with a word within `distance` edits (1 or 2) of `word`, which must be normalised and one
    /// word atom.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if postings are damaged.
    pub fn find_similar_word(&self, word: &str, distance: u8) -> Result<DocSet> {
        let terms = fuzzy::similar_terms(&self.vocabulary, word, distance);
        any_term::unite(self, &vocabulary::TermSet::List(terms))
    }

    /// The documents that contain a special character for which `wanted` is true. Special characters are
    /// those that become anything but their own lower case, framed letters, and marks that joined the
    /// character before them. `None` if the index has no list of them.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the list of characters is damaged.
    pub fn documents_with(&self, wanted: &mut dyn FnMut(char) -> bool) -> Result<Option<DocSet>> {
        self.seen.as_ref().map(|seen| seen.documents(wanted)).transpose()
    }

    /// Whether [`TextIndex::documents_with`] can answer.
    pub fn knows_characters(&self) -> bool {
        self.seen.is_some()
    }

    /// Whether the index has the lists of neighbours that a segment of its size should have. Segments of
    /// earlier versions have none.
    pub fn knows_neighbours(&self) -> bool {
        self.neighbours.is_some() || self.doc_count < neighbours::MIN_DOCUMENTS
    }

    /// Checks the lists of neighbours against the postings. Costs about as much as building them.
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

    /// Calls `visit(postings, occurrences)` for each of the terms. A few records are prefetched at a time, so
    /// that the cache misses overlap.
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

    /// The size in bytes of the postings of consecutive terms: the cost of reading them.
    fn postings_bytes(&self, terms: std::ops::Range<u32>) -> u64 {
        if terms.len() == 1 {
            return self.posting_offsets.bytes(terms.start) as u64;
        }
        let (start, end) = (terms.start, terms.end.max(terms.start));
        let (start, end) = (self.posting_offsets.start(start), self.posting_offsets.start(end));
        end.saturating_sub(start) as u64
    }
}
