//! Finds documents by their content.

use std::{marker::PhantomData, sync::Arc};

use remora_engine::{Filter as EngineFilter, KeyValues, PathStart, Reader, Value};
use serde::de::DeserializeOwned;

use super::{
    DOC_PLACE, Document, DocumentId, FindPlan, IndexKind, Moment, PathFacet, cursor::SortPlace,
    facets::Tally, fields::KeptFields, indexes::shown, other_row, parse, prepared::PreparedFind,
};
use crate::{
    Error, Field, Filter, IntoFilter, Paths, Result, field,
    filter::{Condition, check_depth, matches},
    handle::Handle,
};

/// The default number of values of a facet.
const DEFAULT_FACET: usize = 100;
/// How many candidates beyond the page are kept before the worst are dropped.
const SLACK: usize = 1_024;

/// A search of a collection, which [`Find::run`] executes. By default it returns all matching
/// documents in the order of their ids.
///
/// ```
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let books = db.collection("books")?;
/// let years = [2001, 1987, 2015];
/// books.insert_many(years.map(|year| json!({"title": format!("Of {year}"), "year": year})))?;
/// let recent = books.find("year > 2000").sort_by_desc("year").limit(1).fields("title");
/// let found = recent.run()?;
/// assert_eq!((found.total, &found.documents[0].doc), (2, &json!({"title": "Of 2015"})));
/// assert_eq!(books.find("title MATCHES '1987'").count()?, 1);
///
/// let now = books.now();
/// let rest = books.all().filter("year < 2010").sort_by("year").offset(1).facet_of("year", 10);
/// let rest = rest.at(&now).run()?;
/// assert_eq!((rest.documents.len(), rest.facets[0].distinct), (1, 2));
/// # Ok::<(), remora::Error>(())
/// ```
#[must_use = "a search does nothing before run() or count()"]
pub struct Find<K: DocumentId = i64> {
    handle: Arc<Handle>,
    collection: Arc<str>,
    filters: Vec<Filter>,
    sort: Vec<(Field, bool)>,
    limit: usize,
    offset: usize,
    after: Option<String>,
    fields: Option<KeptFields>,
    facets: Vec<(Field, usize)>,
    wrong: Option<Error>,
    /// The moment at which it reads; `None` means the time of execution.
    at: Option<Reader>,
    ids: PhantomData<K>,
}

/// The result of a search, all as of one moment.
///
/// ```
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let votes = db.collection("votes")?;
/// votes.insert_many((0..5).map(|n| json!({"n": n})))?;
/// let first = votes.find("n > 0").sort_by("n").limit(3).run()?;
/// assert_eq!((first.total, first.documents.len()), (4, 3));
/// let cursor = first.cursor.ok_or(remora::Error::Closed)?;
/// let second = votes.find("n > 0").sort_by("n").limit(3).after(&cursor).run()?;
/// assert_eq!(second.documents[0].doc, json!({"n": 4}));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FoundDocuments<K: DocumentId = i64> {
    /// The exact number of documents that satisfy the filter, regardless of the page.
    pub total: u64,
    /// The documents of the page.
    pub documents: Vec<Document<K>>,
    /// The facets, in the order in which they were requested.
    pub facets: Vec<PathFacet>,
    /// The argument of [`Find::after`] for the next page; `None` if the page is empty, or if the
    /// sort values of its last document take more than 700 KiB.
    pub cursor: Option<String>,
}

/// A document that satisfies the filter, with its place in the order.
struct Candidate<K: DocumentId> {
    place: SortPlace<K>,
    document: Document<K>,
}

