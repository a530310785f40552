//! Counts the rows for each value at an indexed path, from the index alone: the sorted values of the segments are
//! merged.

use remora_index::{DocSet, paths::PathEntries};

use super::{columns::path_place, docs::Docs, filter::CompiledFilter};
use crate::{
    PathFacetReply, PathFacetRequest, PathValue, Result,
    encode::{AFTER_SCALARS, scalar_of},
    interrupt::{InterruptCheck, InterruptTicker},
    snapshot::TableView,
};

/// How many values beyond those of the reply are kept before the rarest are dropped.
const SLACK: usize = 1_024;

/// The values of one segment, in order.
struct Values<'s> {
    entries: PathEntries<'s>,
    /// The selected documents.
    docs: DocSet,
    /// The next value that a selected document has, and how many have it.
    value: Vec<u8>,
    count: u64,
    /// The first entry behind them.
    ahead: Option<(Vec<u8>, u32)>,
}

/// The most frequent values; `None` if the path is not indexed in all segments.
pub(super) fn path_facet(
    view: &TableView,
    asked: &PathFacetRequest,
    unless: &InterruptCheck,
) -> Result<Option<PathFacetReply>> {
    let place = path_place(&view.schema, &asked.column, &asked.path);
    let Some(spec) = place.and_then(|place| view.paths.get(place)) else { return Ok(None) };
    let condition =
        asked.filter.as_ref().map(|filter| CompiledFilter::new(view, filter)).transpose()?;
    let mut ticker = InterruptTicker::new(unless);
    let mut open = Vec::with_capacity(view.segments.len());
    for segment in &view.segments {
        let Some(index) = segment.segment.path(spec) else { return Ok(None) };
        let docs = match &condition {
            Some(condition) => Docs::Some(condition.filtered(&segment.segment, Docs::Every)?),
            None => Docs::Every,
        };
        let (docs, entries) = (docs.into_live(segment), index.entries()?);
        let mut values = Values { entries, docs, value: Vec::new(), count: 0, ahead: None };
        values.ahead = values.entry()?;
        if values.advance(&mut ticker)? {
            open.push(values);
        }
    }
    let (mut counts, mut distinct) = (Vec::new(), 0);
    while let Some(least) = open.iter().map(|values| &values.value).min().cloned() {
        let mut count = 0;
        for values in open.iter_mut().filter(|values| values.value == least) {
            count += values.count;
            values.advance(&mut ticker)?;
        }
        open.retain(|values| values.count > 0);
        distinct += 1;
        counts.push((least, count));
        if counts.len() / 2 > asked.limit.saturating_add(SLACK) {
            keep_most(&mut counts, asked.limit);
        }
    }
    keep_most(&mut counts, asked.limit);
    let value = |(key, count): (Vec<u8>, u64)| Some((scalar_of(&key)?, count));
    let values: Vec<(PathValue, u64)> = counts.into_iter().filter_map(value).collect();
    Ok(Some(PathFacetReply { values, distinct }))
}

impl Values<'_> {
    /// Goes to the next value that a selected document has; false at the end of the scalars, where the count is 0.
    fn advance(&mut self, ticker: &mut InterruptTicker) -> Result<bool> {
        self.count = 0;
        while let Some((value, doc)) = self.ahead.take() {
            ticker.step()?;
            self.value = value;
            self.count += u64::from(self.docs.contains(doc));
            while let Some((value, doc)) = self.entries.next()? {
                if value != self.value {
                    self.ahead = (value < AFTER_SCALARS).then(|| (value.to_vec(), doc));
                    break;
                }
                ticker.step()?;
                self.count += u64::from(self.docs.contains(doc));
            }
            if self.count > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first entry, if it is of a scalar.
    fn entry(&mut self) -> Result<Option<(Vec<u8>, u32)>> {
        let entry = self.entries.next()?;
        Ok(entry.filter(|(value, _)| *value < AFTER_SCALARS).map(|(it, doc)| (it.to_vec(), doc)))
    }
}

/// Sorts by count, the greatest first, then by value, and keeps the first ones.
fn keep_most(counts: &mut Vec<(Vec<u8>, u64)>, limit: usize) {
    counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(limit);
}
