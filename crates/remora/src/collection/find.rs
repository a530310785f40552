//! Finds documents by their content.

use std::{cmp::Ordering, marker::PhantomData, sync::Arc};

use remora_engine::{
    Filter as EngineFilter, KeyValues, PathDef, PathOrder, Reader, ScanRequest, Selection, Value,
};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::{
    BATCH_ROWS, DOC, DOC_PLACE, Document, DocumentId, FindPlan, IndexKind, Moment, each_document,
    indexes::shown, other_row, parse, read,
};
use crate::{
    Error, Field, Filter, IntoFilter, Result, field,
    filter::{
        Condition, PathFilter, ReadyPath, constrains, equal_value, first_at, matches, order,
        path_filter,
    },
    handle::Handle,
};

/// How many candidates beyond the page are kept before the worst are dropped.
const SLACK: usize = 1_024;

/// A search of a collection, which [`Find::run`] executes. By default it returns all matching
/// documents in the order of their ids.
#[must_use = "a search does nothing before run() or count()"]
pub struct Find<K: DocumentId = i64> {
    handle: Arc<Handle>,
    collection: Arc<str>,
    filters: Vec<Filter>,
    sort: Vec<(Field, bool)>,
    limit: usize,
    offset: usize,
    wrong: Option<Error>,
    /// The moment at which it reads; `None` means the time of execution.
    at: Option<Reader>,
    ids: PhantomData<K>,
}

/// The result of a search, all as of one moment.
#[derive(Clone, Debug)]
pub struct FoundDocuments<K: DocumentId = i64> {
    /// The exact number of documents that satisfy the filter, regardless of the page.
    pub total: u64,
    /// The documents of the page.
    pub documents: Vec<Document<K>>,
}

/// A document that satisfies the filter, with its sort values.
struct Candidate<K: DocumentId> {
    keys: Vec<Option<Json>>,
    document: Document<K>,
}

impl<K: DocumentId> Find<K> {
    pub(super) fn new(handle: Arc<Handle>, collection: Arc<str>) -> Self {
        let (filters, sort) = (Vec::new(), Vec::new());
        Self {
            handle,
            collection,
            filters,
            sort,
            limit: usize::MAX,
            offset: 0,
            wrong: None,
            at: None,
            ids: PhantomData,
        }
    }

    /// Reads the collection as of this moment, which must belong to the same collection.
    pub fn at(mut self, moment: &Moment<K>) -> Self {
        if moment.is_of(&self.collection) {
            self.at = Some(moment.reader().clone());
        } else {
            let message = format!("the moment is of another collection than {:?}", self.collection);
            self.wrong = self.wrong.or(Some(Error::request(message)));
        }
        self
    }

    /// Adds a filter. Documents must satisfy all filters.
    pub fn filter(mut self, filter: impl IntoFilter) -> Self {
        match filter.into_filter() {
            Ok(filter) => self.filters.push(filter),
            Err(error) => self.wrong = self.wrong.or(Some(error)),
        }
        self
    }

    /// Sorts by the values at a path, after the sort orders before: missing, null, false, true,
    /// numbers, texts by their bytes. Ties are sorted by id.
    pub fn sort_by(mut self, path: &str) -> Self {
        self.sort.push((field(path), false));
        self
    }

    /// Like [`Find::sort_by`], descending.
    pub fn sort_by_desc(mut self, path: &str) -> Self {
        self.sort.push((field(path), true));
        self
    }

    /// Returns at most this many documents.
    pub fn limit(mut self, documents: usize) -> Self {
        self.limit = documents;
        self
    }

    /// Skips this many documents.
    pub fn offset(mut self, documents: usize) -> Self {
        self.offset = documents;
        self
    }

