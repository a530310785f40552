//! Builds a segment from documents.

use std::{cell::RefCell, sync::Arc};

use super::{
    Document, IndexSpec, MAX_DOCUMENTS, SPEC, Segment, SegmentSpec, encode_spec,
    fences::OrderedDocuments, index, sort_key,
};
use crate::{
    IndexError, KeysWriter, Result, SectionWriter,
    column::{Cell, ColumnWriter},
    paths::PathsBuilder,
    text::TextBuilder,
    words::WordsBuilder,
};

/// Builds a segment from documents in strictly ascending key order.
pub struct SegmentBuilder {
    spec: SegmentSpec,
    keys: KeysWriter,
    columns: Vec<ColumnWriter>,
    texts: Vec<TextBuilder>,
    words: Vec<WordsBuilder>,
    paths: PathsBuilder,
    doc_count: u32,
}

impl SegmentBuilder {
    /// An empty segment.
    pub fn new(spec: &SegmentSpec) -> Self {
        let columns = spec.columns.iter().map(|column| ColumnWriter::new(column.id, column.kind));
        let texts = spec.texts.iter().map(|text| TextBuilder::new(text.normalization));
        let words = spec.words.iter();
        let words = words.map(|it| WordsBuilder::new(Arc::clone(&it.analyzer), it.fields));
        Self {
            words: words.collect(),
            paths: PathsBuilder::new(&spec.paths),
            keys: KeysWriter::default(),
            columns: columns.collect(),
            texts: texts.collect(),
            doc_count: 0,
            spec: spec.clone(),
        }
    }

    /// Reserves capacity for so many bytes of text in each text index. Unused capacity costs only address
    /// space.
    pub fn reserve_text(&mut self, bytes: usize) {
        self.texts.iter_mut().for_each(|text| text.reserve(bytes));
    }

    /// Leaves out the sections about special characters, to build the same bytes as earlier versions of the
    /// format.
    pub fn forget_characters(&mut self) {
        self.texts.iter_mut().for_each(TextBuilder::forget_characters);
    }

    /// Leaves out the lists of neighbours, to build the same bytes as earlier versions of the format.
    pub fn forget_neighbours(&mut self) {
        self.texts.iter_mut().for_each(TextBuilder::forget_neighbours);
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
        if document.columns.len() != self.columns.len()
            || document.texts.len() != self.texts.len()
            || document.words.len() != self.words.len()
            || document.paths.paths() != self.paths.paths()
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
        for (words, fields) in self.words.iter_mut().zip(document.words) {
            words.add(fields)?;
        }
        self.paths.add(document.paths)?;
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
        out.reserve(self.paths.bytes() as usize);
        out.add(SPEC, 0, &encode_spec(&self.spec, self.doc_count));
        self.keys.finish(&mut out)?;
        for column in self.columns {
            column.finish(&mut out)?;
        }
        for (text, spec) in self.texts.into_iter().zip(&self.spec.texts) {
            text.finish(spec.id, &mut out)?;
        }
        for (words, spec) in self.words.into_iter().zip(&self.spec.words) {
            words.finish(spec.id, &mut out)?;
        }
        self.paths.finish(&mut out)?;
        for (index, order) in self.spec.indexes.iter().zip(&orders) {
            index::write(index, order, &mut out)?;
        }
        Segment::open(out.finish())
    }

    /// The documents in the order of an index.
    fn order(&self, index: &IndexSpec) -> OrderedDocuments {
        let parts = index.parts.iter().map(|part| {
            let column = self.columns.iter().find(|column| column.id() == part.column);
            (column, (part.descending, part.order))
        });
        let parts: Vec<_> = parts.collect();
        let text = RefCell::new(Vec::new());
        let write_key = |doc: u32, key: &mut Vec<u8>| {
            for (column, by) in &parts {
                let cell = column.map_or(Cell::Null, |column| column.cell(doc));
                sort_key::push_part(cell, *by, &mut text.borrow_mut(), key);
            }
        };
        OrderedDocuments::new(sort_key::sorted(0..self.doc_count, write_key), write_key)
    }
}
