//! Chooses the documents of one merge: all of the segments, unless some lack indexes of paths. Those are built
//! from the rows in a bounded amount of memory, so several merges may be needed. Each takes consecutive documents
//! and leaves the others in place.

use std::{ops::Range, sync::Arc};

use remora_index::{
    Bitmap,
    paths::{PathPieces, PathSpec},
    segment::MergeInput,
};

use super::plan::{Limit, live_size, sum};
use crate::{
    Result, Schema, Value,
    indexing::{MissingPaths, TooMuch, path_specs},
    snapshot::SegmentView,
    storage::rows::RowReader,
};

/// The interval, in documents, at which the merge checks whether to continue.
const ASKED_DOCUMENTS: u32 = 1_024;
/// The same interval in bytes of rows, because one row may be as large as thousands of others.
const ASKED_BYTES: usize = 4 << 20;

/// The limits of a merge.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeLimits {
    /// The size limit of its output.
    pub limit: Limit,
    /// The most bytes of path values held in memory, see [`crate::Options::path_index_bytes`].
    pub held_bytes: u64,
}

/// The inputs for building indexes of paths from rows.
pub(super) struct PathRows<'r> {
    pub schema: &'r Schema,
    /// The rows of the same snapshot as the segments.
    pub rows: &'r dyn RowReader,
    /// The paths that are left out.
    pub left_out: &'r [OmittedPath],
    /// Whether the merge is still wanted.
    pub may_continue: &'r dyn Fn() -> bool,
}

/// A path that is left out because a document has too much there.
pub(super) struct OmittedPath {
    pub too_much: TooMuch,
    /// The key of the document.
    pub key: Vec<u8>,
}

/// Consecutive documents of a segment; those before them are deleted.
pub(super) struct PortionPart<'v> {
    pub view: &'v SegmentView,
    pub docs: Range<u32>,
}

/// The documents of a merge.
pub(super) struct Portion<'v> {
    pub taken: Vec<PortionPart<'v>>,
    pub inputs: Vec<MergeInput>,
    /// Whether no remaining document lacks a path.
    pub is_whole: bool,
    /// Whether a limit was reached, at the end of a segment or within one.
    is_full: bool,
    /// Bytes of path values held in memory.
    pub held_bytes: u64,
    /// The greatest size of unsorted path values, in bytes.
    pub most_collected_bytes: usize,
    /// The bytes and documents of the portion.
    size: (u64, u64),
}

/// The outcome of choosing a portion.
pub(super) enum PortionOutcome<'v> {
    Portion(Portion<'v>),
    /// A document has more at a path than can be indexed.
    TooMuch(OmittedPath),
    /// The merge is not wanted any more.
    Stopped,
}

/// Takes as many documents as fit into one segment. If no segment lacks a path, that is all of them.
pub(super) fn take<'v>(
    views: &'v [SegmentView],
    paths: &PathRows<'_>,
    bounds: &MergeLimits,
) -> Result<PortionOutcome<'v>> {
    let specs = path_specs(paths.schema);
    let is_left_out = |spec: &PathSpec| paths.left_out.iter().any(|one| one.too_much.spec == *spec);
    let missing = |view: &SegmentView| {
        let of = (paths.schema, specs.as_slice());
        MissingPaths::of(of, &view.segment, is_left_out, bounds.held_bytes)
    };
    let mut portion = Portion::default();
    let mut others = Vec::new();
    for view in views {
        match missing(view) {
            None => others.push(view),
            Some(_) if portion.is_full => portion.is_whole = false,
            Some(missing) => match portion.fill(view, missing, paths, bounds)? {
                None => {}
                Some(ended) => return Ok(ended),
            },
        }
    }
    if portion.is_whole {
        portion.add_others(others, &bounds.limit);
    }
    Ok(PortionOutcome::Portion(portion))
}

impl Default for Portion<'_> {
    fn default() -> Self {
        Self {
            taken: Vec::new(),
            inputs: Vec::new(),
            is_whole: true,
            is_full: false,
            held_bytes: 0,
            most_collected_bytes: 0,
            size: (0, 0),
        }
    }
}

