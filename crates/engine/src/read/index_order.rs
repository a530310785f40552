//! Orders that an index has: the first rows of a segment without a look at the others.
//!
//! An index has the order of a request if its columns are those of the order, all in the same or all in
//! the opposite direction, behind columns that the condition gives one value. It is walked from one
//! end, and what was not selected is passed over, until the page is full.

use std::ops::{Bound, Range};

use remora_index::{
    DocSet,
    segment::{IndexPart, IndexSpec, SegmentIndex},
};

use super::{
    docs::Docs,
    filter::{Condition, Equality},
    index_ranges::Asked,
    literal::OwnedCell,
    order::{After, Order, PartBy, SegmentOrder},
};
use crate::{
    Allowed, FoundBy, Result, Schema, TableIndex, indexing::placed_specs, snapshot::SegmentView,
};

/// The walk is given up once it took one step for so many rows that are selected: a look at each of
/// them costs less by then.
const STEP_SHARE: u64 = 4;
/// The same of a walk on which the condition is asked, for so many documents that a segment has. A step costs as much
/// as a look at so many in a column.
const WALKED_SHARE: u32 = 64;
const MIN_WALKED: u32 = 1_024;
/// Documents that the condition is asked of at once.
const MIN_CHUNK: usize = 32;
const MAX_CHUNK: usize = 4_096;

/// An index that has the order of a request.
pub(super) struct IndexOrder {
    index: TableIndex,
    spec: IndexSpec,
    /// The values of its first columns in all rows that are selected.
    prefix: Vec<OwnedCell>,
    /// The bounds of the column behind them.
    bounds: Option<(Bound<OwnedCell>, Bound<OwnedCell>)>,
    /// Whether all rows between those are selected.
    is_all: bool,
    /// Whether it is walked from its end.
    reversed: bool,
    /// Whether it is walked however many are passed over.
    forced: bool,
}

/// The first documents of a segment, and how many were looked at for them.
pub(super) type Walked = (Vec<u32>, u64);

/// The documents of a segment in the order of an index.
pub(super) struct IndexWalk<'v> {
    index: SegmentIndex<'v>,
    range: Range<u32>,
    reversed: bool,
}

impl IndexWalk<'_> {
    /// How many there are.
    pub fn len(&self) -> u32 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// The one at a place.
    pub fn doc(&self, place: u32) -> u32 {
        match self.reversed {
            true => self.index.doc(self.range.end - 1 - place),
            false => self.index.doc(self.range.start + place),
        }
    }
}

impl IndexOrder {
    /// One of the allowed indexes that has the order, of rows that satisfy the condition.
    pub fn find(
        schema: &Schema,
        order: &Order,
        condition: Option<&Condition>,
        allowed: Allowed,
    ) -> Option<Self> {
        if schema.indexes.is_empty() || order.parts.is_empty() {
            return None;
        }
        let equal = condition.map(Condition::equalities).unwrap_or_default();
        let specs = placed_specs(schema).into_iter();
        let mut specs = specs.filter(|(index, _)| allowed.indexes.contains(*index));
        let mut found = specs.find_map(|(index, spec)| Self::of(index, spec, order, &equal))?;
        found.forced = allowed.forced;
        if let Some(condition) = condition {
            let asked = Asked::new(found.index, found.spec.clone(), &condition.conjuncts());
            found.bounds = asked.and_then(|asked| asked.bounds_behind(found.prefix.len()));
            let parts = found.spec.parts.iter().take(found.prefix.len());
            let columns: Vec<_> = parts.map(|part| (part.column, part.order)).collect();
            found.is_all = condition.says_only(&columns);
        }
        Some(found)
    }

    fn of(index: TableIndex, spec: IndexSpec, order: &Order, equal: &[Equality]) -> Option<Self> {
        let behind = spec.parts.len().checked_sub(order.parts.len())?;
        let (first, rest) = spec.parts.split_at(behind);
        let value = |part: &IndexPart| {
            let of_part = |it: &&Equality| it.id == part.column && it.order == part.order;
            equal.iter().find(of_part).map(|it| it.value.clone())
        };
        let prefix = first.iter().map(value);
        let prefix: Vec<OwnedCell> = prefix.collect::<Option<_>>()?;
        let reversed = order.key_descending;
        let same = rest.iter().zip(&order.parts).all(|(mine, asked)| match asked.by {
            PartBy::Column(id, _) => {
                // Rows are ordered by the bytes of texts.
                mine.order.is_none()
                    && id == mine.column
                    && (mine.descending != asked.descending) == reversed
            }
            PartBy::Score => false,
        });
        let bounds = None;
        same.then_some(Self { index, spec, prefix, bounds, is_all: true, reversed, forced: false })
    }

