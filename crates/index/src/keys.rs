//! From key to document and back.

use crate::{Result, SectionWriter, Sections};

/// Collects the keys of a segment, strictly ascending by bytes.
#[derive(Default)]
pub struct KeysWriter {}

impl KeysWriter {
    /// Appends the next key; out of order is [`crate::IndexError::Invalid`].
    pub fn push(&mut self, _key: &[u8]) -> Result<()> {
        Ok(())
    }
    /// Writes the sections of this part.
    pub fn finish(self, _out: &mut SectionWriter) -> Result<()> {
        Ok(())
    }
}

/// The keys of a segment.
#[derive(Clone)]
pub struct Keys {}

impl Keys {
    /// Opens the keys of a segment.
    pub fn open(_sections: &Sections) -> Result<Self> {
        Ok(Self {})
    }
    /// How many documents.
    pub fn len(&self) -> u32 {
        0
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The key of a document, appended to `out`; nothing past the end.
    pub fn read(&self, _doc: u32, _out: &mut Vec<u8>) {}
    /// The document that has the key: bloom filter first, then the search.
    pub fn find(&self, _key: &[u8]) -> Option<u32> {
        None
    }
    /// The first document whose key is not below `key` (`len()` if none).
    pub fn lower_bound(&self, _key: &[u8]) -> u32 {
        0
    }
    /// Compares the keys of two documents of two segments without copying them.
    pub fn compare(&self, _doc: u32, _other: &Keys, _other_doc: u32) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
