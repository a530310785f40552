//! Distinct values of a column, or of several, in order, along an index (loose index scan).
//!
//! Equal values are a run of an index, and two binary searches find its end: rows within a run are not read. The
//! segments' runs are merged by value. The length of a run counts its rows; in a segment with deleted rows the ranks of
//! live documents do, or the rows are read while that costs less. Conditions may fix the columns before to one value
//! each, and restrict the first column itself; any other condition would have to be evaluated on each row. The least and
//! greatest values of the next column are at the ends of a run.

use std::{cmp::Reverse, ops::Range, sync::Arc, time::Instant};

use remora_index::{
    TextOrder,
    column::{Cell, Column},
    segment::{IndexSpec, LiveRanks, SegmentIndex},
};
use smallvec::SmallVec;

use super::{
    columns::indexed,
    distinct::distinct,
    filter::{CompiledFilter, ValueTest},
    index_ranges::ConditionRanges,
    literal::OwnedCell,
    select::Plan,
};
use crate::{
    ColumnDef, FoundBy, Position, RequestPart, Result, TableIndex, ValueRow, ValuesReply,
    ValuesRequest,
    encode::decode_cell,
    indexing::allowed_specs,
    interrupt::{InterruptCheck, InterruptTicker},
    snapshot::{SegmentView, TableView},
};

/// The most values of a loose scan. With more, counting all rows by value is cheaper.
const MAX_VALUES: usize = 4_096;
/// How many values are read before the cardinality is estimated; mostly there are fewer.
const UNESTIMATED: usize = 64;
/// The most rows of a run whose texts are compared, if texts with equal sort keys count as one
/// value.
const MAX_COMPARED: u32 = 4_096;
/// In a segment with deleted rows, so many rows of a run are read rather than counted.
const FEW_ROWS: u32 = 64;

/// The first values of columns in order; `None` if no index has them.
pub(crate) fn values_in_order(
    view: &TableView,
    request: &ValuesRequest,
    (position, unless): (Position, &InterruptCheck),
) -> Result<Option<ValuesReply>> {
    let started = Instant::now();
    let columns = request.columns.iter();
    let columns = columns.map(|(name, _)| indexed(&view.schema, name, RequestPart::Facet));
    let columns: Vec<&ColumnDef> = columns.collect::<Result<_>>()?;
    let ends = request.ends.iter();
    let ends = ends.map(|(name, greatest)| {
        Ok(End { column: indexed(&view.schema, name, RequestPart::Facet)?, greatest: *greatest })
    });
    let ends: Vec<End<'_>> = ends.collect::<Result<_>>()?;
    let plan = Plan::new(view, &request.selection, unless)?;
    let allowed = request.selection.indexes.find.indexes;
    let mut along = match plan.expression {
        None => allowed_specs(&view.schema, allowed)
            .into_iter()
            .filter_map(|(index, spec)| DistinctIndex::of(index, spec, &columns, &plan, request))
            .filter(|along| ends.iter().all(|end| along.has(end))),
        Some(_) => return Ok(None),
    };
    let Some((along, mut segments)) =
        along.find_map(|along| along.segments(view).map(|segments| (along, segments)))
    else {
        return Ok(None);
    };
    let mut looks = InterruptTicker::new(unless);
    let condition = plan.condition.as_ref().filter(|_| along.is_tested);
    let tested = condition.zip(columns.first());
    let mut test = tested.and_then(|(condition, column)| ValueTest::new(condition, column.id));
    let wanted = RunRequest { view, along: &along, columns: &columns, ends: &ends, request };
    let Some(values) = wanted.merged(&mut segments, &mut test, &mut looks)? else {
        return Ok(None);
    };
    match plan.condition {
        Some(_) => view.usage.found(&[along.found_by]),
        None => view.usage.ordered(along.found_by.index),
    }
    let mut report = plan.report(view, position);
    report.returned = values.len() as u64;
    report.total_time = started.elapsed();
    Ok(Some(ValuesReply { values, found_by: along.found_by, report }))
}

/// The least or greatest value of the next index column, requested for each value.
struct End<'s> {
    column: &'s ColumnDef,
    greatest: bool,
}

/// An index with the values in order.
struct DistinctIndex {
    spec: IndexSpec,
    /// The index ranges of the condition; `None` for all rows.
    asked: Option<ConditionRanges>,
    /// Whether the condition must be evaluated on each value; it is about the first column only.
    is_tested: bool,
    /// The number of its parts before the columns.
    before: usize,
    /// The number of its parts up to and including the columns.
    parts: usize,
    /// Whether the index is walked backwards.
    reversed: bool,
    found_by: FoundBy,
}

