//! The first rows in the order of an indexed path.
//!
//! Each segment returns up to `limit` rows from one end of its ordered values; the first of all
//! those are the result. If the directions of several paths differ, groups of values that are equal
//! in the leading paths are walked one way, and the values within each group the other way. A page
//! that begins behind a row begins each walk at that row's values.

use std::{
    cmp::Ordering,
    ops::{Bound, ControlFlow},
};

use remora_index::{Bitmap, DocSet, paths::PathIndex};

use super::{
    columns::{joint_place, path_place},
    docs::Docs,
    filter::CompiledFilter,
};
use crate::{
    InterruptCheck, KeyValues, PathOrder, PathStart, PathValue, Result,
    encode::{
        KeyRange, TOO_MANY, decode_key, encode_key, first_parts, joint_key, range_of_equal,
        range_of_parts, sorted_key, turned,
    },
    interrupt::InterruptTicker,
    snapshot::{SegmentView, TableView},
};

/// If fewer than one in this many rows is selected, the walk by groups is not used.
const FEW_OF_GROUPS: u64 = 16;

/// A row, with its value if it has one.
pub(super) struct RowByPath {
    pub value: Option<Vec<u8>>,
    pub key: Vec<u8>,
}

/// The row behind which the page begins.
struct Start {
    /// Its value as the index has it; `None` if it has none.
    value: Option<Vec<u8>>,
    key: Vec<u8>,
}

