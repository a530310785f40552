//! A reader: a snapshot of all tables.

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use super::{
    distinct::distinct,
    facet::{FacetLimit, MAX_FACET_BYTES, facet, facet_within},
    gathered::{GatheredTable, MAX_HIDDEN, MAX_HIDDEN_BYTES},
    get::{get, get_many},
    key_page::{key_ends, keys_after, keys_from},
    ranked::Ranked,
    runs::values_in_order,
    scan::{Scan, ViewScan},
    search::{
        access, best, count, count_access, first, first_access, planned_count, search,
        search_access,
    },
};
use crate::{
    AccessPath, CountReply, Error, FacetReply, FacetRequest, Hit, IndexUsage, KeyValues,
    KeywordCounts, KeywordQuery, KeywordReport, KeywordStatistics, Position, QueryReport,
    RequestPart, Result, Row, ScanRequest, Schema, SearchReply, SearchRequest, Selection,
    SourcePositions, TableIndex, Value, ValuesReply, ValuesRequest, WantedStatistics,
    encode::{decode_key, encode_key},
    error::no_table,
    indexing::RequiredRows,
    interrupt::{Interrupt, InterruptCheck},
    schema::{is_united, united_name},
    shared::DatabaseState,
    snapshot::{HiddenRows, Snapshot, TableView, of_other_servers},
};

/// The prefix of the names of hidden tables.
const HIDDEN: char = '#';

/// The version of a table's rows. While a data directory is open, equal versions mean the same rows under the same
/// definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableVersion {
    /// The table's id. A table that is dropped and created again has another.
    pub table: u32,
    /// The last batch that changed one of its rows.
    pub changed: Position,
}

/// Opens tables with rows on other servers. Each table is opened once, so that all its readers see the same
/// snapshots.
pub trait RemoteTables: Send + Sync {
    /// Opens the table of this declaration. `reader` has its local parts.
    ///
    /// # Errors
    /// [`crate::Error::RemoteServer`] if a server fails or gives a wrong answer; those of [`GatheredTable::open`].
    fn table(&self, declared: &Schema, reader: &Reader) -> Result<Arc<GatheredTable>>;
}

/// A reader may hide this many times as many keys, and bytes of keys, as one server hides in all parts of a table.
const HIDING_SERVERS: usize = 4;

/// A table with some of its rows hidden.
#[derive(Clone)]
struct Narrowed {
    name: Arc<str>,
    /// The hidden keys.
    hidden: Arc<BTreeSet<Vec<u8>>>,
    /// The table with all rows.
    base: NarrowedTable,
    table: NarrowedTable,
}

#[derive(Clone)]
enum NarrowedTable {
    Here(Arc<TableView>),
    Gathered(Arc<GatheredTable>),
}

/// The table without the rows with these keys.
fn without(table: &TableView, keys: &[Vec<u8>]) -> TableView {
    let mut view = table.clone();
    for segment in &mut view.segments {
        let without = segment.without(keys.iter().map(Vec::as_slice), &view.schema);
        *segment = without.unwrap_or_else(|| segment.clone());
    }
    view.rows = Arc::new(HiddenRows::new(Arc::clone(&view.rows), keys));
    view
}

/// A snapshot of all tables. Every answer is of this snapshot, whatever is written meanwhile.
///
/// Cheap to create and to clone. It keeps what it can read in memory and on disk: replaced rows, and segments that
/// were merged since. All methods can be called from any thread; none waits for a writer. After the database is
/// closed, methods that read a local table return [`crate::Error::Closed`].
#[derive(Clone)]
pub struct Reader {
    shared: Arc<DatabaseState>,
    snapshot: Arc<Snapshot>,
    unless: InterruptCheck,
    /// Opens tables with rows on other servers.
    elsewhere: Option<Arc<dyn RemoteTables>>,
    narrowed: Option<Narrowed>,
}

impl Reader {
    /// A reader of the newest snapshot.
    pub(crate) fn new(shared: &Arc<DatabaseState>) -> Self {
        Self::of(shared, shared.published.load())
    }

    /// A reader of this snapshot.
    pub(crate) fn of(shared: &Arc<DatabaseState>, snapshot: Arc<Snapshot>) -> Self {
        let shared = Arc::clone(shared);
        Self { shared, snapshot, unless: InterruptCheck::NEVER, elsewhere: None, narrowed: None }
    }

