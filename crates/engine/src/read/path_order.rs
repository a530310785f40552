//! The first rows in the order of an indexed path.
//!
//! Each segment returns up to `limit` rows from one end of its ordered values; the first of all those are the
//! result.

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
    encode::{KeyRange, TOO_MANY, decode_key, range_of_equal},
    indexing::path_specs,
    snapshot::{SegmentView, TableView},
};

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
    if is_joint && (within.is_none() || equal.len() >= paths.len()) {
        return Ok(None);
    }
    let Some(spec) = place.and_then(|place| path_specs(&view.schema).into_iter().nth(place)) else {
        return Ok(None);
    };
    let indexes: Option<Vec<&PathIndex>> =
        view.segments.iter().map(|view| view.segment.path(&spec)).collect();
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
    let condition =
        filter.as_ref().map(|filter| Condition::new(&view.schema, filter)).transpose()?;
    let mut best = Vec::new();
    for (segment, index) in view.segments.iter().zip(indexes) {
        let docs = match &condition {
            Some(condition) => Docs::Some(condition.filtered(&segment.segment, Docs::Every)?),
            None => Docs::Every,
        };
        let docs = docs.into_live(segment);
        let within = within.as_ref();
        let of_segment = OfSegment { view: segment, index, docs, within, limit: *limit };
        of_segment.take(*descending, &mut best)?;
    }
    best.sort_by(|one, other| compare(one, other, *descending));
    best.truncate(*limit);
    let keys = best.iter().map(|candidate| decode_key(&view.schema, &candidate.key));
    keys.collect::<Result<Vec<_>>>().map(Some)
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
