//! Builds the segments for a changed definition in the caller's thread, so that the writer is not blocked.
//!
//! Some definitions need other segments but change no rows, such as other settings of keywords. The caller's thread
//! indexes the rows of one snapshot. Keys written since that snapshot are recorded, as for a transaction. When the
//! definition takes effect, the writer indexes only those.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    alter::alter,
    writer::{Writer, find_table},
};
use crate::{
    Definition, Result, Schema,
    indexing::BoundedIndexer,
    shared::{DatabaseState, KeyRecording, PrebuiltSegments, key_hash},
    snapshot::SegmentView,
};

/// Prebuilt segments that were brought up to date.
pub(super) struct RebasedSegments {
    pub number: u32,
    pub schema: Schema,
    pub segments: Vec<SegmentView>,
    pub text_bytes: u64,
}

/// Indexes a table for a changed definition. `None` if the definition needs no new segments, or changes rows as well.
/// Cost: a scan of the table.
pub(crate) fn prebuild_segments(
    shared: &Arc<DatabaseState>,
    definition: &Definition,
) -> Result<Option<PrebuiltSegments>> {
    let Definition::Alter { schema, fills } = definition else { return Ok(None) };
    let (recording, snapshot) = KeyRecording::begin(shared);
    let Some(view) = snapshot.tables.get(schema.name.as_str()) else { return Ok(None) };
    let before = &view.schema;
    let same_rows = before.columns == schema.columns
        && before.primary_key == schema.primary_key
        && before.required == schema.required
        && view.staged.is_none();
    if !same_rows || !alter(&view.format, schema.clone(), fills)?.index_anew {
        return Ok(None);
    }
    let mut indexer = BoundedIndexer::new(schema)?;
    view.rows.scan(&[], &mut |key, row| {
        shared.check_open()?;
        indexer.add(key, &row).map(|()| true)
    })?;
    let text_bytes = indexer.all_text_bytes;
    let segments = indexer.finish()?;
    let (number, defined, schema) = (view.number, view.defined, schema.clone());
    Ok(Some(PrebuiltSegments { recording, number, defined, schema, segments, text_bytes }))
}

impl Writer<'_> {
    /// Updates prebuilt segments with the rows written since. `None` if those rows are not known
    /// any more or the table has changed.
    pub(super) fn rebase_segments(
        &self,
        ahead: &PrebuiltSegments,
    ) -> Result<Option<RebasedSegments>> {
        let current = self.shared.published.load();
        let since = ahead.recording.position();
        let Some(view) = find_table(&current, ahead.number) else { return Ok(None) };
        if view.defined != ahead.defined || view.staged.is_some() || since < self.recent.forgotten
            // A large batch is recorded by table only, not by key.
            || self.recent.is_table_written(ahead.number, since)
        {
            return Ok(None);
        }
        let schema = &ahead.schema;
        let is_written =
            |key: &[u8]| self.recent.is_written(ahead.number, key_hash(ahead.number, key), since);
        let mut key = Vec::new();
        let mut segments = Vec::with_capacity(ahead.segments.len() + 1);
        for segment in &ahead.segments {
            let mut gone = Vec::new();
            for doc in 0..segment.doc_count() {
                key.clear();
                segment.keys().read(doc, &mut key);
                if is_written(&key) {
                    gone.push(doc);
                }
            }
            let whole = SegmentView::new(Arc::clone(segment), None, schema);
            segments.push(if gone.is_empty() { whole } else { whole.without_docs(&gone, schema) });
        }
        let mut written = BTreeSet::new();
        for segment in &view.segments {
            for doc in (0..segment.segment.doc_count()).filter(|&doc| !segment.is_deleted(doc)) {
                key.clear();
                segment.segment.keys().read(doc, &mut key);
                if is_written(&key) {
                    written.insert(key.clone());
                }
            }
        }
        let mut indexer = BoundedIndexer::new(schema)?;
        for key in &written {
            if let Some(row) = view.rows.get(key, None, &|_| true)? {
                indexer.add(key, &row)?;
            }
        }
        let text_bytes = ahead.text_bytes + indexer.all_text_bytes;
        let added = indexer.finish()?.into_iter();
        segments.extend(added.map(|new| SegmentView::new(new, None, schema)));
        segments.retain(|segment| segment.live_count() > 0);
        let (number, schema) = (ahead.number, schema.clone());
        Ok(Some(RebasedSegments { number, schema, segments, text_bytes }))
    }
}
