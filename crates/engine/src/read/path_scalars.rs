//! The first rows in the order that SQL gives to the JSON values at a path.
//!
//! An index of a path follows arrays, where SQL's paths do not. So each row of the walk is read, and kept only if
//! objects alone lead to the value for which it was found: every row is found at that value too. Arrays and objects
//! at the path, and numbers beyond the exact doubles, are in another order in SQL; with them there is no answer.

use std::ops::{Bound, ControlFlow};

use remora_index::{DocSet, paths::PathIndex};

use super::{
    columns::{path_place, position},
    docs::Docs,
    filter::CompiledFilter,
    path_order::{OfSegment, RowByPath, compare},
};
use crate::{
    InterruptCheck, KeyValues, PathValue, Result, Row, ScalarOrder, ScalarRows, Value,
    encode::{KeyRange, ScalarKind, decode_key, has_value_at, range_of_kind, scalar_of},
    interrupt::InterruptTicker,
    snapshot::TableView,
};

/// The kinds of values in ascending order of JSON in SQL.
const KINDS: [ScalarKind; 4] =
    [ScalarKind::Null, ScalarKind::Number, ScalarKind::Text, ScalarKind::Bool];
/// Up to this size, every integer has an exact double.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;
/// How often more rows are taken because too many were found through arrays.
const WALKS: usize = 3;
/// A walk may pass over this many entries for each selected row: reading and sorting that row costs as much.
const ENTRIES_OF_ROW: u64 = 16;

/// A walk along a path's index.
struct ScalarWalk<'v> {
    view: &'v TableView,
    indexes: Vec<&'v PathIndex>,
    /// The selected documents of each segment.
    selected: Vec<DocSet>,
    /// The values that are walked, one range after the other.
    ranges: Vec<KeyRange>,
    descending: bool,
    only_texts: bool,
}

/// A row that the index has at a value.
struct Found {
    value: Vec<u8>,
    key: KeyValues,
}

/// Reads columns of rows by their keys.
pub(super) type ReadRows<'r> =
    &'r dyn Fn(&[KeyValues], &[usize], &mut dyn FnMut(usize, &mut Row) -> Result<()>) -> Result<()>;

/// The first rows; `None` if no index has the order, or if another way is cheaper.
pub(super) fn first_by_scalar(
    view: &TableView,
    asked: &ScalarOrder,
    read: ReadRows<'_>,
    unless: &InterruptCheck,
) -> Result<Option<ScalarRows>> {
    let Some(column) = position(&view.schema, &asked.column) else { return Ok(None) };
    let Some((walk, path)) = ScalarWalk::of(view, asked, unless)? else { return Ok(None) };
    let columns: Vec<usize> = asked.columns.iter().copied().chain([column]).collect();
    let mut wanted = asked.limit;
    for _ in 0..WALKS {
        let Some(found) = walk.first(wanted, unless)? else { return Ok(None) };
        let (is_all, examined) = (found.len() < wanted, found.len() as u64);
        let mut rows = kept(&found, &asked.path, &columns, (read, unless))?;
        if rows.len() >= asked.limit || is_all {
            rows.truncate(asked.limit);
            return Ok(Some(ScalarRows { rows, examined, path }));
        }
        wanted = wanted.saturating_mul(4);
    }
    Ok(None)
}