    /// Executes the search. Cost: each document that the indexes do not exclude is read and parsed,
    /// a few microseconds each. Only the documents of the page are read if the indexes answer the
    /// filter exactly, and there is no order or one of indexed paths that lead to at most one value
    /// in each document.
    ///
    /// # Errors
    /// [`Error::Request`] if the filter is wrong, [`Error::NotFound`] if the collection was dropped,
    /// [`Error::Corrupt`], [`Error::Io`] or [`Error::Closed`] if it cannot be read.
    pub fn run(mut self) -> Result<FoundDocuments<K>> {
        let wanted = self.limit.saturating_add(self.offset);
        let (mut kept, mut total) = (Vec::new(), 0_u64);
        let asked = self.asked()?;
        let sort = std::mem::take(&mut self.sort);
        if sort.is_empty() && asked.is_exact() {
            let mut documents = Vec::new();
            asked.documents(Some(wanted as u64), &mut |document| documents.push(document))?;
            documents.drain(..self.offset.min(documents.len()));
            return Ok(FoundDocuments { total: asked.count()?, documents });
        }
        if let Some((_, page)) = asked.first(&sort, wanted)? {
            let page = page.iter().skip(self.offset).map(|key| asked.document(key));
            let documents = page.collect::<Result<_>>()?;
            return Ok(FoundDocuments { total: asked.count()?, documents });
        }
        asked.matching(&mut |document: Document<K>| {
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

    /// Executes the search and deserializes the documents.
    ///
    /// # Errors
    /// Those of [`Find::run`], and [`Error::Request`] if a document cannot be deserialized as `T`.
    pub fn run_as<T: DeserializeOwned>(self) -> Result<Vec<T>> {
        self.run()?.documents.iter().map(Document::deserialize).collect()
    }

    /// The exact number of matching documents.
    ///
    /// # Errors
    /// Those of [`Find::run`].
    pub fn count(mut self) -> Result<u64> {
        let asked = self.asked()?;
        if asked.is_exact() {
            return asked.count();
        }
        let mut total = 0;
        asked.matching(&mut |_: Document<K>| total += 1)?;
        Ok(total)
    }

    /// The ids of the matching documents, sorted by id or in the requested order, within limit and
    /// offset. Cost: that of [`Find::run`]. No document is read if indexes answer the filter
    /// exactly and no order is requested.
    ///
    /// # Errors
    /// Those of [`Find::run`].
    pub fn ids(mut self) -> Result<Vec<K>> {
        if !self.sort.is_empty() {
            let found = self.run()?;
            return Ok(found.documents.into_iter().map(|document| document.id).collect());
        }
        let asked = self.asked()?;
        let wanted = self.limit.saturating_add(self.offset);
        let mut ids = Vec::new();
        match asked.is_exact() {
            true => ids = asked.into_ids(wanted as u64)?,
            false => asked.matching(&mut |document: Document<K>| {
                if ids.len() < wanted {
                    ids.push(document.id);
                }
            })?,
        }
        ids.drain(..self.offset.min(ids.len()));
        Ok(ids)
    }

    /// Calls `visit` with each matching document's id and text, in the order of ids, within limit
    /// and offset. The first error of `visit` ends it. Cost: that of [`Find::run`], with a bounded
    /// number of documents in memory.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let votes = db.collection("votes")?;
    /// votes.insert_json(r#"{"for": 7}"#)?;
    /// votes.insert_json(r#"{"for": 2}"#)?;
    /// let mut texts = Vec::new();
    /// votes.find("for > 5").each_json(|_, text| {
    ///     texts.push(text.to_owned());
    ///     Ok::<(), remora::Error>(())
    /// })?;
    /// assert_eq!(texts, [r#"{"for":7}"#]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Find::run`], [`Error::Request`] if an order is requested, and the error of
    /// `visit`.
    pub fn each_json<E: From<Error>>(
        mut self,
        mut visit: impl FnMut(K, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.sort.is_empty() {
            return Err(Error::request("documents are visited by id: leave the order out").into());
        }
        let asked = self.asked()?;
        let condition = if asked.is_exact() { None } else { asked.condition.as_ref() };
        let (mut passed, mut left) = (0, self.limit);
        let scan =
            asked.reader.scan(asked.request(vec![0, DOC_PLACE], None)).map_err(Error::from)?;
        for batch in scan {
            asked.reader.ending().check().map_err(Error::from)?;
            let batch = batch.map_err(Error::from)?;
            for place in 0..batch.rows {
                let mut row = batch.columns.iter().map(|column| column.value(place));
                let (Some(id), Some(Value::Json(text))) = (row.next(), row.next()) else {
                    return Err(other_row().into());
                };
                let id = K::of(&id).ok_or_else(other_row)?;
                if let Some(condition) = condition
                    && !matches(condition, &parse(id.given(), &text)?)
                {
                    continue;
                }
                passed += 1;
                if passed <= self.offset {
                    continue;
                }
                if left == 0 {
                    return Ok(());
                }
                left -= 1;
                visit(id, &text)?;
            }
        }
        Ok(())
    }

    /// How the search would be executed now.
    ///
    /// # Errors
    /// Those of [`Find::run`].
    pub fn explain(mut self) -> Result<FindPlan> {
        let asked = self.asked()?;
        let mut plan = FindPlan::default();
        if let Some(path_filter) = &asked.path_filter {
            paths_of(&path_filter.filter, &mut plan.indexes);
            plan.is_exact = path_filter.is_exact;
        }
        if self.limit < usize::MAX
            && let Some((index, _)) = asked.first(&self.sort, 0)?
        {
            plan.order = Some(shown(IndexKind::Values, index.paths()));
        }
        Ok(plan)
    }

    fn asked(&mut self) -> Result<PreparedFind> {
        if let Some(error) = self.wrong.take() {
            return Err(error);
        }
        let mut filters = std::mem::take(&mut self.filters);
        let condition = match filters.pop() {
            Some(only) if filters.is_empty() => Some(only.0),
            None => None,
            last => {
                let all = filters.into_iter().chain(last);
                Some(Condition::And(all.map(|filter| filter.0).collect()))
            }
        };
        let reader = self.at.take().unwrap_or_else(|| self.handle.engine.reader());
        let schema = reader.schema(&self.collection)?;
        let ready = match schema.paths.is_empty() {
            true => Vec::new(),
            false => reader.ready_paths(&self.collection)?,
        };
        let mut indexes = Vec::with_capacity(ready.len());
        for place in ready {
            let path = schema.paths.get(place).filter(|path| path.column == DOC_PLACE);
            let Some(path) = path else { continue };
            // Finding out whether an index is complete looks at every segment, so only do it for
            // indexes that the condition uses.
            let is_asked = || condition.as_ref().is_some_and(|it| constrains(it, &path.names));
            let is_whole = !path.is_joint()
                || is_asked() && reader.has_all_combinations(&self.collection, place)?;
            indexes.push(ReadyPath { path, is_whole });
        }
        let path_filter = condition.as_ref().and_then(|it| path_filter(it, DOC, &indexes));
        let orders = indexes.iter().map(|index| index.path).filter(|path| !path.texts);
        let orders: Vec<PathDef> = match self.sort.is_empty() {
            true => Vec::new(),
            false => orders.cloned().collect(),
        };
        let collection = Arc::clone(&self.collection);
        Ok(PreparedFind { reader, collection, condition, path_filter, orders })
    }
}

/// A search, prepared to read at one moment.
struct PreparedFind {
    reader: Reader,
    collection: Arc<str>,
    condition: Option<Condition>,
    /// The part of the condition that indexes answer.
    path_filter: Option<PathFilter>,
    /// The indexes that can provide an order, if one is requested.
    orders: Vec<PathDef>,
}

impl PreparedFind {
    /// Whether the indexes answer the condition exactly, so that no document has to be tested.
    fn is_exact(&self) -> bool {
        match (&self.condition, &self.path_filter) {
            (None, _) => true,
            (Some(_), path_filter) => path_filter.as_ref().is_some_and(|it| it.is_exact),
        }
    }

    fn filter(&self) -> Option<EngineFilter> {
        self.path_filter.as_ref().map(|it| it.filter.clone())
    }

    /// The number of documents that the indexes find.
    fn count(&self) -> Result<u64> {
        let (table, filter) = (self.collection.to_string(), self.filter());
        Ok(self.reader.count(&Selection { table, filter, ..Selection::default() })?.count)
    }

    /// The keys of the first documents in a sort order, and the index that provides it; `None` if
    /// none does.
    fn first(
        &self,
        sort: &[(Field, bool)],
        wanted: usize,
    ) -> Result<Option<(&PathDef, Vec<KeyValues>)>> {
        if !self.is_exact() || wanted == usize::MAX {
            return Ok(None);
        }
        for index in &self.orders {
            let Some(order) = self.order_by(index, sort, wanted) else { continue };
            if let Some(keys) = self.reader.first_by_path(&order)? {
                return Ok(Some((index, keys)));
            }
        }
        Ok(None)
    }

    /// The sort order by this index. Its last paths must be the sorted ones, and each path before
    /// them must lead to one value that the condition requires.
    fn order_by(&self, index: &PathDef, sort: &[(Field, bool)], limit: usize) -> Option<PathOrder> {
        let paths: Vec<Vec<String>> = index.paths().map(<[String]>::to_vec).collect();
        let (leading, behind) = paths.split_at(paths.len().checked_sub(sort.len())?);
        let mut ordered = behind.iter().zip(sort);
        if sort.is_empty() || !ordered.all(|(names, (field, _))| *names == field.parts) {
            return None;
        }
        let equal = leading.iter().map(|names| equal_value(self.condition.as_ref()?, names));
        Some(PathOrder {
            table: self.collection.to_string(),
            column: DOC.to_owned(),
            equal: equal.collect::<Option<_>>()?,
            filter: self.filter(),
            descending: sort.iter().map(|(_, descending)| *descending).collect(),
            limit,
            paths,
        })
    }

    /// The document with a key that exists at this moment.
    fn document<K: DocumentId>(&self, key: &[Value]) -> Result<Document<K>> {
        read(&self.reader.get(&self.collection, key)?.ok_or_else(other_row)?)
    }

    /// Visits the documents that satisfy the condition, by id.
    fn matching<K: DocumentId>(&self, visit: &mut dyn FnMut(Document<K>)) -> Result<()> {
        let is_exact = self.is_exact();
        self.documents(None, &mut |document: Document<K>| {
            let holds = |condition| matches(condition, &document.doc);
            if is_exact || self.condition.as_ref().is_none_or(holds) {
                visit(document);
            }
        })
    }

    /// The first ids that the indexes find.
    fn into_ids<K: DocumentId>(mut self, limit: u64) -> Result<Vec<K>> {
        let filter = self.path_filter.take().map(|it| it.filter);
        let request = ScanRequest { filter, ..self.request(vec![0], Some(limit)) };
        let mut ids = Vec::new();
        for batch in self.reader.scan(request)? {
            self.reader.ending().check()?;
            let batch = batch?;
            for place in 0..batch.rows {
                let id = batch.columns.first().map(|column| column.value(place));
                ids.push(id.and_then(|id| K::of(&id)).ok_or_else(other_row)?);
            }
        }
        Ok(ids)
    }

    /// Visits the first documents that the indexes find, by id.
    fn documents<K: DocumentId>(
        &self,
        limit: Option<u64>,
        visit: &mut dyn FnMut(Document<K>),
    ) -> Result<()> {
        each_document(&self.reader, self.request(vec![0, DOC_PLACE], limit), visit)
    }

    fn request(&self, columns: Vec<usize>, limit: Option<u64>) -> ScanRequest {
        ScanRequest {
            table: self.collection.to_string(),
            filter: self.filter(),
            columns,
            batch_rows: BATCH_ROWS,
            in_key_order: true,
            limit,
            ..ScanRequest::default()
        }
    }
}

/// The paths that a filter tests, each once.
fn paths_of(filter: &EngineFilter, paths: &mut Vec<String>) {
    let mut add = |index: String| {
        if !paths.contains(&index) {
            paths.push(index);
        }
    };
    match filter {
        EngineFilter::Path(_, names, _) => add(names.join(".")),
        EngineFilter::PathsTogether(_, names, _) => {
            add(shown(IndexKind::Values, names.iter().map(Vec::as_slice)));
        }
        EngineFilter::PathTexts(_, names, _) => {
            add(shown(IndexKind::Texts, names.iter().map(Vec::as_slice)));
        }
        EngineFilter::And(parts) | EngineFilter::Or(parts) => {
            parts.iter().for_each(|part| paths_of(part, paths));
        }
        EngineFilter::Not(part) => paths_of(part, paths),
        _ => {}
    }
}

/// Sorts the candidates and keeps the first ones.
fn keep_best<K: DocumentId>(kept: &mut Vec<Candidate<K>>, wanted: usize, sort: &[(Field, bool)]) {
    if !sort.is_empty() {
        kept.sort_by(|a, b| compare(a, b, sort));
    }
    kept.truncate(wanted);
}

fn compare<K: DocumentId>(a: &Candidate<K>, b: &Candidate<K>, sort: &[(Field, bool)]) -> Ordering {
    let keys = a.keys.iter().zip(&b.keys).zip(sort);
    let ordered = keys.map(|((a, b), (_, descending))| {
        let order = order(a.as_ref(), b.as_ref());
        if *descending { order.reverse() } else { order }
    });
    let mut unequal = ordered.filter(|order| order.is_ne());
    unequal.next().unwrap_or_else(|| a.document.id.cmp(&b.document.id))
}
