//! Queries, and the pages of a collection.

use std::sync::Arc;

use remora::{Collection, Moment};
use remora_sql::Access;

use super::{
    query::{Budget, Evaluation, Query},
    reply::{Refusal, Reply, shortened},
    request::{Answer, EndpointRequest},
};
use crate::limits::BufferShare;

/// Documents that are looked up at a time.
const BATCH: usize = 256;

/// `/query`
pub(super) fn query(request: &EndpointRequest) -> Answer {
    let (name, text) = (request.require("col")?, request.require("q")?);
    let query = Query::parse(text)?;
    let collection = request.collection(name, Access::Read)?;
    let (moment, mut budget) = (moment(&collection, request), budget(request));
    let ids = evaluation(&collection, &moment, &query, &mut budget)?.ids(&query)?;
    documents(request, &moment, &ids, &mut budget)
}

/// `/count`
pub(super) fn count(request: &EndpointRequest) -> Answer {
    let (name, text) = (request.require("col")?, request.require("q")?);
    let query = Query::parse(text)?;
    let collection = request.collection(name, Access::Read)?;
    let (moment, mut budget) = (moment(&collection, request), budget(request));
    let count = evaluation(&collection, &moment, &query, &mut budget)?.count(&query)?;
    Ok(Reply::text(count.to_string()))
}

/// `/getpage`: one of a number of parts of a collection, whose sizes differ by one at most.
pub(super) fn page(request: &EndpointRequest) -> Answer {
    let name = request.require("col")?;
    let (page, total) = (request.require("page")?, request.require("total")?);
    let wrong = |what: &str, text: &str| {
        Refusal::wrong(format!("Invalid {what} number '{}'.", shortened(text)))
    };
    let count: u64 =
        total.parse().ok().filter(|it| *it > 0).ok_or_else(|| wrong("total page", total))?;
    let number: u64 =
        page.parse().ok().filter(|it| *it < count).ok_or_else(|| wrong("page", page))?;
    let collection = request.collection(name, Access::Read)?;
    let moment = moment(&collection, request);
    let all = u128::from(moment.len()?);
    // Less than the number of documents, which is below 2^64.
    let begin = |page: u64| (all * u128::from(page) / u128::from(count)) as u64;
    let (start, end) = (begin(number), begin(number + 1));
    let mut budget = budget(request);
    budget.take_ids(end - start)?;
    let limit = usize::try_from(end - start).unwrap_or(usize::MAX);
    let ids = moment.ids(start, limit)?;
    documents(request, &moment, &ids, &mut budget)
}

/// The newest snapshot, whose reads end when the time of a query is over.
fn moment(collection: &Collection, request: &EndpointRequest) -> Moment {
    let moment = collection.now();
    match request.settings.limits.max_query_time() {
        Some(limit) => moment.within(limit),
        None => moment,
    }
}

fn budget(request: &EndpointRequest) -> Budget {
    let share = BufferShare::new(Arc::clone(&request.caller.shared.buffers));
    Budget::new(share, request.settings.limits.buffered_bytes)
}

fn evaluation<'e>(
    collection: &'e Collection,
    moment: &'e Moment,
    query: &Query,
    budget: &'e mut Budget,
) -> Result<Evaluation<'e>, Refusal> {
    let indexes = moment.indexes()?;
    query.check_indexes(&|path| {
        indexes.iter().any(|index| index.is_plain() && index.path.names() == path)
    })?;
    Ok(Evaluation { collection, moment, budget })
}

/// The documents with these ids, by id. They are all in memory, so there is a limit.
fn documents(
    request: &EndpointRequest,
    moment: &Moment,
    ids: &[i64],
    budget: &mut Budget,
) -> Answer {
    let most = request.settings.limits.write_queue_bytes;
    let too_large = || {
        Refusal::wrong(format!(
            "The result takes more than {most} bytes, the limit of limits.write_queue_bytes: ask for \
             fewer documents by \"limit\", or for all of them by /getpage"
        ))
    };
    let mut body = b"{".to_vec();
    for batch in ids.chunks(BATCH) {
        let mut texts: Vec<Option<String>> = vec![None; batch.len()];
        let mut bytes = body.len();
        let before = bytes;
        moment.texts(batch, &mut |place, text| {
            // Plus the id, its quotes, a colon and a comma.
            bytes += text.len() + 24;
            if let Some(kept) = texts.get_mut(place).filter(|_| bytes <= most) {
                *kept = Some(text.to_owned());
            }
            Ok(())
        })?;
        if bytes > most {
            return Err(too_large());
        }
        budget.take(bytes - before)?;
        for (id, text) in batch.iter().zip(texts) {
            let Some(text) = text else { continue };
            if body.len() > 1 {
                body.push(b',');
            }
            body.extend_from_slice(format!("\"{id}\":").as_bytes());
            body.extend_from_slice(text.as_bytes());
        }
    }
    body.push(b'}');
    Ok(Reply::json(body))
}
