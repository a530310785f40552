//! ORDER BY along an index: the first rows of a segment without reading the others.
//!
//! An index has the order of a request if its columns are those of the order, all in the same or all in the opposite
//! direction, after columns that the condition fixes to one value. It is read from one end, rows that were not selected
//! are skipped, until the page is full. Rows that are equal in those columns come in key order; if the index continues
//! with other columns, or keys are wanted in the other direction, they are sorted.

use std::{
    cell::OnceCell,
    ops::{Bound, Range},
};

use remora_index::segment::{IndexPart, IndexSpec, SegmentIndex};

use super::{
    docs::Docs,
    filter::{CompiledFilter, Equality},
    index_hull::{IndexHull, common},
    index_ranges::ConditionRanges,
    literal::OwnedCell,
    live_walk::LiveWalk,
    order::{Order, PageStart, PartBy, SegmentOrder},
    walk::{self, MIN_CHUNK, Walked},
};
use crate::{
    Allowed, FoundBy, Result, Schema, TableIndex,
    indexing::allowed_specs,
    snapshot::{SegmentView, TableView},
};

/// A walk is given up after one step for each this many selected rows: then sorting the selected rows is cheaper.
const STEP_SHARE: usize = 4;

/// The indexes that have the order of a request. In each segment the first of them that exists is walked.
pub(super) struct IndexOrder {
    along: Vec<OrderedIndex>,
    /// Whether the index is forced, that is, walked however many rows are skipped.
    forced: bool,
}

/// An index that has the order of a request.
struct OrderedIndex {
    index: TableIndex,
    spec: IndexSpec,
    /// The values of its leading columns, equal in all selected rows.
    prefix: Vec<OwnedCell>,
    /// The bounds of the next column.
    bounds: Option<(Bound<OwnedCell>, Bound<OwnedCell>)>,
    /// Where the rows of a condition with OR are.
    hull: Option<IndexHull>,
    /// Whether all rows within these are selected.
    is_all: bool,
    /// Whether the index is walked backwards.
    reversed: bool,
    ties: Ties,
    /// For each segment, the range of the walk; `None` if it lacks the index.
    ranges: OnceCell<Vec<Option<Range<u32>>>>,
}

/// The order of rows that are equal in the columns of the ORDER BY.
#[derive(Clone, Copy)]
enum Ties {
    /// In the order of the index: by key, in the direction of the walk.
    Walked,
    /// Another order: rows that are equal in the first `parts` columns of the index are sorted by key.
    Sorted { parts: usize, descending: bool },
}

impl IndexOrder {
    /// The allowed indexes that have the order, for rows that satisfy the condition; `None` if there are none.
    pub fn find(
        view: &TableView,
        order: &Order,
        condition: Option<&CompiledFilter>,
        allowed: Allowed,
    ) -> Option<Self> {
        let schema = &view.schema;
        if schema.indexes.is_empty() || order.parts.is_empty() {
            return None;
        }
        let equal = condition.map(CompiledFilter::equalities).unwrap_or_default();
        let key: Vec<IndexPart> = key_parts(schema);
        let specs = allowed_specs(schema, allowed.indexes).into_iter();
        let along = |(index, spec)| OrderedIndex::of(index, spec, order, &equal, &key);
        let mut found: Vec<OrderedIndex> = specs.filter_map(along).collect();
        if let Some(condition) = condition {
            found.iter_mut().for_each(|along| along.ask(condition));
        }
        if let Some(place) = found.iter().position(|along| along.is_best(view)) {
            found.swap(0, place);
            found.truncate(1);
        } else if found.len() > 1 {
            // The index with the fewest rows to walk first; among equals, one that needs no sorting.
            found.sort_by_cached_key(|along| {
                (along.rows(view), matches!(along.ties, Ties::Sorted { .. }))
            });
        }
        (!found.is_empty()).then_some(Self { along: found, forced: allowed.forced })
    }

    /// The first `wanted` live documents of `docs` behind `after`; `None` if another way is cheaper.
    pub fn first(
        &self,
        view: &SegmentView,
        docs: &Docs,
        order: &SegmentOrder<'_>,
        after: Option<&PageStart>,
        wanted: usize,
    ) -> Option<Vec<u32>> {
        let (along, index) = self.of(view)?;
        let mut steps = match docs {
            Docs::Every => usize::MAX,
            Docs::Some(_) if self.forced => usize::MAX,
            Docs::Some(docs) => docs.count() as usize / STEP_SHARE,
        };
        let is_selected = |doc: u32| match docs {
            Docs::Every => true,
            Docs::Some(docs) => docs.contains(doc),
        };
        let mut positions = along.positions(&index, order, after)?;
        let mut found = Vec::new();
        while found.len() < wanted && !positions.is_empty() {
            let docs = along.next(&index, &mut positions, MIN_CHUNK, steps)?;
            steps = steps.saturating_sub(docs.len());
            found
                .extend(docs.into_iter().filter(|doc| !view.is_deleted(*doc) && is_selected(*doc)));
        }
        found.truncate(wanted);
        Some(found)
    }