impl<'v> Portion<'v> {
    /// Takes documents of a segment, and builds the paths it lacks, until the portion is full. Returns an outcome
    /// only if the merge must end.
    fn fill(
        &mut self,
        view: &'v SegmentView,
        missing: MissingPaths<'_>,
        paths: &PathRows<'_>,
        bounds: &MergeLimits,
    ) -> Result<Option<PortionOutcome<'v>>> {
        let wanted = |column: usize| paths.schema.paths.iter().any(|path| path.column == column);
        let count = view.segment.doc_count();
        let Some(first) = (0..count).find(|&doc| !view.is_deleted(doc)) else {
            self.push(view, 0..count, missing.finish()?);
            return Ok(None);
        };
        let mut missing = missing.starting_at(first);
        let (live_bytes, live) = live_size(view);
        let (mut end, mut taken, mut key) = (first, 0, Vec::new());
        let size = |taken: u64, path_bytes: u64| {
            let bytes = u128::from(live_bytes) * u128::from(taken) / u128::from(live.max(1));
            sum(self.size, (bytes as u64 + path_bytes, taken))
        };
        let mut unasked_bytes = 0;
        while end < count {
            if (end - first).is_multiple_of(ASKED_DOCUMENTS) || unasked_bytes >= ASKED_BYTES {
                unasked_bytes = 0;
                if !(paths.may_continue)() {
                    return Ok(Some(PortionOutcome::Stopped));
                }
            }
            let mut row = None;
            if !view.is_deleted(end) {
                key.clear();
                view.segment.keys().read(end, &mut key);
                row = paths.rows.get(&key, None, &wanted)?;
                unasked_bytes += row.as_deref().map_or(0, |row| bytes_of(row, &wanted));
                taken += 1;
            }
            if let Some(too_much) = missing.add(row.as_deref())? {
                return Ok(Some(PortionOutcome::TooMuch(OmittedPath { too_much, key })));
            }
            end += 1;
            let held = self.held_bytes + missing.bytes();
            if held >= bounds.held_bytes || !bounds.limit.allows(size(taken, missing.bytes())) {
                self.is_full = true;
                break;
            }
        }
        missing.order()?;
        self.size = size(taken, missing.bytes());
        self.held_bytes += missing.bytes();
        let most = missing.most_collected_bytes();
        self.most_collected_bytes = self.most_collected_bytes.max(most);
        self.is_whole = end == count;
        self.push(view, first..end, missing.finish()?);
        Ok(None)
    }

    /// Takes segments that lack no path: all of them, or those that fit besides the ones that do.
    fn add_others(&mut self, others: Vec<&'v SegmentView>, limit: &Limit) {
        let is_alone = self.taken.is_empty();
        for view in others {
            let size = sum(self.size, live_size(view));
            if is_alone || limit.allows(size) {
                self.push(view, 0..view.segment.doc_count(), Vec::new());
                self.size = size;
            }
        }
    }

    fn push(&mut self, view: &'v SegmentView, docs: Range<u32>, paths: Vec<PathPieces>) {
        let (segment, count) = (Arc::clone(&view.segment), view.segment.doc_count());
        let deleted = match docs.end < count {
            false => view.deleted.clone(),
            true => {
                let mut deleted = match &view.deleted {
                    Some(deleted) => Bitmap::clone(deleted),
                    None => Bitmap::new(count),
                };
                (docs.end..count).for_each(|doc| _ = deleted.insert(doc));
                Some(Arc::new(deleted))
            }
        };
        self.inputs.push(MergeInput { segment, deleted, paths });
        self.taken.push(PortionPart { view, docs });
    }
}

impl PortionPart<'_> {
    /// The documents of the segment, as it is now, that remain after this portion; `None` if there
    /// are none.
    pub fn rest(&self, now: &SegmentView, schema: &Schema) -> Option<SegmentView> {
        if self.docs.end >= now.segment.doc_count() {
            return None;
        }
        let gone: Vec<u32> = self.docs.clone().filter(|&doc| !now.is_deleted(doc)).collect();
        Some(now.without_docs(&gone, schema)).filter(|rest| rest.live_count() > 0)
    }
}

/// The size in bytes of a row's documents at the wanted positions.
fn bytes_of(row: &[Value], wanted: &dyn Fn(usize) -> bool) -> usize {
    let wanted = row.iter().enumerate().filter(|(column, _)| wanted(*column));
    let bytes = wanted.map(|(_, value)| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        _ => 0,
    });
    bytes.sum()
}