impl DistinctIndex {
    fn of(
        index: TableIndex,
        spec: IndexSpec,
        columns: &[&ColumnDef],
        plan: &Plan,
        request: &ValuesRequest,
    ) -> Option<Self> {
        let first = columns.first()?.id;
        let at = spec.parts.iter().position(|part| part.column == first)?;
        let parts = spec.parts.get(at..at + columns.len())?;
        let descending = parts.first()?.descending;
        let mut wanted = parts.iter().zip(columns).zip(&request.columns);
        let is_wanted = wanted.all(|((part, column), (_, keyed))| {
            let number = part.order.map(|order| order.number);
            (part.column, part.descending, number) == (column.id, descending, *keyed)
        });
        if !is_wanted {
            return None;
        }
        let (asked, is_tested) = match &plan.condition {
            Some(condition) => Self::asked(index, &spec, condition, at)?,
            None if at == 0 => (None, false),
            None => return None,
        };
        let reversed = descending != request.descending;
        let all = FoundBy {
            index,
            columns: 0,
            is_bounded: false,
            is_single: true,
            is_intersected: false,
        };
        let found_by = asked.as_ref().map_or(all, ConditionRanges::found_by);
        let (before, parts) = (at, at + columns.len());
        Some(Self { spec, asked, is_tested, before, parts, reversed, found_by })
    }

    /// The index ranges of a condition. It must fix each part before `at` to one value and restrict the part at
    /// `at`, and no other. True if the condition on the column is more than bounds, such as LIKE.
    fn asked(
        index: TableIndex,
        spec: &IndexSpec,
        condition: &CompiledFilter,
        at: usize,
    ) -> Option<(Option<ConditionRanges>, bool)> {
        if let Some(asked) = ConditionRanges::of_all(index, spec, condition) {
            return asked.is_of_runs(at).then_some((Some(asked), false));
        }
        let column = spec.parts.first().filter(|_| at == 0)?.column;
        let asked = ConditionRanges::new(index, spec.clone(), &condition.conjuncts())?;
        (condition.is_of(column) && asked.is_of_runs(at)).then_some((Some(asked), true))
    }

    /// Whether the rows of each value are sorted by the column of `end`.
    fn has(&self, end: &End<'_>) -> bool {
        let next = self.spec.parts.get(self.parts);
        next.is_some_and(|next| next.column == end.column.id && next.order.is_none())
    }

    /// Whether there are few values, by the request's limit or by the estimated cardinality.
    fn is_of_few(&self, view: &TableView, request: &ValuesRequest) -> bool {
        let few = |count: u64| count <= MAX_VALUES as u64;
        request.limit <= MAX_VALUES
            || distinct(view, self.found_by.index, self.parts).is_some_and(few)
    }

    /// The runs of all segments; `None` if a segment lacks the index.
    fn segments<'v>(&self, view: &'v TableView) -> Option<Vec<Runs<'v>>> {
        let runs = view.segments.iter().map(|segment| Runs::of(self, segment));
        runs.collect()
    }
}

/// The values of the columns.
type Cells = SmallVec<[OwnedCell; 2]>;

/// A column in a segment.
struct RunColumn<'v> {
    /// `None` if all its values are NULL.
    column: Option<&'v Column>,
    /// The order of its texts.
    order: Option<TextOrder>,
}

impl<'v> RunColumn<'v> {
    fn get(&self, doc: u32) -> Cell<'v> {
        self.column.map_or(Cell::Null, |column| column.get(doc))
    }

    fn is_plain(&self) -> bool {
        let ordered = self.order.zip(self.column);
        ordered.is_none_or(|(order, column)| column.has_distinct_keys(order))
    }
}

/// The remaining runs of a segment.
struct Runs<'v> {
    view: &'v SegmentView,
    index: SegmentIndex<'v>,
    columns: SmallVec<[RunColumn<'v>; 2]>,
    /// Whether different texts are always different values.
    is_plain: bool,
    /// The next column of the index.
    next_column: Option<&'v Column>,
    is_next_descending: bool,
    parts: usize,
    reversed: bool,
    /// The ranges of positions, the next one last.
    ranges: Vec<Range<u32>>,
    /// The next run, with its values as the index compares them.
    next: Option<(Cells, Range<u32>)>,
    /// Where its live documents are, once that was worth its cost.
    ranks: Option<Arc<LiveRanks>>,
}

impl<'v> Runs<'v> {
    fn of(along: &DistinctIndex, view: &'v SegmentView) -> Option<Self> {
        let index = view.segment.index(&along.spec)?;
        let mut ranges = match &along.asked {
            Some(asked) => asked.ranges(&index, true)?,
            None => std::iter::once(0..index.len()).collect(),
        };
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| Reverse(range.start));
        if along.reversed {
            ranges.reverse();
        }
        let (parts, reversed) = (along.parts, along.reversed);
        let columns = along.spec.parts.get(along.before..parts)?.iter();
        let columns =
            columns.map(|it| RunColumn { column: view.segment.column(it.column), order: it.order });
        let columns: SmallVec<[RunColumn<'v>; 2]> = columns.collect();
        let next = along.spec.parts.get(parts);
        let mut this = Self {
            view,
            index,
            is_plain: columns.iter().all(RunColumn::is_plain),
            columns,
            next_column: next.and_then(|part| view.segment.column(part.column)),
            is_next_descending: next.is_some_and(|part| part.descending),
            parts,
            reversed,
            ranges,
            next: None,
            ranks: None,
        };
        this.advance();
        Some(this)
    }

