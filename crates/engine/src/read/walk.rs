//! Walks the documents of a segment in a known order and evaluates a condition on each.

use remora_index::DocSet;

use super::{docs::Docs, filter::CompiledFilter};
use crate::{Result, snapshot::SegmentView};

/// A walk is given up after one step for each this many documents of the segment. A step costs as much as reading
/// that many values of a column.
const WALKED_SHARE: u32 = 64;
const MIN_WALKED: u32 = 1_024;
/// The least and the most documents on which the condition is evaluated at once; at first as many as are wanted.
pub(super) const MIN_CHUNK: usize = 32;
const MAX_CHUNK: usize = 4_096;

/// The first documents of a segment, and the number examined.
pub(super) type Walked = (Vec<u32>, u64);

/// The first `wanted` live documents that satisfy the condition. `None` if so many are skipped that another way is
/// cheaper, unless it is `forced`. `next` returns about as many documents of the order as asked for, but not more
/// than may still be examined: `None` if that limit is too low to continue, an empty list at the end.
pub(super) fn walked(
    view: &SegmentView,
    condition: Option<&CompiledFilter>,
    wanted: usize,
    forced: bool,
    mut next: impl FnMut(usize, usize) -> Option<Vec<u32>>,
) -> Result<Option<Walked>> {
    let mut steps = (view.segment.doc_count() / WALKED_SHARE).max(MIN_WALKED) as usize;
    steps = if forced { usize::MAX } else { steps.saturating_add(wanted) };
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let mut chunk = wanted.clamp(1, MAX_CHUNK);
    while found.len() < wanted {
        let Some(mut docs) = next(chunk, steps) else { return Ok(None) };
        if docs.is_empty() {
            break;
        }
        steps = steps.saturating_sub(docs.len());
        docs.retain(|doc| !view.is_deleted(*doc));
        looked_at += docs.len() as u64;
        if let Some(condition) = condition {
            let mut sorted = docs.clone();
            sorted.sort_unstable();
            let kept = condition.filtered(&view.segment, Docs::Some(DocSet::List(sorted)))?;
            docs.retain(|doc| kept.contains(*doc));
        }
        found.append(&mut docs);
        chunk = chunk.saturating_mul(2).clamp(MIN_CHUNK, MAX_CHUNK);
    }
    found.truncate(wanted);
    Ok(Some((found, looked_at)))
}
