//! The first rows in the order of an indexed path.
//!
//! Each segment returns up to `limit` rows from one end of its ordered values; the first of all
//! those are the result. If the directions of several paths differ, groups of values that are equal
//! in the leading paths are walked one way, and the values within each group the other way.

use std::{
    cmp::Ordering,
    ops::{Bound, ControlFlow},
};

use remora_index::{DocSet, paths::PathIndex};

use super::{
    columns::{joint_place, path_place},
    docs::Docs,
    filter::Condition,
};
use crate::{
    KeyValues, PathOrder, Result,
    encode::{KeyRange, TOO_MANY, decode_key, first_parts, range_of_equal, range_of_parts, turned},
    snapshot::{SegmentView, TableView},
};

/// If fewer than one in this many rows is selected, the walk by groups is not used.
const FEW_OF_GROUPS: u64 = 16;

/// A row, with its value if it has one.
struct Candidate {
    value: Option<Vec<u8>>,
    key: Vec<u8>,
}

/// The keys of the first rows; `None` if no index has the order, or a document has several values at the path.
pub(super) fn first_by_path(view: &TableView, asked: &PathOrder) -> Result<Option<Vec<KeyValues>>> {
    let PathOrder { column, paths, equal, filter, descending, limit, .. } = asked;
    let (place, within) = match (&paths[..], equal.is_empty()) {
        ([names], true) => (path_place(&view.schema, column, names), None),
        _ => (joint_place(&view.schema, column, paths), range_of_equal(equal)),
    };
    let is_joint = paths.len() > 1;
    let stretches = stretches(descending);
    if is_joint && within.is_none()
        || descending.is_empty()
        || equal.len() + descending.len() != paths.len()
    {
        return Ok(None);
    }
    let Some(spec) = place.and_then(|place| view.paths.get(place)) else { return Ok(None) };
    let indexes: Option<Vec<&PathIndex>> =
        view.segments.iter().map(|view| view.segment.path(spec)).collect();
    let Some(indexes) = indexes.filter(|all| all.iter().all(|index| index.is_single())) else {
        return Ok(None);
    };
    if is_joint {
        for (segment, index) in view.segments.iter().zip(&indexes) {
            // Rows without a document have no entry; without an equality condition they would be missing.
            let is_each_there = index.entry_count() == u64::from(segment.segment.doc_count());
            if (equal.is_empty() && !is_each_there) || !has_all(index)? {
                return Ok(None);
            }
        }
    }
    let condition = filter.as_ref().map(|filter| Condition::new(view, filter)).transpose()?;
    let is_by_groups = stretches.len() > 1;
    let within = within.as_ref();
    let Some(selected) = selected(view, &indexes, condition.as_ref(), within, is_by_groups)? else {
        return Ok(None);
    };
    let mut best = Vec::new();
    for ((segment, index), docs) in view.segments.iter().zip(indexes).zip(selected) {
        let of_segment = OfSegment { view: segment, index, docs, within, limit: *limit };
        match stretches[..] {
            [only] => of_segment.take(only.descending, &mut best)?,
            _ => of_segment.take_groups(equal.len(), &stretches, &mut best)?,
        }
    }
    let is_reversed = match stretches[..] {
        [only] => only.descending,
        _ => {
            let turn = |value: &mut Vec<u8>| *value = turned(value, equal.len(), descending);
            best.iter_mut().filter_map(|it| it.value.as_mut()).for_each(turn);
            false
        }
    };
    best.sort_by(|one, other| compare(one, other, is_reversed));
    best.truncate(*limit);
    let keys = best.iter().map(|candidate| decode_key(&view.schema, &candidate.key));
    keys.collect::<Result<Vec<_>>>().map(Some)
}

/// The selected documents of each segment; `None` if sorting them is cheaper. A walk by groups
/// looks up every group in the range twice, even those without a selected row.
fn selected(
    view: &TableView,
    indexes: &[&PathIndex],
    condition: Option<&Condition>,
    within: Option<&KeyRange>,
    is_by_groups: bool,
) -> Result<Option<Vec<DocSet>>> {
    let (low, high) = match within {
        Some((low, high)) => (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice)),
        None => (Bound::Unbounded, Bound::Unbounded),
    };
    let mut selected = Vec::with_capacity(indexes.len());
    let (mut found, mut most) = (0, 0);
    for (segment, index) in view.segments.iter().zip(indexes) {
        let docs = match condition {
            Some(condition) => Docs::Some(condition.filtered(&segment.segment, Docs::Every)?),
            None => Docs::Every,
        };
        let docs = docs.into_live(segment);
        found += u64::from(docs.count());
        most += index.most_within(low, high)?;
        selected.push(docs);
    }
    Ok((!is_by_groups || found >= most / FEW_OF_GROUPS).then_some(selected))
}

/// Consecutive paths of an order that have the same direction.
#[derive(Clone, Copy)]
struct Stretch {
    paths: usize,
    descending: bool,
}

fn stretches(descending: &[bool]) -> Vec<Stretch> {
    let same = descending.chunk_by(|one, other| one == other);
    let stretch = |same: &[bool]| Some(Stretch { paths: same.len(), descending: *same.first()? });
    same.filter_map(stretch).collect()
}