    /// The first `wanted` live documents that satisfy the condition, which is evaluated only along the walk.
    /// `None` if so many are skipped that another way is cheaper.
    pub fn walked(
        &self,
        (view, segment): (&TableView, usize),
        condition: Option<&CompiledFilter>,
        wanted: usize,
    ) -> Result<Option<Walked>> {
        let in_segment = |along: &OrderedIndex| along.ranges(view).get(segment).cloned().flatten();
        let found = self.along.iter().find_map(|along| Some((along, in_segment(along)?)));
        let (Some((along, mut positions)), Some(view)) = (found, view.segments.get(segment)) else {
            return Ok(None);
        };
        let Some(index) = view.segment.index(&along.spec) else { return Ok(None) };
        let condition = condition.filter(|_| !along.is_all);
        let next = |count, most| match positions.is_empty() {
            true => Some(Vec::new()),
            false => along.next(&index, &mut positions, count, most),
        };
        walk::walked(view, condition, wanted, self.forced, next)
    }

    /// The index that is walked in segments that have all of them.
    pub fn index(&self) -> TableIndex {
        self.along.first().map_or(TableIndex::Key, |along| along.index)
    }

    /// The estimated number of rows that it walks.
    pub fn rows(&self, view: &TableView) -> u64 {
        self.along.first().map_or(u64::MAX, |along| along.rows(view))
    }

    /// How the index narrows the rows to walk; `None` if it walks all.
    pub fn found_by(&self) -> Option<FoundBy> {
        let along = self.along.first()?;
        let is_narrower = along.hull.as_ref().is_some_and(IndexHull::restricts_more);
        let is_bounded = along.bounds.is_some() || is_narrower;
        let columns = along.prefix.len();
        let is_part = columns > 0 || is_bounded;
        is_part.then_some(FoundBy {
            index: along.index,
            columns,
            is_bounded,
            is_single: true,
            is_intersected: false,
        })
    }

    /// Whether every row it walks is selected, and they come in the order of the request.
    pub fn is_all(&self) -> bool {
        self.along.iter().all(OrderedIndex::is_of_page)
    }

    /// Whether every row it walks is selected.
    pub fn passes_none(&self) -> bool {
        self.along.iter().all(|along| along.is_all)
    }

    /// The live documents of a segment to walk; `None` if the segment lacks the index, or if reading them, `reads` in
    /// number, is cheaper.
    pub fn walk<'v>(&self, view: &'v SegmentView, reads: u64) -> Option<LiveWalk<'v>> {
        let (along, index) = self.of(view)?;
        let range = along.range(&index);
        LiveWalk::along(view, index, (range, along.reversed), reads)
    }

    /// The first of the indexes that a segment has.
    fn of<'v>(&self, view: &'v SegmentView) -> Option<(&OrderedIndex, SegmentIndex<'v>)> {
        self.along.iter().find_map(|along| Some((along, view.segment.index(&along.spec)?)))
    }
}

/// The primary key as index parts. As the last parts of an index they are redundant: equal rows are in key order
/// anyway.
fn key_parts(schema: &Schema) -> Vec<IndexPart> {
    let columns = schema.primary_key.iter().filter_map(|&place| schema.columns.get(place));
    columns.map(|it| IndexPart { column: it.id, descending: false, order: None }).collect()
}

impl OrderedIndex {
    fn of(
        index: TableIndex,
        spec: IndexSpec,
        order: &Order,
        equal: &[Equality],
        key: &[IndexPart],
    ) -> Option<Self> {
        let value = |part: &IndexPart| {
            let of_part = |it: &&Equality| it.id == part.column && it.order == part.order;
            equal.iter().find(of_part).map(|it| it.value.clone())
        };
        let values = spec.parts.iter().map_while(value);
        let mut prefix: Vec<OwnedCell> = values.collect();
        // Columns of the order may be fixed to one value too, so shorter prefixes are tried as well.
        loop {
            let rest = spec.parts.get(prefix.len()..).unwrap_or_default();
            if let Some(reversed) = direction(rest, order) {
                let behind = rest.get(order.parts.len()..).unwrap_or_default();
                let parts = prefix.len() + order.parts.len();
                let descending = order.key_descending;
                let is_by_key = behind.is_empty() || behind == key;
                let ties = match is_by_key && reversed == descending {
                    true => Ties::Walked,
                    false => Ties::Sorted { parts, descending },
                };
                return Some(Self {
                    index,
                    spec,
                    prefix,
                    bounds: None,
                    hull: None,
                    is_all: true,
                    reversed,
                    ties,
                    ranges: OnceCell::new(),
                });
            }
            prefix.pop()?;
        }
    }

    /// Whether every row it walks is selected, and they come in the order of the request.
    fn is_of_page(&self) -> bool {
        self.is_all && matches!(self.ties, Ties::Walked)
    }

    /// Whether no other index has fewer rows to walk in any segment.
    fn is_best(&self, view: &TableView) -> bool {
        let has = |view: &SegmentView| view.segment.index(&self.spec).is_some();
        self.is_of_page() && view.segments.iter().all(has)
    }

