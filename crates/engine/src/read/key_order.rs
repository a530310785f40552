//! The first matching rows in key order: documents are stored in key order, so the condition is evaluated on one after
//! the other from one end until the page is full.

use std::ops::Range;

use super::{
    filter::CompiledFilter,
    narrow::Narrowing,
    walk::{Walked, walked},
};
use crate::{Result, snapshot::SegmentView};

/// Walks each segment from one end.
pub(super) struct KeyWalk<'c> {
    pub condition: &'c CompiledFilter,
    pub narrowing: Option<&'c Narrowing>,
    pub descending: bool,
    /// Whether the walk is taken regardless of the number of skipped rows.
    pub forced: bool,
}

impl KeyWalk<'_> {
    /// The first `wanted` live documents of a segment, and how many were examined; `None` if so many are skipped
    /// that another way is cheaper.
    pub fn first(&self, view: &SegmentView, wanted: usize) -> Result<Option<Walked>> {
        let every = 0..view.segment.doc_count();
        let bounding_range =
            self.narrowing.and_then(|narrowing| narrowing.bounding_range(&view.segment));
        let mut left = bounding_range.unwrap_or(every);
        let next = |count: usize, most: usize| {
            let taken = self.take(&mut left, count.min(most));
            (most > 0).then(|| match self.descending {
                true => taken.rev().collect(),
                false => taken.collect(),
            })
        };
        walked(view, Some(self.condition), wanted, self.forced, next)
    }

    fn take(&self, left: &mut Range<u32>, count: usize) -> Range<u32> {
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(left.end - left.start);
        if self.descending {
            left.end -= count;
            left.end..left.end + count
        } else {
            left.start += count;
            left.start - count..left.start
        }
    }
}
