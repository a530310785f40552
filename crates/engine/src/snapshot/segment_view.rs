//! One segment of a snapshot: the segment and its tombstones.

use std::sync::Arc;

use remora_index::{Bitmap, segment::Segment};

use crate::Schema;

/// A segment and its deleted documents.
#[derive(Clone)]
pub(crate) struct SegmentView {
    /// The documents.
    pub segment: Arc<Segment>,
    /// Deleted documents; `None` if none.
    pub deleted: Option<Arc<Bitmap>>,
    /// `deleted.count()`.
    pub deleted_count: u32,
    /// For each text index of the schema (same order) the summed length of the live documents.
    pub live_lengths: Arc<[u64]>,
}

impl SegmentView {
    /// A view with these documents deleted. Cost: reads one length for each deleted document and text index.
    pub fn new(segment: Arc<Segment>, deleted: Option<Bitmap>, schema: &Schema) -> Self {
        let deleted = deleted.filter(|bitmap| !bitmap.is_empty());
        let deleted_count = deleted.as_ref().map_or(0, Bitmap::count);
        let live_lengths = schema.texts.iter().map(|text| {
            let Some(index) = segment.text(text.id) else { return 0 };
            let gone = deleted.iter().flat_map(Bitmap::iter);
            let gone: u64 = gone.map(|doc| u64::from(index.length(doc))).sum();
            index.total_length().saturating_sub(gone)
        });
        let live_lengths = live_lengths.collect();
        Self { segment, deleted: deleted.map(Arc::new), deleted_count, live_lengths }
    }

    /// This view with the documents of `keys` (encoded) deleted; `None` if it has none of them.
    pub fn without<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        schema: &Schema,
    ) -> Option<Self> {
        let gone: Vec<u32> = keys.filter_map(|key| self.live_doc(key)).collect();
        (!gone.is_empty()).then(|| self.without_docs(&gone, schema))
    }

    /// The live document with this key.
    pub fn live_doc(&self, key: &[u8]) -> Option<u32> {
        self.segment.keys().find(key).filter(|doc| !self.is_deleted(*doc))
    }

    /// This view with the documents `gone` deleted: live documents, each given once.
    pub fn without_docs(&self, gone: &[u32], schema: &Schema) -> Self {
        let mut deleted = match &self.deleted {
            Some(deleted) => Bitmap::clone(deleted),
            None => Bitmap::new(self.segment.doc_count()),
        };
        let fresh = gone.iter().filter(|&&doc| deleted.insert(doc)).count();
        let lengths = schema.texts.iter().zip(self.live_lengths.iter());
        let live_lengths = lengths.map(|(text, &length)| {
            let Some(index) = self.segment.text(text.id) else { return length };
            let gone: u64 = gone.iter().map(|&doc| u64::from(index.length(doc))).sum();
            length.saturating_sub(gone)
        });
        let live_lengths = live_lengths.collect();
        let deleted_count = self.deleted_count + fresh as u32;
        let segment = Arc::clone(&self.segment);
        Self { segment, deleted: Some(Arc::new(deleted)), deleted_count, live_lengths }
    }

    /// Whether `doc` is deleted.
    pub fn is_deleted(&self, doc: u32) -> bool {
        self.deleted.as_ref().is_some_and(|deleted| deleted.contains(doc))
    }

    /// Whether a live document has the key.
    pub fn has_live(&self, key: &[u8]) -> bool {
        self.live_doc(key).is_some()
    }

    /// Whether this is a view of exactly that segment object.
    pub fn is_of(&self, segment: &Arc<Segment>) -> bool {
        Arc::ptr_eq(&self.segment, segment)
    }

    /// The size of the segment in bytes, in a file and for a merge.
    pub fn bytes(&self) -> u64 {
        self.segment.byte_count()
    }

    /// The number of live documents.
    pub fn live_count(&self) -> u32 {
        self.segment.doc_count() - self.deleted_count
    }
}
