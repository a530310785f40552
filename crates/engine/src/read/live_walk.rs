//! The live documents of a segment in key order or in that of an index, by number: the nth one is found without reading
//! those before it.

use std::{ops::Range, sync::Arc};

use remora_index::segment::{LiveRanks, SegmentIndex};

use crate::snapshot::SegmentView;

/// The live documents within a range of positions.
pub(super) struct LiveWalk<'v> {
    /// `None` for key order.
    index: Option<SegmentIndex<'v>>,
    range: Range<u32>,
    /// Whether it begins at the end of the range.
    reversed: bool,
    /// `None` if no document is deleted.
    ranks: Option<Arc<LiveRanks>>,
    /// The number of live documents before the range.
    before: u32,
    len: u32,
}

impl<'v> LiveWalk<'v> {
    /// All live documents in key order. Cost: counts the bits of the deleted ones.
    pub fn by_key(view: &'v SegmentView, reversed: bool) -> Self {
        let ranks = view.deleted.as_ref().map(|it| Arc::new(LiveRanks::new(Arc::clone(it))));
        Self::new(None, 0..view.segment.doc_count(), reversed, ranks)
    }

    /// The live documents of an index range. `reads` is the number of documents that would be read without it. `None` if
    /// reading them is cheaper.
    pub fn along(
        view: &'v SegmentView,
        index: SegmentIndex<'v>,
        (range, reversed): (Range<u32>, bool),
        reads: u64,
    ) -> Option<Self> {
        let ranks = match &view.deleted {
            Some(deleted) => Some(index.live_ranks(deleted, reads)?),
            None => None,
        };
        Some(Self::new(Some(index), range, reversed, ranks))
    }

    fn new(
        index: Option<SegmentIndex<'v>>,
        range: Range<u32>,
        reversed: bool,
        ranks: Option<Arc<LiveRanks>>,
    ) -> Self {
        let range = range.start..range.end.max(range.start);
        let (before, len) = match &ranks {
            Some(ranks) => (ranks.before(range.start), ranks.count(&range)),
            None => (range.start, range.end - range.start),
        };
        Self { index, range, reversed, ranks, before, len }
    }

    /// The number of documents.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The document with so many before it, which is less than [`LiveWalk::len`].
    pub fn nth(&self, nth: u32) -> u32 {
        self.doc(self.position(nth))
    }

    /// The documents from that one on.
    pub fn from(&self, nth: u32) -> impl Iterator<Item = u32> {
        let Range { start, end } = match (nth < self.len, self.reversed) {
            (false, _) => 0..0,
            (true, true) => self.range.start..self.position(nth) + 1,
            (true, false) => self.position(nth)..self.range.end,
        };
        let is_live = |at: &u32| self.ranks.as_ref().is_none_or(|ranks| ranks.is_live(*at));
        let positions =
            (start..end).map(move |at| if self.reversed { end - 1 - (at - start) } else { at });
        positions.filter(is_live).map(|at| self.doc(at))
    }

    fn position(&self, nth: u32) -> u32 {
        let place = if self.reversed { self.len.saturating_sub(1 + nth) } else { nth };
        let place = self.before + place;
        match &self.ranks {
            Some(ranks) => ranks.nth(place).unwrap_or(self.range.start),
            None => place,
        }
    }

    fn doc(&self, position: u32) -> u32 {
        self.index.as_ref().map_or(position, |index| index.doc(position))
    }
}
