//! FACET: counts the rows of a selection for each value of a column.

use std::time::Instant;

use rustc_hash::FxHashMap;

use remora_index::{DocSet, column::Cell};

use super::{columns::indexed, filter::ValueTest, literal::OwnedCell, select::Plan};
use crate::{
    ColumnDef, Error, FacetReply, FacetRequest, Position, QueryReport, RequestPart, Result,
    encode::decode_cell,
    interrupt::{InterruptCheck, InterruptTicker},
    snapshot::{SegmentView, TableView},
};

/// The most bytes of the values of a facet with a limit.
pub(crate) const MAX_FACET_BYTES: usize = 16 << 20;

/// The limits within which a facet counts.
#[derive(Clone, Copy)]
pub(crate) struct FacetLimit {
    /// The most distinct values.
    pub values: u64,
    /// The most bytes of values that take memory, such as texts.
    pub bytes: usize,
}

impl FacetLimit {
    const NONE: Self = Self { values: u64::MAX, bytes: usize::MAX };
}

/// Runs FACET. It ends when `unless` says so.
pub(crate) fn facet(
    view: &TableView,
    request: &FacetRequest,
    moment: (Position, &InterruptCheck),
) -> Result<FacetReply> {
    // A facet without a limit always has a reply.
    Ok(facet_within(view, request, FacetLimit::NONE, moment)?.unwrap_or_default())
}

/// Runs FACET within limits; `None` as soon as a limit is exceeded.
pub(crate) fn facet_within(
    view: &TableView,
    request: &FacetRequest,
    limit: FacetLimit,
    (position, unless): (Position, &InterruptCheck),
) -> Result<Option<FacetReply>> {
    let started = Instant::now();
    let column = indexed(&view.schema, &request.column, RequestPart::Facet)?;
    let plan = Plan::new(view, &request.selection, unless)?;
    let mut tally = Tally::new(limit, unless);
    if request.values_only && tally.take_values(column, view, &plan).is_some() {
        if !tally.is_within()? {
            return Ok(None);
        }
        let (matched, report) = plan.count(view, position, started)?;
        return reply(tally, column, request, (started, matched, report)).map(Some);
    }
    let selected = plan.run(view, position, started)?;
    tally = Tally::new(limit, unless);
    for (docs, segment) in selected.docs.into_iter().zip(&view.segments) {
        tally.add(column, segment, &docs.into_live(segment));
        if !tally.is_within()? {
            return Ok(None);
        }
    }
    reply(tally, column, request, (started, selected.total, selected.report)).map(Some)
}

/// Makes the reply from the counts.
fn reply(
    tally: Tally,
    column: &ColumnDef,
    request: &FacetRequest,
    (started, matched, mut report): (Instant, u64, QueryReport),
) -> Result<FacetReply> {
    let unless = tally.unless;
    let counts = tally.into_counts();
    unless.check()?;
    let distinct = counts.len() as u64;
    let values = page(counts, request).into_iter();
    let values: Vec<_> =
        values.map(|(cell, count)| (decode_cell(column.kind, cell.as_cell()), count)).collect();
    report.returned = values.len() as u64;
    report.total_time = started.elapsed();
    Ok(FacetReply { values, distinct, matched, report })
}

/// Counts by value, over segments.
struct Tally<'u> {
    nulls: u64,
    ordinals: FxHashMap<u64, u64>,
    bytes: FxHashMap<Vec<u8>, u64>,
    /// Bytes of the keys of `bytes`.
    held_bytes: usize,
    limit: FacetLimit,
    unless: &'u InterruptCheck,
    ticker: InterruptTicker,
    /// Why counting stopped.
    ended: Option<Error>,
}

impl<'u> Tally<'u> {
    fn new(limit: FacetLimit, unless: &'u InterruptCheck) -> Self {
        Self {
            nulls: 0,
            ordinals: FxHashMap::default(),
            bytes: FxHashMap::default(),
            held_bytes: 0,
            limit,
            unless,
            ticker: InterruptTicker::new(unless),
            ended: None,
        }
    }

    /// Whether the limits were kept so far.
    ///
    /// # Errors
    /// [`Error::Ended`] if it was interrupted.
    fn is_within(&mut self) -> Result<bool> {
        self.ended.take().map_or(Ok(()), Err)?;
        self.unless.check()?;
        Ok(!self.is_over())
    }

    fn is_over(&self) -> bool {
        let values = (self.ordinals.len() + self.bytes.len()) as u64 + u64::from(self.nulls > 0);
        values > self.limit.values || self.held_bytes > self.limit.bytes
    }

    /// Adds the values of a column without reading its documents, from the condition on the column alone. `None`
    /// if documents must be read: some are deleted, the condition is about other columns, or a segment has no
    /// dictionary of the column.
    fn take_values(&mut self, column: &ColumnDef, view: &TableView, plan: &Plan) -> Option<()> {
        if plan.expression.is_some() {
            return None;
        }
        let mut test = match &plan.condition {
            Some(condition) => Some(ValueTest::new(condition, column.id)?),
            None => None,
        };
        for segment in &view.segments {
            let values = match segment.segment.column(column.id) {
                _ if segment.deleted.is_some() => return None,
                Some(column) => column.distinct_values()?,
                None => return None,
            };
            for cell in values {
                if self.ended.is_some() {
                    return Some(());
                }
                if test.as_mut().is_none_or(|test| test.holds(cell)) {
                    self.add_cell(cell, 1);
                }
            }
        }
        Some(())
    }

    fn add(&mut self, column: &ColumnDef, view: &SegmentView, docs: &DocSet) {
        match view.segment.column(column.id) {
            Some(column) => column.count_values(docs, &mut |cell, count| {
                self.add_cell(cell, u64::from(count));
            }),
            None => self.nulls += u64::from(docs.count()),
        }
    }

    /// Adds a value. Does nothing once counting was interrupted or a limit exceeded.
    fn add_cell(&mut self, cell: Cell<'_>, count: u64) {
        if self.ended.is_some() || self.is_over() {
            return;
        }
        self.ended = self.ticker.step().err();
        match cell {
            Cell::Null => self.nulls += count,
            Cell::Ordinal(ordinal) => *self.ordinals.entry(ordinal).or_default() += count,
            Cell::Bytes(bytes) => match self.bytes.get_mut(bytes) {
                Some(sum) => *sum += count,
                None => {
                    self.held_bytes = self.held_bytes.saturating_add(bytes.len());
                    self.bytes.insert(bytes.to_vec(), count);
                }
            },
        }
    }

    fn into_counts(self) -> Vec<(OwnedCell, u64)> {
        let nulls = (self.nulls > 0).then_some((OwnedCell::Null, self.nulls));
        let ordinals =
            self.ordinals.into_iter().map(|(ordinal, count)| (OwnedCell::Ordinal(ordinal), count));
        let bytes = self.bytes.into_iter().map(|(bytes, count)| (OwnedCell::Bytes(bytes), count));
        nulls.into_iter().chain(ordinals).chain(bytes).collect()
    }
}

/// The values of the page: by count descending, ties by value ascending.
fn page(mut counts: Vec<(OwnedCell, u64)>, request: &FacetRequest) -> Vec<(OwnedCell, u64)> {
    let by_rank =
        |a: &(OwnedCell, u64), b: &(OwnedCell, u64)| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0));
    let wanted = request.offset.saturating_add(request.limit);
    if wanted < counts.len() {
        counts.select_nth_unstable_by(wanted, by_rank);
        counts.truncate(wanted);
    }
    counts.sort_unstable_by(by_rank);
    counts.drain(..request.offset.min(counts.len()));
    counts
}