    /// Advances to the next run.
    fn advance(&mut self) {
        self.next = self.ranges.pop().map(|range| {
            let run = self.index.group(range.clone(), self.parts, self.reversed);
            let rest = match self.reversed {
                true => range.start..run.start,
                false => run.end..range.end,
            };
            if !rest.is_empty() {
                self.ranges.push(rest);
            }
            let doc = self.index.doc(run.start);
            let keys = self.columns.iter().map(|it| OwnedCell::keyed(it.get(doc), it.order));
            (keys.collect(), run)
        });
    }

    /// Prepares to count the rows of all remaining runs.
    fn count_all(&mut self) {
        let next = self.next.as_ref().map_or(0, |(_, run)| run.len() as u32);
        let rest: u32 = self.ranges.iter().map(|range| range.len() as u32).sum();
        self.ranks(next.saturating_add(rest));
    }

    /// The ranks of live documents; `None` if reading so many rows costs less, or if no row is deleted.
    fn ranks(&mut self, rows: u32) -> Option<&LiveRanks> {
        if self.ranks.is_none() && rows > FEW_ROWS {
            let deleted = self.view.deleted.as_ref();
            self.ranks = deleted.and_then(|it| self.index.live_ranks(it, u64::from(rows)));
        }
        self.ranks.as_deref()
    }

    /// The number of live rows of a run (with `values_only`, only whether there are any). `None` if their texts
    /// are not all the same bytes, or are too many to compare.
    fn live(
        &mut self,
        run: &Range<u32>,
        values_only: bool,
        looks: &mut InterruptTicker,
    ) -> Result<Option<u64>> {
        let length = run.len() as u32;
        if !self.is_plain {
            looks.steps(length.min(MAX_COMPARED) as usize)?;
            if !self.is_of_one_text(run) {
                return Ok(None);
            }
        }
        if self.view.deleted.is_none() {
            return Ok(Some(u64::from(length)));
        }
        if values_only {
            return Ok(Some(u64::from(self.first_live(run.clone(), false, looks)?.is_some())));
        }
        if let Some(ranks) = self.ranks(length) {
            return Ok(Some(u64::from(ranks.count(run))));
        }
        looks.steps(run.len())?;
        let live = run.clone().filter(|at| !self.view.is_deleted(self.index.doc(*at)));
        Ok(Some(live.count() as u64))
    }

    /// The first live row of some positions, from their end if `at_end`.
    fn first_live(
        &mut self,
        within: Range<u32>,
        at_end: bool,
        looks: &mut InterruptTicker,
    ) -> Result<Option<u32>> {
        let Range { start, end } = within;
        // Mostly it is one of the first.
        let few = FEW_ROWS.min(end.saturating_sub(start));
        let (near, far) = match at_end {
            true => (end - few..end, start..end - few),
            false => (start..start + few, start + few..end),
        };
        if let Some(found) = self.read_first(near, at_end, looks)? {
            return Ok(Some(found));
        }
        let Some(ranks) = self.ranks(far.len() as u32) else {
            return self.read_first(far, at_end, looks);
        };
        let (before, count) = (ranks.before(far.start), ranks.count(&far));
        let nth = count.checked_sub(1).map(|last| before + if at_end { last } else { 0 });
        Ok(nth.and_then(|nth| ranks.nth(nth)))
    }

    fn read_first(
        &self,
        mut within: Range<u32>,
        at_end: bool,
        looks: &mut InterruptTicker,
    ) -> Result<Option<u32>> {
        let mut steps = 0;
        let is_live = |at: &u32| {
            steps += 1;
            !self.view.is_deleted(self.index.doc(*at))
        };
        let found = match at_end {
            true => within.rfind(is_live),
            false => within.find(is_live),
        };
        looks.steps(steps)?;
        Ok(found)
    }

    fn is_of_one_text(&self, run: &Range<u32>) -> bool {
        let first = self.index.doc(run.start);
        let is_same = |doc: u32| self.columns.iter().all(|it| it.get(doc) == it.get(first));
        let mut others = run.clone().skip(1).map(|at| self.index.doc(at));
        run.len() as u32 <= MAX_COMPARED && others.all(is_same)
    }