/// Which of the documents that satisfy the filter are returned, and what of them.
struct Page<K: DocumentId> {
    sort: Vec<(Field, bool)>,
    /// The place behind which the page begins.
    start: Option<SortPlace<K>>,
    limit: usize,
    offset: usize,
    fields: Option<KeptFields>,
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
            after: None,
            fields: None,
            facets: Vec::new(),
            wrong: None,
            at: None,
            ids: PhantomData,
        }
    }

    /// Reads the collection as of this moment. [`Find::run`] refuses one of another collection with [`Error::Request`].
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

    /// Returns at most this many documents: all if it is not called.
    pub fn limit(mut self, documents: usize) -> Self {
        self.limit = documents;
        self
    }

    /// Skips this many documents. For deep pages [`Find::after`] is cheaper.
    pub fn offset(mut self, documents: usize) -> Self {
        self.offset = documents;
        self
    }

    /// Continues behind the page that had this [`FoundDocuments::cursor`], in the same order. A
    /// cursor is a place in the order, so no document is missed or repeated because others come, go
    /// or are equal in the order. Each page is as of its own moment, unless [`Find::at`] says one.
    /// Cost: that of a first page, if an index has the order; otherwise all documents found are
    /// read for each page.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// books.insert_many((0..5).map(|n| serde_json::json!({"year": 1990 + n % 2})))?;
    /// let (mut found, mut cursor) = (0, None::<String>);
    /// loop {
    ///     let mut page = books.all().sort_by_desc("year").limit(2);
    ///     if let Some(cursor) = &cursor {
    ///         page = page.after(cursor);
    ///     }
    ///     let page = page.run()?;
    ///     found += page.documents.len();
    ///     cursor = page.cursor;
    ///     if cursor.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(found, 5);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn after(mut self, cursor: &str) -> Self {
        self.after = Some(cursor.to_owned());
        self
    }

    /// Returns only the values at these paths, with the objects and arrays around them: of
    /// `{"a": {"b": 1, "c": 2}}` the path `a.b` leaves `{"a": {"b": 1}}`. A path leads into each
    /// element of an array, a number to one of them; elements without such a value are left out.
    /// Cost: documents are read whole, and only what is left is kept in memory.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let orders = db.collection("orders")?;
    /// orders.insert_json(r#"{"items": [{"sku": "x", "qty": 1}, {"sku": "y"}], "note": "…"}"#)?;
    /// let found = orders.all().fields(["items.sku"]).run()?;
    /// assert_eq!(found.documents[0].doc, serde_json::json!({"items": [{"sku": "x"}, {"sku": "y"}]}));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn fields(mut self, paths: impl Into<Paths>) -> Self {
        self.fields = Some(KeptFields::new(paths.into()));
        self
    }

    /// Adds the hundred most frequent values at a path among all documents that satisfy the filter,
    /// regardless of the page.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// for text in [r#"{"tags": ["sea", "ice", "sea"]}"#, r#"{"tags": "sea"}"#, "{}"] {
    ///     books.insert_json(text)?;
    /// }
    /// let found = books.all().facet("tags").limit(0).run()?;
    /// assert_eq!(found.facets[0].values, [("sea".into(), 2), ("ice".into(), 1)]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn facet(self, path: impl Into<Field>) -> Self {
        self.facet_of(path, DEFAULT_FACET)
    }

    /// Adds this many of the most frequent values at a path: nulls, booleans, numbers and texts, also
    /// the elements of arrays. A document counts once for each of its distinct values. Counts are
    /// exact. Cost: each value in the index of the path is read, and no document, if the path has an index
    /// of its own and indexes answer the filter exactly or there is none; otherwise, or if few documents
    /// are found, these are read.
    pub fn facet_of(mut self, path: impl Into<Field>, values: usize) -> Self {
        self.facets.push((path.into(), values));
        self
    }

    /// Executes the search. Cost: each document that the indexes do not exclude is read and parsed,
    /// a few microseconds each. Only the documents of the page are read if the indexes answer the
    /// filter exactly, and there is no order or one of indexed paths that lead to at most one value
    /// in each document.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.insert_many([1987, 2001, 2015].map(|year| serde_json::json!({"year": year})))?;
    /// let found = books.find("year >= 2000").sort_by("year").limit(1).run()?;
    /// assert_eq!((found.total, found.documents.len()), (2, 1));
    /// assert_eq!(found.documents[0].doc["year"], 2001);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if the filter or the cursor is wrong, [`Error::NotFound`] if the collection
    /// was dropped, [`Error::Busy`] if the distinct values of a facet take more than 256 MiB,
    /// [`Error::Corrupt`], [`Error::Io`] or [`Error::Closed`] if it cannot be read.
    pub fn run(mut self) -> Result<FoundDocuments<K>> {
        let asked = self.asked()?;
        let page = self.page()?;
        let facets = std::mem::take(&mut self.facets).into_iter();
        let mut tallies: Vec<Tally> =
            facets.map(|(path, values)| Tally::new(path, values)).collect();
        tallies.iter_mut().try_for_each(|tally| tally.ask_index(&asked))?;
        let (total, candidates) = match page.by_index(&asked)? {
            Some(candidates) => {
                if tallies.iter().any(Tally::is_open) {
                    asked.matching(None, &mut |document: Document<K>| {
                        tallies.iter_mut().try_for_each(|tally| tally.add(&document.doc))
                    })?;
                }
                (asked.count()?, candidates)
            }
            None => page.by_reading(&asked, &mut tallies)?,
        };
        let last = candidates.last().map(|candidate| &candidate.place);
        Ok(FoundDocuments {
            total,
            cursor: last.and_then(|place| place.to_cursor(&self.collection, &page.sort)),
            documents: candidates.into_iter().map(|candidate| candidate.document).collect(),
            facets: tallies.into_iter().map(Tally::finish).collect(),
        })
    }

    /// Executes the search and deserializes the documents. Cost: that of [`Find::run`].
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.insert_json(r#"{"title": "Reef", "year": 1999}"#)?;
    /// #[derive(serde::Deserialize)]
    /// struct Book {
    ///     title: String,
    ///     year: u16,
    /// }
    /// let found: Vec<Book> = books.find("year < 2000").run_as()?;
    /// assert_eq!((found[0].title.as_str(), found[0].year), ("Reef", 1999));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Find::run`], and [`Error::Request`] if a document cannot be deserialized as `T`.
    pub fn run_as<T: DeserializeOwned>(self) -> Result<Vec<T>> {
        self.run()?.documents.iter().map(Document::deserialize).collect()
    }

    /// The exact number of matching documents, regardless of the page. Cost: reads no document if indexes answer the
    /// filter exactly, else those that they leave.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.insert_many([1987, 2001, 2015].map(|year| serde_json::json!({"year": year})))?;
    /// assert_eq!(books.find("year >= 2000").limit(1).count()?, 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Find::run`].
    pub fn count(mut self) -> Result<u64> {
        let asked = self.asked()?;
        if asked.is_exact() {
            return asked.count();
        }
        let mut total = 0;
        asked.matching(None, &mut |_: Document<K>| {
            total += 1;
            Ok(())
        })?;
        Ok(total)
    }

    /// The ids of the matching documents, sorted by id or in the requested order, within limit and
    /// offset. Cost: that of [`Find::run`]. No document is read if indexes answer the filter
    /// exactly and no order is requested.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// let ids = books.insert_many([1987, 2001, 2015].map(|year| serde_json::json!({"year": year})))?;
    /// assert_eq!(books.find("year >= 2000").ids()?, ids[1..]);
    /// assert_eq!(books.all().sort_by_desc("year").limit(1).ids()?, ids[2..]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Find::run`].
    pub fn ids(mut self) -> Result<Vec<K>> {
        if !self.sort.is_empty() {
            let found = self.run()?;
            return Ok(found.documents.into_iter().map(|document| document.id).collect());
        }
        let asked = self.asked()?;
        let page = self.page()?;
        let (wanted, start) = (page.wanted(), page.start_id());
        let mut ids = Vec::new();
        match asked.is_exact() {
            true => ids = asked.ids(start, wanted)?,
            false => asked.matching(start, &mut |document: Document<K>| {
                if ids.len() < wanted {
                    ids.push(document.id);
                }
                Ok(())
            })?,
        }
        ids.drain(..page.offset.min(ids.len()));
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
        let page = self.page()?;
        let (mut passed, mut left) = (0, page.limit);
        let request = asked.request(vec![0, DOC_PLACE], page.start_id(), None);
        for batch in asked.reader.scan(request).map_err(Error::from)? {
            asked.reader.ending().check().map_err(Error::from)?;
            let batch = batch.map_err(Error::from)?;
            for place in 0..batch.rows {
                let mut row = batch.columns.iter().map(|column| column.value(place));
                let (Some(id), Some(Value::Json(text))) = (row.next(), row.next()) else {
                    return Err(other_row().into());
                };
                let id = K::of(&id).ok_or_else(other_row)?;
                if let Some(condition) = asked.open_condition()
                    && !matches(condition, &parse(id.given(), &text)?)
                {
                    continue;
                }
                passed += 1;
                if passed <= page.offset {
                    continue;
                }
                if left == 0 {
                    return Ok(());
                }
                left -= 1;
                match &page.fields {
                    Some(fields) => {
                        let document = fields.keep(parse(id.given(), &text)?);
                        visit(id, &document.to_string())?;
                    }
                    None => visit(id, &text)?,
                }
            }
        }
        Ok(())
    }

    /// How the search would be executed now. Cost: microseconds; reads no document.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.index("year")?;
    /// let plan = books.find("year >= 2000 AND pages > 100").explain()?;
    /// assert_eq!((plan.indexes, plan.is_exact), (vec!["year".to_owned()], false));
    /// assert!(books.find("pages > 100").explain()?.indexes.is_empty()); // Reads all documents.
    /// # Ok::<(), remora::Error>(())
    /// ```
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
            && let Some((index, _)) = asked.first(&self.sort, None, 0)?
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
        if let Some(condition) = &condition {
            check_depth(condition)?;
        }
        let reader = self.at.take().unwrap_or_else(|| self.handle.engine.reader());
        let needs_indexes = !self.sort.is_empty() || !self.facets.is_empty();
        PreparedFind::new(reader, Arc::clone(&self.collection), condition, needs_indexes)
    }

    fn page(&mut self) -> Result<Page<K>> {
        let sort = std::mem::take(&mut self.sort);
        let start = self.after.take();
        let start = start
            .map(|cursor| SortPlace::of_cursor(&cursor, &self.collection, &sort))
            .transpose()?;
        let (limit, offset) = (self.limit, self.offset);
        Ok(Page { sort, start, limit, offset, fields: self.fields.take() })
    }
}

