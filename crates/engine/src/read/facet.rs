//! FACET: counts the rows of a selection for each value of a column.

use std::time::Instant;

use rustc_hash::FxHashMap;

use remora_index::{DocSet, column::Cell};

use super::{columns::indexed, filter::ValueTest, literal::OwnedCell, select::Plan};
use crate::{
    ColumnDef, FacetReply, FacetRequest, Position, QueryReport, RequestPart, Result,
    encode::decode_cell,
    interrupt::InterruptCheck,
    snapshot::{SegmentView, TableView},
};

/// Runs FACET.
pub(crate) fn facet(
    view: &TableView,
    request: &FacetRequest,
    (position, unless): (Position, &InterruptCheck),
) -> Result<FacetReply> {
    let started = Instant::now();
    let column = indexed(&view.schema, &request.column, RequestPart::Facet)?;
    let plan = Plan::new(view, &request.selection, unless)?;
    let mut tally = Tally::default();
    if request.values_only && tally.take_values(column, view, &plan).is_some() {
        let (matched, report) = plan.count(view, position, started)?;
        return Ok(reply(tally, column, request, (started, matched, report)));
    }
    let selected = plan.run(view, position, started)?;
    tally = Tally::default();
    for (docs, segment) in selected.docs.into_iter().zip(&view.segments) {
        tally.add(column, segment, &docs.into_live(segment));
    }
    Ok(reply(tally, column, request, (started, selected.total, selected.report)))
}

/// Makes the reply from the counts.
fn reply(
    tally: Tally,
    column: &ColumnDef,
    request: &FacetRequest,
    (started, matched, mut report): (Instant, u64, QueryReport),
) -> FacetReply {
    let counts = tally.into_counts();
    let distinct = counts.len() as u64;
    let values = page(counts, request).into_iter();
    let values: Vec<_> =
        values.map(|(cell, count)| (decode_cell(column.kind, cell.as_cell()), count)).collect();
    report.returned = values.len() as u64;
    report.total_time = started.elapsed();
    FacetReply { values, distinct, matched, report }
}

/// Counts by value, over segments.
#[derive(Default)]
struct Tally {
    nulls: u64,
    ordinals: FxHashMap<u64, u64>,
    bytes: FxHashMap<Vec<u8>, u64>,
}

impl Tally {
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

    fn add_cell(&mut self, cell: Cell<'_>, count: u64) {
        match cell {
            Cell::Null => self.nulls += count,
            Cell::Ordinal(ordinal) => *self.ordinals.entry(ordinal).or_default() += count,
            Cell::Bytes(bytes) => match self.bytes.get_mut(bytes) {
                Some(sum) => *sum += count,
                None => {
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
