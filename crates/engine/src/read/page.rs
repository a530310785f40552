//! The rows of one page: lazily in key order, by a bounded selection in any other.

use std::cmp::Ordering;

use super::{
    docs::Docs,
    filter::CompiledFilter,
    index_order::IndexOrder,
    key_order::KeyWalk,
    live_walk::LiveWalk,
    merge::Merge,
    offset,
    order::{DocumentAddress, KeyPosition, PageStart, SegmentOrder},
};
use crate::{
    Error, RequestPart, Result, SearchRequest,
    snapshot::{SegmentView, TableView},
};

/// The most rows that a request may return, together with those it skips by reading them.
const MAX_ROWS: usize = 10_000_000;

/// If a request skips at least this many rows, they are counted rather than read.
const MIN_SKIPPED: usize = 1_000;
/// The most rows of a page, including skipped ones, that are read one by one along an index.
const MAX_WALKED: usize = 10_000;

/// Rejects pages that would need unbounded memory.
pub(super) fn check(request: &SearchRequest) -> Result<()> {
    check_limit(request)?;
    match request.limit.checked_add(request.offset) {
        Some(..=MAX_ROWS) => Ok(()),
        _ => Err(too_far(RequestPart::Offset, "OFFSET")),
    }
}

/// Rejects pages that have too many rows themselves.
pub(super) fn check_limit(request: &SearchRequest) -> Result<()> {
    match request.limit {
        ..=MAX_ROWS => Ok(()),
        _ => Err(too_far(RequestPart::Limit, "LIMIT")),
    }
}

fn too_far(part: RequestPart, name: &str) -> Error {
    let message =
        format!("{name} reaches past row {MAX_ROWS}; page with the cursor of the last reply");
    Error::request(part, message)
}

/// The page of a selection in key order. Reads no more documents of a segment than the page needs, and none before
/// the cursor.
pub(super) fn by_key(
    view: &TableView,
    selected: &[Docs],
    descending: bool,
    after: Option<&PageStart>,
    request: &SearchRequest,
) -> Vec<DocumentAddress> {
    let segments = view.segments.iter().zip(selected).enumerate();
    let streams = segments.map(|(segment, (view, docs))| {
        let mut walk = docs.walk(view);
        if let Some(after) = after {
            let behind = KeyPosition::new(view.segment.keys(), &after.key).behind(descending);
            walk = walk.within(behind.start, behind.end);
        }
        walk.directed(descending).map(move |doc| DocumentAddress { segment, doc })
    });
    merged_by_key(view, streams, descending, request)
}

/// Merges documents of each segment, which are in key order, to a page.
fn merged_by_key<I: Iterator<Item = DocumentAddress>>(
    view: &TableView,
    streams: impl IntoIterator<Item = I>,
    descending: bool,
    request: &SearchRequest,
) -> Vec<DocumentAddress> {
    let keys = |place: &DocumentAddress| view.segments[place.segment].segment.keys();
    let merged = Merge::new(streams, |a: &DocumentAddress, b: &DocumentAddress| {
        let ordering = keys(a).compare(a.doc, keys(b), b.doc);
        if descending { ordering.reverse() } else { ordering }
    });
    merged.skip(request.offset).take(request.limit).collect()
}