    /// The number of rows in the range of the walk; all rows of a segment that lacks the index.
    fn rows(&self, view: &TableView) -> u64 {
        let segments = view.segments.iter().zip(self.ranges(view));
        let rows = segments.map(|(view, range)| match range {
            Some(range) => range.len() as u64,
            None => u64::from(view.segment.doc_count()),
        });
        rows.sum()
    }

    /// For each segment, the range of the walk; `None` if it lacks the index.
    fn ranges(&self, view: &TableView) -> &[Option<Range<u32>>] {
        self.ranges.get_or_init(|| {
            let of_segment =
                |view: &SegmentView| Some(self.range(&view.segment.index(&self.spec)?));
            view.segments.iter().map(of_segment).collect()
        })
    }

    /// Sets the bounds of the walk by a condition.
    fn ask(&mut self, condition: &CompiledFilter) {
        let asked = ConditionRanges::new(self.index, self.spec.clone(), &condition.conjuncts());
        let asked = asked.filter(|asked| asked.is_of_values(self.prefix.len()));
        self.is_all = asked.as_ref().is_some_and(|it| it.is_equivalent(condition));
        self.bounds = asked.and_then(ConditionRanges::bounds);
        self.hull = IndexHull::of(self.index, &self.spec, condition);
    }

    /// The next documents of the walk in the order of the request, about `count` and at most `most`. `None` if
    /// `most` does not suffice for any.
    fn next(
        &self,
        index: &SegmentIndex<'_>,
        positions: &mut Range<u32>,
        count: usize,
        most: usize,
    ) -> Option<Vec<u32>> {
        let Ties::Sorted { parts, descending } = self.ties else {
            let taken = self.take(positions, u32::try_from(count.min(most)).unwrap_or(u32::MAX));
            return (most > 0).then(|| self.docs(index, taken).collect());
        };
        let mut docs = Vec::new();
        while docs.len() < count && positions.start < positions.end {
            let group = index.group(positions.clone(), parts, self.reversed);
            if docs.len() + group.len() > most {
                return (!docs.is_empty()).then_some(docs);
            }
            let group = self.take(positions, group.len() as u32);
            let start = docs.len();
            docs.extend(self.docs(index, group));
            let group = docs.get_mut(start..).unwrap_or_default();
            group.sort_unstable();
            if descending {
                group.reverse();
            }
        }
        Some(docs)
    }

    /// Removes positions from the current end of the range.
    fn take(&self, positions: &mut Range<u32>, count: u32) -> Range<u32> {
        let count = count.min(positions.end.saturating_sub(positions.start));
        match self.reversed {
            true => {
                positions.end -= count;
                positions.end..positions.end + count
            }
            false => {
                positions.start += count;
                positions.start - count..positions.start
            }
        }
    }

    fn docs(&self, index: &SegmentIndex<'_>, taken: Range<u32>) -> impl Iterator<Item = u32> {
        let Range { start, end } = taken;
        let reversed = self.reversed;
        (start..end).map(move |at| index.doc(if reversed { end - 1 - (at - start) } else { at }))
    }

    /// The range of rows with the prefix and within the bounds.
    fn range(&self, index: &SegmentIndex<'_>) -> Range<u32> {
        let prefix: Vec<_> = self.prefix.iter().map(OwnedCell::as_cell).collect();
        let (low, high) = match &self.bounds {
            Some((low, high)) => (low.as_ref(), high.as_ref()),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let range = index.range(&prefix, low.map(OwnedCell::as_cell), high.map(OwnedCell::as_cell));
        match &self.hull {
            Some(hull) => common(&range, &hull.range(index)),
            None => range,
        }
    }

    /// The range of rows with the prefix behind `after`; `None` if they are not contiguous.
    fn positions(
        &self,
        index: &SegmentIndex<'_>,
        order: &SegmentOrder<'_>,
        after: Option<&PageStart>,
    ) -> Option<Range<u32>> {
        let prefix: Vec<_> = self.prefix.iter().map(OwnedCell::as_cell).collect();
        let all = index.range(&prefix, Bound::Unbounded, Bound::Unbounded);
        let Some(after) = after else { return Some(all) };
        if matches!(self.ties, Ties::Sorted { .. }) {
            return None;
        }
        let is_after = order.is_after(after);
        Some(match self.reversed {
            true => all.start..index.partition_point(all.clone(), is_after),
            false => index.partition_point(all.clone(), |doc| !is_after(doc))..all.end,
        })
    }
}

/// Whether an index with these remaining parts must be walked backwards to have the order; `None` if it does not
/// have it.
fn direction(parts: &[IndexPart], order: &Order) -> Option<bool> {
    let mut reversed = None;
    let mut parts = parts.iter();
    for asked in &order.parts {
        let mine = parts.next()?;
        let (id, by) = match asked.by {
            PartBy::Column(id, _) => (id, None),
            PartBy::Keyed(id, order) => (id, Some(order)),
            PartBy::Score => return None,
        };
        let opposite = mine.descending != asked.descending;
        if (mine.column, mine.order) != (id, by) || reversed.is_some_and(|it| it != opposite) {
            return None;
        }
        reversed = Some(opposite);
    }
    reversed
}
