//! The first rows of a scan in an order. A caller that merges and sorts the rows of several parts
//! needs no others.

use remora_index::DocSet;

use super::{
    docs::Docs,
    order::{DocumentAddress, Order, SegmentOrder},
    page,
    ranked::{Ranked, RankedRequest},
    score::SegmentScores,
    search::first_documents,
    select::count_live,
};
use crate::{
    BestRows, Result, Schema, SearchRequest, Selection, TextQuery,
    interrupt::InterruptCheck,
    snapshot::{SegmentView, TableView},
};

/// The most rows of a [`BestRows`] that are honoured. Above this all rows are read.
pub const MAX_BEST_ROWS: usize = 100_000;
/// The most rows that are sorted by collation keys, which takes about a microsecond a row and
/// cannot be interrupted.
const MAX_KEYED_ROWS: u64 = if cfg!(test) { 100 } else { 1 << 20 };

/// A resolved [`BestRows`].
pub(super) struct ScanBest<'r> {
    order: Order,
    best: &'r BestRows,
}

impl<'r> ScanBest<'r> {
    /// `None` if all rows are read: without such a request, and if this table does not have the order.
    pub fn new(schema: &Schema, best: Option<&'r BestRows>) -> Option<Self> {
        let best = best.filter(|best| best.rows <= MAX_BEST_ROWS)?;
        let order = Order::new(schema, &best.sort).ok()?;
        Some(Self { order, best })
    }

    /// The condition whose scores the order uses, by its index in [`crate::ScanRequest::scores`].
    pub fn score(&self) -> Option<usize> {
        self.order.needs_scores().then_some(self.best.score)
    }

    /// Weights by segment of the first rows, and of few others, of a keyword query without other conditions. They are
    /// found without weighing all matching rows. `None` if that does not apply.
    pub fn by_weight(
        &self,
        view: &TableView,
        selection: &Selection,
        scores: &[TextQuery],
        unless: &InterruptCheck,
    ) -> Result<Option<Vec<SegmentScores>>> {
        let (Some(TextQuery::Keywords(condition)), Some(TextQuery::Keywords(query))) =
            (&selection.text, scores.get(self.best.score))
        else {
            return Ok(None);
        };
        let is_weighed = self.order.begins_with_best() && query.factors.is_none();
        if !is_weighed || selection.filter.is_some() || condition.text != query.text {
            return Ok(None);
        }
        let ranked = Ranked::new(view, query, unless)?;
        let rows = Some(self.best.rows);
        let wanted = RankedRequest { rows, by_key: self.order.is_by_best_alone() };
        let weights = ranked.first(view, wanted)?;
        Ok(weights.map(|all| all.into_iter().map(SegmentScores::weighed).collect()))
    }

    /// The first rows along the key or an index with the order, which is read no further than they reach, or by a text
    /// condition. `None` if there are none, or examining all rows is cheaper.
    pub fn by_index(
        &self,
        view: &TableView,
        selection: &Selection,
        unless: &InterruptCheck,
    ) -> Result<Option<Vec<Docs>>> {
        if self.order.needs_scores() {
            return Ok(None);
        }
        let request = SearchRequest {
            selection: selection.clone(),
            sort: self.best.sort.clone(),
            limit: self.best.rows,
            ..SearchRequest::default()
        };
        let places = first_documents(view, &request, unless)?;
        Ok(places.map(|places| by_segment(view, &places)))
    }

    /// Leaves only the first rows in `docs` and returns their number; `None` if it leaves all, because the order needs
    /// scores that are not given, or sort keys of too many texts. `scores` are those of `docs`.
    pub fn keep(
        &self,
        view: &TableView,
        docs: &mut Vec<Docs>,
        scores: Option<&[SegmentScores]>,
    ) -> Option<u64> {
        let is_scored = scores.is_some() || !self.order.needs_scores();
        if !is_scored
            || self.order.has_text_keys() && count_live(docs, &view.segments) > MAX_KEYED_ROWS
        {
            return None;
        }
        let request = SearchRequest { limit: self.best.rows, ..SearchRequest::default() };
        let places = if self.order.is_by_key() {
            page::by_key(view, docs, self.order.key_descending, None, &request)
        } else {
            let every = scores.and_then(|scores| of_every_row(view, docs, scores));
            let scores = every.as_deref().or(scores);
            let orders = view.segments.iter().enumerate().map(|(at, segment)| {
                let scores = scores.and_then(|scores| scores.get(at));
                SegmentOrder::new(&self.order, segment, scores)
            });
            let orders: Vec<SegmentOrder<'_>> = orders.collect();
            page::by_value(view, docs, &orders, None, None, &request).0
        };
        *docs = by_segment(view, &places);
        Some(places.len() as u64)
    }
}

/// The documents of each segment.
fn by_segment(view: &TableView, places: &[DocumentAddress]) -> Vec<Docs> {
    let mut kept = vec![Vec::new(); view.segments.len()];
    for place in places {
        if let Some(docs) = kept.get_mut(place.segment) {
            docs.push(place.doc);
        }
    }
    let lists = kept.into_iter().map(|mut docs| {
        docs.sort_unstable();
        Docs::Some(DocSet::List(docs))
    });
    lists.collect()
}

/// The scores with 0 for rows that were not scored, because they do not match; `None` if there are none.
fn of_every_row(
    view: &TableView,
    docs: &[Docs],
    scores: &[SegmentScores],
) -> Option<Vec<SegmentScores>> {
    let scored: u64 = scores.iter().map(SegmentScores::count).sum();
    let segments = view.segments.iter().zip(docs).zip(scores);
    let every = |((segment, docs), scores): ((&SegmentView, &Docs), &SegmentScores)| {
        let mut every = Vec::new();
        docs.for_each_live(segment, |doc| every.push((doc, scores.get(doc))));
        every.into_iter().collect()
    };
    (scored < count_live(docs, &view.segments)).then(|| segments.map(every).collect())
}