/// The page of a selection in any other order. The first rows of each segment, found along an index with the order
/// or by cheap ranks, are merged by their values. `orders` has one entry for each segment. Also returns whether an
/// index was walked in every segment.
pub(super) fn by_value(
    view: &TableView,
    selected: &[Docs],
    orders: &[SegmentOrder<'_>],
    index: Option<&IndexOrder>,
    after: Option<&PageStart>,
    request: &SearchRequest,
) -> (Vec<DocumentAddress>, bool) {
    let wanted = request.limit + request.offset;
    if request.limit == 0 {
        return (Vec::new(), false);
    }
    let mut is_walked = index.is_some();
    let segments = view.segments.iter().zip(selected).zip(orders);
    let firsts = segments.map(|((view, docs), order)| {
        let by_index = index.and_then(|index| index.first(view, docs, order, after, wanted));
        is_walked &= by_index.is_some();
        by_index.unwrap_or_else(|| top_of_segment(view, docs, order, after, wanted))
    });
    let firsts = firsts.collect();
    (merged(firsts, orders, request), is_walked)
}

/// The page in an order that an index has, and the number of rows examined. The condition is evaluated on no more
/// documents than the page needs. `None` if another way is cheaper.
pub(super) fn walked(
    view: &TableView,
    condition: Option<&CompiledFilter>,
    orders: &[SegmentOrder<'_>],
    index: &IndexOrder,
    request: &SearchRequest,
) -> Result<Option<(Vec<DocumentAddress>, u64)>> {
    if request.limit == 0 {
        return Ok(Some((Vec::new(), 0)));
    }
    if let Some(places) = skipped_along(view, orders, index, request) {
        let count = places.len() as u64;
        return Ok(Some((places, count)));
    }
    let Some(wanted) = wanted(request) else { return Ok(None) };
    let (mut firsts, mut looked_at) = (Vec::with_capacity(view.segments.len()), 0);
    for segment in 0..view.segments.len() {
        let Some((first, count)) = index.walked((view, segment), condition, wanted)? else {
            return Ok(None);
        };
        firsts.push(first);
        looked_at += count;
    }
    Ok(Some((merged(firsts, orders, request), looked_at)))
}

/// The number of rows needed for a page, including skipped ones; `None` if it is zero, or too many to read one by
/// one.
pub(super) fn wanted(request: &SearchRequest) -> Option<usize> {
    let wanted = request.limit.saturating_add(request.offset);
    (request.limit > 0 && wanted <= MAX_WALKED).then_some(wanted)
}

/// The page in key order of the rows that satisfy a condition, and the number of rows examined. The condition is
/// evaluated on no more documents than the page needs. `None` if another way is cheaper.
pub(super) fn walked_by_key(
    view: &TableView,
    walk: &KeyWalk<'_>,
    descending: bool,
    request: &SearchRequest,
) -> Result<Option<(Vec<DocumentAddress>, u64)>> {
    let wanted = request.limit + request.offset;
    let (mut streams, mut looked_at) = (Vec::with_capacity(view.segments.len()), 0);
    for (segment, of_segment) in view.segments.iter().enumerate() {
        let Some((first, count)) = walk.first(of_segment, wanted)? else { return Ok(None) };
        streams.push(first.into_iter().map(move |doc| DocumentAddress { segment, doc }));
        looked_at += count;
    }
    Ok(Some((merged_by_key(view, streams, descending, request), looked_at)))
}

/// Whether OFFSET is so large that the skipped rows are counted instead of read.
pub(super) fn passes_over(request: &SearchRequest) -> bool {
    request.offset >= MIN_SKIPPED
}

/// The page behind an offset of all rows in key order.
pub(super) fn skipped_by_key(
    view: &TableView,
    descending: bool,
    request: &SearchRequest,
) -> Vec<DocumentAddress> {
    let walks = view.segments.iter().map(|it| LiveWalk::by_key(it, descending));
    let keys = |place: &DocumentAddress| view.segments[place.segment].segment.keys();
    let compare = |a: &DocumentAddress, b: &DocumentAddress| {
        let ordering = keys(a).compare(a.doc, keys(b), b.doc);
        if descending { ordering.reverse() } else { ordering }
    };
    skipped(&walks.collect::<Vec<_>>(), compare, request)
}

/// The page behind an offset of all rows within the bounds of an index. `None` if rows there are not selected, if a
/// segment lacks the index, or if reading the skipped rows is cheaper.
pub(super) fn skipped_along(
    view: &TableView,
    orders: &[SegmentOrder<'_>],
    index: &IndexOrder,
    request: &SearchRequest,
) -> Option<Vec<DocumentAddress>> {
    if !passes_over(request) || !index.is_all() {
        return None;
    }
    // Farther pages are read by sorting all rows.
    let reads = wanted(request).map_or(u64::MAX, |wanted| wanted as u64);
    let walks = view.segments.iter().map(|it| index.walk(it, reads));
    let walks: Vec<LiveWalk<'_>> = walks.collect::<Option<_>>()?;
    let compare = |a: &DocumentAddress, b: &DocumentAddress| {
        orders[a.segment].compare_across(a.doc, &orders[b.segment], b.doc)
    };
    Some(skipped(&walks, compare, request))
}

/// The page behind an offset in the merge of several walks.
fn skipped(
    walks: &[LiveWalk<'_>],
    compare: impl Fn(&DocumentAddress, &DocumentAddress) -> Ordering,
    request: &SearchRequest,
) -> Vec<DocumentAddress> {
    let lengths: Vec<u32> = walks.iter().map(LiveWalk::len).collect();
    let address = |(segment, nth): (usize, u32)| {
        let doc = walks.get(segment).map_or(0, |walk| walk.nth(nth));
        DocumentAddress { segment, doc }
    };
    let ordered = |a, b| compare(&address(a), &address(b));
    let starts = offset::split(&lengths, request.offset as u64, ordered);
    let streams = walks.iter().zip(starts).enumerate().map(|(segment, (walk, start))| {
        walk.from(start).map(move |doc| DocumentAddress { segment, doc })
    });
    Merge::new(streams, compare).take(request.limit).collect()
}

/// A row with the sort key of the order's first part, computed once instead of in each comparison.
struct Keyed {
    place: DocumentAddress,
    /// `None` if the first part has no sort key, or if only one segment has rows.
    key: Option<Vec<u8>>,
}

/// Merges the first rows of each segment to a page.
fn merged(
    firsts: Vec<Vec<u32>>,
    orders: &[SegmentOrder<'_>],
    request: &SearchRequest,
) -> Vec<DocumentAddress> {
    let are_several = firsts.iter().filter(|first| !first.is_empty()).count() > 1;
    let streams = firsts.into_iter().enumerate().map(|(segment, first)| {
        first.into_iter().map(move |doc| {
            let order = orders.get(segment).filter(|_| are_several);
            let key = order.and_then(|order| order.first_key(doc));
            Keyed { place: DocumentAddress { segment, doc }, key }
        })
    });
    let merged = Merge::new(streams, |a: &Keyed, b: &Keyed| {
        let (mine, theirs) = (&orders[a.place.segment], &orders[b.place.segment]);
        match (&a.key, &b.key) {
            (Some(one), Some(other)) if one != other => mine.by_first(one.cmp(other)),
            _ => mine.compare_across(a.place.doc, theirs, b.place.doc),
        }
    });
    merged.skip(request.offset).take(request.limit).map(|keyed| keyed.place).collect()
}

/// A candidate for the first rows.
#[derive(Clone, Copy)]
struct Candidate {
    rank: u64,
    doc: u32,
}

/// The first `wanted` documents of a segment, in order.
fn top_of_segment(
    view: &SegmentView,
    docs: &Docs,
    order: &SegmentOrder<'_>,
    after: Option<&PageStart>,
    wanted: usize,
) -> Vec<u32> {
    let mut top = Top::new(wanted, |a, b| order.compare_ties(a.doc, b.doc));
    let is_after = after.map(|after| order.is_after(after));
    order.for_each_ranked(view, docs, |rank, doc| {
        let candidate = Candidate { rank, doc };
        if top.may_take(&candidate) && is_after.as_ref().is_none_or(|is_after| is_after(doc)) {
            top.take(candidate);
        }
    });
    top.finish().into_iter().map(|candidate| candidate.doc).collect()
}

/// The first `wanted` items of a stream (bounded selection): it holds at most twice as many, and discards half
/// when full.
struct Top<F> {
    candidates: Vec<Candidate>,
    wanted: usize,
    /// The threshold: the last of the first `wanted` items so far.
    threshold: Option<Candidate>,
    /// Compares candidates with equal ranks.
    tie: F,
}

impl<F: Fn(&Candidate, &Candidate) -> Ordering> Top<F> {
    fn new(wanted: usize, tie: F) -> Self {
        Self { candidates: Vec::new(), wanted, threshold: None, tie }
    }

    /// False if the candidate is certainly not among the first.
    #[inline]
    fn may_take(&self, candidate: &Candidate) -> bool {
        match &self.threshold {
            None => true,
            Some(last) if candidate.rank != last.rank => candidate.rank < last.rank,
            Some(last) => (self.tie)(candidate, last).is_lt(),
        }
    }

    fn take(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
        if self.candidates.len() >= self.wanted.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let tie = &self.tie;
        let last = self.wanted.saturating_sub(1);
        if last < self.candidates.len() {
            let by_order =
                |a: &Candidate, b: &Candidate| a.rank.cmp(&b.rank).then_with(|| tie(a, b));
            self.candidates.select_nth_unstable_by(last, by_order);
            self.candidates.truncate(self.wanted);
            self.threshold = self.candidates.last().copied();
        }
    }

    fn finish(mut self) -> Vec<Candidate> {
        self.cut();
        let tie = &self.tie;
        self.candidates.sort_unstable_by(|a, b| a.rank.cmp(&b.rank).then_with(|| tie(a, b)));
        self.candidates
    }
}
