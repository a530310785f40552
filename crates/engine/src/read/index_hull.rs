//! The part of an index in which all rows of a condition lie, where the condition has an OR.
//!
//! A page behind a row is `(a, b) > (x, y)`, that is `a > x OR (a = x AND b > y)`. In an index over `a` and `b` the rows of
//! both alternatives lie side by side, so a walk begins at the first of them.

use std::ops::Range;

use remora_index::{
    column::Predicate,
    segment::{IndexSpec, SegmentIndex},
};

use super::{
    filter::{CompiledFilter, Conjunct},
    index_ranges::ConditionRanges,
};
use crate::TableIndex;

/// The most conditions that are sought in an index: alternatives, and the ANDs around them.
const MOST_PARTS: usize = 64;
/// The most searches for one of them.
const MOST_SEARCHES: usize = 64;

/// What a condition says of an index: the ranges of its conjuncts, and of the alternatives of each OR.
pub(super) struct IndexHull {
    asked: Option<ConditionRanges>,
    either: Vec<Vec<IndexHull>>,
}

impl IndexHull {
    /// The hull of a condition; `None` if no OR restricts it to less than its conjuncts do.
    pub fn of(index: TableIndex, spec: &IndexSpec, condition: &CompiledFilter) -> Option<Self> {
        let mut left = MOST_PARTS;
        let made = Self::within((index, spec), condition, &[], &mut left)?;
        // An alternative may have narrower bounds of the same columns.
        let least = made.columns().max(1);
        made.either.iter().any(|parts| each_restricts(parts, least)).then_some(made)
    }

    /// Whether an OR restricts more columns of the index than the conjuncts do.
    pub fn restricts_more(&self) -> bool {
        let least = self.columns() + 1;
        self.either.iter().any(|parts| each_restricts(parts, least))
    }

    /// The number of the index's columns that the conjuncts restrict.
    fn columns(&self) -> usize {
        self.asked.as_ref().map_or(0, |asked| asked.columns().count())
    }

    /// Whether at least so many columns are restricted, if need be in each alternative of an OR.
    fn restricts(&self, least: usize) -> bool {
        self.columns() >= least || self.either.iter().any(|parts| each_restricts(parts, least))
    }

    /// The hull of a condition that is one beside others; `None` if it would have too many parts.
    fn within<'c>(
        (index, spec): (TableIndex, &IndexSpec),
        condition: &'c CompiledFilter,
        beside: &[Conjunct<'c>],
        left: &mut usize,
    ) -> Option<Self> {
        *left = left.checked_sub(1)?;
        let mut conjuncts = condition.conjuncts();
        conjuncts.extend(beside);
        conjuncts.retain(is_short);
        let asked = ConditionRanges::new(index, spec.clone(), &conjuncts);
        let asked = asked.filter(|asked| asked.searches() <= MOST_SEARCHES);
        let mut either = Vec::new();
        for parts in condition.alternatives() {
            let hulls =
                parts.iter().map(|part| Self::within((index, spec), part, &conjuncts, left));
            // Without one of its alternatives an OR says nothing.
            if let Some(hulls) = hulls.collect::<Option<Vec<_>>>() {
                either.push(hulls);
            }
        }
        Some(Self { asked, either })
    }

    /// The positions in the index between the first and the last row that may satisfy the condition.
    pub fn range(&self, index: &SegmentIndex<'_>) -> Range<u32> {
        let all = 0..index.len();
        let asked = self.asked.as_ref().and_then(|asked| asked.ranges(index, true));
        let own = asked.map_or(all, |ranges| around(ranges.into_iter()));
        self.either.iter().fold(own, |within, parts| {
            let parts = around(parts.iter().map(|part| part.range(index)));
            common(&within, &parts)
        })
    }
}

fn each_restricts(parts: &[IndexHull], least: usize) -> bool {
    parts.iter().all(|part| part.restricts(least))
}

/// Whether a condition takes few searches.
fn is_short(conjunct: &Conjunct<'_>) -> bool {
    let members = match conjunct.predicate {
        Predicate::OrdinalIn(values) => values.len(),
        Predicate::BytesIn(values) => values.len(),
        _ => 1,
    };
    members <= MOST_SEARCHES
}

/// The least range with all of these.
fn around(ranges: impl Iterator<Item = Range<u32>>) -> Range<u32> {
    let ranges = ranges.filter(|range| !range.is_empty());
    ranges.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end)).unwrap_or(0..0)
}

/// What two ranges have in common.
pub(super) fn common(one: &Range<u32>, other: &Range<u32>) -> Range<u32> {
    let (start, end) = (one.start.max(other.start), one.end.min(other.end));
    if start < end { start..end } else { start..start }
}
