//! SEARCH and COUNT: from a request to its reply.

use std::time::Instant;

use remora_index::DocSet;

use super::{
    candidates::FoundByKeys,
    docs::Docs,
    expression::has_keywords,
    index_order::IndexOrder,
    order::{DocumentAddress, Order, PageStart, SegmentOrder},
    output::Output,
    page,
    ranked::{Ranked, RankedRequest},
    score::{Scoring, SegmentScores},
    select::Plan,
    text_page::{TextPage, text_page},
};
use crate::{
    AccessPath, CountReply, Hit, Position, QueryReport, Result, SearchReply, SearchRequest,
    Selection, TableIndex, TextQuery, interrupt::InterruptCheck, snapshot::TableView,
};

/// Runs SEARCH. `bm25` is (k1, b); `position` is the view's; it ends when `unless` says so.
pub(crate) fn search(
    view: &TableView,
    request: &SearchRequest,
    bm25: (f64, f64),
    (position, unless): (Position, &InterruptCheck),
) -> Result<SearchReply> {
    let started = Instant::now();
    let schema = &view.schema;
    page::check(request)?;
    let plan = Plan::new(view, &request.selection, unless)?;
    let order = Order::new(schema, &request.sort)?;
    let after = request.after.as_deref();
    let after = after.map(|cursor| PageStart::decode(schema, &order, cursor)).transpose()?;
    let output = Output::new(schema, request, plan.expression.as_ref())?;

    let mut occurrences = order.needs_scores().then(|| plan.occurrences(view));
    let mut selected = plan.run_learning(view, position, started, occurrences.as_mut())?;
    let (docs, report) = (&selected.docs, &mut selected.report);
    let scores = match occurrences {
        Some(occurrences) => {
            let only_best = order.begins_with_best() && after.is_none();
            let best = only_best.then(|| request.limit + request.offset);
            let expression = plan.expression.as_ref();
            let by_key = order.is_by_best_alone();
            let scoring = Scoring { view, expression, bm25, best, by_key };
            Some(scoring.scores(docs, occurrences, report)?)
        }
        None => None,
    };
    let orders: Vec<SegmentOrder<'_>> = (0..view.segments.len())
        .map(|at| {
            let scores = scores.as_ref().and_then(|scores| scores.get(at));
            SegmentOrder::new(&order, &view.segments[at], scores)
        })
        .collect();
    let places = places(view, (&plan, &order, docs), &orders, after.as_ref(), request);
    let hits = output.hits(view, &places, scores.as_deref(), unless)?;
    let last = places.last();
    let cursor =
        last.and_then(|&last| PageStart::encode(view, &order, &orders[last.segment], last));
    report.returned = hits.len() as u64;
    report.total_time = started.elapsed();
    Ok(SearchReply {
        total: selected.total,
        hits,
        field_names: output.field_names(schema),
        cursor,
        report: selected.report,
    })
}

