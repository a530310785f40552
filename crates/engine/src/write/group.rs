//! The segments and the snapshot of batches that are committed together.

use std::{collections::BTreeMap, sync::Arc};

use remora_index::segment::Segment;

use crate::{
    Position, Result, Schema, SourcePositions,
    indexing::RowIndexer,
    merge::CHANGE_BYTES,
    shared::{PreparedBatch, PreparedChange, PreparedTable},
    snapshot::{SegmentView, Snapshot},
    storage::store::StoreSnapshot,
};

/// The changes of a group by table number, indexed.
pub(crate) struct IndexedGroup<'b> {
    pub tables: BTreeMap<u32, ChangeRuns<'b>>,
    /// The bytes of text in new segments and of log entries, which count towards the next
    /// checkpoint.
    pub unsaved_bytes: u64,
}

/// The changes of a group to one table, as runs in the order of the batches.
#[derive(Default)]
pub(crate) struct ChangeRuns<'b>(Vec<Run<'b>>);

/// Changes whose rows share one segment: one large batch, or consecutive small ones.
struct Run<'b> {
    /// The changed keys, ascending.
    keys: Vec<&'b [u8]>,
    /// Those of them that may have a document. An insert's key has none: the writer has looked.
    replaced: Vec<&'b [u8]>,
    segment: Option<Arc<Segment>>,
}

/// The last change of each key in consecutive small batches.
type Small<'b> = BTreeMap<&'b [u8], &'b PreparedChange>;

impl<'b> IndexedGroup<'b> {
    /// Indexes the rows that callers have not indexed: one segment for each table and run of small
    /// batches.
    pub fn new(batches: &'b [PreparedBatch]) -> Result<Self> {
        let mut by_table: BTreeMap<u32, Vec<&'b PreparedTable>> = BTreeMap::new();
        let mut unsaved_bytes = 0;
        for table in batches.iter().flat_map(|batch| &batch.tables) {
            by_table.entry(table.number).or_default().push(table);
            let keys = table.changes.iter().map(|change| change.key.len() + CHANGE_BYTES);
            unsaved_bytes += (table.text_bytes + keys.sum::<usize>()) as u64;
        }
        let tables =
            by_table.into_iter().map(|(number, parts)| Ok((number, ChangeRuns::new(&parts)?)));
        Ok(Self { tables: tables.collect::<Result<_>>()?, unsaved_bytes })
    }
}

impl<'b> Run<'b> {
    fn new(
        changes: impl Iterator<Item = (&'b [u8], &'b PreparedChange)>,
        segment: Option<Arc<Segment>>,
    ) -> Self {
        let (mut keys, mut replaced) = (Vec::with_capacity(changes.size_hint().0), Vec::new());
        for (key, change) in changes {
            keys.push(key);
            if !change.must_be_absent {
                replaced.push(key);
            }
        }
        Self { keys, replaced, segment }
    }

    /// Deletes the older documents of its keys.
    fn delete_replaced(&self, segments: &mut [SegmentView], schema: &Schema) {
        let mut gone: Vec<Vec<u32>> = vec![Vec::new(); segments.len()];
        for key in &self.replaced {
            // A live key is in one segment only.
            let mut places = segments.iter().zip(&mut gone);
            if let Some((doc, gone)) =
                places.find_map(|(segment, gone)| Some((segment.live_doc(key)?, gone)))
            {
                gone.push(doc);
            }
        }
        for (segment, gone) in segments.iter_mut().zip(gone).filter(|(_, gone)| !gone.is_empty()) {
            *segment = segment.without_docs(&gone, schema);
        }
    }
}

impl<'b> ChangeRuns<'b> {
    fn new(parts: &[&'b PreparedTable]) -> Result<Self> {
        let mut runs = Self::default();
        let mut small = Small::new();
        for part in parts {
            let changes = part.changes.iter().map(|change| (change.key.as_slice(), change));
            match &part.segment {
                None => small.extend(changes),
                Some(segment) => {
                    runs.push_small(&part.schema, &mut small)?;
                    runs.0.push(Run::new(changes, Some(Arc::clone(segment))));
                }
            }
        }
        if let Some(part) = parts.first() {
            runs.push_small(&part.schema, &mut small)?;
        }
        Ok(runs)
    }

    fn push_small(&mut self, schema: &Schema, small: &mut Small<'b>) -> Result<()> {
        if small.is_empty() {
            return Ok(());
        }
        let mut indexer = RowIndexer::new(schema);
        for (key, change) in small.iter() {
            if let Some(row) = &change.row {
                indexer.add_fitted(key, row)?;
            }
        }
        let segment = indexer.finish()?.map(Arc::new);
        self.0.push(Run::new(std::mem::take(small).into_iter(), segment));
        Ok(())
    }

    /// All changed keys, run by run.
    pub fn keys(&self) -> impl Iterator<Item = &'b [u8]> {
        self.0.iter().flat_map(|run| run.keys.iter().copied())
    }

    /// Applies these changes to a table's segments. A key's older document is deleted before the new one is added, so
    /// that a live key is in exactly one segment.
    pub fn apply_to(&self, segments: &mut Vec<SegmentView>, schema: &Schema) {
        for run in &self.0 {
            run.delete_replaced(segments, schema);
            segments.retain(|segment| segment.live_count() > 0);
            let added = run.segment.iter();
            segments.extend(added.map(|new| SegmentView::new(Arc::clone(new), None, schema)));
        }
    }
}

/// The snapshot after the group. Every table gets the new store snapshot, also an unchanged one: an old store
/// snapshot would keep replaced rows on disk.
pub(crate) fn publish(
    current: &Snapshot,
    group: &IndexedGroup<'_>,
    position: Position,
    sources: SourcePositions,
    store: &Arc<dyn StoreSnapshot>,
) -> Snapshot {
    let tables = current.tables.iter().map(|(name, view)| {
        let mut segments = view.segments.clone();
        let mut changed = view.changed;
        if let Some(runs) = group.tables.get(&view.number) {
            runs.apply_to(&mut segments, &view.schema);
            view.activity.changed();
            changed = position;
        }
        (Arc::clone(name), Arc::new(view.at(store, changed, segments)))
    });
    Snapshot::new(position, sources, tables.collect())
}
