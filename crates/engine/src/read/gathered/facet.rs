//! FACET over a table with several parts: sums the counts of the parts.

use std::{cmp::Reverse, time::Instant};

use super::{super::columns::indexed, GatheredTable, lie};
use crate::{
    FacetReply, FacetRequest, QueryReport, RequestPart, Result, Selection, TextQuery, Value,
    compare, encode::fit, interrupt::InterruptCheck,
};

/// The most distinct values that are counted, in one part or in all together.
pub const MAX_FACET_VALUES: u64 = if cfg!(test) { 30 } else { 1 << 16 };

impl GatheredTable {
    /// Runs FACET; `None` if there are too many values.
    pub(in crate::read) fn facet(
        &self,
        request: &FacetRequest,
        unless: &InterruptCheck,
    ) -> Result<Option<FacetReply>> {
        let started = Instant::now();
        let column = indexed(&self.schema, &request.column, RequestPart::Facet)?;
        let warning = self.warning_of(&request.selection, unless)?;
        let text = request.selection.text.clone();
        let text: Option<TextQuery> =
            text.map(|text| self.with_statistics(text, unless)).transpose()?;
        let selection = Selection { text, ..request.selection.clone() };
        let asked = FacetRequest { selection, ..request.clone() };
        let mut all: Vec<(Value, u64)> = Vec::new();
        let answers = self.parts.iter().map(|part| (part, part.facet(asked.clone(), unless)));
        let answers: Vec<_> = answers.collect();
        for (part, answer) in answers {
            let Some(values) = answer()? else { return Ok(None) };
            let mut counted = Vec::with_capacity(values.len());
            let mut rows = 0_u64;
            for (value, count) in values {
                let fitted = fit(column, &value);
                let value =
                    fitted.map_err(|_| lie(part.name(), "a value does not fit its column"))?;
                rows = rows.saturating_add(count);
                counted.push((value, count));
            }
            counted.sort_unstable_by(|a, b| compare(&a.0, &b.0));
            let is_each_once = counted.is_sorted_by(|a, b| compare(&a.0, &b.0).is_lt());
            let are_counts = counted.iter().all(|(_, count)| *count > 0) && rows <= part.rows();
            if !is_each_once || !are_counts {
                return Err(lie(part.name(), "it counted values that it cannot have"));
            }
            all.extend(counted);
            sum_equal(&mut all);
            if all.len() as u64 > MAX_FACET_VALUES {
                return Ok(None);
            }
        }
        let distinct = all.len() as u64;
        let matched = all.iter().map(|(_, count)| count).sum();
        // By descending count. Equal counts stay in the order of their values.
        all.sort_by_key(|(_, count)| Reverse(*count));
        let values = all.into_iter().skip(request.offset).take(request.limit);
        let values: Vec<(Value, u64)> = values.collect();
        let report = QueryReport {
            warning,
            segments: self.part_count() as u64,
            returned: values.len() as u64,
            total_time: started.elapsed(),
            ..QueryReport::default()
        };
        Ok(Some(FacetReply { values, distinct, matched, report }))
    }
}

/// Sorts the values, and adds up the counts of equal ones.
fn sum_equal(counted: &mut Vec<(Value, u64)>) {
    counted.sort_by(|a, b| compare(&a.0, &b.0));
    counted.dedup_by(|next, kept| {
        let is_equal = compare(&next.0, &kept.0).is_eq();
        if is_equal {
            kept.1 = kept.1.saturating_add(next.1);
        }
        is_equal
    });
}
