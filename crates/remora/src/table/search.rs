//! Searches of a table: conditions, order, page, and additional results.

use std::sync::Arc;

use remora_engine::{
    Error as EngineError, FacetRequest, Filter as EngineFilter, Highlight, Hit, Missing, Reader,
    Schema, SearchRequest, Selection, SortBy, SortKey, TextQuery, Value, is_computed_name,
};
use serde::de::DeserializeOwned;

use crate::{
    Error, Filter, IntoFilter, Result,
    filter::of_rows,
    handle::Handle,
    row::{Column, Row, columns_named},
};

/// The default number of rows of a page.
const DEFAULT_LIMIT: usize = 20;
/// The default number of values of a facet.
const DEFAULT_FACET: usize = 100;

/// A search of a table, which [`Search::run`] executes. By default it returns the first 20 rows in
/// descending order of the key.
///
/// ```
/// use remora::{Database, Value};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name").short_text("place"))?;
/// birds.insert(&json!({"id": 1, "name": "Grey heron", "place": "lake"}))?;
/// birds.insert(&json!({"id": 2, "name": "Night heron", "place": "lake"}))?;
/// let found = birds.search("heron").filter("id > 1").order_by("id").limit(10).run()?;
/// assert_eq!((found.total, found.rows[0].row.value("id")?), (1, &Value::Int(2)));
///
/// let last = birds.search("heron").order_by_desc("place").order_by_key().offset(1).columns(["name"]);
/// assert_eq!(last.run_as::<String>()?, ["Night heron"]);
/// let found = birds.search("heron").facet("place").facet_of("id", 1).run()?;
/// assert_eq!((found.facets[0].distinct, found.facets[1].values.len()), (1, 1));
/// # Ok::<(), remora::Error>(())
/// ```
#[must_use = "a search does nothing before run() or count()"]
pub struct Search {
    handle: Arc<Handle>,
    request: SearchRequest,
    filters: Vec<Filter>,
    facets: Vec<(String, usize)>,
    wrong: Option<Error>,
    /// The moment at which it reads; `None` means the time of execution.
    at: Option<Reader>,
}

/// The result of a search, all as of one moment.
///
/// ```
/// use remora::{Database, Value};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name").short_text("place"))?;
/// birds.insert(&json!({"id": 1, "name": "Grey heron", "place": "lake"}))?;
/// birds.insert(&json!({"id": 2, "name": "Night heron", "place": "lake"}))?;
/// let first = birds.search("heron").order_by_key().limit(1).run()?;
/// assert_eq!((first.total, first.rows.len()), (2, 1));
/// let cursor = first.cursor.ok_or(remora::Error::Closed)?;
/// let second = birds.search("heron").order_by_key().limit(1).after(&cursor).run()?;
/// assert_eq!(second.rows[0].row.value("id")?, &Value::Int(2));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Found {
    /// The exact number of matching rows, regardless of the page.
    pub total: u64,
    /// The columns of the rows, also if there are no rows.
    pub columns: Arc<[Column]>,
    /// The rows of the page.
    pub rows: Vec<FoundRow>,
    /// The facets, in the order in which they were requested.
    pub facets: Vec<Facet>,
    /// The argument of [`Search::after`] for the next page; `None` if the page is empty.
    pub cursor: Option<String>,
}

/// A matching row.
///
/// ```
/// use remora::{Database, Value};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name").short_text("place"))?;
/// birds.insert(&json!({"id": 1, "name": "Grey heron", "place": "lake"}))?;
/// birds.insert(&json!({"id": 2, "name": "Night heron", "place": "lake"}))?;
/// let found = birds.search("grey").by_score().highlight("<b>", "</b>").run()?;
/// let row = &found.rows[0];
/// assert_eq!(row.snippet.as_deref(), Some("<b>Grey</b> heron"));
/// assert!(row.score.is_some_and(|score| score > 0.0) && row.row.value("id")? == &Value::Int(1));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FoundRow {
    /// The row.
    pub row: Row,
    /// The text around the matches, which are marked, if requested by [`Search::highlight`].
    pub snippet: Option<String>,
    /// The BM25 score, if requested by [`Search::by_score`].
    pub score: Option<f64>,
}

