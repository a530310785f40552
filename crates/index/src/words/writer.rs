//! Writes the sections of a keyword index, keyword by keyword.

use remora_words::analysis::Analyzer;

use super::{
    fields::{FIELDS, FieldsWriter},
    lengths::{self, FieldLengths},
    pairs_writer::PairsWriter,
};
use crate::{
    IndexError, Result, SectionTag, SectionWriter, Slice,
    bytes::{Stored, read_u64},
    text::{
        POSITIONS,
        parts::{Decoded, OffsetsWriter, PostingsWriter, VocabularyWriter},
    },
};

pub(super) const POSTINGS: SectionTag = SectionTag(*b"TPST");
pub(super) const POSTING_OFFSETS: SectionTag = SectionTag(*b"TPOF");
pub(super) const LENGTHS: SectionTag = SectionTag(*b"WLEN");
pub(crate) const STATISTICS: SectionTag = SectionTag(*b"WSTA");

/// Writes keywords, which must come in the vocabulary's order.
pub(super) struct WordsWriter {
    lengths: FieldLengths,
    /// The length of each document, for the upper bounds of blocks.
    of_documents: Vec<u32>,
    vocabulary: VocabularyWriter,
    /// Whether queries by a piece of a keyword are allowed.
    has_pieces: bool,
    postings: PostingsWriter,
    offsets: OffsetsWriter,
    fields: Option<FieldsWriter>,
    pairs: PairsWriter,
    posting_count: u64,
    hit_count: u64,
}

impl WordsWriter {
    /// A writer for a segment of documents of these lengths, whose keywords `analyzer` makes.
    pub(super) fn new(lengths: FieldLengths, analyzer: &Analyzer) -> Self {
        let of_documents = lengths.counts.chunks(lengths.fields.max(1));
        let of_documents: Vec<u32> = of_documents.map(|counts| counts.iter().sum()).collect();
        Self {
            vocabulary: VocabularyWriter::default(),
            has_pieces: analyzer.settings().min_infix_len() > 0,
            postings: PostingsWriter::new(of_documents.len() as u32),
            offsets: OffsetsWriter::default(),
            fields: FieldsWriter::new(&lengths, of_documents.len() as u32),
            pairs: PairsWriter::new(of_documents.len()),
            posting_count: 0,
            hit_count: 0,
            lengths,
            of_documents,
        }
    }

    /// Appends the next keyword with its postings (at least one).
    pub(super) fn push(&mut self, keyword: &[u8], postings: &Decoded) -> Result<()> {
        let documents = self.of_documents.len();
        let is_there = postings.docs.last().is_some_and(|&doc| (doc as usize) < documents);
        if !is_there || !postings.docs.is_sorted_by(|a, b| a < b) {
            let what = "a keyword has a document twice or one that is not there";
            return Err(IndexError::corrupt(what));
        }
        self.vocabulary.push_word(keyword)?;
        self.pairs.push(postings.docs.len() as u32, self.postings.records.len());
        self.postings.write(postings, &self.of_documents)?;
        self.offsets.push(self.postings.records.len(), "4 GiB of postings")?;
        if let Some(fields) = &mut self.fields {
            fields.push(postings, &self.lengths, &self.of_documents)?;
        }
        self.posting_count += postings.docs.len() as u64;
        self.hit_count += postings.places.len() as u64;
        Ok(())
    }

    /// Writes the sections of the keyword index `id`.
    pub(super) fn finish(self, id: u32, out: &mut SectionWriter) -> Result<()> {
        let fields = self.lengths.fields;
        let mut statistics = vec![self.posting_count, self.hit_count];
        let counts = &self.lengths.counts;
        statistics.extend((0..fields).map(|field| {
            counts.iter().skip(field).step_by(fields).map(|&count| u64::from(count)).sum::<u64>()
        }));
        let bytes: Vec<u8> = statistics.into_iter().flat_map(u64::to_le_bytes).collect();
        out.add(STATISTICS, id, &bytes);
        out.add(LENGTHS, id, &lengths::encode(fields, &self.lengths.last, counts));
        self.vocabulary.finish(id, self.has_pieces, out)?;
        let offsets = Slice::new(self.offsets.finish());
        out.reserve(offsets.len() + self.postings.records.len() + self.postings.positions.len());
        out.add(POSTING_OFFSETS, id, &offsets);
        out.add(POSTINGS, id, &self.postings.records);
        if let Some(fields) = self.fields {
            out.add(FIELDS, id, &fields.finish());
        }
        let positions = Slice::new(self.postings.positions);
        out.add(POSITIONS, id, &positions);
        let bytes = self.postings.records.len() + positions.len();
        let postings = (&self.postings.records[..], &Stored::Memory(positions));
        let pairs = self.pairs.finish(postings, bytes, &self.of_documents, self.hit_count)?;
        if let Some(pairs) = pairs {
            pairs.add(id, out);
        }
        Ok(())
    }
}

/// The total length of each field, from the statistics section.
pub(super) fn totals(statistics: &[u8], fields: usize) -> Result<Vec<u64>> {
    (0..fields).map(|field| read_u64(statistics, 16 + field * 8)).collect()
}

/// The number of occurrences of all keywords, from the same section.
pub(super) fn hits(statistics: &[u8]) -> Result<u64> {
    read_u64(statistics, 8)
}
