//! The values of a column in their order, each once, along an index (a loose scan).
//!
//! Equal values are a run of an index, and two searches find its end: rows within a run are not looked at. The segments'
//! runs are merged by value. How long a run is counts its rows; of a segment with deleted rows they are looked at. What
//! is said of rows must be said of the columns before, one value each, and of the column itself: what else is said
//! would have to be asked of each row.

use std::{cmp::Reverse, ops::Range, time::Instant};

use remora_index::{
    TextOrder,
    column::{Cell, Column},
    segment::{IndexSpec, SegmentIndex},
};

use super::{
    columns::indexed, filter::Condition, index_ranges::Asked, literal::OwnedCell, select::Plan,
};
use crate::{
    ColumnDef, FoundBy, Position, RequestPart, Result, TableIndex, Value, ValuesReply,
    ValuesRequest,
    encode::decode_cell,
    indexing::allowed_specs,
    interrupt::{Looks, Unless},
    snapshot::{SegmentView, TableView},
};

/// Most values that are asked for: of more it costs less to count all rows by value.
const MAX_VALUES: usize = 4_096;
/// Most rows of a run whose texts are compared, where texts of one key are one value.
const MAX_COMPARED: u32 = 4_096;

/// The first values of a column in their order; `None` if no index has them.
pub(crate) fn values_in_order(
    view: &TableView,
    request: &ValuesRequest,
    (position, unless): (Position, &Unless),
) -> Result<Option<ValuesReply>> {
    let started = Instant::now();
    let column = indexed(&view.schema, &request.column, RequestPart::Facet)?;
    if request.limit > MAX_VALUES {
        return Ok(None);
    }
    let plan = Plan::new(view, &request.selection, unless)?;
    let allowed = request.selection.indexes.find.indexes;
    let mut along = match plan.expression {
        None => allowed_specs(&view.schema, allowed)
            .into_iter()
            .filter_map(|(index, spec)| Along::of(index, spec, column, &plan, request)),
        Some(_) => return Ok(None),
    };
    let Some((along, mut segments)) =
        along.find_map(|along| along.segments(view).map(|segments| (along, segments)))
    else {
        return Ok(None);
    };
    let mut looks = Looks::new(unless);
    let Some(values) = merged(column, &mut segments, request, &mut looks)? else {
        return Ok(None);
    };
    if plan.condition.is_none() {
        // Of a condition it is noted where its rows are counted.
        view.usage.ordered(along.found_by.index);
    }
    let (matched, mut report) = plan.count(view, position, started)?;
    report.returned = values.len() as u64;
    report.total_time = started.elapsed();
    Ok(Some(ValuesReply { values, matched, found_by: along.found_by, report }))
}

/// An index that has the values in their order.
struct Along {
    spec: IndexSpec,
    /// What is asked of it; `None` if all rows are.
    asked: Option<Asked>,
    /// The number of its parts up to the column.
    parts: usize,
    /// Whether its end is where the values begin.
    reversed: bool,
    found_by: FoundBy,
}

impl Along {
    fn of(
        index: TableIndex,
        spec: IndexSpec,
        column: &ColumnDef,
        plan: &Plan,
        request: &ValuesRequest,
    ) -> Option<Self> {
        let at = spec.parts.iter().position(|part| part.column == column.id)?;
        let part = spec.parts.get(at)?;
        if part.order.map(|order| order.number) != request.keyed {
            return None;
        }
        let asked = match &plan.condition {
            Some(condition) => Some(Self::asked(index, &spec, condition, at)?),
            None if at == 0 => None,
            None => return None,
        };
        let reversed = part.descending != request.descending;
        let all = FoundBy { index, columns: 0, is_bounded: false, is_single: true };
        let found_by = asked.as_ref().map_or(all, Asked::found_by);
        Some(Self { parts: at + 1, spec, asked, reversed, found_by })
    }

    /// What a condition says, if that is one value of each part before the one at `at`, something of that one, and no
    /// more.
    fn asked(
        index: TableIndex,
        spec: &IndexSpec,
        condition: &Condition,
        at: usize,
    ) -> Option<Asked> {
        let asked = Asked::of_all(index, spec, condition)?;
        asked.is_of_runs(at).then_some(asked)
    }

    /// The runs of all segments; `None` if one of them has no such index.
    fn segments<'v>(&self, view: &'v TableView) -> Option<Vec<Runs<'v>>> {
        let runs = view.segments.iter().map(|segment| Runs::of(self, segment));
        runs.collect()
    }
}

