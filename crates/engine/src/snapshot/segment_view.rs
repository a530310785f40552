//! One segment as a reader sees it.

use std::sync::Arc;

use remora_index::{Bitmap, segment::Segment};

use crate::Schema;

/// One segment and what is gone from it.
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
    /// A segment with the given documents gone. Cost: one length per deleted document and text.
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

    /// This view without the documents of `keys` (encoded), or `None` if it has none of them.
    pub fn without<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        schema: &Schema,
    ) -> Option<Self> {
        let live = |doc: &u32| !self.is_deleted(*doc);
        let gone: Vec<u32> =
            keys.filter_map(|key| self.segment.keys().find(key)).filter(live).collect();
        (!gone.is_empty()).then(|| self.without_docs(&gone, schema))
    }

    /// This view without `gone`: live documents, each named once.
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

    /// Whether `doc` is gone.
    pub fn is_deleted(&self, doc: u32) -> bool {
        self.deleted.as_ref().is_some_and(|deleted| deleted.contains(doc))
    }

    /// Whether the key is here and not deleted.
    pub fn has_live(&self, key: &[u8]) -> bool {
        self.segment.keys().find(key).is_some_and(|doc| !self.is_deleted(doc))
    }

    /// Whether this is a view of that segment in memory.
    pub fn is_of(&self, segment: &Arc<Segment>) -> bool {
        Arc::ptr_eq(&self.segment, segment)
    }

    /// The bytes of the segment: what a merge reads and a file holds.
    pub fn bytes(&self) -> u64 {
        self.segment.byte_count()
    }

    /// How many documents are live.
    pub fn live_count(&self) -> u32 {
        self.segment.doc_count() - self.deleted_count
    }
}
