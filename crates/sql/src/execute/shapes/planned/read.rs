//! Reads the tables of a cached plan. Of the second side of a join only rows with keys of the first side are read.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, RecordBatch, UInt32Array},
        compute::take,
        row::{RowConverter, SortField},
    },
    error::Result as PlanResult,
    physical_expr::{ScalarFunctionExpr, expressions::Column},
};
use remora_engine::Filter;
use rustc_hash::FxHashSet;

use super::{
    expressions::{BatchExpression, ScanOrigin, evaluated, of_columns, one_row},
    join::{Integers, joined},
    planned_run::PlannedRun,
    steps::BatchStep,
    trace::{KeysRead, ReadRows},
    tree::{Join, PlanNode, PlanSide, RowSource, Union, moved},
};
use crate::scan::{CachedRows, ScanLimits, joined as one_batch};

/// If more rows than this match, the first rows in an order are read by an index of that order.
pub(super) const MANY_ROWS: u64 = 64;
/// The assumed number of rows with one value.
const ROWS_OF_A_VALUE: u64 = 8;

/// The reading of all tables in one run.
pub(super) struct PlanReader<'a> {
    asked: &'a PlannedRun,
    most: ScanLimits,
    /// The rows of a scan that were read already.
    given: Option<(usize, RecordBatch)>,
    scans: Vec<Opened<'a>>,
    /// The rows of the current round of each recursion.
    rounds: Vec<Option<RecordBatch>>,
}

/// A scan with its own conditions only.
struct Opened<'a> {
    /// `None` if there are too many rows, if they were read already, or if it has no conditions.
    rows: Option<CachedRows<'a>>,
    /// The number of its rows; `u64::MAX` if there are too many.
    count: u64,
}

/// The values that an expression must have: a filter from the other side of a join.
struct JoinKeyFilter {
    of: BatchExpression,
    values: ArrayRef,
    /// The column of another scan that the values come from, if the run is traced.
    from: ScanOrigin,
}

impl<'a> PlanReader<'a> {
    /// Opens the scans below `of`. `given` are the rows of one scan that were read already.
    pub(super) fn new(
        asked: &'a PlannedRun,
        of: &RowSource,
        most: ScanLimits,
        given: Option<(usize, RecordBatch)>,
    ) -> PlanResult<Self> {
        let rounds = vec![None; asked.plan.recursions];
        let mut this = Self { asked, most, given, scans: Vec::new(), rounds };
        let unread = || Opened { rows: None, count: u64::MAX };
        this.scans.resize_with(asked.plan.reads.len(), unread);
        for scan in of.scans() {
            let opened = match &this.given {
                Some((given, _)) if *given == scan => Opened { rows: None, count: 0 },
                _ => this.opened(scan)?,
            };
            if let Some(place) = this.scans.get_mut(scan) {
                *place = opened;
            }
        }
        Ok(this)
    }

    /// The smallest number of rows among the tables.
    pub(super) fn fewest(&self) -> u64 {
        self.scans.iter().map(|scan| scan.count).min().unwrap_or(u64::MAX)
    }

    /// The number of rows of a scan that satisfy its conditions; `u64::MAX` if it is not known.
    pub(super) fn count_of(&self, scan: usize) -> u64 {
        self.scans.get(scan).map_or(u64::MAX, |scan| scan.count)
    }

    /// The rows of a join or a union; `None` if that exceeds the limits.
    pub(super) fn all(&mut self, of: &RowSource) -> PlanResult<Option<RecordBatch>> {
        if let Some(trace) = &self.asked.trace {
            trace.truncate(usize::from(self.given.is_some()));
        }
        match of {
            // The caller reads a scan batch by batch.
            RowSource::Scan(_) => Ok(None),
            RowSource::Join(join) => self.joined(join, &[]),
            RowSource::Union(union) => self.united(union, &[]),
            RowSource::Recursion(recursion) => recursion.rows(self),
            RowSource::Round(_) => Ok(None),
            RowSource::OneRow => one_row().map(Some),
        }
    }