/// The page of the selected documents.
fn places(
    view: &TableView,
    (plan, order, docs): (&Plan, &Order, &[Docs]),
    orders: &[SegmentOrder<'_>],
    after: Option<&PageStart>,
    request: &SearchRequest,
) -> Vec<DocumentAddress> {
    let may_pass = plan.expression.is_none() && after.is_none();
    if order.is_by_key() {
        let descending = order.key_descending;
        let passes = may_pass && plan.condition.is_none() && page::passes_over(request);
        return match passes {
            true => page::skipped_by_key(view, descending, request),
            false => page::by_key(view, docs, descending, after, request),
        };
    }
    let allowed = request.selection.indexes.order;
    let index = IndexOrder::find(view, order, plan.condition.as_ref(), allowed);
    let passed = index.as_ref().filter(|_| may_pass);
    let passed = passed.and_then(|index| page::skipped_along(view, orders, index, request));
    let (places, is_walked) = match passed {
        Some(places) => (places, true),
        None => page::by_value(view, docs, orders, index.as_ref(), after, request),
    };
    if let (Some(index), true) = (index, is_walked) {
        view.usage.ordered(index.index());
    }
    places
}

/// The rows of a page along the key or an index with its order, or by a text condition, without their keys and total;
/// `None` if that is not possible or [`search`] is cheaper. It ends when `unless` says so.
pub(crate) fn first(
    view: &TableView,
    request: &SearchRequest,
    unless: &InterruptCheck,
) -> Result<Option<Vec<Hit>>> {
    let Some(places) = first_documents(view, request, unless)? else { return Ok(None) };
    let output = Output::new(&view.schema, request, None)?.without_keys();
    output.hits(view, &places, None, &InterruptCheck::NEVER).map(Some)
}

/// The documents of a page along the key or an index with its order, or by a text condition, in that order; `None` if
/// that is not possible or examining all rows is cheaper.
pub(super) fn first_documents(
    view: &TableView,
    request: &SearchRequest,
    unless: &InterruptCheck,
) -> Result<Option<Vec<DocumentAddress>>> {
    let Some(first) = FirstPage::find(view, request, unless)? else { return Ok(None) };
    if let Some(index) = first.ordered_by() {
        view.usage.ordered(index);
    }
    Ok(Some(first.places))
}

/// The top rows by weight of a keyword query without other conditions, without their total, and a report. `None`
/// if that does not apply. `position` is the view's.
pub(crate) fn best(
    view: &TableView,
    request: &SearchRequest,
    (position, unless): (Position, &InterruptCheck),
) -> Result<Option<(Vec<Hit>, QueryReport)>> {
    let started = Instant::now();
    page::check(request)?;
    let Selection { text: Some(TextQuery::Keywords(query)), filter: None, fuzzy: None, .. } =
        &request.selection
    else {
        return Ok(None);
    };
    let order = Order::new(&view.schema, &request.sort)?;
    let is_plain = request.after.is_none() && request.highlight.is_none();
    if !is_plain || !order.begins_with_best() {
        return Ok(None);
    }
    let ranked = Ranked::new(view, query, unless)?;
    let rows = Some(request.limit + request.offset);
    let Some(weights) =
        ranked.first(view, RankedRequest { rows, by_key: order.is_by_best_alone() })?
    else {
        return Ok(None);
    };
    let index_time = started.elapsed();
    let docs = weights
        .iter()
        .map(|weights| Docs::Some(DocSet::List(weights.iter().map(|&(doc, _)| doc).collect())));
    let docs: Vec<Docs> = docs.collect();
    let scores: Vec<SegmentScores> = weights.into_iter().map(SegmentScores::weighed).collect();
    let orders = view.segments.iter().zip(&scores);
    let orders: Vec<SegmentOrder<'_>> =
        orders.map(|(segment, scores)| SegmentOrder::new(&order, segment, Some(scores))).collect();
    let (places, _) = page::by_value(view, &docs, &orders, None, None, request);
    let output = Output::new(&view.schema, request, None)?;
    let hits = output.hits(view, &places, Some(&scores), unless)?;
    let report = QueryReport {
        position,
        warning: ranked.warning().map(str::to_owned),
        keyword_documents: Some(ranked.documents_of_keywords()),
        segments: view.segments.len() as u64,
        returned: hits.len() as u64,
        index_time,
        total_time: started.elapsed(),
        ..QueryReport::default()
    };
    Ok(Some((hits, report)))
}

/// A page in the order of the keys or of an index, or by a text condition.
struct FirstPage {
    places: Vec<DocumentAddress>,
    /// `None` for key order.
    index: Option<IndexOrder>,
    /// The number of rows examined.
    looked_at: u64,
    /// How the text index was used, if there is a text condition.
    by_text: Option<ByText>,
}

/// How the text index was used.
struct ByText {
    /// The number of matching rows, as far as they were looked for.
    matching: u64,
    /// Whether the rows came in the order of the request, by the key or the index.
    is_walked: bool,
    /// The keys and indexes that found the rows with the text.
    found: FoundByKeys,
    is_union: bool,
}

impl FirstPage {
    fn find(
        view: &TableView,
        request: &SearchRequest,
        unless: &InterruptCheck,
    ) -> Result<Option<Self>> {
        page::check_limit(request)?;
        let selection = &request.selection;
        if request.after.is_some() || request.highlight.is_some() {
            return Ok(None);
        }
        if selection.text.is_some() {
            return Self::by_text(view, request, unless);
        }
        let schema = &view.schema;
        let order = Order::new(schema, &request.sort)?;
        if order.needs_scores() {
            return Ok(None);
        }
        // There is no text condition, so nothing needs to be interrupted.
        let plan = Plan::new(view, selection, &InterruptCheck::NEVER)?;
        let condition = plan.condition.as_ref();
        if order.is_by_key() {
            let descending = order.key_descending;
            let found = match condition {
                Some(_) => {
                    let allowed = selection.indexes.order;
                    let wanted = page::wanted(request).map(|wanted| (descending, wanted));
                    let walk = wanted.and_then(|wanted| plan.key_walk(view, wanted, allowed));
                    walk.map_or(Ok(None), |walk| {
                        page::walked_by_key(view, &walk, descending, request)
                    })?
                }
                None => page::passes_over(request).then(|| {
                    let places = page::skipped_by_key(view, descending, request);
                    let count = places.len() as u64;
                    (places, count)
                }),
            };
            return Ok(found.map(|(places, looked_at)| Self {
                places,
                index: None,
                looked_at,
                by_text: None,
            }));
        }
        let allowed = selection.indexes.order;
        let index = IndexOrder::find(view, &order, condition, allowed);
        let Some(index) = index.filter(|index| {
            let wanted = request.limit.saturating_add(request.offset);
            allowed.forced || index.passes_none() || plan.is_walked(view, index.rows(view), wanted)
        }) else {
            return Ok(None);
        };
        let orders = view.segments.iter().map(|segment| SegmentOrder::new(&order, segment, None));
        let orders: Vec<SegmentOrder<'_>> = orders.collect();
        let walked = page::walked(view, condition, &orders, &index, request)?;
        Ok(walked.map(|(places, looked_at)| Self {
            places,
            index: Some(index),
            looked_at,
            by_text: None,
        }))
    }

    fn by_text(
        view: &TableView,
        request: &SearchRequest,
        unless: &InterruptCheck,
    ) -> Result<Option<Self>> {
        let selection = &request.selection;
        let order = Order::new(&view.schema, &request.sort)?;
        if order.needs_scores() || selection.text.as_ref().is_some_and(has_keywords) {
            return Ok(None);
        }
        let plan = Plan::new(view, selection, unless)?;
        let Some(page) = text_page(view, &plan, &order, request)? else { return Ok(None) };
        let TextPage { places, looked_at, matching, index, is_walked, found } = page;
        plan.note_searched(view);
        let is_walked = is_walked || order.is_by_key();
        let by_text = Some(ByText { matching, is_walked, is_union: plan.is_union(&found), found });
        Ok(Some(Self { places, index, looked_at, by_text }))
    }

    /// The key or the index whose order was walked.
    fn ordered_by(&self) -> Option<TableIndex> {
        let is_walked = self.by_text.as_ref().is_none_or(|by_text| by_text.is_walked);
        is_walked.then(|| self.index.as_ref().map_or(TableIndex::Key, IndexOrder::index))
    }

    fn path(&self, view: &TableView) -> AccessPath {
        let by_text = self.by_text.as_ref();
        let found_by = match by_text {
            Some(by_text) => by_text.found.to_vec(),
            None => self.index.as_ref().and_then(IndexOrder::found_by).into_iter().collect(),
        };
        AccessPath {
            by_text: by_text.is_some(),
            found_by,
            is_union: by_text.is_some_and(|by_text| by_text.is_union),
            ordered_by: self.ordered_by(),
            examined: self.looked_at,
            matching: by_text.map_or(self.places.len() as u64, |by_text| by_text.matching),
            segments: view.segments.len(),
            ..AccessPath::default()
        }
    }
}

/// The access path of [`first`].
pub(crate) fn first_access(
    view: &TableView,
    request: &SearchRequest,
    unless: &InterruptCheck,
) -> Result<Option<AccessPath>> {
    let Some(first) = FirstPage::find(view, request, unless)? else { return Ok(None) };
    let possible = Plan::new(view, &request.selection, &InterruptCheck::NEVER)?.possible();
    Ok(Some(AccessPath { possible, ..first.path(view) }))
}

/// The access path of [`search`].
pub(crate) fn search_access(
    view: &TableView,
    request: &SearchRequest,
    unless: &InterruptCheck,
) -> Result<AccessPath> {
    page::check(request)?;
    let plan = Plan::new(view, &request.selection, unless)?;
    let order = Order::new(&view.schema, &request.sort)?;
    let (mut path, docs) = plan.access(view)?;
    if order.is_by_key() {
        path.ordered_by = Some(TableIndex::Key);
    } else if !order.needs_scores() {
        let allowed = request.selection.indexes.order;
        let index = IndexOrder::find(view, &order, plan.condition.as_ref(), allowed);
        let orders = view.segments.iter().map(|segment| SegmentOrder::new(&order, segment, None));
        let orders: Vec<SegmentOrder<'_>> = orders.collect();
        let (_, is_walked) = page::by_value(view, &docs, &orders, index.as_ref(), None, request);
        path.ordered_by = index.filter(|_| is_walked).map(|index| index.index());
    }
    let is_every = plan.expression.is_none() && plan.condition.is_none();
    if is_every && path.ordered_by.is_some() {
        // No more rows are examined than the page needs.
        path.examined = path.examined.min((request.limit + request.offset) as u64);
        path.matching = path.examined;
    }
    Ok(path)
}

/// The access path of a selection.
pub(crate) fn access(
    view: &TableView,
    selection: &Selection,
    unless: &InterruptCheck,
) -> Result<AccessPath> {
    Ok(Plan::new(view, selection, unless)?.access(view)?.0)
}

/// The access path of [`count`].
pub(crate) fn count_access(
    view: &TableView,
    selection: &Selection,
    unless: &InterruptCheck,
) -> Result<AccessPath> {
    Plan::new(view, selection, unless)?.count_access(view)
}

/// Runs COUNT. `position` is the view's.
pub(crate) fn count(
    view: &TableView,
    selection: &Selection,
    (position, unless): (Position, &InterruptCheck),
) -> Result<CountReply> {
    let started = Instant::now();
    let plan = Plan::new(view, selection, unless)?;
    let (count, mut report) = plan.count(view, position, started)?;
    report.total_time = started.elapsed();
    Ok(CountReply { count, report })
}

/// The number of rows before texts are read, and whether it is exact.
pub(crate) fn planned_count(
    view: &TableView,
    selection: &Selection,
    (position, unless): (Position, &InterruptCheck),
) -> Result<(u64, bool)> {
    let plan = Plan::new(view, selection, unless)?;
    match &plan.expression {
        Some(_) => plan.count_unread(view),
        None => Ok((plan.count(view, position, Instant::now())?.0, true)),
    }
}
