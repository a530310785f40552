//! What one merge takes of its segments: all of them, unless some lack paths that are indexed since. Those are made of
//! the rows, a bounded number of bytes at a time: what has more is merged by several merges one after the other, each of
//! which takes documents that follow each other and leaves the others where they are.

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

/// After so many documents it is asked whether it goes on.
const ASKED_DOCUMENTS: u32 = 1_024;
/// After so many bytes of their rows too: one row may have as many as thousands of others.
const ASKED_BYTES: usize = 4 << 20;

/// What bounds a merge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The segment that it makes.
    pub limit: Limit,
    /// Bytes that are held of what paths lead to: as in [`crate::Options::path_index_bytes`].
    pub held_bytes: u64,
}

/// The paths that are made of the rows.
pub(super) struct PathRows<'r> {
    pub schema: &'r Schema,
    /// The rows at the moment of the segments.
    pub rows: &'r dyn RowReader,
    /// The paths of the schema that are left out.
    pub left_out: &'r [LeftOut],
    /// Whether anybody still wants it.
    pub goes_on: &'r dyn Fn() -> bool,
}

/// A path that is left out, since a document has too much there.
pub(super) struct LeftOut {
    pub too_much: TooMuch,
    /// The document's.
    pub key: Vec<u8>,
}

/// Documents of a segment that follow each other; those before them are gone.
pub(super) struct Taken<'v> {
    pub view: &'v SegmentView,
    pub docs: Range<u32>,
}

/// What a merge takes.
pub(super) struct Portion<'v> {
    pub taken: Vec<Taken<'v>>,
    pub inputs: Vec<MergeInput>,
    /// Whether no document is left that lacks a path.
    pub is_whole: bool,
    /// Whether a bound was met: at the end of a segment as anywhere else.
    is_full: bool,
    /// Bytes of paths that are held.
    pub held_bytes: u64,
    /// The most bytes that were held before they were put in order.
    pub most_collected_bytes: usize,
    /// Bytes and documents of all of it.
    size: (u64, u64),
}

/// What came of taking a portion.
pub(super) enum Took<'v> {
    Portion(Portion<'v>),
    /// A document has more at a path than can be indexed.
    TooMuch(LeftOut),
    /// Nobody wants it any more.
    Stopped,
}

/// Takes as much as may be one segment. Of segments that lack nothing that is all of them.
pub(super) fn take<'v>(
    views: &'v [SegmentView],
    paths: &PathRows<'_>,
    bounds: &Bounds,
) -> Result<Took<'v>> {
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
    Ok(Took::Portion(portion))
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
    /// Takes documents of a segment with what it lacks until the portion is full. Gives how it ended if it came to
    /// nothing.
    fn fill(
        &mut self,
        view: &'v SegmentView,
        missing: MissingPaths<'_>,
        paths: &PathRows<'_>,
        bounds: &Bounds,
    ) -> Result<Option<Took<'v>>> {
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
                if !(paths.goes_on)() {
                    return Ok(Some(Took::Stopped));
                }
            }
            let mut row = None;
            if !view.is_deleted(end) {
                key.clear();
                view.segment.keys().read(end, &mut key);
                row = paths.rows.get(&key, &wanted)?;
                unasked_bytes += row.as_deref().map_or(0, |row| bytes_of(row, &wanted));
                taken += 1;
            }
            if let Some(too_much) = missing.add(row.as_deref())? {
                return Ok(Some(Took::TooMuch(LeftOut { too_much, key })));
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

    /// Takes segments that lack nothing: all, or those for which there is room beside others that do.
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
        self.taken.push(Taken { view, docs });
    }
}

impl Taken<'_> {
    /// What is left of the segment, as it is now; `None` if that is nothing.
    pub fn rest(&self, now: &SegmentView, schema: &Schema) -> Option<SegmentView> {
        if self.docs.end >= now.segment.doc_count() {
            return None;
        }
        let gone: Vec<u32> = self.docs.clone().filter(|&doc| !now.is_deleted(doc)).collect();
        Some(now.without_docs(&gone, schema)).filter(|rest| rest.live_count() > 0)
    }
}

/// Bytes of a row's documents at the wanted positions.
fn bytes_of(row: &[Value], wanted: &dyn Fn(usize) -> bool) -> usize {
    let wanted = row.iter().enumerate().filter(|(column, _)| wanted(*column));
    let bytes = wanted.map(|(_, value)| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        _ => 0,
    });
    bytes.sum()
}
