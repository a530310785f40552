//! Posting lists by field, for all fields but the longest: which documents contain a keyword in a given
//! field. Ranked search uses them for upper bounds of weights.
//!
//! ```text
//! TFLD := longest:u32 lists:u32 (keyword:u32 field:u32 offset:u32){lists} record*      ascending by keyword and field
//! ```
//! Only keywords in at least [`LEAST_DOCUMENTS`] documents have lists; for others the positions are read. A
//! segment with one field, or with more than [`MOST_FIELDS`], has no such section.

use super::lengths::FieldLengths;
use crate::{
    DocSet, IndexError, Result, SectionTag, Slice,
    bytes::read_u32,
    text::parts::{Decoded, Postings, PostingsWriter, positions},
};

pub(super) const FIELDS: SectionTag = SectionTag(*b"TFLD");

/// Most fields for which ranked search computes separate bounds.
pub const MOST_FIELDS: usize = 8;

/// Keywords in fewer documents have no lists by field.
pub(super) const LEAST_DOCUMENTS: usize = 128;

const HEAD: usize = 8;
const ENTRY: usize = 12;

/// Writes the lists of a segment.
pub(super) struct FieldsWriter {
    longest: usize,
    keywords: u32,
    entries: Vec<u8>,
    records: PostingsWriter,
    /// The documents of the current keyword, by field.
    found: Vec<Vec<u32>>,
    list: Decoded,
}

impl FieldsWriter {
    /// `None` for a segment of one field, or of too many.
    pub fn new(lengths: &FieldLengths, documents: u32) -> Option<Self> {
        let fields = lengths.fields;
        let total = |field: usize| -> u64 {
            lengths.counts.iter().skip(field).step_by(fields).map(|&count| u64::from(count)).sum()
        };
        // The first one, if several are equally long.
        let longest = (0..fields).rev().max_by_key(|&field| total(field))?;
        (2..=MOST_FIELDS).contains(&fields).then(|| Self {
            longest,
            keywords: 0,
            entries: Vec::new(),
            records: PostingsWriter::new(documents),
            found: vec![Vec::new(); fields],
            list: Decoded::default(),
        })
    }

    /// Takes the next keyword.
    pub fn push(
        &mut self,
        postings: &Decoded,
        lengths: &FieldLengths,
        of_documents: &[u32],
    ) -> Result<()> {
        let keyword = self.keywords;
        self.keywords += 1;
        if postings.docs.len() < LEAST_DOCUMENTS {
            return Ok(());
        }
        postings.for_each_document(|doc, places| self.find(doc, places, lengths));
        for field in 0..self.found.len() {
            let docs = std::mem::take(&mut self.found[field]);
            if !docs.is_empty() && field != self.longest {
                self.write(keyword, field, &docs, of_documents)?;
            }
            self.found[field] = docs;
            self.found[field].clear();
        }
        Ok(())
    }

    /// Adds a document to the lists of the fields in which it contains the keyword.
    fn find(&mut self, doc: u32, places: &[u32], lengths: &FieldLengths) {
        let first = doc as usize * lengths.fields;
        let of_document = lengths.last.get(first..first + lengths.fields).unwrap_or_default();
        let (mut field, mut end) = (0, of_document.first().copied().unwrap_or(0));
        for at in positions(places) {
            while at > end && field + 1 < of_document.len() {
                field += 1;
                end = end.saturating_add(of_document[field]);
            }
            if let Some(found) = self.found.get_mut(field)
                && found.last() != Some(&doc)
            {
                found.push(doc);
            }
        }
    }

    fn write(
        &mut self,
        keyword: u32,
        field: usize,
        docs: &[u32],
        of_documents: &[u32],
    ) -> Result<()> {
        for number in [keyword, field as u32, self.records.records.len() as u32] {
            self.entries.extend_from_slice(&number.to_le_bytes());
        }
        self.list.clear();
        self.list.docs.extend_from_slice(docs);
        self.list.tfs.resize(docs.len(), 1);
        self.list.places.resize(docs.len(), 1);
        self.records.write(&self.list, of_documents)?;
        // Positions are not stored here.
        self.records.positions.clear();
        Ok(())
    }

    /// The section.
    pub fn finish(self) -> Vec<u8> {
        let lists = (self.entries.len() / ENTRY) as u32;
        let mut out = Vec::with_capacity(HEAD + self.entries.len() + self.records.records.len());
        out.extend_from_slice(&(self.longest as u32).to_le_bytes());
        out.extend_from_slice(&lists.to_le_bytes());
        out.extend_from_slice(&self.entries);
        out.extend_from_slice(&self.records.records);
        out
    }
}

/// The lists of a segment.
#[derive(Clone)]
pub(super) struct Fields {
    longest: usize,
    entries: Slice,
    records: Slice,
}

impl Fields {
    pub(super) fn open(section: &Slice) -> Result<Self> {
        let longest = read_u32(section, 0)? as usize;
        let bytes = (read_u32(section, 4)? as usize).saturating_mul(ENTRY);
        let end = HEAD.saturating_add(bytes);
        let entries = section.part(HEAD..end)?;
        Ok(Self { longest, entries, records: section.part(end..section.len())? })
    }

    /// The longest field, which has no lists.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The documents that contain the keyword in the field. The keyword must have lists.
    pub(super) fn documents(&self, keyword: u32, field: usize, documents: u32) -> Result<DocSet> {
        let wanted = (keyword, field as u32);
        let (mut low, mut high) = (0, self.entries.len() / ENTRY);
        while low < high {
            let middle = low.midpoint(high);
            let at = middle * ENTRY;
            let found = (read_u32(&self.entries, at)?, read_u32(&self.entries, at + 4)?);
            if found == wanted {
                let offset = read_u32(&self.entries, at + 8)? as usize;
                return documents_of(&Postings::open(&self.records, offset, documents)?, documents);
            }
            if found < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(DocSet::empty())
    }
}

/// The documents of a posting list.
pub(super) fn documents_of(postings: &Postings<'_>, documents: u32) -> Result<DocSet> {
    if let Some(bits) = postings.to_bitmap() {
        return Ok(DocSet::Bits(bits.into()));
    }
    let mut docs = Vec::with_capacity(postings.df() as usize);
    postings.for_each_doc(|doc| docs.push(doc))?;
    if docs.last().is_some_and(|&last| last >= documents) {
        return Err(IndexError::corrupt("a document that is not there"));
    }
    Ok(DocSet::ascending(docs, documents))
}
