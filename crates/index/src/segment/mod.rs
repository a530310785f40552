//! Segments: one run of documents in key order with everything that is indexed about them.

use std::sync::Arc;

use crate::{
    Bitmap, IndexError, Keys, Result, Sections,
    column::{Cell, Column, ColumnKind},
    text::{Normalization, TextIndex},
};

/// What a segment indexes; derived from a table's schema.
#[derive(Clone, Debug, Default)]
pub struct SegmentSpec {
    /// The columns, by their stable numbers.
    pub columns: Vec<ColumnSpec>,
    /// The text indexes, by their stable numbers.
    pub texts: Vec<TextSpec>,
}

/// One column to be written.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// Stable number, unique in the table and never reused.
    pub id: u32,
    /// How values are held.
    pub kind: ColumnKind,
}

/// One text index to be written.
#[derive(Clone, Copy, Debug)]
pub struct TextSpec {
    /// Stable number, unique in the table and never reused.
    pub id: u32,
    /// How text is normalised before it is cut.
    pub normalization: Normalization,
}

/// One document, in the order of the spec.
pub struct Document<'a> {
    /// Order-preserving bytes of the primary key.
    pub key: &'a [u8],
    /// One value for each column of the spec.
    pub columns: &'a [Cell<'a>],
    /// For each text index the original texts of its columns (NULL left out). A match never
    /// spans two of them.
    pub texts: &'a [Vec<&'a str>],
}

/// Builds a segment from documents in strictly ascending key order.
pub struct SegmentBuilder {}

impl SegmentBuilder {
    /// An empty segment.
    pub fn new(_spec: &SegmentSpec) -> Self {
        Self {}
    }
    /// Adds the next document.
    pub fn add(&mut self, _document: &Document<'_>) -> Result<()> {
        Ok(())
    }
    /// The finished segment, in memory.
    pub fn finish(self) -> Result<Segment> {
        Err(IndexError::Full("not built yet"))
    }
}

/// An immutable segment. Cheap to clone behind an `Arc`; safe to read from any thread.
pub struct Segment {
    sections: Sections,
    keys: Keys,
    columns: Vec<(u32, Column)>,
    texts: Vec<(u32, TextIndex)>,
}

impl Segment {
    /// Opens a segment's bytes, verifying every checksum.
    pub fn open(bytes: Vec<u8>) -> Result<Self> {
        let _ = Sections::open(bytes)?;
        Err(IndexError::Full("not built yet"))
    }
    /// The bytes as they are written to a file.
    pub fn as_bytes(&self) -> &[u8] {
        self.sections.as_bytes()
    }
    /// How many documents, deleted ones included.
    pub fn doc_count(&self) -> u32 {
        self.keys.len()
    }
    /// The keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }
    /// The column, or `None` if the segment was written before it existed (all NULL).
    pub fn column(&self, id: u32) -> Option<&Column> {
        self.columns.iter().find(|(other, _)| *other == id).map(|(_, column)| column)
    }
    /// The text index, or `None` if the segment was written before it existed.
    pub fn text(&self, id: u32) -> Option<&TextIndex> {
        self.texts.iter().find(|(other, _)| *other == id).map(|(_, text)| text)
    }
}

/// One input of a merge: a segment and the documents of it that are gone.
pub struct MergeInput {
    /// The segment.
    pub segment: Arc<Segment>,
    /// Deleted documents, if any.
    pub deleted: Option<Arc<Bitmap>>,
}

/// Merges segments into one, dropping deleted documents. No two inputs hold the same live key.
/// Every input was built with a spec whose columns and texts are a subset of `spec`'s.
pub fn merge(_inputs: &[MergeInput], _spec: &SegmentSpec) -> Result<Segment> {
    Err(IndexError::Full("not built yet"))
}
