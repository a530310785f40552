//! SEARCH and COUNT: from a request to its reply.

use std::time::Instant;

use super::{
    index_order::IndexOrder,
    order::{After, Order, SegmentOrder},
    output::Output,
    page,
    score::Scoring,
    select::Plan,
};
use crate::{
    CountReply, Hit, Position, Result, SearchReply, SearchRequest, Selection, snapshot::TableView,
};

/// SEARCH. `bm25` is (k1, b); `position` is the view's.
pub(crate) fn search(
    view: &TableView,
    request: &SearchRequest,
    bm25: (f64, f64),
    position: Position,
) -> Result<SearchReply> {
    let started = Instant::now();
    let schema = &view.schema;
    page::check(request)?;
    let plan = Plan::new(view, &request.selection)?;
    let order = Order::new(schema, &request.sort)?;
    let after = request.after.as_deref();
    let after = after.map(|cursor| After::decode(schema, &order, cursor)).transpose()?;
    let output = Output::new(schema, request, plan.expression.as_ref())?;

    let mut occurrences = order.needs_scores().then(|| plan.occurrences(view));
    let mut selected = plan.run_learning(view, position, started, occurrences.as_mut())?;
    let (docs, report) = (&selected.docs, &mut selected.report);
    let scores = match occurrences {
        Some(occurrences) => {
            let only_best = order.begins_with_best() && after.is_none();
            let best = only_best.then(|| request.limit + request.offset);
            let expression = plan.expression.as_ref();
            let scoring = Scoring { view, expression, bm25, best };
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
    let places = if order.is_by_key() {
        page::by_key(view, docs, order.key_descending, after.as_ref(), request)
    } else {
        let index = IndexOrder::find(schema, &order, plan.condition.as_ref());
        page::by_value(view, docs, &orders, index.as_ref(), after.as_ref(), request)
    };
    let hits = output.hits(view, &places, scores.as_deref())?;
    let last = places.last();
    let cursor = last.and_then(|&last| After::encode(view, &order, &orders[last.segment], last));
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

/// The rows of a page whose order an index has, without their number; `None` if they are found sooner by [`search`].
pub(crate) fn first(view: &TableView, request: &SearchRequest) -> Result<Option<Vec<Hit>>> {
    page::check(request)?;
    if request.selection.text.is_some() || request.after.is_some() || request.highlight.is_some() {
        return Ok(None);
    }
    let schema = &view.schema;
    let order = Order::new(schema, &request.sort)?;
    if order.needs_scores() {
        return Ok(None);
    }
    let plan = Plan::new(view, &request.selection)?;
    let condition = plan.condition.as_ref();
    let places = if order.is_by_key() {
        let is_all = condition.is_none() && page::passes_over(view, request);
        is_all.then(|| page::skipped_by_key(view, order.key_descending, request))
    } else {
        let Some(index) = IndexOrder::find(schema, &order, condition) else { return Ok(None) };
        let orders = view.segments.iter().map(|segment| SegmentOrder::new(&order, segment, None));
        let orders: Vec<SegmentOrder<'_>> = orders.collect();
        page::walked(view, condition, &orders, &index, request)?
    };
    let Some(places) = places else { return Ok(None) };
    let output = Output::new(schema, request, None)?;
    output.hits(view, &places, None).map(Some)
}

/// COUNT. `position` is the view's.
pub(crate) fn count(
    view: &TableView,
    selection: &Selection,
    position: Position,
) -> Result<CountReply> {
    let started = Instant::now();
    let plan = Plan::new(view, selection)?;
    let (count, mut report) = plan.count(view, position, started)?;
    report.total_time = started.elapsed();
    Ok(CountReply { count, report })
}