impl<K: DocumentId> Page<K> {
    /// How many documents from the start on are needed.
    fn wanted(&self) -> usize {
        self.limit.saturating_add(self.offset)
    }

    /// The id behind which a page in the order of ids begins.
    fn start_id(&self) -> Option<&K> {
        self.start.as_ref().map(|start| &start.id)
    }

    /// The documents, if only these have to be read.
    fn by_index(&self, asked: &PreparedFind) -> Result<Option<Vec<Candidate<K>>>> {
        if self.wanted() == 0 && asked.is_exact() {
            return Ok(Some(Vec::new()));
        }
        if self.sort.is_empty() && asked.is_exact() {
            let documents = asked.documents(self.start_id(), self.wanted())?;
            let page = documents.into_iter().skip(self.offset);
            return Ok(Some(page.map(|document| self.candidate(document)).collect()));
        }
        let start: Option<PathStart> = self.start.as_ref().map(SortPlace::to_start);
        let Some((_, keys)) = asked.first(&self.sort, start.as_ref(), self.wanted())? else {
            return Ok(None);
        };
        let document = |key: &KeyValues| Ok(self.candidate(asked.document(key)?));
        keys.iter().skip(self.offset).map(document).collect::<Result<_>>().map(Some)
    }

    /// How many documents satisfy the condition, and those of the page, after reading all that the
    /// indexes leave. Each is counted.
    fn by_reading(
        &self,
        asked: &PreparedFind,
        tallies: &mut [Tally],
    ) -> Result<(u64, Vec<Candidate<K>>)> {
        let wanted = self.wanted();
        let (mut kept, mut total) = (Vec::new(), 0_u64);
        asked.matching(None, &mut |document: Document<K>| {
            total += 1;
            tallies.iter_mut().try_for_each(|tally| tally.add(&document.doc))?;
            if wanted == 0 || self.sort.is_empty() && kept.len() >= wanted {
                return Ok(());
            }
            let place = SortPlace::of(&document.doc, &document.id, &self.sort);
            if self.start.as_ref().is_some_and(|start| place.compare(start, &self.sort).is_le()) {
                return Ok(());
            }
            kept.push(Candidate { place, document: self.reduced(document) });
            if !self.sort.is_empty() && kept.len() / 2 > wanted.saturating_add(SLACK) {
                keep_best(&mut kept, wanted, &self.sort);
            }
            Ok(())
        })?;
        keep_best(&mut kept, wanted, &self.sort);
        kept.drain(..self.offset.min(kept.len()));
        Ok((total, kept))
    }

    fn candidate(&self, document: Document<K>) -> Candidate<K> {
        let place = SortPlace::of(&document.doc, &document.id, &self.sort);
        Candidate { place, document: self.reduced(document) }
    }

    /// The document with the requested fields.
    fn reduced(&self, document: Document<K>) -> Document<K> {
        match &self.fields {
            Some(fields) => Document { id: document.id, doc: fields.keep(document.doc) },
            None => document,
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
        kept.sort_by(|a, b| a.place.compare(&b.place, sort));
    }
    kept.truncate(wanted);
}
