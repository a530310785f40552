//! Cardinality: how many distinct values the leading columns of an index have.
//!
//! Equal values are a run of an index, and two binary searches find its end. Few runs are counted. Else some documents
//! are sampled with their runs: the mean of one divided by the run length is the share of distinct values among
//! documents. Values that a larger segment has too are not counted again.

use std::cmp::{Ordering, Reverse};

use remora_index::{
    TextOrder,
    column::{Cell, Column},
    segment::SegmentIndex,
};

use super::literal::OwnedCell;
use crate::{
    Schema, TableIndex,
    indexing::{index_for, index_specs, placed_specs},
    snapshot::{SegmentView, TableView},
};

/// The most runs of a segment that are counted exactly.
const MAX_COUNTED: usize = 64;
/// The number of documents sampled in a segment with more runs.
const SAMPLES: u32 = 48;

/// The estimated number of distinct values of an index's first columns, including those of deleted rows. Exact if
/// there are few and no row is deleted. `None` if the segments lack the index.
pub(crate) fn distinct(view: &TableView, index: TableIndex, columns: usize) -> Option<u64> {
    let mut sorted = Vec::with_capacity(view.segments.len());
    for segment in &view.segments {
        sorted.push(Sorted::of(&view.schema, segment, index, columns)?);
    }
    sorted.sort_by_key(|sorted| Reverse(sorted.len));
    let mut count = 0.0;
    for (at, segment) in sorted.iter().enumerate() {
        let larger = sorted.get(..at).unwrap_or_default();
        let is_new = |values: &[OwnedCell]| larger.iter().all(|it| it.run(values).is_empty());
        count += segment.count(is_new);
    }
    Some((count.round() as u64).min(view.live_count()))
}

/// A segment in the order of some columns.
struct Sorted<'s> {
    len: u32,
    /// `None` if the order is that of the keys.
    index: Option<SegmentIndex<'s>>,
    parts: Vec<SortedColumn<'s>>,
}

struct SortedColumn<'s> {
    column: Option<&'s Column>,
    descending: bool,
    order: Option<TextOrder>,
}

impl SortedColumn<'_> {
    fn value(&self, doc: u32) -> OwnedCell {
        let cell = self.column.map_or(Cell::Null, |column| column.get(doc));
        OwnedCell::keyed(cell, self.order)
    }
}

impl<'s> Sorted<'s> {
    fn of(
        schema: &Schema,
        view: &'s SegmentView,
        index: TableIndex,
        columns: usize,
    ) -> Option<Self> {
        let (segment, len) = (&view.segment, view.segment.doc_count());
        if index == TableIndex::Key {
            let part = |position: &usize| {
                let column = schema.columns.get(*position).filter(|column| column.indexed)?;
                let column = segment.column(column.id);
                Some(SortedColumn { column, descending: false, order: None })
            };
            let parts = schema.primary_key.iter().take(columns).map(part);
            return Some(Self { len, index: None, parts: parts.collect::<Option<_>>()? });
        }
        let mut specs = placed_specs(schema).into_iter();
        let (_, spec) = specs.find(|(place, _)| *place == index)?;
        let stored = index_for(segment, &spec, &index_specs(schema))?;
        let parts = spec.parts.iter().take(columns).map(|part| SortedColumn {
            column: segment.column(part.column),
            descending: part.descending,
            order: part.order,
        });
        Some(Self { len, index: Some(stored), parts: parts.collect() })
    }

    fn doc(&self, position: u32) -> u32 {
        self.index.as_ref().map_or(position, |index| index.doc(position))
    }

    fn values(&self, position: u32) -> Vec<OwnedCell> {
        let doc = self.doc(position);
        self.parts.iter().map(|part| part.value(doc)).collect()
    }

    /// The run of these values.
    fn run(&self, values: &[OwnedCell]) -> std::ops::Range<u32> {
        let compare = |position: u32| {
            let doc = self.doc(position);
            let pairs = self.parts.iter().zip(values);
            let ordering = pairs.map(|(part, value)| {
                let ordering = part.value(doc).cmp(value);
                if part.descending { ordering.reverse() } else { ordering }
            });
            ordering.fold(Ordering::Equal, Ordering::then)
        };
        let from = |is_before: &dyn Fn(Ordering) -> bool| {
            let (mut low, mut high) = (0, self.len);
            while low < high {
                let middle = low + (high - low) / 2;
                match is_before(compare(middle)) {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        from(&Ordering::is_lt)..from(&Ordering::is_le)
    }

    /// The estimated number of values for which `is_new` is true.
    fn count(&self, is_new: impl Fn(&[OwnedCell]) -> bool) -> f64 {
        let (mut position, mut runs, mut new) = (0, 0, 0.0);
        while position < self.len && runs < MAX_COUNTED {
            let values = self.values(position);
            new += f64::from(u8::from(is_new(&values)));
            // Advances even if the index is damaged, so that the loop ends.
            position = self.run(&values).end.max(position + 1);
            runs += 1;
        }
        if position >= self.len {
            return new;
        }
        let samples = SAMPLES.min(self.len);
        let mut share = 0.0;
        for sample in 0..samples {
            let place = (u64::from(self.len) * u64::from(2 * sample + 1)) / u64::from(2 * samples);
            let values = self.values(place as u32);
            let run = self.run(&values);
            if is_new(&values) {
                share += 1.0 / f64::from((run.end - run.start).max(1));
            }
        }
        share * f64::from(self.len) / f64::from(samples)
    }
}
