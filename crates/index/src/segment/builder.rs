//! Builds a segment from documents.

use std::cmp::Ordering;

use super::{
    Document, IndexPart, IndexSpec, MAX_DOCUMENTS, SPEC, Segment, SegmentSpec, encode_spec, index,
};
use crate::{
    IndexError, KeysWriter, Result, SectionWriter,
    column::{Cell, ColumnWriter},
    text::TextBuilder,
};

/// Builds a segment from documents in strictly ascending key order.
pub struct SegmentBuilder {
    spec: SegmentSpec,
    keys: KeysWriter,
    columns: Vec<ColumnWriter>,
    texts: Vec<TextBuilder>,
    doc_count: u32,
}

impl SegmentBuilder {
    /// An empty segment.
    pub fn new(spec: &SegmentSpec) -> Self {
        let columns = spec.columns.iter().map(|column| ColumnWriter::new(column.id, column.kind));
        let texts = spec.texts.iter().map(|text| TextBuilder::new(text.normalization));
        Self {
            keys: KeysWriter::default(),
            columns: columns.collect(),
            texts: texts.collect(),
            doc_count: 0,
            spec: spec.clone(),
        }
    }

    /// Makes room for so many bytes of text in each text index. What is not used of it costs
    /// nothing.
    pub fn reserve_text(&mut self, bytes: usize) {
        self.texts.iter_mut().for_each(|text| text.reserve(bytes));
    }

    /// Builds what earlier versions built, that is compared with a segment of theirs: nothing is
    /// known of the characters of its texts.
    pub fn forget_characters(&mut self) {
        self.texts.iter_mut().for_each(TextBuilder::forget_characters);
    }

    /// Adds the next document. After an error the builder must be dropped.
    ///
    /// # Errors
    /// - [`IndexError::Invalid`]: the document does not have the columns and texts of the spec, its
    ///   key is too long or not above the last one, or a value is too long or of another kind than
    ///   its column.
    /// - [`IndexError::Full`]: the segment has as many documents or words as its format allows, or
    ///   the document has more than 512 MiB of text.
    pub fn add(&mut self, document: &Document<'_>) -> Result<()> {
        if document.columns.len() != self.columns.len() || document.texts.len() != self.texts.len()
        {
            return Err(IndexError::Invalid("a document's shape is not the spec's".to_owned()));
        }
        if self.doc_count == MAX_DOCUMENTS {
            return Err(IndexError::Full("2^31 documents in one segment"));
        }
        self.keys.push(document.key)?;
        for (column, &cell) in self.columns.iter_mut().zip(document.columns) {
            column.push(cell)?;
        }
        for (text, parts) in self.texts.iter_mut().zip(document.texts) {
            text.add(parts)?;
        }
        self.doc_count += 1;
        Ok(())
    }

    /// The finished segment, in memory.
    ///
    /// # Errors
    /// [`IndexError::Full`] if a text index would be larger than the format allows.
    pub fn finish(self) -> Result<Segment> {
        let orders: Vec<_> = self.spec.indexes.iter().map(|index| self.order(index)).collect();
        let mut out = SectionWriter::new();
        out.add(SPEC, 0, &encode_spec(&self.spec, self.doc_count));
        self.keys.finish(&mut out)?;
        for column in self.columns {
            column.finish(&mut out)?;
        }
        for (text, spec) in self.texts.into_iter().zip(&self.spec.texts) {
            text.finish(spec.id, &mut out)?;
        }
        for (index, order) in self.spec.indexes.iter().zip(&orders) {
            index::write(index, order, &mut out)?;
        }
        Segment::open(out.finish())
    }

    /// The documents in the order of an index.
    fn order(&self, index: &IndexSpec) -> Vec<u32> {
        let parts: Vec<_> = index.parts.iter().map(|part| self.sorting(part)).collect();
        let mut docs: Vec<u32> = (0..self.doc_count).collect();
        docs.sort_by(|&a, &b| {
            for (values, descending) in &parts {
                let ordering = values.cell(a).cmp(&values.cell(b));
                if ordering.is_ne() {
                    return if *descending { ordering.reverse() } else { ordering };
                }
            }
            Ordering::Equal
        });
        docs
    }
    /// What a part sorts by, and whether the greatest comes first.
    fn sorting(&self, part: &IndexPart) -> (Sorting<'_>, bool) {
        let column = self.columns.iter().find(|column| column.id() == part.column);
        let sorting = match (column, part.order) {
            (Some(column), Some(order)) => {
                let key = |doc: u32| match column.cell(doc) {
                    Cell::Bytes(text) => {
                        let mut key = Vec::new();
                        order.write_key(text, &mut key);
                        Some(key.into_boxed_slice())
                    }
                    _ => None,
                };
                Sorting::Keys((0..self.doc_count).map(key).collect())
            }
            (Some(column), None) => Sorting::Cells(column),
            (None, _) => Sorting::Nothing,
        };
        (sorting, part.descending)
    }
}

/// What documents are sorted by.
enum Sorting<'b> {
    Cells(&'b ColumnWriter),
    /// Keys of texts, each of which is made once.
    Keys(Vec<Option<Box<[u8]>>>),
    Nothing,
}

impl Sorting<'_> {
    fn cell(&self, doc: u32) -> Cell<'_> {
        match self {
            Self::Cells(column) => column.cell(doc),
            Self::Keys(keys) => {
                let key = keys.get(doc as usize).and_then(Option::as_deref);
                key.map_or(Cell::Null, Cell::Bytes)
            }
            Self::Nothing => Cell::Null,
        }
    }
}