    /// The first `wanted` live documents of those selected behind `after`; `None` if they are found
    /// sooner without the index.
    pub fn first(
        &self,
        view: &SegmentView,
        docs: &Docs,
        order: &SegmentOrder<'_>,
        after: Option<&After>,
        wanted: usize,
    ) -> Option<Vec<u32>> {
        let index = view.segment.index(&self.spec)?;
        let mut steps = match docs {
            Docs::Every => u64::MAX,
            Docs::Some(_) if self.forced => u64::MAX,
            Docs::Some(docs) => u64::from(docs.count()) / STEP_SHARE,
        };
        let is_selected = |doc: u32| match docs {
            Docs::Every => true,
            Docs::Some(docs) => docs.contains(doc),
        };
        let mut positions = self.positions(&index, order, after);
        let mut found = Vec::new();
        while found.len() < wanted {
            let next = if self.reversed { positions.next_back() } else { positions.next() };
            let Some(position) = next else { break };
            steps = steps.checked_sub(1)?;
            let doc = index.doc(position);
            if !view.is_deleted(doc) && is_selected(doc) {
                found.push(doc);
            }
        }
        Some(found)
    }

    /// The first `wanted` live documents that satisfy the condition, which is asked of those on the way alone;
    /// `None` if so many are passed over that they are found sooner without the index.
    pub fn walked(
        &self,
        view: &SegmentView,
        condition: Option<&Condition>,
        wanted: usize,
    ) -> Result<Option<Walked>> {
        let Some(index) = view.segment.index(&self.spec) else { return Ok(None) };
        let condition = condition.filter(|_| !self.is_all);
        let mut positions = self.range(&index);
        let mut steps = (view.segment.doc_count() / WALKED_SHARE).max(MIN_WALKED) as usize;
        steps = if self.forced { usize::MAX } else { steps.saturating_add(wanted) };
        let (mut found, mut looked_at) = (Vec::new(), 0);
        let mut chunk = wanted.clamp(1, MAX_CHUNK);
        while found.len() < wanted && !positions.is_empty() {
            let count = chunk.min(positions.len());
            let Some(left) = steps.checked_sub(count) else { return Ok(None) };
            steps = left;
            let mut docs: Vec<u32> = match self.reversed {
                true => positions.by_ref().rev().take(count).map(|at| index.doc(at)).collect(),
                false => positions.by_ref().take(count).map(|at| index.doc(at)).collect(),
            };
            docs.retain(|doc| !view.is_deleted(*doc));
            looked_at += docs.len() as u64;
            if let Some(condition) = condition {
                let mut sorted = docs.clone();
                sorted.sort_unstable();
                let sorted = Docs::Some(DocSet::List(sorted));
                let kept = condition.filtered(&view.segment, sorted)?;
                docs.retain(|doc| kept.contains(*doc));
            }
            found.append(&mut docs);
            chunk = chunk.saturating_mul(2).clamp(MIN_CHUNK, MAX_CHUNK);
        }
        found.truncate(wanted);
        Ok(Some((found, looked_at)))
    }

    /// Which index it is.
    pub fn index(&self) -> TableIndex {
        self.index
    }

    /// How it finds the rows that it walks over; `None` if those are all.
    pub fn found_by(&self) -> Option<FoundBy> {
        let (columns, is_bounded) = (self.prefix.len(), self.bounds.is_some());
        let is_part = columns > 0 || is_bounded;
        is_part.then_some(FoundBy { index: self.index, columns, is_bounded, is_single: true })
    }

    /// Whether all rows that it walks over are selected.
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// The documents of a segment that it walks over; `None` if the segment does not have the index.
    pub fn walk<'v>(&self, view: &'v SegmentView) -> Option<IndexWalk<'v>> {
        let index = view.segment.index(&self.spec)?;
        let range = self.range(&index);
        Some(IndexWalk { index, range, reversed: self.reversed })
    }

    /// Where the rows lie that have the prefix and are within the bounds behind it.
    fn range(&self, index: &SegmentIndex<'_>) -> Range<u32> {
        let prefix: Vec<_> = self.prefix.iter().map(OwnedCell::as_cell).collect();
        let (low, high) = match &self.bounds {
            Some((low, high)) => (low.as_ref(), high.as_ref()),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        index.range(&prefix, low.map(OwnedCell::as_cell), high.map(OwnedCell::as_cell))
    }

    /// Where the rows lie that have the prefix and are behind `after`.
    fn positions(
        &self,
        index: &SegmentIndex<'_>,
        order: &SegmentOrder<'_>,
        after: Option<&After>,
    ) -> Range<u32> {
        let prefix: Vec<_> = self.prefix.iter().map(OwnedCell::as_cell).collect();
        let all = index.range(&prefix, Bound::Unbounded, Bound::Unbounded);
        let Some(after) = after else { return all };
        let is_after = order.is_after(after);
        if self.reversed {
            all.start..index.partition_point(all.clone(), is_after)
        } else {
            index.partition_point(all.clone(), |doc| !is_after(doc))..all.end
        }
    }
}