/// The keys of the first rows; `None` if no index has the order, or a document has several values at the path.
pub(super) fn first_by_path(
    view: &TableView,
    asked: &PathOrder,
    unless: &InterruptCheck,
) -> Result<Option<Vec<KeyValues>>> {
    let PathOrder { column, paths, equal, filter, descending, limit, after, .. } = asked;
    let (place, within) = match (&paths[..], equal.is_empty()) {
        ([names], true) => (path_place(&view.schema, column, names), None),
        _ => (joint_place(&view.schema, column, paths), range_of_equal(equal)),
    };
    let is_joint = paths.len() > 1;
    let stretches = stretches(descending);
    let is_start = after.as_ref().is_none_or(|after| after.values.len() == descending.len());
    if is_joint && within.is_none()
        || !is_start
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
    let after = after.as_ref().map(|after| start(view, equal, after, is_joint)).transpose()?;
    let condition = filter.as_ref().map(|filter| CompiledFilter::new(view, filter)).transpose()?;
    let is_by_groups = stretches.len() > 1;
    let within = within.as_ref();
    let Some(selected) = selected(view, &indexes, condition.as_ref(), within, is_by_groups)? else {
        return Ok(None);
    };
    let mut best = Vec::new();
    for ((segment, index), docs) in view.segments.iter().zip(indexes).zip(selected) {
        let after = after.as_ref().map(|after| StartOfSegment {
            value: after.value.as_deref(),
            doc: segment.segment.keys().lower_bound(&[&after.key[..], &[0]].concat()),
        });
        let of_segment =
            OfSegment { view: segment, index, docs, within, limit: *limit, after, unless };
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

/// The row behind which the page begins, as an index has it.
fn start(
    view: &TableView,
    equal: &[PathValue],
    after: &PathStart,
    is_joint: bool,
) -> Result<Start> {
    let value = match is_joint {
        true => joint_key(equal, &after.values),
        false => after.values.first().and_then(sorted_key),
    };
    Ok(Start { value, key: encode_key(&view.schema, &after.key)? })
}

/// The selected documents of each segment; `None` if sorting them is cheaper. A walk by groups
/// looks up every group in the range twice, even those without a selected row.
fn selected(
    view: &TableView,
    indexes: &[&PathIndex],
    condition: Option<&CompiledFilter>,
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
pub(super) fn compare(one: &RowByPath, other: &RowByPath, descending: bool) -> Ordering {
    let by_value = one.value.cmp(&other.value);
    let by_value = if descending { by_value.reverse() } else { by_value };
    by_value.then_with(|| one.key.cmp(&other.key))
}

/// Where the page begins in one segment.
pub(super) struct StartOfSegment<'s> {
    /// The value of the row behind which it begins; `None` if that row has none.
    value: Option<&'s [u8]>,
    /// The first document behind the row among those of the same value.
    doc: u32,
}

/// The rows of one segment.
pub(super) struct OfSegment<'v> {
    pub view: &'v SegmentView,
    pub index: &'v PathIndex,
    /// The selected documents.
    pub docs: DocSet,
    /// The range of the values to walk, if known. Rows without a value in it are not taken then.
    pub within: Option<&'v KeyRange>,
    pub limit: usize,
    /// Where the page begins; `None` at the first row.
    pub after: Option<StartOfSegment<'v>>,
    /// Ends the walk, after some thousand entries.
    pub unless: &'v InterruptCheck,
}

impl OfSegment<'_> {
    /// Takes up to `limit` rows.
    pub fn take(&self, descending: bool, best: &mut Vec<RowByPath>) -> Result<()> {
        // The value at which the walk begins, and whether the page begins among the rows without one.
        let (begin, is_among_others) = match &self.after {
            Some(after) => (after.value, after.value.is_none()),
            None => (None, false),
        };
        let has_others = self.within.is_none();
        let mut page = Page::new(self, best);
        if !descending && has_others && begin.is_none() {
            page.taken += self.take_others(page.best, self.limit)?;
        }
        if !descending || !is_among_others {
            let everything = (Bound::Unbounded, Bound::Unbounded);
            let (low, high) = self.within.unwrap_or(&everything);
            let (low, high) = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            let within = match begin {
                None => (low, high),
                Some(begin) if descending => (low, Bound::Included(begin)),
                Some(begin) => (Bound::Included(begin), high),
            };
            page.walk(within, descending)?;
        }
        let left = self.limit.saturating_sub(page.taken);
        if descending && has_others {
            self.take_others(best, left)?;
        }
        Ok(())
    }

    /// Like [`OfSegment::take`], for an order with several directions. All rows have the same
    /// values in the first `leading` paths, and all have entries.
    fn take_groups(
        &self,
        leading: usize,
        stretches: &[Stretch],
        best: &mut Vec<RowByPath>,
    ) -> Result<()> {
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let within = self.within.unwrap_or(&everything);
        let begin = self.after.as_ref().and_then(|after| after.value);
        Page::new(self, best).take_groups(within, leading, stretches, begin)
    }

    /// Takes up to `limit` rows without a value; returns how many.
    fn take_others(&self, best: &mut Vec<RowByPath>, limit: usize) -> Result<usize> {
        let documents = self.view.segment.doc_count();
        if limit == 0 || self.index.entry_count() == u64::from(documents) {
            return Ok(0);
        }
        let without = self.docs.clone().subtract(&self.with_values()?);
        let first = match &self.after {
            Some(StartOfSegment { value: None, doc }) => *doc,
            _ => 0,
        };
        let mut taken = 0;
        for doc in (first..documents).filter(|doc| without.contains(*doc)).take(limit) {
            best.push(self.candidate(None, doc));
            taken += 1;
        }
        Ok(taken)
    }

    /// The documents that have a value.
    fn with_values(&self) -> Result<DocSet> {
        let mut with = Bitmap::new(self.view.segment.doc_count());
        let mut ticker = InterruptTicker::new(self.unless);
        let mut entries = self.index.entries()?;
        while let Some((_, doc)) = entries.next()? {
            ticker.step()?;
            with.insert(doc);
        }
        Ok(DocSet::Bits(with.into()))
    }

    /// Whether a document with this value is selected and not before the page.
    fn is_wanted(&self, value: &[u8], doc: u32) -> bool {
        let is_before = |after: &StartOfSegment<'_>| doc < after.doc && after.value == Some(value);
        self.docs.contains(doc) && !self.after.as_ref().is_some_and(is_before)
    }

    fn candidate(&self, value: Option<Vec<u8>>, doc: u32) -> RowByPath {
        let mut key = Vec::new();
        self.view.segment.keys().read(doc, &mut key);
        RowByPath { value, key }
    }
}