    /// The run whose tables it reads.
    pub(super) fn asked(&self) -> &'a PlannedRun {
        self.asked
    }

    /// Sets the rows that the blocks of a recursion read.
    pub(super) fn begin_round(&mut self, recursion: usize, rows: RecordBatch) {
        if let Some(round) = self.rounds.get_mut(recursion) {
            *round = Some(rows);
        }
    }

    fn opened(&self, scan: usize) -> PlanResult<Opened<'a>> {
        let has_own = self.asked.filter(scan).is_some() || self.asked.text(scan).is_some();
        if let Some(read) = self.asked.plan.reads.get(scan)
            && !has_own
            && read.scan.is_of_all()
        {
            // Mostly it is read by keys of another table, so it is opened when these are known.
            let rows = read.scan.row_count(&self.asked.reader)?;
            let count = if rows > self.most.documents { u64::MAX } else { rows };
            return Ok(Opened { rows: None, count });
        }
        let rows = self.open(scan, Vec::new())?;
        let count = rows.as_ref().map_or(u64::MAX, CachedRows::rows);
        Ok(Opened { rows, count })
    }

    fn open(&self, scan: usize, more: Vec<Filter>) -> PlanResult<Option<CachedRows<'a>>> {
        let Some(read) = self.asked.plan.reads.get(scan) else { return Ok(None) };
        let filter = Filter::all_of(more.into_iter().chain(self.asked.filter(scan)).collect());
        let condition = self.asked.condition(scan, filter);
        read.scan.batches(&self.asked.reader, condition, None, self.asked.zone.clone(), self.most)
    }

    /// The rows of a part after its steps; `None` if that exceeds the limits.
    pub(super) fn part(&mut self, part: &PlanNode) -> PlanResult<Option<RecordBatch>> {
        self.rows(part, &[])
    }

    fn rows(
        &mut self,
        part: &PlanNode,
        wanted: &[JoinKeyFilter],
    ) -> PlanResult<Option<RecordBatch>> {
        let below = wanted.iter().filter_map(|wanted| wanted.below(part));
        let below: Vec<JoinKeyFilter> = below.collect();
        let by_row = part.steps.iter().take_while(|step| step.is_by_row()).count();
        let (batch, done) = match &part.of {
            RowSource::Scan(scan) => match self.first_rows(part)? {
                Some((batch, done)) => (Some(batch), done),
                None => {
                    let steps = part.steps.get(..by_row).unwrap_or_default();
                    (self.scanned(*scan, &below, steps)?, by_row)
                }
            },
            RowSource::Join(join) => (self.joined(join, &below)?, 0),
            RowSource::Union(union) => (self.united(union, &below)?, 0),
            RowSource::Recursion(recursion) => (recursion.rows(self)?, 0),
            RowSource::Round(number) => (self.rounds.get(*number).cloned().flatten(), 0),
            RowSource::OneRow => (Some(one_row()?), 0),
        };
        match batch {
            Some(batch) => self.asked.rest_of(part, batch, done),
            None => Ok(None),
        }
    }

    /// The first rows that a part needs of its scan, sorted and cut, and the number of steps done; `None` if it needs
    /// others, if few rows match anyway, or if they exceed the engine's limits of a page.
    pub(super) fn first_rows(&self, part: &PlanNode) -> PlanResult<Option<(RecordBatch, usize)>> {
        let (Some(first), RowSource::Scan(scan)) = (&part.first, &part.of) else { return Ok(None) };
        let Some(read) = self.asked.plan.reads.get(*scan) else { return Ok(None) };
        if self.count_of(*scan) <= MANY_ROWS {
            return Ok(None);
        }
        let started = self.asked.started();
        let (asked, filter) = (self.asked, self.asked.filter(*scan));
        let page = (first.order.as_slice(), first.count);
        let condition = asked.condition(*scan, filter.clone());
        let found = read.scan.first(&asked.reader, condition, page, &asked.zone)?;
        let Some(found) = found else { return Ok(None) };
        let (count, is_all) = (found.num_rows() as u64, found.num_rows() < first.count);
        let (mark, done) = (asked.context.warnings.mark(), first.sort + 2);
        let (before, cut) = part.steps.get(..done).unwrap_or_default().split_at(first.sort + 1);
        let Some(sorted) = asked.through(before, found)? else { return Ok(None) };
        if !is_all && sorted.num_rows() < first.count {
            // Conditions above the scan left out some of the first rows.
            asked.context.warnings.forget_since(mark);
            return Ok(None);
        }
        if let Some(trace) = &asked.trace {
            let text = asked.text(*scan).cloned();
            let page = Some((first.order.clone(), first.count));
            trace.push(ReadRows { text, page, ..ReadRows::of(*scan, filter) });
            asked.has_read(*scan, count, started);
        }
        Ok(asked.through(cut, sorted)?.map(|batch| (batch, done)))
    }

    /// Records how a scan is read, if the run is traced.
    fn note(&self, scan: usize, wanted: &[JoinKeyFilter]) {
        let (Some(trace), Some(read)) = (&self.asked.trace, self.asked.plan.reads.get(scan)) else {
            return;
        };
        let text = self.asked.text(scan).cloned();
        let mut noted = ReadRows { text, ..ReadRows::of(scan, self.asked.filter(scan)) };
        for it in wanted {
            let Some(filter) = read.scan.one_of(&it.of, &it.values) else { continue };
            let column = it.of.downcast_ref::<Column>();
            let place = column.or_else(|| {
                let call = it.of.downcast_ref::<ScalarFunctionExpr>()?;
                call.args().first()?.downcast_ref::<Column>()
            });
            let count = it.values.len() as u64;
            let place = place.map(Column::index);
            noted.keys.push(KeysRead { filter, place, from: it.from, count });
        }
        trace.push(noted);
    }

    /// The scan column that an expression is, if the run is traced.
    fn origin(&self, part: &PlanNode, expression: &BatchExpression) -> ScanOrigin {
        self.asked.trace.as_ref()?;
        let scans = self.asked.plan.reads.iter();
        let widths: Vec<usize> = scans.map(|read| read.scan.schema().fields().len()).collect();
        let column = expression.downcast_ref::<Column>()?;
        part.origins(&widths).get(column.index()).copied().flatten()
    }

    /// Reads a scan and applies the steps that work row by row.
    fn scanned(
        &mut self,
        scan: usize,
        wanted: &[JoinKeyFilter],
        steps: &[BatchStep],
    ) -> PlanResult<Option<RecordBatch>> {
        let Some(read) = self.asked.plan.reads.get(scan) else { return Ok(None) };
        let started = self.asked.started();
        let rows: Box<dyn Iterator<Item = PlanResult<RecordBatch>>> = match &self.given {
            Some((given, batch)) if *given == scan => Box::new(std::iter::once(Ok(batch.clone()))),
            _ => {
                let more = wanted.iter().filter_map(|it| read.scan.one_of(&it.of, &it.values));
                let more: Vec<Filter> = more.collect();
                let opened = self.scans.get_mut(scan).and_then(|opened| opened.rows.take());
                let rows = match (opened, more.is_empty()) {
                    (Some(opened), true) => Some(opened),
                    _ => self.open(scan, more)?,
                };
                let Some(rows) = rows else { return Ok(None) };
                self.note(scan, wanted);
                Box::new(rows)
            }
        };
        let mut schema = Arc::clone(read.scan.schema());
        for step in steps {
            match step {
                BatchStep::Project(_, projected) => schema = Arc::clone(projected),
                BatchStep::SubqueryColumns(beside) => schema = Arc::clone(beside.schema()),
                _ => {}
            }
        }
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for batch in rows {
            let mut batch = batch?;
            for step in steps {
                let Some(made) = self.asked.apply(step, &batch)? else { return Ok(None) };
                batch = made;
            }
            bytes += batch.get_array_memory_size();
            if bytes > self.most.bytes {
                return Ok(None);
            }
            self.asked.check()?;
            batches.push(batch);
        }
        if !matches!(&self.given, Some((given, _)) if *given == scan) {
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            self.asked.has_read(scan, rows as u64, started);
        }
        one_batch(&schema, batches).map(Some)
    }

    fn united(
        &mut self,
        union: &Union,
        wanted: &[JoinKeyFilter],
    ) -> PlanResult<Option<RecordBatch>> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for part in &union.parts {
            let Some(batch) = self.rows(part, wanted)? else { return Ok(None) };
            bytes += batch.get_array_memory_size();
            if bytes > self.most.bytes {
                return Ok(None);
            }
            self.asked.check()?;
            let rows = batch.num_rows();
            batches.push(of_columns(&union.schema, batch.columns().to_vec(), rows)?);
        }
        one_batch(&union.schema, batches).map(Some)
    }

    fn joined(&mut self, join: &Join, wanted: &[JoinKeyFilter]) -> PlanResult<Option<RecordBatch>> {
        let first = join.kept().or_else(|| self.side_of_given(join)).unwrap_or_else(|| {
            match self.count_of_side(join, PlanSide::Left, wanted)
                <= self.count_of_side(join, PlanSide::Right, wanted)
            {
                true => PlanSide::Left,
                false => PlanSide::Right,
            }
        });
        let (one, other) = match first {
            PlanSide::Left => (&join.left, &join.right),
            PlanSide::Right => (&join.right, &join.left),
        };
        let of_first = wanted.iter().filter_map(|it| it.of_side(join, first)).collect::<Vec<_>>();
        let Some(read) = self.rows(one, &of_first)? else { return Ok(None) };
        if read.num_rows() == 0 {
            // Every result row comes from a row of the first side, so there are none.
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&join.schema))));
        }
        let second = if first == PlanSide::Left { PlanSide::Right } else { PlanSide::Left };
        let mut of_second: Vec<JoinKeyFilter> =
            wanted.iter().filter_map(|it| it.of_side(join, second)).collect();
        let most_keys = self.count(other, &[]).min(self.most.documents);
        for (of_left, of_right) in &join.on {
            let (known, sought) = match first {
                PlanSide::Left => (of_left, of_right),
                PlanSide::Right => (of_right, of_left),
            };
            let values = distinct(&evaluated(known, &read, self.asked.asked())?)?;
            if (values.len() as u64) < most_keys {
                let from = self.origin(one, known);
                of_second.push(JoinKeyFilter { of: Arc::clone(sought), values, from });
            }
        }
        let Some(beside) = self.rows(other, &of_second)? else { return Ok(None) };
        self.asked.check()?;
        let sides = if first == PlanSide::Left { (&read, &beside) } else { (&beside, &read) };
        let most = usize::try_from(self.most.documents).unwrap_or(usize::MAX);
        let made = joined(join, sides, first, most, self.asked.asked())?;
        Ok(made.filter(|made| made.get_array_memory_size() <= self.most.bytes))
    }

    /// The side of the rows that are given: joined first, they keep their order.
    fn side_of_given(&self, join: &Join) -> Option<PlanSide> {
        let (given, _) = self.given.as_ref()?;
        let has_given = |part: &PlanNode| part.of.scans().contains(given);
        match (has_given(&join.left), has_given(&join.right)) {
            (true, _) => Some(PlanSide::Left),
            (_, true) => Some(PlanSide::Right),
            _ => None,
        }
    }

    /// An estimate of the rows read for a part before its steps; a LIMIT among these counts.
    fn count(&self, part: &PlanNode, wanted: &[JoinKeyFilter]) -> u64 {
        let below: Vec<JoinKeyFilter> =
            wanted.iter().filter_map(|wanted| wanted.below(part)).collect();
        let count = match &part.of {
            RowSource::Scan(scan) => {
                let own = self.scans.get(*scan).map_or(0, |scan| scan.count);
                let values = below.iter().map(|wanted| wanted.values.len() as u64);
                values.map(|values| values.saturating_mul(ROWS_OF_A_VALUE)).fold(own, u64::min)
            }
            RowSource::OneRow => 1,
            // It is not known, but its rows are all needed.
            RowSource::Recursion(_) => 0,
            RowSource::Round(number) => {
                let rows = self.rounds.get(*number).and_then(Option::as_ref);
                rows.map_or(0, |rows| rows.num_rows() as u64)
            }
            RowSource::Union(union) => {
                let counts = union.parts.iter().map(|part| self.count(part, &below));
                counts.fold(0, u64::saturating_add)
            }
            RowSource::Join(join) => match join.kept() {
                Some(side) => self.count_of_side(join, side, &below),
                None => {
                    let left = self.count_of_side(join, PlanSide::Left, &below);
                    left.min(self.count_of_side(join, PlanSide::Right, &below))
                }
            },
        };
        count.min(part.most_rows())
    }

    fn count_of_side(&self, join: &Join, side: PlanSide, wanted: &[JoinKeyFilter]) -> u64 {
        let of_side: Vec<JoinKeyFilter> =
            wanted.iter().filter_map(|it| it.of_side(join, side)).collect();
        let part = if side == PlanSide::Left { &join.left } else { &join.right };
        self.count(part, &of_side)
    }
}

