//! Writes postings.

use super::{Decoded, RANK_DOCS, is_bits, length_code, packing, packing::BLOCK, small};
use crate::{IndexError, Result, varint};

/// Another term is refused once all records, or all positions, have more bytes than this.
const AREA_BYTES_MAX: usize = 2 << 30;
/// The most places of one term. Each takes at most four bytes, so offsets do not overflow.
const PLACES_MAX: usize = 1 << 28;

/// Writes the records of terms one after the other into one buffer.
pub(crate) struct PostingsWriter {
    doc_count: u32,
    docs_area: Vec<u8>,
    positions_area: Vec<u8>,
    skips: Vec<u8>,
    chunk_bytes: Vec<u8>,
    /// The records, one after the other.
    pub records: Vec<u8>,
    /// The places that are not in the records.
    pub positions: Vec<u8>,
}

impl PostingsWriter {
    /// A writer for a segment of `doc_count` documents.
    pub fn new(doc_count: u32) -> Self {
        Self {
            doc_count,
            docs_area: Vec::new(),
            positions_area: Vec::new(),
            skips: Vec::new(),
            chunk_bytes: Vec::new(),
            records: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Appends one term's record; `lengths[doc]` is a document's length.
    pub fn write(&mut self, term: &Decoded, lengths: &[u32]) -> Result<()> {
        // Offsets have 32 bits; a segment reaches its own limits long before.
        let places = term.places.len();
        if places > PLACES_MAX || self.records.len().max(self.positions.len()) > AREA_BYTES_MAX {
            return Err(IndexError::Full("2 GiB of postings"));
        }
        if term.docs.len() < BLOCK {
            return small::write(term, self.doc_count, &mut self.records, &mut self.positions);
        }
        self.records.push(0);
        varint::push(&mut self.records, term.docs.len() as u32);
        self.write_large(term, lengths)
    }

    fn write_large(&mut self, term: &Decoded, lengths: &[u32]) -> Result<()> {
        let bits = is_bits(term.docs.len(), self.doc_count);
        self.docs_area.clear();
        self.positions_area.clear();
        self.skips.clear();
        let (mut previous, mut place) = (None, 0);
        for (docs, tfs) in term.docs.chunks(BLOCK).zip(term.tfs.chunks(BLOCK)) {
            let count: usize = tfs.iter().map(|&tf| tf as usize).sum();
            self.write_skip(docs, tfs, lengths);
            self.write_docs(docs, tfs, previous, bits);
            self.write_places(&term.places[place..place + count]);
            previous = docs.last().copied();
            place += count;
        }
        let start = u32::try_from(self.positions.len());
        let start = start.map_err(|_| IndexError::Full("4 GiB of positions"))?;
        let out = &mut self.records;
        out.push(u8::from(bits));
        for number in [self.docs_area.len() as u32, start, self.positions_area.len() as u32] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.skips);
        if bits {
            write_bits(&term.docs, self.doc_count, out);
        }
        out.extend_from_slice(&self.docs_area);
        self.positions.extend_from_slice(&self.positions_area);
        Ok(())
    }

    fn write_skip(&mut self, docs: &[u32], tfs: &[u32], lengths: &[u32]) {
        let last = docs.last().copied().unwrap_or(0);
        let max_tf = tfs.iter().copied().max().unwrap_or(0).min(255) as u8;
        let length = |&doc: &u32| lengths.get(doc as usize).copied().unwrap_or(0);
        let min_length = docs.iter().map(length).min().unwrap_or(0);
        self.skips.extend_from_slice(&last.to_le_bytes());
        self.skips.extend_from_slice(&(self.docs_area.len() as u32).to_le_bytes());
        self.skips.extend_from_slice(&(self.positions_area.len() as u32).to_le_bytes());
        self.skips.extend_from_slice(&[max_tf, length_code(min_length)]);
    }

    fn write_docs(&mut self, docs: &[u32], tfs: &[u32], previous: Option<u32>, bits: bool) {
        let out = &mut self.docs_area;
        if let (Ok(docs), Ok(tfs)) = (docs.try_into(), tfs.try_into()) {
            if !bits {
                packing::pack_documents(docs, previous, out);
            }
            packing::pack_frequencies(tfs, out);
            return;
        }
        if !bits {
            let mut next = previous.map_or(0, |doc| doc + 1);
            for &doc in docs {
                varint::push(out, doc - next);
                next = doc + 1;
            }
        }
        tfs.iter().for_each(|tf| varint::push(out, tf - 1));
    }

    fn write_places(&mut self, places: &[u32]) {
        self.chunk_bytes.clear();
        for chunk in places.chunks(BLOCK) {
            let width = packing::width_of(chunk);
            self.positions_area.push(width);
            packing::pack(chunk, width, &mut self.chunk_bytes);
        }
        self.positions_area.extend_from_slice(&self.chunk_bytes);
    }
}

fn write_bits(docs: &[u32], doc_count: u32, out: &mut Vec<u8>) {
    let mut words = vec![0u64; doc_count.div_ceil(64) as usize];
    docs.iter().for_each(|&doc| words[doc as usize / 64] |= 1 << (doc % 64));
    let mut rank = 0u32;
    for block in words.chunks(RANK_DOCS / 64) {
        out.extend_from_slice(&rank.to_le_bytes());
        rank += block.iter().map(|word| word.count_ones()).sum::<u32>();
    }
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}
