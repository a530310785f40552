//! Documents by what is in them.

use std::{cmp::Ordering, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::{Document, read};
use crate::{
    Error, Field, Filter, IntoFilter, Result, field,
    filter::{first_at, matches, order},
    handle::Handle,
};

/// Documents that are kept beside those of the page before the worst are let go.
const SLACK: usize = 1_024;

/// A search that is being described; [`Find::run`] answers it. Without an order documents come by
/// id; all of them without a limit.
#[must_use = "a search does nothing before run() or count()"]
pub struct Find {
    handle: Arc<Handle>,
    collection: Arc<str>,
    filters: Vec<Filter>,
    sort: Vec<(Field, bool)>,
    limit: usize,
    offset: usize,
    wrong: Option<Error>,
}

/// What was found, all of one moment.
#[derive(Clone, Debug)]
pub struct FoundDocuments {
    /// How many documents satisfy the filter, exactly, whatever the page.
    pub total: u64,
    /// Those of the page.
    pub documents: Vec<Document>,
}

/// A document that satisfies the filter, with what it is sorted by.
struct Candidate {
    keys: Vec<Option<Json>>,
    document: Document,
}

impl Find {
    pub(super) fn new(handle: Arc<Handle>, collection: Arc<str>) -> Self {
        let (filters, sort) = (Vec::new(), Vec::new());
        Self { handle, collection, filters, sort, limit: usize::MAX, offset: 0, wrong: None }
    }

    /// The documents satisfy this too.
    pub fn filter(mut self, filter: impl IntoFilter) -> Self {
        match filter.into_filter() {
            Ok(filter) => self.filters.push(filter),
            Err(error) => self.wrong = self.wrong.or(Some(error)),
        }
        self
    }

    /// In the order of the values at a path, behind the orders before: nothing, null, false, true,
    /// numbers, texts by their bytes. Ties by id.
    pub fn sort_by(mut self, path: &str) -> Self {
        self.sort.push((field(path), false));
        self
    }

    /// As [`Find::sort_by`], the other way round.
    pub fn sort_by_desc(mut self, path: &str) -> Self {
        self.sort.push((field(path), true));
        self
    }

    /// At most so many documents.
    pub fn limit(mut self, documents: usize) -> Self {
        self.limit = documents;
        self
    }

    /// Without the first so many.
    pub fn offset(mut self, documents: usize) -> Self {
        self.offset = documents;
        self
    }

    /// Answers it. Cost: every document is read and parsed, a few microseconds each.
    ///
    /// # Errors
    /// [`Error::Request`] if the filter is wrong, [`Error::NotFound`] if the collection was dropped,
    /// [`Error::Corrupt`], [`Error::Io`] or [`Error::Closed`] if it cannot be read.
    pub fn run(mut self) -> Result<FoundDocuments> {
        let wanted = self.limit.saturating_add(self.offset);
        let (mut kept, mut total) = (Vec::new(), 0_u64);
        let sort = std::mem::take(&mut self.sort);
        self.each(|document| {
            total += 1;
            if sort.is_empty() && kept.len() >= wanted {
                return;
            }
            let key = |(path, _): &(Field, bool)| first_at(path, &document.doc).cloned();
            kept.push(Candidate { keys: sort.iter().map(key).collect(), document });
            if !sort.is_empty() && kept.len() / 2 > wanted.saturating_add(SLACK) {
                keep_best(&mut kept, wanted, &sort);
            }
        })?;
        keep_best(&mut kept, wanted, &sort);
        let page = kept.into_iter().skip(self.offset).map(|candidate| candidate.document);
        Ok(FoundDocuments { total, documents: page.collect() })
    }

    /// The documents as structs.
    ///
    /// # Errors
    /// Those of [`Find::run`], and [`Error::Request`] if a document is none of `T`.
    pub fn run_as<T: DeserializeOwned>(self) -> Result<Vec<T>> {
        self.run()?.documents.iter().map(Document::deserialize).collect()
    }

    /// How many documents there are, exactly.
    ///
    /// # Errors
    /// Those of [`Find::run`].
    pub fn count(mut self) -> Result<u64> {
        let mut total = 0;
        self.each(|_| total += 1)?;
        Ok(total)
    }

    fn each(&mut self, mut visit: impl FnMut(Document)) -> Result<()> {
        if let Some(error) = self.wrong.take() {
            return Err(error);
        }
        let mut failed = None;
        let scanned = self.handle.engine.scan(&self.collection, &mut |row| {
            let document = read(&row).map_err(|error| {
                failed = Some(error);
                remora_engine::Error::Closed
            })?;
            if self.filters.iter().all(|filter| matches(&filter.0, &document.doc)) {
                visit(document);
            }
            Ok(())
        });
        failed.map_or_else(|| Ok(scanned.map(drop)?), Err)
    }
}

/// Sorts what was found and keeps so many.
fn keep_best(kept: &mut Vec<Candidate>, wanted: usize, sort: &[(Field, bool)]) {
    if !sort.is_empty() {
        kept.sort_by(|a, b| compare(a, b, sort));
    }
    kept.truncate(wanted);
}

fn compare(a: &Candidate, b: &Candidate, sort: &[(Field, bool)]) -> Ordering {
    let keys = a.keys.iter().zip(&b.keys).zip(sort);
    let ordered = keys.map(|((a, b), (_, descending))| {
        let order = order(a.as_ref(), b.as_ref());
        if *descending { order.reverse() } else { order }
    });
    let mut unequal = ordered.filter(|order| order.is_ne());
    unequal.next().unwrap_or_else(|| a.document.id.cmp(&b.document.id))
}