/// The values of a column in the matching rows.
///
/// ```
/// use remora::{Database, Value};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name").short_text("place"))?;
/// birds.insert(&json!({"id": 1, "name": "Grey heron", "place": "lake"}))?;
/// birds.insert(&json!({"id": 2, "name": "Night heron", "place": "lake"}))?;
/// let found = birds.all().facet("place").run()?;
/// let facet = &found.facets[0];
/// assert_eq!((facet.column.as_str(), facet.distinct), ("place", 1));
/// assert_eq!(facet.values, [(Value::Text("lake".into()), 2)]);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Facet {
    /// The column.
    pub column: String,
    /// Values with the numbers of rows that have them, the most frequent first.
    pub values: Vec<(Value, u64)>,
    /// The number of distinct values.
    pub distinct: u64,
}

impl Found {
    /// Deserializes the rows. Cost: a copy of the rows.
    ///
    /// ```
    /// #[derive(serde::Deserialize)]
    /// struct Bird {
    ///     name: String,
    /// }
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let found = birds.search("heron").run()?;
    /// assert_eq!(found.deserialize::<Bird>()?[0].name, "Heron");
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] with the column that does not fit.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        self.rows.iter().map(|found| found.row.deserialize()).collect()
    }

    /// Converts the rows to Arrow, as [`Database::query_arrow`](crate::Database::query_arrow) does. Cost: a copy of the
    /// rows.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let batches = birds.search("heron").run()?.to_arrow()?;
    /// assert_eq!((batches[0].num_rows(), batches[0].num_columns()), (1, 2));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if Arrow cannot represent a value, such as a zero date.
    #[cfg(feature = "sql")]
    pub fn to_arrow(&self) -> Result<Vec<arrow::record_batch::RecordBatch>> {
        let rows: Vec<&Row> = self.rows.iter().map(|found| &found.row).collect();
        crate::row::batches(&self.columns, &rows)
    }
}

impl Search {
    pub(super) fn new(handle: Arc<Handle>, table: &str, text: Option<&str>) -> Self {
        let text = text.map(|text| TextQuery::Term(text.to_owned()));
        let selection = Selection { table: table.to_owned(), text, ..Selection::default() };
        let fields = vec!["*".to_owned()];
        let request =
            SearchRequest { selection, limit: DEFAULT_LIMIT, fields, ..SearchRequest::default() };
        Self { handle, request, filters: Vec::new(), facets: Vec::new(), wrong: None, at: None }
    }

    /// Reads the table at the moment of this reader.
    pub(crate) fn at(mut self, reader: Result<Reader>) -> Self {
        match reader {
            Ok(reader) => self.at = Some(reader),
            Err(error) => self.wrong = self.wrong.or(Some(error)),
        }
        self
    }

    /// The moment at which it reads.
    fn reader(&mut self) -> Reader {
        self.at.take().unwrap_or_else(|| self.handle.engine.reader())
    }

    /// Rows must also contain this text.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron, grey"}))?;
    /// assert_eq!(birds.search("grey").and("heron").count()?, 1);
    /// assert_eq!(birds.search("grey heron").count()?, 0); // The text itself is not there.
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn and(self, text: &str) -> Self {
        let term = TextQuery::Term(text.to_owned());
        self.with_text(|before| match before {
            Some(TextQuery::And(mut parts)) => {
                parts.push(term);
                TextQuery::And(parts)
            }
            Some(before) => TextQuery::And(vec![before, term]),
            None => term,
        })
    }

