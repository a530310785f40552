//! The last position and the number of keywords of each field of each document.

use crate::{IndexError, Result, Slice};

/// The lengths of the fields; see the grammar of section `WLEN` in `words`.
#[derive(Clone)]
pub(super) struct Lengths {
    fields: usize,
    width: usize,
    last: Slice,
    counts: Slice,
}

/// The lengths of the fields of all documents, in the order of documents, then fields.
#[derive(Default)]
pub(super) struct FieldLengths {
    pub fields: usize,
    pub last: Vec<u32>,
    pub counts: Vec<u32>,
}

const HEAD: usize = 4;

/// Encodes the section; the numbers are in the order of documents, then fields.
pub(super) fn encode(fields: usize, last: &[u32], counts: &[u32]) -> Vec<u8> {
    let is_short = last.iter().all(|&length| length <= u32::from(u8::MAX));
    let is_middle = last.iter().all(|&length| length <= u32::from(u16::MAX));
    let width = if is_short {
        1
    } else if is_middle {
        2
    } else {
        4
    };
    let has_counts = last != counts;
    let mut out = Vec::with_capacity(HEAD + last.len() * width * (1 + usize::from(has_counts)));
    out.extend_from_slice(&(fields as u16).to_le_bytes());
    out.extend_from_slice(&[u8::from(has_counts), width as u8]);
    let counts = if has_counts { counts } else { &[] };
    for number in last.iter().chain(counts) {
        out.extend_from_slice(&number.to_le_bytes()[..width]);
    }
    out
}

impl Lengths {
    pub(super) fn open(section: &Slice, doc_count: u32) -> Result<Self> {
        let corrupt = || IndexError::corrupt("the lengths of the words' fields");
        let &[low, high, has_counts, width] = section.first_chunk().ok_or_else(corrupt)?;
        let (fields, width) = (usize::from(u16::from_le_bytes([low, high])), usize::from(width));
        let bytes = doc_count as usize * fields * width;
        let parts = if has_counts == 1 { 2 } else { 1 };
        if fields == 0 || !matches!(width, 1 | 2 | 4) || section.len() != HEAD + bytes * parts {
            return Err(corrupt());
        }
        Ok(Self {
            fields,
            width,
            last: section.part(HEAD..HEAD + bytes)?,
            counts: section.part(section.len() - bytes..section.len())?,
        })
    }

    pub(super) fn fields(&self) -> usize {
        self.fields
    }

    /// The position of the field's last keyword; 0 if it has none.
    #[inline]
    pub(super) fn last(&self, doc: u32, field: usize) -> u32 {
        self.read(&self.last, doc, field)
    }

    /// The length of the field in keywords, as Sphinx counts it.
    #[inline]
    pub(super) fn count(&self, doc: u32, field: usize) -> u32 {
        self.read(&self.counts, doc, field)
    }

    #[inline]
    fn read(&self, numbers: &[u8], doc: u32, field: usize) -> u32 {
        let at = (doc as usize * self.fields + field) * self.width;
        match numbers.get(at..at + self.width) {
            Some(&[byte]) => u32::from(byte),
            Some(&[low, high]) => u32::from(u16::from_le_bytes([low, high])),
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => 0,
        }
    }
}
