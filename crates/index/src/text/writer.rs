//! Writes the sections of one text index, term by term.
//!
//! ```text
//! TPST := record{terms}               postings, see `postings`
//! TPOS := places of frequent terms    see `postings`
//! TPOF := offsets                     where each term's record lies in TPST, see `offsets`
//! TLEN := width:u8 length:width{documents}
//!                                     code points of the normalised text, 2 or 4 bytes each
//! TSTA := postings:u64 positions:u64 bitmap_lists:u64 total_length:u64
//! ```

use super::{
    neighbours::{NeighboursWriter, Occurrences},
    offsets::{Offsets, OffsetsWriter},
    postings::{Decoded, PostingsWriter, is_bits},
    unions::UnionsWriter,
    vocabulary::VocabularyWriter,
};
use crate::{IndexError, Result, SectionTag, SectionWriter, Slice};

pub(crate) const POSTINGS: SectionTag = SectionTag(*b"TPST");
pub(crate) const POSITIONS: SectionTag = SectionTag(*b"TPOS");
pub(crate) const POSTING_OFFSETS: SectionTag = SectionTag(*b"TPOF");
pub(crate) const LENGTHS: SectionTag = SectionTag(*b"TLEN");
pub(crate) const STATISTICS: SectionTag = SectionTag(*b"TSTA");

/// Writes the sections of a text index from terms in the vocabulary's order.
pub(crate) struct TextWriter {
    lengths: Vec<u32>,
    vocabulary: VocabularyWriter,
    postings: PostingsWriter,
    offsets: OffsetsWriter,
    unions: UnionsWriter,
    neighbours: Option<NeighboursWriter>,
    posting_count: u64,
    position_count: u64,
    bitmap_count: u64,
}

impl TextWriter {
    /// A writer for a segment whose documents have these lengths.
    pub fn new(lengths: Vec<u32>) -> Self {
        let doc_count = lengths.len() as u32;
        Self {
            lengths,
            vocabulary: VocabularyWriter::default(),
            postings: PostingsWriter::new(doc_count),
            offsets: OffsetsWriter::default(),
            unions: UnionsWriter::new(doc_count),
            neighbours: Some(NeighboursWriter::new(doc_count)),
            posting_count: 0,
            position_count: 0,
            bitmap_count: 0,
        }
    }

    /// Leaves out the lists of neighbours, as earlier versions did.
    pub fn forget_neighbours(&mut self) {
        self.neighbours = None;
    }

    /// Sets one more than the last ordinal of each document, which would otherwise be derived from
    /// the positions.
    pub fn know_ordinals(&mut self, ordinals: impl Iterator<Item = u32>) {
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.know_ordinals(ordinals);
        }
    }

    /// Appends the next term with its postings (at least one).
    pub fn push(&mut self, term: &[u8], postings: &Decoded) -> Result<()> {
        let last = postings.docs.last().is_some_and(|&doc| (doc as usize) < self.lengths.len());
        if !last || !postings.docs.is_sorted_by(|a, b| a < b) {
            return Err(IndexError::corrupt(
                "a term has a document twice or one that is not there",
            ));
        }
        self.vocabulary.push(term)?;
        self.unions.push(term, &postings.docs);
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.push(term, postings);
        }
        self.postings.write(postings, &self.lengths)?;
        self.offsets.push(self.postings.records.len(), "4 GiB of postings")?;
        self.posting_count += postings.docs.len() as u64;
        self.position_count += postings.places.len() as u64;
        self.bitmap_count += u64::from(is_bits(postings.docs.len(), self.lengths.len() as u32));
        Ok(())
    }

    /// Writes the sections of the text index `id`. If the occurrences that the postings were made of are given, the
    /// lists of neighbours are made of them, at less cost.
    pub fn finish(
        self,
        id: u32,
        occurrences: Option<Occurrences<'_>>,
        out: &mut SectionWriter,
    ) -> Result<()> {
        let total: u64 = self.lengths.iter().map(|&length| u64::from(length)).sum();
        let statistics = [self.posting_count, self.position_count, self.bitmap_count, total];
        let statistics = statistics.iter().flat_map(|number| number.to_le_bytes());
        out.add(STATISTICS, id, &statistics.collect::<Vec<_>>());
        out.add(LENGTHS, id, &encode_lengths(&self.lengths));
        let offsets = Slice::new(self.offsets.finish());
        let positions = Slice::new(self.postings.positions);
        if let Some(neighbours) = self.neighbours {
            let postings = (self.postings.records.as_slice(), &Offsets::open(&offsets)?);
            let occurred = (positions.clone(), occurrences);
            neighbours.finish(id, self.vocabulary.words(), postings, occurred, out)?;
        }
        self.vocabulary.finish(id, true, out)?;
        out.reserve(offsets.len() + self.postings.records.len() + positions.len());
        self.unions.finish(id, &self.postings.records, &Offsets::open(&offsets)?, out)?;
        out.add(POSTING_OFFSETS, id, &offsets);
        out.add(POSTINGS, id, &self.postings.records);
        out.add(POSITIONS, id, &positions);
        Ok(())
    }
}

fn encode_lengths(lengths: &[u32]) -> Vec<u8> {
    let short = lengths.iter().all(|&length| length <= u32::from(u16::MAX));
    let width = if short { 2 } else { 4 };
    let mut bytes = Vec::with_capacity(1 + lengths.len() * width);
    bytes.push(width as u8);
    for length in lengths {
        bytes.extend_from_slice(&length.to_le_bytes()[..width]);
    }
    bytes
}
