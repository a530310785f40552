//! The first rows of an order among those that a text condition finds. The text index finds a superset; conditions on
//! columns and texts that must be read are tested in the order, until the page is full.

use std::mem;

use remora_index::DocSet;

use super::{
    candidates::FoundByKeys,
    docs::Docs,
    index_order::IndexOrder,
    matching::Unread,
    order::{DocumentAddress, Order, SegmentOrder},
    page,
    select::Plan,
};
use crate::{Result, SearchRequest, snapshot::TableView};

/// After rows that do not fill the page, this many times as many rows are tried.
const MORE: usize = 4;
/// Unless no text is read, a condition is tested in the order on at most one in this many rows. Then it is evaluated
/// segment by segment.
const TESTED_SHARE: u64 = 16;
/// At most so many texts are read in the order, or one in [`TESTED_SHARE`] of the rows.
const FEW_READ: u64 = if cfg!(test) { 64 } else { 4_096 };
/// The most rows that are put in order.
const MAX_ORDERED: usize = 1 << 20;

/// The first rows.
pub(super) struct TextPage {
    pub places: Vec<DocumentAddress>,
    /// The number of rows examined.
    pub looked_at: u64,
    /// The number of matching rows, as far as they were looked for.
    pub matching: u64,
    /// The index with the order, if there is one, and whether it was walked.
    pub index: Option<IndexOrder>,
    pub is_walked: bool,
    /// The keys and indexes that found the rows with the text.
    pub found: FoundByKeys,
}

/// The rows that the text index finds.
struct Untested<'p> {
    view: &'p TableView,
    plan: &'p Plan,
    found: Vec<Unread>,
    docs: Vec<Docs>,
    /// Whether the condition on columns is still to be tested.
    has_condition: bool,
    /// The keys and indexes that found the rows.
    by: FoundByKeys,
}

/// The rows of a page in an order without scores; `None` without a text condition, or if too many rows would be put in
/// order.
pub(super) fn text_page(
    view: &TableView,
    plan: &Plan,
    order: &Order,
    request: &SearchRequest,
) -> Result<Option<TextPage>> {
    let (Some(_), Some(wanted)) = (&plan.expression, page::wanted(request)) else {
        return Ok(None);
    };
    let mut untested = Untested::new(view, plan)?;
    let total = untested.count();
    let most_read = (total / TESTED_SHARE).max(FEW_READ).max(wanted.saturating_mul(MORE) as u64);
    let find = |condition| {
        let is_by_value = !order.is_by_key();
        is_by_value
            .then(|| IndexOrder::find(view, order, condition, request.selection.indexes.order))
    };
    // Along an index that the condition narrows, rows are missing that do not satisfy it.
    let tested = plan.condition.as_ref().filter(|_| !untested.has_condition);
    let mut index = find(tested).flatten();
    let orders = view.segments.iter().map(|segment| SegmentOrder::new(order, segment, None));
    let orders: Vec<SegmentOrder<'_>> = orders.collect();
    let (mut places, mut tried, mut most): (Vec<DocumentAddress>, _, _) = (Vec::new(), 0, wanted);
    let (mut looked_at, mut is_walked);
    loop {
        plan.unless.check()?;
        let asked = SearchRequest { limit: most, ..SearchRequest::default() };
        let first = match order.is_by_key() {
            true => {
                is_walked = false;
                page::by_key(view, &untested.docs, order.key_descending, None, &asked)
            }
            false => {
                let index = index.as_ref();
                let first = page::by_value(view, &untested.docs, &orders, index, None, &asked);
                is_walked = first.1;
                first.0
            }
        };
        looked_at = first.len() as u64;
        untested.keep(first.get(tried..).unwrap_or_default(), &mut places)?;
        if places.len() >= wanted || first.len() < most {
            break;
        }
        (tried, most) = (first.len(), most.saturating_mul(MORE));
        if untested.has_condition && most as u64 > total / TESTED_SHARE {
            untested.satisfy()?;
            index = find(plan.condition.as_ref()).flatten();
            places.clear();
            (tried, most) = (0, wanted);
        } else if most > MAX_ORDERED || untested.reads_texts() && most as u64 > most_read {
            return Ok(None);
        }
    }
    let is_all = untested.is_certain();
    let matching = if is_all { untested.count() } else { places.len() as u64 };
    let looked_at = if is_all { matching } else { looked_at };
    places.drain(..request.offset.min(places.len()));
    places.truncate(request.limit);
    let found = untested.by;
    Ok(Some(TextPage { places, looked_at, matching, index, is_walked, found }))
}

impl<'p> Untested<'p> {
    fn new(view: &'p TableView, plan: &'p Plan) -> Result<Self> {
        let (mut found, mut docs) = (Vec::new(), Vec::new());
        for mut unread in plan.unread(view)? {
            docs.push(Docs::Some(mem::replace(&mut unread.docs, DocSet::empty())));
            found.push(unread);
        }
        let (has_condition, by) = (plan.condition.is_some(), FoundByKeys::new());
        let mut this = Self { view, plan, found, docs, has_condition, by };
        // Reading a text costs far more than testing a condition.
        if this.has_condition && (this.reads_texts() || plan.narrows(view)) {
            this.satisfy()?;
        }
        Ok(this)
    }

    /// Whether texts of rows are read.
    fn reads_texts(&self) -> bool {
        !self.found.iter().all(Unread::is_certain)
    }

    /// Whether all of them match.
    fn is_certain(&self) -> bool {
        !self.has_condition && self.found.iter().all(Unread::is_certain)
    }

    fn count(&self) -> u64 {
        super::select::count_live(&self.docs, &self.view.segments)
    }

    /// Drops the rows that do not satisfy the condition on columns.
    fn satisfy(&mut self) -> Result<()> {
        let docs = mem::take(&mut self.docs);
        (self.docs, self.by) = self.plan.satisfying(self.view, docs)?;
        self.has_condition = false;
        Ok(())
    }

    /// Appends those of the places that match to `kept`, in the same order.
    fn keep(&self, places: &[DocumentAddress], kept: &mut Vec<DocumentAddress>) -> Result<()> {
        if self.is_certain() {
            kept.extend_from_slice(places);
            return Ok(());
        }
        let mut by_segment = vec![Vec::new(); self.view.segments.len()];
        for place in places {
            if let Some(docs) = by_segment.get_mut(place.segment) {
                docs.push(place.doc);
            }
        }
        let mut matching = Vec::with_capacity(by_segment.len());
        let segments = self.view.segments.iter().zip(&self.found).zip(by_segment);
        for ((segment, unread), mut docs) in segments {
            docs.sort_unstable();
            let mut docs = DocSet::List(docs);
            if let (true, Some(condition)) = (self.has_condition, &self.plan.condition) {
                docs = condition.filtered(&segment.segment, Docs::Some(docs))?;
            }
            if let Some(expression) = &self.plan.expression {
                docs = unread.verified((self.view, segment), expression, docs)?;
            }
            matching.push(docs);
        }
        let is_kept = |place: &&DocumentAddress| {
            matching.get(place.segment).is_some_and(|docs| docs.contains(place.doc))
        };
        kept.extend(places.iter().filter(is_kept).copied());
        Ok(())
    }
}
