//! Orders that an index has: the first rows of a segment without a look at the others.
//!
//! An index has the order of a request if its columns are those of the order, all in the same or all in
//! the opposite direction, behind columns that the condition gives one value. It is walked from one
//! end, and what was not selected is passed over, until the page is full.

use std::ops::{Bound, Range};

use remora_index::segment::{IndexPart, IndexSpec, SegmentIndex};

use super::{
    docs::Docs,
    filter::{Condition, Equality},
    literal::OwnedCell,
    order::{After, Order, PartBy, SegmentOrder},
};
use crate::{Schema, indexing::index_specs, snapshot::SegmentView};

/// The walk is given up once it took one step for so many rows that are selected: a look at each of
/// them costs less by then.
const STEP_SHARE: u64 = 4;

/// An index that has the order of a request.
pub(super) struct IndexOrder {
    spec: IndexSpec,
    /// The values of its first columns in all rows that are selected.
    prefix: Vec<OwnedCell>,
    /// Whether it is walked from its end.
    reversed: bool,
}

impl IndexOrder {
    /// An index that has the order, of rows that satisfy the condition.
    pub fn find(schema: &Schema, order: &Order, condition: Option<&Condition>) -> Option<Self> {
        if schema.indexes.is_empty() || order.parts.is_empty() {
            return None;
        }
        let equal = condition.map(Condition::equalities).unwrap_or_default();
        index_specs(schema).into_iter().find_map(|spec| Self::of(spec, order, &equal))
    }

    fn of(spec: IndexSpec, order: &Order, equal: &[Equality]) -> Option<Self> {
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
        same.then_some(Self { spec, prefix, reversed })
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
