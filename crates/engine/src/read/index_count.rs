//! Counts rows by an index without reading them.
//!
//! If a condition is only about leading columns of one index, or is an OR of such conditions, the matching rows are
//! ranges of that index. Their lengths are the count. Deleted rows are still in the index: the ranks of its live documents
//! leave them out. While making those costs more, the rows of the ranges are read, or the condition is evaluated on the
//! deleted rows.

use std::ops::Range;

use remora_index::{
    DocSet,
    segment::{IndexSpec, Segment, SegmentIndex},
};

use super::{
    candidates::{FoundByKeys, add},
    docs::Docs,
    filter::CompiledFilter,
    index_ranges::ConditionRanges,
};
use crate::{
    Allowed, FoundBy, Result, Schema, TableIndex, indexing::allowed_specs, snapshot::SegmentView,
};

/// The indexes that can count the rows of a condition.
pub(super) struct IndexCount(Vec<Counting>);

/// The condition as ranges of one index.
struct Counting {
    index: TableIndex,
    spec: IndexSpec,
    /// An OR of ranges.
    either: Vec<ConditionRanges>,
}

impl IndexCount {
    /// The usable indexes; `None` if there are none.
    pub fn new(schema: &Schema, condition: &CompiledFilter, allowed: Allowed) -> Option<Self> {
        if schema.indexes.is_empty() {
            return None;
        }
        let whole = std::slice::from_ref(condition);
        let parts = match condition {
            CompiledFilter::Any(parts) => parts.as_slice(),
            _ => whole,
        };
        let specs = allowed_specs(schema, allowed.indexes).into_iter();
        let counting = specs.filter_map(|(index, spec)| {
            let asked = |part: &CompiledFilter| ConditionRanges::of_all(index, &spec, part);
            let either = parts.iter().map(asked).collect::<Option<Vec<_>>>()?;
            Some(Counting { index, spec, either })
        });
        let counting: Vec<Counting> = counting.collect();
        (!counting.is_empty()).then_some(Self(counting))
    }

    /// The number of live documents of a segment that satisfy the condition; `None` if reading the columns is
    /// cheaper.
    pub fn count(
        &self,
        view: &SegmentView,
        condition: &CompiledFilter,
        found: &mut FoundByKeys,
    ) -> Result<Option<u64>> {
        let counted = self.0.iter().find_map(|it| Some((it, it.ranges(&view.segment)?)));
        let Some((counting, (index, ranges))) = counted else { return Ok(None) };
        let count: u64 = ranges.iter().map(|range| range.len() as u64).sum();
        add(counting.found_by(), found);
        let Some(deleted) = view.deleted.as_ref().filter(|_| count > 0) else {
            return Ok(Some(count));
        };
        if let Some(ranks) = index.live_ranks(deleted, count.min(view.deleted_count.into())) {
            return Ok(Some(ranges.iter().map(|range| u64::from(ranks.count(range))).sum()));
        }
        if count <= u64::from(view.deleted_count) {
            let docs = ranges.into_iter().flatten().map(|at| index.doc(at));
            return Ok(Some(docs.filter(|doc| !deleted.contains(*doc)).count() as u64));
        }
        let gone = Docs::Some(DocSet::List(deleted.iter().collect()));
        let gone = condition.filtered(&view.segment, gone)?;
        Ok(Some(count.saturating_sub(u64::from(gone.count()))))
    }
}

impl Counting {
    /// The ranges of positions, disjoint; `None` if there are too many to look up.
    fn ranges<'s>(&self, segment: &'s Segment) -> Option<(SegmentIndex<'s>, Vec<Range<u32>>)> {
        let cost =
            self.either.iter().map(ConditionRanges::search_cost).fold(0, usize::saturating_add);
        let index = segment.index(&self.spec).filter(|index| cost <= index.len() as usize)?;
        let mut all = Vec::with_capacity(self.either.len());
        for asked in &self.either {
            all.append(&mut asked.ranges(&index, true)?);
        }
        all.sort_unstable_by_key(|range| range.start);
        let mut apart: Vec<Range<u32>> = Vec::with_capacity(all.len());
        for range in all {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        Some((index, apart))
    }

    fn found_by(&self) -> FoundByKeys {
        let each = self.either.iter().map(ConditionRanges::found_by);
        let (mut found, is_one) = (FoundByKeys::new(), self.either.len() == 1);
        add(each.collect(), &mut found);
        let narrowed = |it: FoundBy| FoundBy { is_single: it.is_single && is_one, ..it };
        if cfg!(test) {
            assert!(found.iter().all(|it| it.index == self.index), "one index");
        }
        found.into_iter().map(narrowed).collect()
    }
}