/// The rows whose value at the path is the one for which they were found, in the order of `found`. `columns` ends with
/// the documents' column, which the rows lose.
fn kept(
    found: &[Found],
    names: &[String],
    columns: &[usize],
    (read, unless): (ReadRows<'_>, &InterruptCheck),
) -> Result<Vec<Row>> {
    let mut ticker = InterruptTicker::new(unless);
    let keys: Vec<KeyValues> = found.iter().map(|found| found.key.clone()).collect();
    let mut rows: Vec<Option<Row>> = vec![None; found.len()];
    read(&keys, columns, &mut |at, row| {
        ticker.steps(ENTRIES_OF_ROW as usize)?;
        let is_there = match (row.pop(), found.get(at)) {
            (Some(Value::Json(text)), Some(found)) => has_value_at(&text, names, &found.value),
            _ => false,
        };
        if let Some(slot) = rows.get_mut(at)
            && is_there
        {
            *slot = Some(std::mem::take(row));
        }
        Ok(())
    })?;
    Ok(rows.into_iter().flatten().collect())
}

impl<'v> ScalarWalk<'v> {
    /// The walk and the position of its path in the table's definition; `None` if the index does not have the order,
    /// or if the walk costs more than reading all selected rows.
    fn of(
        view: &'v TableView,
        asked: &ScalarOrder,
        unless: &InterruptCheck,
    ) -> Result<Option<(Self, usize)>> {
        let Some(path) = path_place(&view.schema, &asked.column, &asked.path) else {
            return Ok(None);
        };
        let Some(spec) = view.paths.get(path) else { return Ok(None) };
        let indexes: Option<Vec<&PathIndex>> =
            view.segments.iter().map(|view| view.segment.path(spec)).collect();
        let Some(indexes) = indexes else { return Ok(None) };
        for index in &indexes {
            if has_others(index, asked.only_texts)? {
                return Ok(None);
            }
        }
        let condition = asked.filter.as_ref().map(|filter| CompiledFilter::new(view, filter));
        let condition = condition.transpose()?;
        let (mut selected, mut found, mut entries) = (Vec::with_capacity(indexes.len()), 0, 0);
        for (segment, index) in view.segments.iter().zip(&indexes) {
            unless.check()?;
            let docs = match &condition {
                Some(condition) => Docs::Some(condition.filtered(&segment.segment, Docs::Every)?),
                None => Docs::Every,
            };
            let docs = docs.into_live(segment);
            found += u64::from(docs.count());
            entries += index.entry_count();
            selected.push(docs);
        }
        // With selected rows spread evenly, the walk passes over this many entries.
        let passed = entries.saturating_mul(asked.limit as u64) / found.max(1);
        if passed > found.saturating_mul(ENTRIES_OF_ROW) {
            return Ok(None);
        }
        let (descending, only_texts) = (asked.descending, asked.only_texts);
        let kinds = KINDS.into_iter().filter(|kind| !only_texts || *kind == ScalarKind::Text);
        let mut ranges: Vec<KeyRange> = kinds.map(range_of_kind).collect();
        if descending {
            ranges.reverse();
        }
        Ok(Some((Self { view, indexes, selected, ranges, descending, only_texts }, path)))
    }

    /// The first rows of the walk, equal ones in key order. `None` if a value has another order in SQL.
    fn first(&self, limit: usize, unless: &InterruptCheck) -> Result<Option<Vec<Found>>> {
        let mut found = Vec::new();
        for range in &self.ranges {
            let left = limit - found.len();
            if left == 0 {
                break;
            }
            let mut best: Vec<RowByPath> = Vec::new();
            let segments = self.view.segments.iter().zip(&self.indexes).zip(&self.selected);
            for ((view, index), docs) in segments {
                unless.check()?;
                let docs = docs.clone();
                let within = Some(range);
                OfSegment { view, index, docs, within, limit: left, after: None, unless }
                    .take(self.descending, &mut best)?;
            }
            best.sort_by(|one, other| compare(one, other, self.descending));
            best.truncate(left);
            for RowByPath { value, key } in best {
                let Some(value) = value.filter(|value| self.has_same_order(value)) else {
                    return Ok(None);
                };
                found.push(Found { value, key: decode_key(&self.view.schema, &key)? });
            }
        }
        let is_in_order = match found.last() {
            Some(last) if self.only_texts && !self.descending => !self.continues(&last.value)?,
            _ => true,
        };
        Ok(is_in_order.then_some(found))
    }

    /// Whether SQL compares the value with others as the index does. Texts are compared as if spaces followed them
    /// where they alone are ordered.
    fn has_same_order(&self, value: &[u8]) -> bool {
        match scalar_of(value) {
            Some(PathValue::Int(number)) => (number as f64).abs() < MOST_EXACT,
            Some(PathValue::Uint(number)) => (number as f64) < MOST_EXACT,
            Some(PathValue::Float(number)) => number.abs() < MOST_EXACT,
            Some(PathValue::Text(text)) if self.only_texts => {
                !text.ends_with(' ') && text.bytes().all(|byte| byte >= b' ')
            }
            Some(PathValue::Text(_) | PathValue::Null | PathValue::Bool(_)) => true,
            None => false,
        }
    }

    /// Whether a text continues this one with a space or a character before it: it may be equal, or come earlier.
    fn continues(&self, value: &[u8]) -> Result<bool> {
        for index in &self.indexes {
            let mut does_continue = false;
            let behind = (Bound::Excluded(value), Bound::Unbounded);
            index.walk(behind, false, &mut |next, _| {
                let rest = next.strip_prefix(value);
                does_continue = rest.and_then(<[u8]>::first).is_some_and(|byte| *byte <= b' ');
                ControlFlow::Break(())
            })?;
            if does_continue {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether an index has values that are not ordered here: arrays and objects, or all but texts.
fn has_others(index: &PathIndex, only_texts: bool) -> Result<bool> {
    let (from, behind) = range_of_kind(ScalarKind::Text);
    let above = match behind {
        Bound::Excluded(end) => Bound::Included(end),
        other => other,
    };
    let mut has_any = false;
    let mut any = |low: Bound<&[u8]>, high: Bound<&[u8]>| {
        index.walk((low, high), false, &mut |_, _| {
            has_any = true;
            ControlFlow::Break(())
        })
    };
    any(above.as_ref().map(Vec::as_slice), Bound::Unbounded)?;
    if only_texts && let Bound::Included(from) = &from {
        any(Bound::Unbounded, Bound::Excluded(from))?;
    }
    Ok(has_any)
}