/// The runs of a segment that are still to come.
struct Runs<'v> {
    view: &'v SegmentView,
    index: SegmentIndex<'v>,
    /// `None` if all its values are NULL.
    column: Option<&'v Column>,
    /// How its texts are ordered.
    order: Option<TextOrder>,
    parts: usize,
    reversed: bool,
    /// Where they lie, the next ones last.
    ranges: Vec<Range<u32>>,
    /// The next one, and its value as the index compares it.
    next: Option<(OwnedCell, Range<u32>)>,
}

impl<'v> Runs<'v> {
    fn of(along: &Along, view: &'v SegmentView) -> Option<Self> {
        let index = view.segment.index(&along.spec)?;
        let mut ranges = match &along.asked {
            Some(asked) => asked.ranges(&index, true)?,
            None => vec![0..index.len()],
        };
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| Reverse(range.start));
        if along.reversed {
            ranges.reverse();
        }
        let (parts, reversed) = (along.parts, along.reversed);
        let part = along.spec.parts.get(parts.checked_sub(1)?)?;
        let (column, order) = (view.segment.column(part.column), part.order);
        let mut this = Self { view, index, column, order, parts, reversed, ranges, next: None };
        this.advance();
        Some(this)
    }

    /// Goes on to the run behind the next one.
    fn advance(&mut self) {
        self.next = self.ranges.pop().and_then(|range| {
            let run = self.index.group(range.clone(), self.parts, self.reversed);
            let rest = match self.reversed {
                true => range.start..run.start,
                false => run.end..range.end,
            };
            if !rest.is_empty() {
                self.ranges.push(rest);
            }
            let doc = self.index.doc(run.start);
            let cell = self.column.map_or(Cell::Null, |column| column.get(doc));
            Some((OwnedCell::keyed(cell, self.order), run))
        });
    }

    /// How many live rows a run has, or whether there are any; `None` if their texts are not all the same bytes, or
    /// there are too many to see that.
    fn live(&self, run: &Range<u32>, values_only: bool) -> Option<u64> {
        if self.order.is_some() && !self.is_of_one_text(run) {
            return None;
        }
        if self.view.deleted.is_none() {
            return Some(run.len() as u64);
        }
        let mut live = run.clone().filter(|at| !self.view.is_deleted(self.index.doc(*at)));
        Some(match values_only {
            true => u64::from(live.next().is_some()),
            false => live.count() as u64,
        })
    }

    fn is_of_one_text(&self, run: &Range<u32>) -> bool {
        let Some(column) = self.column else { return true };
        let first = column.get(self.index.doc(run.start));
        let mut others = run.clone().skip(1).map(|at| column.get(self.index.doc(at)));
        run.len() as u32 <= MAX_COMPARED && others.all(|other| other == first)
    }

    /// The value of a run as it is stored.
    fn value(&self, run: &Range<u32>) -> OwnedCell {
        let doc = self.index.doc(run.start);
        self.column.map_or(OwnedCell::Null, |column| OwnedCell::new(column.get(doc)))
    }
}

/// The first values that live rows have; `None` if texts that are one value are not the same bytes.
fn merged(
    column: &ColumnDef,
    segments: &mut [Runs<'_>],
    request: &ValuesRequest,
    looks: &mut Looks,
) -> Result<Option<Vec<(Value, u64)>>> {
    let mut values = Vec::new();
    while values.len() < request.limit {
        let keys = segments.iter().filter_map(|runs| runs.next.as_ref().map(|(key, _)| key));
        let first = match request.descending {
            true => keys.max().cloned(),
            false => keys.min().cloned(),
        };
        let Some(first) = first else { break };
        let (mut count, mut value): (u64, Option<OwnedCell>) = (0, None);
        for runs in segments.iter_mut() {
            let Some((_, run)) = runs.next.take_if(|(key, _)| *key == first) else {
                continue;
            };
            looks.steps(1 + if runs.view.deleted.is_some() { run.len() } else { 0 })?;
            let Some(live) = runs.live(&run, request.values_only) else { return Ok(None) };
            if live > 0 {
                let mine = runs.value(&run);
                if value.as_ref().is_some_and(|value| *value != mine) {
                    return Ok(None);
                }
                (count, value) = (count + live, Some(mine));
            }
            runs.advance();
        }
        if let Some(value) = value {
            values.push((decode_cell(column.kind, value.as_cell()), count));
        }
    }
    Ok(Some(values))
}