    /// Rows may contain this text instead of the texts that were required before.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// birds.insert(&serde_json::json!({"id": 2, "name": "Kite"}))?;
    /// assert_eq!(birds.search("heron").or("kite").count()?, 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn or(self, text: &str) -> Self {
        let term = TextQuery::Term(text.to_owned());
        self.with_text(|before| match before {
            Some(TextQuery::Or(mut parts)) => {
                parts.push(term);
                TextQuery::Or(parts)
            }
            Some(before) => TextQuery::Or(vec![before, term]),
            None => term,
        })
    }

    /// Rows must not contain this text.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Night heron"}))?;
    /// birds.insert(&serde_json::json!({"id": 2, "name": "Grey heron"}))?;
    /// assert_eq!(birds.search("heron").and_not("grey").count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn and_not(self, text: &str) -> Self {
        let absent = TextQuery::Not(Box::new(TextQuery::Term(text.to_owned())));
        self.with_text(|before| match before {
            Some(TextQuery::And(mut parts)) => {
                parts.push(absent);
                TextQuery::And(parts)
            }
            Some(before) => TextQuery::And(vec![before, absent]),
            None => absent,
        })
    }

    fn with_text(mut self, join: impl FnOnce(Option<TextQuery>) -> TextQuery) -> Self {
        let before = self.request.selection.text.take();
        self.request.selection.text = Some(join(before));
        self
    }

    /// Finds words within this edit distance, 1 or 2 characters that are added, left out or changed, instead of parts
    /// of the text. [`Search::run`] refuses other distances with [`Error::Request`].
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Common kingfisher"}))?;
    /// assert_eq!(birds.search("kingfischer").count()?, 0);
    /// assert_eq!(birds.search("kingfischer").fuzzy(1).count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn fuzzy(mut self, edits: u8) -> Self {
        self.request.selection.fuzzy = Some(edits);
        self
    }

    /// Adds a filter: a text as described at [`Filter`], or
    /// [`field`](crate::field)`("year").at_least(1990)`.
    pub fn filter(mut self, filter: impl IntoFilter) -> Self {
        match filter.into_filter() {
            Ok(filter) => self.filters.push(filter),
            Err(error) => self.wrong = self.wrong.or(Some(error)),
        }
        self
    }

    /// Sorts by this column, ascending, after the sort orders before. NULL comes first.
    pub fn order_by(self, column: &str) -> Self {
        self.sort(SortBy::Column(column.to_owned()), false)
    }

    /// Sorts by this column, descending, after the sort orders before. NULL comes last.
    pub fn order_by_desc(self, column: &str) -> Self {
        self.sort(SortBy::Column(column.to_owned()), true)
    }

    /// Sorts by the key, ascending.
    pub fn order_by_key(self) -> Self {
        self.sort(SortBy::Key, false)
    }

    /// Sorts by BM25 score, the best first, with k1 = 1.2 and b = 0.75.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron, heron, heron"}))?;
    /// birds.insert(&serde_json::json!({"id": 2, "name": "A bird that is not a heron at all"}))?;
    /// let best = birds.search("heron").by_score().limit(1).run()?;
    /// assert_eq!(best.rows[0].row.get::<i64>("id")?, 1);
    /// assert!(best.rows[0].score.is_some());
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn by_score(self) -> Self {
        self.sort(SortBy::Score, true)
    }

    fn sort(mut self, by: SortBy, descending: bool) -> Self {
        self.request.sort.push(SortKey { by, descending });
        self
    }

    /// Returns at most this many rows: 20 if it is not called, 10,000,000 at most.
    pub fn limit(mut self, rows: usize) -> Self {
        self.request.limit = rows;
        self
    }

    /// Skips this many rows; with those of the page at most 10,000,000. For deep pages [`Search::after`] is cheaper.
    pub fn offset(mut self, rows: usize) -> Self {
        self.request.offset = rows;
        self
    }

    /// Continues after the page that had this [`Found::cursor`], in the same order. No row is missed or repeated
    /// because others come or go. Cost: that of a first page.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert_many((1..=3).map(|id| serde_json::json!({"id": id, "name": "Heron"})))?;
    /// let first = birds.search("heron").order_by_key().limit(2).run()?;
    /// let cursor = first.cursor.ok_or("the page is empty")?;
    /// let rest = birds.search("heron").order_by_key().limit(2).after(&cursor).run()?;
    /// assert_eq!((rest.total, rest.rows.len()), (3, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after(mut self, cursor: &str) -> Self {
        self.request.after = Some(cursor.to_owned());
        self
    }

    /// Returns only these columns. The row store is read only if one of them is long: a text, bytes or JSON.
    pub fn columns<'c>(mut self, names: impl IntoIterator<Item = &'c str>) -> Self {
        self.request.fields = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// Adds a snippet of up to 200 characters around the matches, which are enclosed in these two
    /// texts.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Grey heron"}))?;
    /// let found = birds.search("heron").highlight("<b>", "</b>").run()?;
    /// assert_eq!(found.rows[0].snippet.as_deref(), Some("Grey <b>heron</b>"));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn highlight(mut self, open: &str, close: &str) -> Self {
        let (open, close) = (open.to_owned(), close.to_owned());
        self.request.highlight =
            Some(Highlight { open, close, snippet_chars: 200, max_fragments: 3 });
        self
    }

    /// Adds the hundred most frequent values of a column among all matching rows, regardless of the page.
    pub fn facet(self, column: &str) -> Self {
        self.facet_of(column, DEFAULT_FACET)
    }

    /// Adds this many of the most frequent values of a column among all matching rows. Counts are exact.
    pub fn facet_of(mut self, column: &str, values: usize) -> Self {
        self.facets.push((column.to_owned(), values));
        self
    }

    /// Executes the search. Cost: microseconds for what indexes answer, and a read of the row store
    /// for each row with columns that are only stored there.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert_many((1..=30).map(|id| serde_json::json!({"id": id, "name": "Heron"})))?;
    /// let found = birds.search("heron").run()?;
    /// assert_eq!((found.total, found.rows.len()), (30, 20)); // The first page: see `limit`.
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Request`]: the text, a filter, a column, the order, the cursor or the limit is
    ///   invalid.
    /// - [`Error::NotFound`]: the table or a column does not exist.
    /// - [`Error::Corrupt`], [`Error::Io`] or [`Error::Closed`]: it cannot be read.
    pub fn run(mut self) -> Result<Found> {
        let reader = self.reader();
        let schema = self.settle(&reader)?;
        let mut facets = Vec::with_capacity(self.facets.len());
        for (column, limit) in std::mem::take(&mut self.facets) {
            let selection = self.request.selection.clone();
            let request = FacetRequest {
                selection,
                column: column.clone(),
                limit,
                ..FacetRequest::default()
            };
            let reply = reader.facet(&request)?;
            facets.push(Facet { column, values: reply.values, distinct: reply.distinct });
        }
        let reply = reader.search(&self.request)?;
        let columns = columns_named(&schema, &reply.field_names);
        let found = reply.hits.into_iter().map(|hit| found_row(&columns, hit));
        let rows = found.collect();
        Ok(Found { total: reply.total, columns, rows, facets, cursor: reply.cursor })
    }

    /// The exact number of matching rows. Cost: reads no row.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert_many((1..=30).map(|id| serde_json::json!({"id": id, "name": "Heron"})))?;
    /// assert_eq!(birds.search("heron").filter("id > 10").limit(5).count()?, 20);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Search::run`].
    pub fn count(mut self) -> Result<u64> {
        let reader = self.reader();
        self.settle(&reader)?;
        Ok(reader.count(&self.request.selection)?.count)
    }

    /// Executes the search and deserializes the rows. Cost: that of [`Search::run`].
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let found: Vec<(i64, String)> = birds.search("heron").run_as()?;
    /// assert_eq!(found, [(1, "Heron".to_owned())]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Search::run`] and of [`Found::deserialize`].
    pub fn run_as<T: DeserializeOwned>(self) -> Result<Vec<T>> {
        self.run()?.deserialize()
    }

    /// Puts the filters into the request, with the columns' names resolved.
    fn settle(&mut self, reader: &Reader) -> Result<Arc<Schema>> {
        if let Some(error) = self.wrong.take() {
            return Err(error);
        }
        let schema = reader.schema(&self.request.selection.table)?;
        if let Some(all) = std::mem::take(&mut self.filters).into_iter().reduce(|a, b| a & b) {
            let filter = of_rows(&all.0, reader, &self.request.selection)?;
            self.request.selection.filter = Some(filter);
        }
        match self.computed_column() {
            None => Ok(schema),
            Some(name) => {
                let message = format!("table {:?} has no column {name:?}", schema.name);
                Err(EngineError::missing(Missing::Column, message).into())
            }
        }
    }

    /// The hidden column of a functional key that the search names, if it names one.
    fn computed_column(&self) -> Option<&str> {
        let filtered = self.request.selection.filter.iter().flat_map(EngineFilter::columns);
        let sorted = self.request.sort.iter().filter_map(|key| match &key.by {
            SortBy::Column(name) | SortBy::TextKey(name, _) => Some(name.as_str()),
            SortBy::Key | SortBy::Score => None,
        });
        let fields = self.request.fields.iter().map(String::as_str);
        let facets = self.facets.iter().map(|(name, _)| name.as_str());
        let mut all = filtered.chain(sorted).chain(fields).chain(facets);
        all.find(|name| is_computed_name(name))
    }
}

fn found_row(columns: &Arc<[Column]>, hit: Hit) -> FoundRow {
    let row = Row::new(Arc::clone(columns), hit.fields);
    FoundRow { row, snippet: hit.snippet, score: hit.score }
}