/// The rows taken from a segment.
struct Page<'p, 'v> {
    rows: &'p OfSegment<'v>,
    taken: usize,
    /// The value that is being walked, and its wanted documents in the order of the walk.
    value: Vec<u8>,
    docs: Vec<u32>,
    /// Whether enough rows were taken.
    is_full: bool,
    ticker: InterruptTicker,
    best: &'p mut Vec<RowByPath>,
}

impl<'p, 'v> Page<'p, 'v> {
    fn new(rows: &'p OfSegment<'v>, best: &'p mut Vec<RowByPath>) -> Self {
        let (value, docs) = (Vec::new(), Vec::new());
        let ticker = InterruptTicker::new(rows.unless);
        Self { rows, taken: 0, value, docs, is_full: false, ticker, best }
    }

    /// Takes the rows within a range in which the first `leading` paths are equal, in the order of
    /// the remaining paths. `begin` is the value at which the page begins, if that is in the range.
    fn take_groups(
        &mut self,
        (low, high): &KeyRange,
        leading: usize,
        stretches: &[Stretch],
        begin: Option<&[u8]>,
    ) -> Result<()> {
        let Some((first, rest)) = stretches.split_first() else { return Ok(()) };
        let index = self.rows.index;
        let (mut low, mut high) = (low.clone(), high.clone());
        if rest.is_empty() {
            match begin {
                Some(begin) if first.descending => high = Bound::Included(begin.to_vec()),
                Some(begin) => low = Bound::Included(begin.to_vec()),
                None => {}
            }
            let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            return self.walk(within, first.descending);
        }
        let parts = leading + first.paths;
        let begin_group = begin.and_then(|begin| first_parts(begin, parts));
        if let Some(group) = begin_group {
            let (from, to) = range_of_parts(group.to_vec());
            match first.descending {
                true => high = to,
                false => low = from,
            }
        }
        while !self.is_full {
            let mut group = None;
            let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            index.walk(within, first.descending, &mut |value, _| {
                group = first_parts(value, parts).map(<[u8]>::to_vec);
                ControlFlow::Break(())
            })?;
            let Some(group) = group else { break };
            let begin = begin.filter(|_| begin_group == Some(group.as_slice()));
            let range = range_of_parts(group);
            self.take_groups(&range, parts, rest, begin)?;
            match (first.descending, range) {
                (true, (Bound::Included(begin), _)) => high = Bound::Excluded(begin),
                (false, (_, Bound::Excluded(end))) => low = Bound::Included(end),
                _ => break,
            }
        }
        Ok(())
    }

    /// Takes the rows of the values within a range.
    fn walk(&mut self, within: (Bound<&[u8]>, Bound<&[u8]>), descending: bool) -> Result<()> {
        let index = self.rows.index;
        let mut ending = Ok(());
        index.walk(within, descending, &mut |value, doc| {
            ending = self.ticker.step();
            if ending.is_err() {
                return ControlFlow::Break(());
            }
            if self.value != value {
                self.end_value(descending);
                self.value.clear();
                self.value.extend_from_slice(value);
            }
            // Walked backwards, the documents of one value come in reverse order: the first come last.
            let taken = self.taken + if descending { 0 } else { self.docs.len() };
            if taken >= self.rows.limit {
                return ControlFlow::Break(());
            }
            if self.rows.is_wanted(value, doc) {
                self.docs.push(doc);
            }
            ControlFlow::Continue(())
        })?;
        ending?;
        self.end_value(descending);
        Ok(())
    }

    /// Takes the first documents of the value.
    fn end_value(&mut self, descending: bool) {
        if descending {
            self.docs.reverse();
        }
        let left = self.rows.limit.saturating_sub(self.taken);
        let value = &self.value;
        let rows = self.rows;
        let taken = self.docs.iter().take(left);
        self.best.extend(taken.map(|doc| rows.candidate(Some(value.clone()), *doc)));
        self.taken += self.docs.len().min(left);
        self.docs.clear();
        self.is_full = self.taken >= self.rows.limit;
    }
}