impl JoinKeyFilter {
    /// The same filter on the input of the part's steps; `None` if it cannot be pushed down through them.
    fn below(&self, part: &PlanNode) -> Option<Self> {
        Some(Self { of: part.below(&self.of)?, values: Arc::clone(&self.values), from: self.from })
    }

    /// The same filter on one side of a join; `None` if the expression does not belong to that side.
    fn of_side(&self, join: &Join, side: PlanSide) -> Option<Self> {
        let column = |place| {
            let (of, place) = join.side_of(place)?;
            (of == side).then(|| Arc::new(Column::new("", place)) as BatchExpression)
        };
        let values = Arc::clone(&self.values);
        Some(Self { of: moved(&self.of, &column)?, values, from: self.from })
    }
}

/// The distinct values, without NULL.
fn distinct(values: &ArrayRef) -> PlanResult<ArrayRef> {
    let firsts: Vec<u32> = match Integers::of(values) {
        Some(integers) => {
            let mut known: FxHashSet<u64> = FxHashSet::default();
            let new = |row: &u32| integers.get(*row as usize).is_some_and(|it| known.insert(it));
            (0..values.len() as u32).filter(new).collect()
        }
        None => {
            let fields = vec![SortField::new(values.data_type().clone())];
            let rows = RowConverter::new(fields)?.convert_columns(std::slice::from_ref(values))?;
            let mut known: FxHashSet<&[u8]> = FxHashSet::default();
            let new = |row: &u32| {
                let row = *row as usize;
                values.is_valid(row) && known.insert(rows.row(row).data())
            };
            (0..values.len() as u32).filter(new).collect()
        }
    };
    if firsts.len() == values.len() {
        return Ok(Arc::clone(values));
    }
    Ok(take(values, &UInt32Array::from(firsts), None)?)
}