/// Whether an index over several paths is complete: it has all combinations of values of every document.
pub(super) fn has_all(index: &PathIndex) -> Result<bool> {
    let without = index.select([(Bound::Included(TOO_MANY), Bound::Unbounded)])?;
    Ok(without.is_empty())
}

/// Rows without a value come first, or last if descending. Equal rows are in key order.
fn compare(one: &Candidate, other: &Candidate, descending: bool) -> Ordering {
    let by_value = one.value.cmp(&other.value);
    let by_value = if descending { by_value.reverse() } else { by_value };
    by_value.then_with(|| one.key.cmp(&other.key))
}

/// The rows of one segment.
struct OfSegment<'v> {
    view: &'v SegmentView,
    index: &'v PathIndex,
    /// The selected documents.
    docs: DocSet,
    /// The range of their values, if known. Each of them has an entry then.
    within: Option<&'v KeyRange>,
    limit: usize,
}

impl OfSegment<'_> {
    /// Takes up to `limit` rows, and those equal to the last one.
    fn take(&self, descending: bool, best: &mut Vec<Candidate>) -> Result<()> {
        let mut taken = 0;
        if !descending && self.within.is_none() {
            taken += self.take_others(best, self.limit)?;
        }
        let mut last: Option<Vec<u8>> = None;
        let within = self.within.map_or((Bound::Unbounded, Bound::Unbounded), |(low, high)| {
            (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice))
        });
        self.index.walk(within, descending, &mut |value, doc| {
            if taken >= self.limit && last.as_deref() != Some(value) {
                return ControlFlow::Break(());
            }
            if self.docs.contains(doc) {
                taken += 1;
                if last.as_deref() != Some(value) {
                    last = Some(value.to_vec());
                }
                best.push(self.candidate(Some(value.to_vec()), doc));
            }
            ControlFlow::Continue(())
        })?;
        if descending && self.within.is_none() {
            self.take_others(best, self.limit.saturating_sub(taken))?;
        }
        Ok(())
    }

    /// Like [`OfSegment::take`], for an order with several directions. All rows have the same
    /// values in the first `leading` paths, and all have entries.
    fn take_groups(
        &self,
        leading: usize,
        stretches: &[Stretch],
        best: &mut Vec<Candidate>,
    ) -> Result<()> {
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let within = self.within.unwrap_or(&everything);
        let mut page = Page { rows: self, taken: 0, last: None, is_full: false, best };
        page.take_groups(within, leading, stretches)
    }

    /// Takes up to `limit` rows without a value; returns how many.
    fn take_others(&self, best: &mut Vec<Candidate>, limit: usize) -> Result<usize> {
        let documents = self.view.segment.doc_count();
        if limit == 0 || self.index.entry_count() == u64::from(documents) {
            return Ok(0);
        }
        let with = self.index.select([(Bound::Unbounded, Bound::Unbounded)])?;
        let without = self.docs.clone().subtract(&with);
        let mut taken = 0;
        for doc in (0..documents).filter(|doc| without.contains(*doc)).take(limit) {
            best.push(self.candidate(None, doc));
            taken += 1;
        }
        Ok(taken)
    }

    fn candidate(&self, value: Option<Vec<u8>>, doc: u32) -> Candidate {
        let mut key = Vec::new();
        self.view.segment.keys().read(doc, &mut key);
        Candidate { value, key }
    }
}

/// The rows taken from a segment.
struct Page<'p, 'v> {
    rows: &'p OfSegment<'v>,
    taken: usize,
    /// The value of the last row taken.
    last: Option<Vec<u8>>,
    /// Whether enough rows were taken.
    is_full: bool,
    best: &'p mut Vec<Candidate>,
}

impl Page<'_, '_> {
    /// Takes the rows within a range in which the first `leading` paths are equal, in the order of
    /// the remaining paths.
    fn take_groups(
        &mut self,
        (low, high): &KeyRange,
        leading: usize,
        stretches: &[Stretch],
    ) -> Result<()> {
        let Some((first, rest)) = stretches.split_first() else { return Ok(()) };
        let index = self.rows.index;
        let (mut low, mut high) = (low.clone(), high.clone());
        if rest.is_empty() {
            let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            index.walk(within, first.descending, &mut |value, doc| self.take(value, doc))?;
            return Ok(());
        }
        let parts = leading + first.paths;
        while !self.is_full {
            let mut group = None;
            let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            index.walk(within, first.descending, &mut |value, _| {
                group = first_parts(value, parts).map(<[u8]>::to_vec);
                ControlFlow::Break(())
            })?;
            let Some(group) = group else { break };
            let range = range_of_parts(group);
            self.take_groups(&range, parts, rest)?;
            match (first.descending, range) {
                (true, (Bound::Included(begin), _)) => high = Bound::Excluded(begin),
                (false, (_, Bound::Excluded(end))) => low = Bound::Included(end),
                _ => break,
            }
        }
        Ok(())
    }

    fn take(&mut self, value: &[u8], doc: u32) -> ControlFlow<()> {
        let is_new = self.last.as_deref() != Some(value);
        if self.taken >= self.rows.limit && is_new {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        if self.rows.docs.contains(doc) {
            self.taken += 1;
            if is_new {
                self.last = Some(value.to_vec());
            }
            self.best.push(self.rows.candidate(Some(value.to_vec()), doc));
        }
        ControlFlow::Continue(())
    }
}
