//! Builds segments of bounded size from any number of rows.

use std::sync::Arc;

use remora_index::segment::Segment;

use super::{
    document::{RowIndexer, indexed_bytes},
    required::RequiredRows,
};
use crate::{Result, Row, Schema};

/// A segment is finished once it has this many bytes of text, which bounds the memory of building. The last row may
/// exceed it.
const SEGMENT_TEXT_BYTES: usize = 16 << 20;
/// The most documents in one segment.
const SEGMENT_DOCUMENTS: usize = 100_000;

/// Builds segments of bounded size from rows in key order.
pub(crate) struct BoundedIndexer<'s> {
    schema: &'s Schema,
    required: RequiredRows,
    current: RowIndexer<'s>,
    current_text_bytes: usize,
    /// Bytes of text of all segments.
    pub all_text_bytes: u64,
    built: Vec<Arc<Segment>>,
}

impl<'s> BoundedIndexer<'s> {
    /// An indexer for rows of a table.
    pub fn new(schema: &'s Schema) -> Result<Self> {
        Ok(Self {
            schema,
            required: RequiredRows::of(schema)?,
            current: RowIndexer::new(schema),
            current_text_bytes: 0,
            all_text_bytes: 0,
            built: Vec::new(),
        })
    }

    /// Adds the next row if it is in the table's view.
    pub fn add(&mut self, key: &[u8], row: &Row) -> Result<()> {
        if !self.required.accept(row) {
            return Ok(());
        }
        self.current.add(key, row)?;
        let bytes = indexed_bytes(self.schema, row, self.current.last_paths());
        self.current_text_bytes += bytes;
        self.all_text_bytes += bytes as u64;
        let full = self.current_text_bytes >= SEGMENT_TEXT_BYTES;
        if full || self.current.documents() >= SEGMENT_DOCUMENTS { self.cut() } else { Ok(()) }
    }

    fn cut(&mut self) -> Result<()> {
        let full = std::mem::replace(&mut self.current, RowIndexer::new(self.schema));
        self.current_text_bytes = 0;
        self.built.extend(full.finish()?.map(Arc::new));
        Ok(())
    }

    /// The finished segments.
    pub fn finish(mut self) -> Result<Vec<Arc<Segment>>> {
        self.cut()?;
        Ok(self.built)
    }
}