    /// The same snapshot, with a way to interrupt searches, [`Reader::values_in_order`] and reads of tables
    /// with rows on other servers. They end with [`crate::Error::Ended`] soon after `interrupt` says so: a keyword
    /// search after a few thousand postings and positions, or the documents of a few keywords; another search after
    /// a term in a segment, or a row that is read.
    pub fn with_interrupt(self, interrupt: Arc<dyn Interrupt>) -> Self {
        Self { unless: InterruptCheck::new(interrupt), ..self }
    }

    /// The interrupt of its searches.
    pub fn ending(&self) -> &InterruptCheck {
        &self.unless
    }

    /// The snapshot of another reader of the same database, with the interrupt and the remote tables of this one.
    pub fn reading_as(&self, other: &Self) -> Self {
        self.at(Arc::clone(&other.snapshot))
    }

    /// Another snapshot, read in the same manner, without hidden rows.
    pub(crate) fn at(&self, snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot, narrowed: None, ..self.clone() }
    }

    /// The same snapshot with this interrupt.
    pub(crate) fn with(&self, unless: &InterruptCheck) -> Self {
        Self { unless: unless.clone(), ..self.clone() }
    }

    /// The same snapshot, extended by tables with rows on other servers, as they are when they are opened. Such
    /// tables support [`Reader::schema`], [`Reader::row_count`], [`Reader::count`], [`Reader::scan`],
    /// [`Reader::best_page`], [`Reader::facet_few`] and the methods about keywords except
    /// [`Reader::for_each_keyword`]; the other methods return an error.
    pub fn with_remote_tables(self, elsewhere: Arc<dyn RemoteTables>) -> Self {
        Self { elsewhere: Some(elsewhere), ..self }
    }

    /// The same snapshot with some rows of a table hidden, by their encoded keys. Keys without a row are allowed.
    /// Keys that are hidden already stay hidden. Cost: one look-up for each key and segment, including the keys
    /// hidden before.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`]; [`crate::Error::Request`] if that hides too many keys, or rows of a second
    /// table.
    pub fn without_keys(&self, table: &str, keys: &[Vec<u8>]) -> Result<Self> {
        let refused = |message: String| Err(crate::Error::request(RequestPart::Other, message));
        let (base, mut hidden) = match &self.narrowed {
            Some(before) if *before.name == *table => {
                (before.base.clone(), BTreeSet::clone(&before.hidden))
            }
            Some(before) => {
                return refused(format!(
                    "rows of {:?} are hidden already: only rows of one table can be hidden",
                    before.name
                ));
            }
            None => match self.gathered(table)? {
                Some(gathered) => (NarrowedTable::Gathered(gathered), BTreeSet::new()),
                None => (NarrowedTable::Here(Arc::clone(&*self.table(table)?)), BTreeSet::new()),
            },
        };
        // Starts from the base, so that repeated hiding does not nest.
        hidden.extend(keys.iter().cloned());
        let bytes: usize = hidden.iter().map(Vec::len).sum();
        if hidden.len() > HIDING_SERVERS * MAX_HIDDEN || bytes > HIDING_SERVERS * MAX_HIDDEN_BYTES {
            return refused(format!("{} rows are too many to hide", hidden.len()));
        }
        let all: Vec<Vec<u8>> = hidden.iter().cloned().collect();
        let narrowed = match &base {
            NarrowedTable::Gathered(gathered) => {
                NarrowedTable::Gathered(Arc::new(gathered.hiding(&all, &self.unless)?))
            }
            NarrowedTable::Here(found) => NarrowedTable::Here(Arc::new(without(found, &all))),
        };
        let hidden = Arc::new(hidden);
        let narrowed = Some(Narrowed { name: table.into(), hidden, base, table: narrowed });
        Ok(Self { narrowed, ..self.clone() })
    }

    /// The first encoded keys of a table, ascending, from `from` on (included), which need not be the key of a row:
    /// at most `limit`. Only an empty result means the end: for a table with rows on other servers there may be
    /// fewer than `limit` although more follow.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`].
    pub fn keys_from(&self, table: &str, from: &[u8], limit: usize) -> Result<Vec<Vec<u8>>> {
        match self.gathered(table)? {
            Some(gathered) => gathered.keys_from(from, limit, &self.unless),
            None => Ok(keys_from(&*self.table(table)?, from, limit)),
        }
    }

    /// The least and the greatest key that a table may have, encoded; `None` without rows.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`].
    pub fn key_ends(&self, table: &str) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        match self.gathered(table)? {
            Some(gathered) => Ok(gathered.ends()),
            None => Ok(key_ends(&*self.table(table)?)),
        }
    }

    /// A version text of a table's rows. It differs whenever the rows differ, while the data directory is open.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`].
    pub fn rows_version(&self, table: &str) -> Result<String> {
        if let Some(gathered) = self.gathered(table)? {
            return Ok(gathered.version());
        }
        let version = self.version(table)?;
        Ok(format!("{}:{}", version.table, version.changed.0))
    }

    /// The contribution of a table's rows to the statistics of a keyword query, for a distributed table of which
    /// this is a part. The query contains the statistics known so far.
    ///
    /// # Errors
    /// As [`Reader::keywords`].
    pub fn keyword_statistics(
        &self,
        table: &str,
        query: &KeywordQuery,
        wanted: &WantedStatistics,
    ) -> Result<KeywordStatistics> {
        match self.gathered(table)? {
            Some(gathered) => gathered.counted(query, wanted, &self.unless),
            None => Ranked::counted(&*self.table(table)?, query, wanted, &self.unless),
        }
    }

    /// Whether this reader reads a table with rows on other servers.
    pub fn has_remote_parts(&self, table: &str) -> bool {
        let found = self.snapshot.tables.get(table);
        self.elsewhere.is_some() && found.is_some_and(|it| !it.schema.agents().is_empty())
    }

    /// The table of several servers; `None` for a local table.
    fn gathered(&self, name: &str) -> Result<Option<Arc<GatheredTable>>> {
        if let Some(Narrowed { table: NarrowedTable::Gathered(table), .. }) =
            self.narrowed.as_ref().filter(|narrowed| *narrowed.name == *name)
        {
            return Ok(Some(Arc::clone(table)));
        }
        let table = self.snapshot.tables.get(name);
        let (Some(elsewhere), Some(table)) =
            (&self.elsewhere, table.filter(|table| !table.schema.agents().is_empty()))
        else {
            return Ok(None);
        };
        let here = Self { elsewhere: None, narrowed: None, ..self.clone() };
        elsewhere.table(&table.schema, &here).map(Some)
    }

    /// The snapshot.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The database.
    pub(crate) fn shared(&self) -> &Arc<DatabaseState> {
        &self.shared
    }

    /// The position of the last batch in this snapshot.
    pub fn position(&self) -> Position {
        self.snapshot.position
    }

    /// The positions of the sources in this snapshot.
    pub fn sources(&self) -> &SourcePositions {
        &self.snapshot.sources
    }

    /// The names of all tables, sorted, without hidden tables. These have names that begin with `#`; they can be
    /// used as any other, but are not listed.
    pub fn tables(&self) -> Vec<String> {
        let listed = self.snapshot.tables.keys().filter(|name| !name.starts_with(HIDDEN));
        let mut names: Vec<String> = listed.map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    /// A table's definition. For a distributed table it is that of its parts, or the declaration if the parts
    /// cannot be read as one table.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn schema(&self, table: &str) -> Result<Arc<Schema>> {
        match self.gathered(table)? {
            Some(gathered) => Ok(Arc::clone(gathered.schema())),
            None => Ok(Arc::clone(&self.known(table)?.schema)),
        }
    }

    /// The local parts of a distributed table, or of several tables read as one ([`crate::united_name`]); empty
    /// for other tables.
    pub fn parts(&self, table: &str) -> Vec<String> {
        self.snapshot.parts_of(table)
    }

    /// The number of rows of several tables read as one. A single table is accepted too.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if a table does not exist, [`crate::Error::Request`] with the
    /// difference if they cannot be read as one; [`crate::Error::Closed`] once the database is
    /// closed.
    pub fn united_rows(&self, tables: &[String]) -> Result<u64> {
        // If a table is listed twice, its last position counts.
        let names = tables.iter().chain(tables.last()).map(String::as_str);
        self.row_count(&united_name(names))
    }

    /// The version of a table's rows.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn version(&self, table: &str) -> Result<TableVersion> {
        let table = self.table(table)?;
        Ok(TableVersion { table: table.number, changed: table.changed })
    }

    /// A warning about what is ignored or changed in a keyword query, and the sum of the numbers of rows that contain
    /// each of its keywords; `None` where other servers have rows of the table.
    ///
    /// # Errors
    /// As [`Reader::keywords`].
    pub fn keyword_warning(
        &self,
        table: &str,
        query: &KeywordQuery,
    ) -> Result<(Option<String>, Option<u64>)> {
        if let Some(gathered) = self.gathered(table)? {
            return Ok((gathered.warning(query, &self.unless)?, None));
        }
        let found = self.table(table)?;
        let planned = Ranked::new(&found, query, &self.unless)?;
        Ok((planned.warning().map(str::to_owned), Some(planned.documents_of_keywords())))
    }

    /// The parts of a keyword query: its keywords with their statistics.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Request`] if it has no
    /// words or the query is refused, [`crate::Error::Ended`] if the reader was told to end.
    pub fn keywords(&self, table: &str, query: &KeywordQuery) -> Result<KeywordReport> {
        if let Some(gathered) = self.gathered(table)? {
            return gathered.keywords(query, &self.unless);
        }
        let found = self.table(table)?;
        Ranked::report(&found, query, &self.unless)
    }

    /// The number of rows that contain a keyword, given in its indexed form, and the number of its occurrences.
    /// Cost: reads each posting of the keyword.
    ///
    /// # Errors
    /// As [`Reader::keywords`].
    pub fn keyword_counts(&self, table: &str, keyword: &str) -> Result<KeywordCounts> {
        if let Some(gathered) = self.gathered(table)? {
            return gathered.keyword_counts(keyword, &self.unless);
        }
        let found = self.table(table)?;
        Ranked::counts(&found, keyword, &self.unless)
    }

    /// Calls `visit` with each keyword of a table, in order, and the number of rows that contain it. Cost: one
    /// step for each keyword; with several segments, memory for all of them.
    ///
    /// # Errors
    /// As [`Reader::keywords`].
    pub fn for_each_keyword(&self, table: &str, visit: &mut dyn FnMut(&str, u64)) -> Result<()> {
        let found = self.table(table)?;
        Ranked::for_each_keyword(&found, visit, &self.unless)
    }

    /// The first `limit` primary keys of a table behind the key `after`, which need not be the key of a row. Cost:
    /// a search in each segment, and about 100 ns for each key.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Request`] if `after` cannot be one of its
    /// keys.
    pub fn keys_after(
        &self,
        table: &str,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Vec<KeyValues>> {
        let view = self.table(table)?;
        let after = after.map(|after| encode_key(&view.schema, after)).transpose()?;
        let keys = keys_after(&view, after.as_deref(), limit);
        keys.iter().map(|key| decode_key(&view.schema, key)).collect()
    }

    /// The exact number of rows of a table. Cost: one addition for each segment.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn row_count(&self, table: &str) -> Result<u64> {
        match self.gathered(table)? {
            Some(gathered) => Ok(gathered.rows()),
            None => Ok(self.table(table)?.live_count()),
        }
    }

    /// Runs SEARCH.
    ///
    /// # Errors
    /// - [`crate::Error::NotFound`]: there is no such table.
    /// - [`crate::Error::Request`]: the search expression, a filter, the order, the cursor, a
    ///   field, LIMIT or OFFSET is wrong; its [`crate::RequestPart`] says which.
    /// - [`crate::Error::Corrupt`] or [`crate::Error::Io`]: a segment or a row cannot be read.
    /// - [`crate::Error::Conflict`]: the row store was opened anew after the disk was full, and the
    ///   moment of this reader is gone. Ask a new reader.
    /// - [`crate::Error::Closed`]: the database was closed.
    /// - [`crate::Error::Ended`]: the reader was told to end.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchReply> {
        let table = self.table(&request.selection.table)?;
        self.count_asked(&table);
        let bm25 = self.shared.options.bm25;
        let mut reply = search(&table, request, bm25, self.moment())?;
        reply.report.sources = self.sources().clone();
        Ok(reply)
    }

    /// The rows of a page along the key or an index with its order, without the total, and without reading more rows
    /// than the page needs. Their [`Hit::key`] is empty. `None` if neither has the order, if [`Reader::search`] is
    /// cheaper, or if the request has a text condition, a cursor or highlights.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn first_page(&self, request: &SearchRequest) -> Result<Option<Vec<Hit>>> {
        let found = self.table(&request.selection.table)?;
        first(&found, request, &self.unless)
    }

    /// The top rows by weight of a keyword query ([`crate::TextQuery::Keywords`]), and a report. It need not weigh
    /// all matching rows, and gives no total. `None` if the request has another condition, a cursor, highlights or
    /// an order that does not begin with the highest score; use [`Reader::search`] for those. Of a table with rows on
    /// other servers these are the first rows of any condition and order, without keys; `None` if they are too many
    /// for the memory of a request.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn best_page(&self, request: &SearchRequest) -> Result<Option<(Vec<Hit>, QueryReport)>> {
        if let Some(gathered) = self.gathered(&request.selection.table)? {
            return gathered.page(request, &self.unless);
        }
        let table = self.table(&request.selection.table)?;
        let Some((hits, mut report)) = best(&table, request, self.moment())? else {
            return Ok(None);
        };
        report.sources = self.sources().clone();
        Ok(Some((hits, report)))
    }

    /// The access path that [`Reader::facet`], [`Reader::scan`] and [`Reader::scan_within`] use for a selection now.
    /// Cost: that of a count.
    ///
    /// # Errors
    /// As in [`Reader::count`].
    pub fn access(&self, selection: &Selection) -> Result<AccessPath> {
        if let Some(gathered) = self.gathered(&selection.table)? {
            return Ok(gathered.access(selection));
        }
        access(&*self.table(&selection.table)?, selection, &self.unless)
    }

    /// The access path that [`Reader::count`] uses for a selection now. Cost: that of a count.
    ///
    /// # Errors
    /// As in [`Reader::count`].
    pub fn count_access(&self, selection: &Selection) -> Result<AccessPath> {
        if let Some(gathered) = self.gathered(&selection.table)? {
            return Ok(gathered.access(selection));
        }
        count_access(&*self.table(&selection.table)?, selection, &self.unless)
    }

    /// The access path that [`Reader::first_page`] uses now. Cost: the same, without reading the rows.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn first_access(&self, request: &SearchRequest) -> Result<Option<AccessPath>> {
        let found = self.table(&request.selection.table)?;
        // What is explained does not count as used.
        let view = TableView { usage: Arc::default(), ..TableView::clone(&found) };
        first_access(&view, request, &self.unless)
    }

    /// The access path that [`Reader::search`] uses now. Cost: the same, without reading the rows.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn search_access(&self, request: &SearchRequest) -> Result<AccessPath> {
        let found = self.table(&request.selection.table)?;
        search_access(&found, request, &self.unless)
    }

    /// The estimated cardinality of an index's first columns: the number of distinct values. Exact if they are few
    /// and no row is deleted. `None` if the segments lack the index. Cost: some searches in each segment's index.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn distinct(&self, table: &str, index: TableIndex, columns: usize) -> Result<Option<u64>> {
        let found = self.table(table)?;
        Ok(distinct(&found, index, columns))
    }

    /// The number of uses of each index of a table since the data directory was opened.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn index_usage(&self, table: &str) -> Result<IndexUsage> {
        Ok(self.known(table)?.usage.read())
    }

    /// Runs COUNT.
    ///
    /// # Errors
    /// - [`crate::Error::NotFound`]: there is no such table.
    /// - [`crate::Error::Request`]: the search expression or a filter is wrong; its
    ///   [`crate::RequestPart`] says which.
    /// - [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Conflict`] or
    ///   [`crate::Error::Closed`]: as in [`Reader::search`].
    pub fn count(&self, selection: &Selection) -> Result<CountReply> {
        if let Some(gathered) = self.gathered(&selection.table)? {
            let warning = gathered.warning_of(selection, &self.unless)?;
            let count = gathered.count(selection, &self.unless)?;
            let report = QueryReport { warning, ..QueryReport::default() };
            return Ok(CountReply { count, report });
        }
        let found = self.table(&selection.table)?;
        if selection.filter.is_some() || selection.text.is_some() {
            self.count_asked(&found);
        }
        let mut reply = count(&found, selection, self.moment())?;
        reply.report.sources = self.sources().clone();
        Ok(reply)
    }

    /// The number of rows of a selection, for the plan of a statement: the statement itself uses the indexes, so they
    /// do not count this ([`Reader::index_usage`]). No texts are read: where some must be, it is an upper bound, and the
    /// second value is false.
    ///
    /// # Errors
    /// As in [`Reader::count`]. [`crate::Error::Request`] also for a table with rows on other servers.
    pub fn planned_count(&self, selection: &Selection) -> Result<(u64, bool)> {
        let found = self.table(&selection.table)?;
        self.count_asked(&found);
        let view = TableView { usage: Arc::default(), ..TableView::clone(&found) };
        planned_count(&view, selection, self.moment())
    }

    /// Runs FACET.
    ///
    /// # Errors
    /// - [`crate::Error::NotFound`]: there is no such table.
    /// - [`crate::Error::Request`]: the column is not there or not indexed, or the search
    ///   expression or a filter is wrong; its [`crate::RequestPart`] says which.
    /// - [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Conflict`] or
    ///   [`crate::Error::Closed`]: as in [`Reader::search`].
    pub fn facet(&self, request: &FacetRequest) -> Result<FacetReply> {
        let table = self.table(&request.selection.table)?;
        let mut reply = facet(&table, request, self.moment())?;
        reply.report.sources = self.sources().clone();
        Ok(reply)
    }

    /// As [`Reader::facet`], also for a table with rows on other servers; `None` if there are more than `most`
    /// distinct values, more than 16 MiB of them, or, on other servers, more than [`crate::MAX_FACET_VALUES`].
    ///
    /// # Errors
    /// As in [`Reader::facet`].
    pub fn facet_few(&self, request: &FacetRequest, most: u64) -> Result<Option<FacetReply>> {
        let reply = match self.gathered(&request.selection.table)? {
            Some(gathered) => gathered.facet(request, &self.unless)?,
            None => {
                let table = self.table(&request.selection.table)?;
                let limit = FacetLimit { values: most, bytes: MAX_FACET_BYTES };
                let reply = facet_within(&table, request, limit, self.moment())?;
                reply.map(|mut reply| {
                    reply.report.sources = self.sources().clone();
                    reply
                })
            }
        };
        Ok(reply.filter(|reply| reply.distinct <= most))
    }

    /// The first distinct values of a column in order, each with its number of rows and the least or greatest
    /// value of another column, by a loose index scan. `None` if no index has them, that is, if: the condition
    /// does not fix each column before to one value, or has conditions on other columns; the other column is not
    /// the next one of the index; there is a text condition; more than some thousand values are requested and
    /// exist; or texts that are equal in their order have different bytes, or are too many to compare. Cost: two
    /// searches in each segment for each value; if rows are deleted, also looks at each row of these values.
    ///
    /// # Errors
    /// As in [`Reader::facet`].
    pub fn values_in_order(&self, request: &ValuesRequest) -> Result<Option<ValuesReply>> {
        let table = self.table(&request.selection.table)?;
        let reply = values_in_order(&table, request, self.moment())?;
        Ok(reply.map(|mut reply| {
            reply.report.sources = self.sources().clone();
            reply
        }))
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// - [`crate::Error::NotFound`]: there is no such table. That there is no such row is no error.
    /// - [`crate::Error::Request`]: the key cannot be one of the table's.
    /// - [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Conflict`] or
    ///   [`crate::Error::Closed`]: as in [`Reader::search`].
    pub fn get(&self, table: &str, key: &[Value]) -> Result<Option<Row>> {
        let table = self.table(table)?;
        let columns: smallvec::SmallVec<[usize; 16]> = (0..table.schema.columns.len()).collect();
        get(&table, key, &columns)
    }

    /// Some columns, by their positions, of the row with this primary key. Reads the row store only if one of them
    /// is neither indexed nor part of the key.
    ///
    /// # Errors
    /// Those of [`Reader::get`], and [`crate::Error::Request`] if the table has no column at one of
    /// the positions.
    pub fn get_columns(
        &self,
        table: &str,
        key: &[Value],
        columns: &[usize],
    ) -> Result<Option<Row>> {
        let found = self.table(table)?;
        get(&found, key, columns)
    }

    /// Some columns, by their positions, of the rows with these primary keys, in any order and with repetitions.
    /// Calls `visit` with the index in `keys` and the values for each key that has a row; `visit` may take the
    /// values. Order: by segment, then by key; the order of equal keys is undefined. Reads the row store only if a
    /// column is neither indexed nor part of the key. Cost: sorts the keys, then looks up each once.
    ///
    /// # Errors
    /// Those of [`Reader::get_columns`], and the first error of `visit`, which ends the call. All keys are
    /// validated before the first row is read.
    pub fn get_many(
        &self,
        table: &str,
        keys: &[KeyValues],
        columns: &[usize],
        visit: &mut dyn FnMut(usize, &mut Row) -> Result<()>,
    ) -> Result<()> {
        let found = self.table(table)?;
        get_many(&found, keys, columns, visit)
    }

    /// Some columns of every matching row, in column batches. This call finds the rows; their values are read as
    /// batches are taken.
    ///
    /// # Errors
    /// An invalid request fails here. Taking a batch can still fail if rows cannot be read.
    ///
    /// - [`crate::Error::NotFound`]: there is no such table.
    /// - [`crate::Error::Request`]: a column, a search expression or a filter is wrong; its
    ///   [`crate::RequestPart`] says which.
    /// - [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Conflict`] or
    ///   [`crate::Error::Closed`]: as in [`Reader::search`].
    pub fn scan(&self, request: ScanRequest) -> Result<Scan> {
        if let Some(gathered) = self.gathered(&request.table)? {
            return Ok(Scan::gathered(gathered.scan(request, &self.unless)?));
        }
        let table = Arc::clone(&*self.table(&request.table)?);
        if request.filter.is_some() || request.text.is_some() {
            self.count_asked(&table);
        }
        let scan = ViewScan::new(table, request, self.shared.options.bm25, self.moment())?;
        Ok(scan.into())
    }

    /// As [`Reader::scan`], but only if at most `most` documents need to be examined: the candidates by keys or
    /// indexes, or whole segments if there are too many candidates; without a condition, as many as the request's
    /// limit. Else `None`, before the condition is evaluated on any. Of a text condition the documents are examined that
    /// may satisfy it, and satisfy the other one. Always `None` for scores.
    ///
    /// # Errors
    /// Those of [`Reader::scan`].
    pub fn scan_within(&self, request: ScanRequest, most: u64) -> Result<Option<Scan>> {
        if self.has_remote_parts(&request.table) {
            return Ok(None);
        }
        let table = Arc::clone(&*self.table(&request.table)?);
        if !request.scores.is_empty() {
            return Ok(None);
        }
        Ok(ViewScan::few(table, request, most, &self.unless)?.map(Scan::from))
    }

    /// Calls `visit` with every row of a table in key order.
    ///
    /// # Errors
    /// As [`crate::Database::scan`].
    pub fn visit_rows(&self, table: &str, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        let table = self.table(table)?;
        let required = RequiredRows::of(&table.schema)?;
        table.rows.scan(&[], &mut |_, row| {
            if required.accept(&row) {
                visit(row)?;
            }
            Ok(true)
        })
    }

    /// Counts a search for the merges, which spare later ones.
    fn count_asked(&self, table: &TableView) {
        // One segment is not merged.
        if table.segments.len() > 1 && table.activity.asked(table.segments.len()) {
            self.shared.published.notify_work();
        }
    }

    /// The position and the interrupt for searches.
    fn moment(&self) -> (Position, &InterruptCheck) {
        (self.position(), &self.unless)
    }

    /// The table; its declaration if its parts cannot be read as one table.
    pub(crate) fn known(&self, name: &str) -> Result<NamedTable<'_>> {
        match (self.table(name), self.snapshot.tables.get(name)) {
            (Err(Error::Request { .. }), Some(table)) => Ok(NamedTable::Table(table)),
            (found, _) => found,
        }
    }

    /// A table of the snapshot, or several as one.
    pub(crate) fn table(&self, name: &str) -> Result<NamedTable<'_>> {
        self.shared.check_open()?;
        if let Some(Narrowed { table: NarrowedTable::Here(view), .. }) =
            self.narrowed.as_ref().filter(|narrowed| *narrowed.name == *name)
        {
            return Ok(NamedTable::United(Arc::clone(view)));
        }
        match self.snapshot.tables.get(name) {
            Some(table) if !table.schema.agents().is_empty() => Err(of_other_servers(name)),
            Some(table) if table.schema.parts().is_empty() => Ok(NamedTable::Table(table)),
            None if !is_united(name) => Err(no_table(name)),
            _ => Ok(NamedTable::United(self.shared.united.view(&self.snapshot, name)?)),
        }
    }
}

/// A table found by name.
pub(crate) enum NamedTable<'r> {
    /// A table of the snapshot.
    Table(&'r Arc<TableView>),
    /// Several tables as one.
    United(Arc<TableView>),
}

impl Deref for NamedTable<'_> {
    type Target = Arc<TableView>;

    fn deref(&self) -> &Arc<TableView> {
        match self {
            Self::Table(table) => table,
            Self::United(table) => table,
        }
    }
}