    /// The least or greatest value of the next column among live rows of a run; NULL if all are NULL.
    fn end(
        &mut self,
        run: &Range<u32>,
        greatest: bool,
        looks: &mut InterruptTicker,
    ) -> Result<OwnedCell> {
        let Some(column) = self.next_column else { return Ok(OwnedCell::Null) };
        // NULL sorts first.
        let is_null = |doc: u32| column.get(doc) == Cell::Null;
        let range = match self.is_next_descending {
            false => self.index.partition_point(run.clone(), is_null)..run.end,
            true => run.start..self.index.partition_point(run.clone(), |doc| !is_null(doc)),
        };
        let at_end = greatest != self.is_next_descending;
        let found = self.first_live(range, at_end, looks)?;
        let cell = |at: u32| OwnedCell::new(column.get(self.index.doc(at)));
        Ok(found.map_or(OwnedCell::Null, cell))
    }

    /// The values of a run as they are stored.
    fn values(&self, run: &Range<u32>) -> Cells {
        let doc = self.index.doc(run.start);
        self.columns.iter().map(|it| OwnedCell::new(it.get(doc))).collect()
    }
}

/// What is requested for each value.
struct RunRequest<'w> {
    view: &'w TableView,
    along: &'w DistinctIndex,
    columns: &'w [&'w ColumnDef],
    ends: &'w [End<'w>],
    request: &'w ValuesRequest,
}

/// The live rows of one combination of values.
struct Group {
    values: Option<Cells>,
    count: u64,
    ends: Vec<OwnedCell>,
}

impl RunRequest<'_> {
    /// The first values of live rows that pass the test. `None` if texts with equal sort keys are not the same
    /// bytes, or there are too many values.
    fn merged(
        &self,
        segments: &mut [Runs<'_>],
        test: &mut Option<ValueTest<'_>>,
        looks: &mut InterruptTicker,
    ) -> Result<Option<Vec<ValueRow>>> {
        let (mut values, mut read) = (Vec::new(), 0);
        let counts_all = !self.request.values_only && self.request.limit > MAX_VALUES;
        if counts_all
            && self.view.segments.iter().any(|segment| segment.deleted.is_some())
            && self.along.is_of_few(self.view, self.request)
        {
            segments.iter_mut().for_each(Runs::count_all);
        }
        while values.len() < self.request.limit {
            if read == UNESTIMATED && !self.along.is_of_few(self.view, self.request) {
                return Ok(None);
            }
            read += 1;
            let keys = segments.iter().filter_map(|runs| runs.next.as_ref().map(|(key, _)| key));
            let first = match self.request.descending {
                true => keys.max().cloned(),
                false => keys.min().cloned(),
            };
            let Some(first) = first else { break };
            let Some(group) = self.group(&first, segments, looks)? else { return Ok(None) };
            let Some(cells) = group.values else { continue };
            let mut tests = test.iter_mut().zip(&cells);
            if tests.any(|(test, first)| !test.holds(first.as_cell())) {
                continue;
            }
            if values.len() == MAX_VALUES {
                return Ok(None);
            }
            let ends = self.ends.iter().zip(group.ends);
            let ends = ends.map(|(end, cell)| decode_cell(end.column.kind, cell.as_cell()));
            let of_columns = self.columns.iter().zip(&cells);
            let of_columns = of_columns.map(|(it, cell)| decode_cell(it.kind, cell.as_cell()));
            values.push(ValueRow {
                values: of_columns.collect(),
                count: group.count,
                ends: ends.collect(),
            });
        }
        Ok(Some(values))
    }

    /// Takes the runs of one value from all segments; `None` if its texts are not the same bytes.
    fn group(
        &self,
        key: &Cells,
        segments: &mut [Runs<'_>],
        looks: &mut InterruptTicker,
    ) -> Result<Option<Group>> {
        let ends = vec![OwnedCell::Null; self.ends.len()];
        let mut group = Group { values: None, count: 0, ends };
        for runs in segments {
            let Some((_, run)) = runs.next.take_if(|(own, _)| own == key) else { continue };
            looks.step()?;
            let values_only = self.request.values_only;
            let Some(live) = runs.live(&run, values_only, looks)? else { return Ok(None) };
            if live > 0 {
                let mine = runs.values(&run);
                if group.values.as_ref().is_some_and(|values| *values != mine) {
                    return Ok(None);
                }
                (group.count, group.values) = (group.count + live, Some(mine));
                for (end, known) in self.ends.iter().zip(&mut group.ends) {
                    let mine = runs.end(&run, end.greatest, looks)?;
                    let is_better = match end.greatest {
                        true => mine > *known,
                        false => {
                            mine != OwnedCell::Null && (*known == OwnedCell::Null || mine < *known)
                        }
                    };
                    if is_better {
                        *known = mine;
                    }
                }
            }
            runs.advance();
        }
        Ok(Some(group))
    }
}
