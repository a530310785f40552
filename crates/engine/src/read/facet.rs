//! FACET: how many rows of a selection have each value of a column.

use std::time::Instant;

use rustc_hash::FxHashMap;

use remora_index::{DocSet, column::Cell};

use super::{columns::indexed, literal::OwnedCell, select::Plan};
use crate::{
    ColumnDef, FacetReply, FacetRequest, Position, RequestPart, Result,
    encode::decode_cell,
    snapshot::{SegmentView, TableView},
};

/// FACET.
pub(crate) fn facet(
    view: &TableView,
    request: &FacetRequest,
    position: Position,
) -> Result<FacetReply> {
    let started = Instant::now();
    let column = indexed(&view.schema, &request.column, RequestPart::Facet)?;
    let plan = Plan::new(view, &request.selection)?;
    let mut selected = plan.run(view, position, started)?;
    let mut tally = Tally::default();
    for (docs, segment) in selected.docs.into_iter().zip(&view.segments) {
        tally.add(column, segment, &docs.into_live(segment));
    }
    let counts = tally.into_counts();
    let distinct = counts.len() as u64;
    let values = page(counts, request).into_iter();
    let values: Vec<_> =
        values.map(|(cell, count)| (decode_cell(column.kind, cell.as_cell()), count)).collect();
    selected.report.returned = values.len() as u64;
    selected.report.total_time = started.elapsed();
    Ok(FacetReply { values, distinct, matched: selected.total, report: selected.report })
}

/// Counts by value, over segments.
#[derive(Default)]
struct Tally {
    nulls: u64,
    ordinals: FxHashMap<u64, u64>,
    bytes: FxHashMap<Vec<u8>, u64>,
}

impl Tally {
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
