//! A reader: one moment of all tables, for as long as it is held.

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use remora_index::paths::PathSpec;

use super::{
    distinct::distinct,
    facet::facet,
    gathered::{GatheredTable, MAX_HIDDEN, MAX_HIDDEN_BYTES},
    get::{get, get_many},
    key_page::{key_ends, keys_after, keys_from},
    path_order::{first_by_path, has_all},
    ranked::Ranked,
    runs::values_in_order,
    scan::{Scan, ViewScan},
    search::{access, best, count, first, first_access, search, search_access},
};
use crate::{
    AccessPath, CountReply, Error, FacetReply, FacetRequest, Hit, IndexUsage, KeyValues,
    KeywordCounts, KeywordQuery, KeywordReport, KeywordStatistics, PathDef, PathOrder, Position,
    QueryReport, RequestPart, Result, Row, ScanRequest, Schema, SearchReply, SearchRequest,
    Selection, SourcePositions, TableIndex, Value, ValuesReply, ValuesRequest, WantedStatistics,
    encode::{decode_key, encode_key},
    error::no_table,
    indexing::path_specs,
    interrupt::{Interrupt, Unless},
    schema::{is_united, united_name},
    shared::DatabaseState,
    snapshot::{HiddenRows, Snapshot, TableView, of_other_servers},
    unique::check_paths,
};

/// What the names of hidden tables begin with.
const HIDDEN: char = '#';

/// What the rows of a table at one moment are known by: two equal versions of one data directory,
/// while it is open, are the same rows under the same definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableVersion {
    /// The table's number; one that is made again has another.
    pub table: u32,
    /// The newest batch that changed a row of it.
    pub changed: Position,
}

/// Opens tables that have rows in other servers: of each table once, so that all who read it see the same moments.
pub trait Elsewhere: Send + Sync {
    /// The table of this declaration; `reader` has its parts of this server.
    ///
    /// # Errors
    /// [`crate::Error::Elsewhere`] if a server does not answer rightly; those of [`GatheredTable::open`].
    fn table(&self, declared: &Schema, reader: &Reader) -> Result<Arc<GatheredTable>>;
}

/// So many servers may hide rows of a part for one another.
const HIDING_SERVERS: usize = 4;

/// A table without some of its rows.
#[derive(Clone)]
struct Narrowed {
    name: Arc<str>,
    /// The keys whose rows it does not have.
    hidden: Arc<BTreeSet<Vec<u8>>>,
    /// With all rows.
    base: NarrowedTable,
    table: NarrowedTable,
}

#[derive(Clone)]
enum NarrowedTable {
    Here(Arc<TableView>),
    Gathered(Arc<GatheredTable>),
}

/// A table without the rows of some keys.
fn without(table: &TableView, keys: &[Vec<u8>]) -> TableView {
    let mut view = table.clone();
    for segment in &mut view.segments {
        let without = segment.without(keys.iter().map(Vec::as_slice), &view.schema);
        *segment = without.unwrap_or_else(|| segment.clone());
    }
    view.rows = Arc::new(HiddenRows::new(Arc::clone(&view.rows), keys));
    view
}

/// One moment of all tables. Every answer is of that moment, whatever is written meanwhile.
///
/// Cheap to make and to clone. Holding it keeps what it reads in memory and on disk: segments that
/// were merged since, rows that were replaced. All methods may be called from any thread; none
/// waits for a writer. Once the database is closed they answer [`crate::Error::Closed`].
#[derive(Clone)]
pub struct Reader {
    shared: Arc<DatabaseState>,
    snapshot: Arc<Snapshot>,
    unless: Unless,
    /// What opens tables that have rows in other servers.
    elsewhere: Option<Arc<dyn Elsewhere>>,
    narrowed: Option<Narrowed>,
}

impl Reader {
    /// A reader of the newest moment.
    pub(crate) fn new(shared: &Arc<DatabaseState>) -> Self {
        Self::of(shared, shared.published.load())
    }

    /// A reader of this moment.
    pub(crate) fn of(shared: &Arc<DatabaseState>, snapshot: Arc<Snapshot>) -> Self {
        let shared = Arc::clone(shared);
        Self { shared, snapshot, unless: Unless::NEVER, elsewhere: None, narrowed: None }
    }

    /// The same moment, of which searches by keywords, whatever is asked of them, end with [`crate::Error::Ended`]
    /// soon after `interrupt` says so: after a few thousand postings and places, or the documents of a few keywords.
    pub fn unless(self, interrupt: Arc<dyn Interrupt>) -> Self {
        Self { unless: Unless::new(interrupt), ..self }
    }

    /// What its searches end with.
    pub fn ending(&self) -> &Unless {
        &self.unless
    }

    /// The same, whose searches end with these.
    pub(crate) fn with(&self, unless: &Unless) -> Self {
        Self { unless: unless.clone(), ..self.clone() }
    }

    /// The same moment, which reads tables that have rows in other servers too, as they are there when they are opened.
    /// Of such tables [`Reader::schema`], [`Reader::row_count`], [`Reader::count`], [`Reader::scan`] and what is about keywords
    /// answer, of which [`Reader::for_each_keyword`] does not; the others refuse.
    pub fn reaching(self, elsewhere: Arc<dyn Elsewhere>) -> Self {
        Self { elsewhere: Some(elsewhere), ..self }
    }

    /// The same moment without the rows of a table that have these keys, given in their bytes; some of them it may not
    /// have. Keys that it hides already stay hidden. Cost: a look-up a key and segment, of those keys too.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`]; [`crate::Error::Request`] if that hides too many keys, or rows of a second table.
    pub fn hiding(&self, table: &str, keys: &[Vec<u8>]) -> Result<Self> {
        let refused = |message: String| Err(crate::Error::request(RequestPart::Other, message));
        let (base, mut hidden) = match &self.narrowed {
            Some(before) if *before.name == *table => {
                (before.base.clone(), BTreeSet::clone(&before.hidden))
            }
            Some(before) => {
                return refused(format!(
                    "rows of {:?} are hidden already, and of one table",
                    before.name
                ));
            }
            None => match self.gathered(table)? {
                Some(gathered) => (NarrowedTable::Gathered(gathered), BTreeSet::new()),
                None => (NarrowedTable::Here(Arc::clone(&*self.table(table)?)), BTreeSet::new()),
            },
        };
        // From the rows of the base, so that one moment stands on another only once however often more is hidden.
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

    /// The first so many keys of a table from one on, whether there is a row of that or not, in their bytes and order.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`].
    pub fn keys_from(&self, table: &str, from: &[u8], limit: usize) -> Result<Vec<Vec<u8>>> {
        match self.gathered(table)? {
            Some(gathered) => gathered.keys_from(from, limit, &self.unless),
            None => Ok(keys_from(&*self.table(table)?, from, limit)),
        }
    }

    /// The first and the last key that a table may have, in their bytes; `None` without rows.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`].
    pub fn key_ends(&self, table: &str) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        match self.gathered(table)? {
            Some(gathered) => Ok(gathered.ends()),
            None => Ok(key_ends(&*self.table(table)?)),
        }
    }

    /// A text that is another one wherever the rows of a table are others, while the data directory is open.
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

    /// What the rows of a table add to the numbers of a query, which has those that are known; for a table of which this is
    /// a part.
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

    /// Whether a table has rows in other servers, which this reads.
    pub fn is_elsewhere(&self, table: &str) -> bool {
        let found = self.snapshot.tables.get(table);
        self.elsewhere.is_some() && found.is_some_and(|it| !it.schema.agents().is_empty())
    }

    /// The table of several servers; `None` of one that is here.
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

    /// The moment.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The database.
    pub(crate) fn shared(&self) -> &Arc<DatabaseState> {
        &self.shared
    }

    /// The newest batch that it sees.
    pub fn position(&self) -> Position {
        self.snapshot.position
    }

    /// How far the sources were then.
    pub fn sources(&self) -> &SourcePositions {
        &self.snapshot.sources
    }

    /// The tables' names, sorted. Those that begin with `#` are hidden: they are used as any
    /// other, but who lists tables does not see them.
    pub fn tables(&self) -> Vec<String> {
        let listed = self.snapshot.tables.keys().filter(|name| !name.starts_with(HIDDEN));
        let mut names: Vec<String> = listed.map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    /// A table's definition; of a distributed one that of its parts, or what was declared where they cannot be read
    /// as one.
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

    /// The tables whose rows are those of a distributed one, or of several that are read as one
    /// ([`crate::united_name`]); empty of any other.
    pub fn parts(&self, table: &str) -> Vec<String> {
        self.snapshot.parts_of(table)
    }

    /// How many rows tables have as one; of one alone too.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if one is not there, [`crate::Error::Request`] if they cannot be read as one, with what
    /// differs; [`crate::Error::Closed`] once the database is closed.
    pub fn united_rows(&self, tables: &[String]) -> Result<u64> {
        // Listed twice a table stands where it stands last.
        let names = tables.iter().chain(tables.last()).map(String::as_str);
        self.row_count(&united_name(names))
    }

    /// What the rows of a table are known by.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn version(&self, table: &str) -> Result<TableVersion> {
        let table = self.table(table)?;
        Ok(TableVersion { table: table.number, changed: table.changed })
    }

    /// What is passed over or changed of a query by a table's keywords.
    ///
    /// # Errors
    /// As [`Reader::keywords`].
    pub fn keyword_warning(&self, table: &str, query: &KeywordQuery) -> Result<Option<String>> {
        if let Some(gathered) = self.gathered(table)? {
            return gathered.warning(query, &self.unless);
        }
        let found = self.table(table)?;
        Ok(Ranked::new(&found, query, &self.unless)?.warning().map(str::to_owned))
    }

    /// What a query by a table's keywords is made of.
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

    /// In how many rows of a table a keyword stands, and how often, as it stands in the index. Cost: a look at each row
    /// that has it.
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

    /// Calls `visit` with each keyword of a table, in order, and in how many rows it stands. Cost: a look at each
    /// keyword; with several segments memory for all of them.
    ///
    /// # Errors
    /// As [`Reader::keywords`].
    pub fn for_each_keyword(&self, table: &str, visit: &mut dyn FnMut(&str, u64)) -> Result<()> {
        let found = self.table(table)?;
        Ranked::for_each_keyword(&found, visit, &self.unless)
    }

    /// Which of the paths of a table's definition, by their places there, every segment has: those that
    /// [`crate::Filter::Path`] and [`crate::Filter::PathTexts`] may ask for.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table.
    pub fn ready_paths(&self, table: &str) -> Result<Vec<usize>> {
        let table = self.table(table)?;
        let specs = path_specs(&table.schema);
        let has = |spec: &PathSpec| table.segments.iter().all(|view| view.segment.has_path(spec));
        Ok((0..specs.len()).filter(|&place| specs.get(place).is_some_and(has)).collect())
    }

    /// Whether an index of several paths, by its place in the table's definition, has all combinations of values of every
    /// document, so that [`crate::Filter::PathsTogether`] is exact. Cost: a search a segment.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Corrupt`] if the index is damaged.
    pub fn has_all_combinations(&self, table: &str, place: usize) -> Result<bool> {
        let table = self.table(table)?;
        let specs = path_specs(&table.schema);
        let Some(spec) = specs.get(place) else { return Ok(false) };
        for view in &table.segments {
            match view.segment.path(spec) {
                Some(index) if has_all(index)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Refuses two rows with the same value at a path, as if it were unique. Cost: a look at each value.
    ///
    /// # Errors
    /// [`crate::Error::NotUnique`] names two such rows, [`crate::Error::Conflict`] says that not all rows are indexed
    /// by the path, [`crate::Error::NotFound`] that there is no such table.
    pub fn check_unique(&self, table: &str, path: &PathDef) -> Result<()> {
        let table = self.table(table)?;
        let place = table.schema.paths.iter().position(|one| one.is_along(path));
        check_paths(&table, place.into_iter())
    }

    /// The keys of the first rows in the order of what a path leads to: those to which it leads nowhere, null, false,
    /// true, numbers, texts by their bytes, arrays, objects; in the other direction the same backwards. Rows that are
    /// alike come by key. Of several paths that are indexed together the first says, then the second. `None` where the paths
    /// are not indexed in all segments, or lead to several values of a row.
    /// Cost: a look at the values up to the last row that is given; rows without a value cost a look at all of them.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Request`] if the filter is not one.
    pub fn first_by_path(&self, asked: &PathOrder) -> Result<Option<Vec<KeyValues>>> {
        let found = self.table(&asked.table)?;
        first_by_path(&found, asked)
    }

    /// The first so many primary keys of a table in their order, behind the key `after`, whether there is a row of that
    /// or not. Cost: a search a segment, and some 100 ns a key.
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

    /// How many rows a table has, exactly. Cost: an addition a segment.
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

    /// SEARCH.
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
        let bm25 = self.shared.options.bm25;
        let mut reply = search(&table, request, bm25, self.moment())?;
        reply.report.sources = self.sources().clone();
        Ok(reply)
    }

    /// The rows of a page in an order that an index has, found without a look at the others and without their
    /// number; `None` where [`Reader::search`] finds them sooner.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn first_page(&self, request: &SearchRequest) -> Result<Option<Vec<Hit>>> {
        let found = self.table(&request.selection.table)?;
        first(&found, request)
    }

    /// The rows of a page by their weights for a query by keywords ([`crate::TextQuery::Keywords`]), and what it took:
    /// found without a look at all that the query finds, and without their number. `None` if something else is asked
    /// for beside it, which [`Reader::search`] finds.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn best_page(&self, request: &SearchRequest) -> Result<Option<(Vec<Hit>, QueryReport)>> {
        let table = self.table(&request.selection.table)?;
        let Some((hits, mut report)) = best(&table, request, self.moment())? else {
            return Ok(None);
        };
        report.sources = self.sources().clone();
        Ok(Some((hits, report)))
    }

    /// How [`Reader::count`], [`Reader::facet`], [`Reader::scan`] and [`Reader::scan_few`] find the rows of a
    /// selection now. Cost: that of a count.
    ///
    /// # Errors
    /// As in [`Reader::count`].
    pub fn access(&self, selection: &Selection) -> Result<AccessPath> {
        if let Some(gathered) = self.gathered(&selection.table)? {
            // Nobody is asked for what is only told.
            let (by_text, matching) = (selection.text.is_some(), gathered.rows());
            let examined = matching;
            let segments = gathered.part_count();
            return Ok(AccessPath {
                by_text,
                examined,
                matching,
                segments,
                ..AccessPath::default()
            });
        }
        let found = self.table(&selection.table)?;
        access(&found, selection, &self.unless)
    }

    /// How [`Reader::first_page`] finds the rows of a page now. Cost: its, without reading the rows.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn first_access(&self, request: &SearchRequest) -> Result<Option<AccessPath>> {
        let found = self.table(&request.selection.table)?;
        first_access(&found, request)
    }

    /// How [`Reader::search`] finds the rows of a page now. Cost: its, without reading the rows.
    ///
    /// # Errors
    /// As in [`Reader::search`].
    pub fn search_access(&self, request: &SearchRequest) -> Result<AccessPath> {
        let found = self.table(&request.selection.table)?;
        search_access(&found, request, &self.unless)
    }

    /// About how many different values the first columns of an index have; exactly so many where they are few and no
    /// row is deleted. `None` if the segments do not hold them. Cost: some searches of each segment's index.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn distinct(&self, table: &str, index: TableIndex, columns: usize) -> Result<Option<u64>> {
        let found = self.table(table)?;
        Ok(distinct(&found, index, columns))
    }

    /// How often each index of a table answered since the directory was opened.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Closed`] once the
    /// database is closed.
    pub fn index_usage(&self, table: &str) -> Result<IndexUsage> {
        Ok(self.known(table)?.usage.read())
    }

    /// COUNT.
    ///
    /// # Errors
    /// - [`crate::Error::NotFound`]: there is no such table.
    /// - [`crate::Error::Request`]: the search expression or a filter is wrong; its
    ///   [`crate::RequestPart`] says which.
    /// - [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Conflict`] or
    ///   [`crate::Error::Closed`]: as in [`Reader::search`].
    pub fn count(&self, selection: &Selection) -> Result<CountReply> {
        if let Some(gathered) = self.gathered(&selection.table)? {
            let count = gathered.count(selection, &self.unless)?;
            return Ok(CountReply { count, ..CountReply::default() });
        }
        let found = self.table(&selection.table)?;
        let mut reply = count(&found, selection, self.moment())?;
        reply.report.sources = self.sources().clone();
        Ok(reply)
    }

    /// FACET.
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

    /// The first values of a column in their order, each once, with the number of its rows and the ends of another column,
    /// along an index (a loose scan). `None` if no index has them: where the condition says more than one value of each
    /// column before and something of the column, an end is asked of another column than the index's next, a text is
    /// searched, there are more than some thousand values, or texts that are one by their order are not the same bytes.
    /// Cost: two searches in each segment for each value; where rows are deleted, a look at each row of these values.
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

    /// Some columns, by their positions, of the row with this primary key. The row store is asked
    /// only if one of them is neither indexed nor part of the key.
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

    /// Some columns, by their positions, of the rows with these primary keys, which may stand in
    /// any order and more than once. Calls `visit` with the place in `keys` and the values for each
    /// key there is a row of, which it may take: segment by segment, within one in the order of the
    /// keys, equal keys in no order. The row store is asked only if a column is neither indexed nor
    /// part of the key. Cost: one sort of the keys, then each is looked up once.
    ///
    /// # Errors
    /// Those of [`Reader::get_columns`], and the first error of `visit`, which ends the call. All
    /// keys are checked before the first row is read.
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

    /// Some columns of every row that matches, in batches of columns. Which rows match is found
    /// here, their values as the batches are drawn.
    ///
    /// # Errors
    /// What is wrong with the request is told here; a batch that is drawn may still answer that
    /// rows cannot be read.
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
        let scan = ViewScan::new(table, request, self.shared.options.bm25, self.moment())?;
        Ok(scan.into())
    }

    /// As [`Reader::scan`], where that looks at no more than `most` documents: those that keys or indexes
    /// leave of the condition, or all of a segment where they leave too many; without a condition as many as
    /// the request's limit. Else `None`, before conditions are asked of any. Always `None` for a text condition
    /// or scores.
    ///
    /// # Errors
    /// Those of [`Reader::scan`].
    pub fn scan_few(&self, request: ScanRequest, most: u64) -> Result<Option<Scan>> {
        if self.is_elsewhere(&request.table) {
            return Ok(None);
        }
        let table = Arc::clone(&*self.table(&request.table)?);
        if !request.scores.is_empty() {
            return Ok(None);
        }
        Ok(ViewScan::few(table, request, most, &self.unless)?.map(Scan::from))
    }

    /// What searches are told of the moment, and by what they end.
    fn moment(&self) -> (Position, &Unless) {
        (self.position(), &self.unless)
    }

    /// The table; as it was declared where the tables whose rows it has cannot be read as one.
    pub(crate) fn known(&self, name: &str) -> Result<Found<'_>> {
        match (self.table(name), self.snapshot.tables.get(name)) {
            (Err(Error::Request { .. }), Some(table)) => Ok(Found::Table(table)),
            (found, _) => found,
        }
    }

    /// A table as it was, or several as one.
    pub(crate) fn table(&self, name: &str) -> Result<Found<'_>> {
        self.shared.check_open()?;
        if let Some(Narrowed { table: NarrowedTable::Here(view), .. }) =
            self.narrowed.as_ref().filter(|narrowed| *narrowed.name == *name)
        {
            return Ok(Found::United(Arc::clone(view)));
        }
        match self.snapshot.tables.get(name) {
            Some(table) if !table.schema.agents().is_empty() => Err(of_other_servers(name)),
            Some(table) if table.schema.parts().is_empty() => Ok(Found::Table(table)),
            None if !is_united(name) => Err(no_table(name)),
            _ => Ok(Found::United(self.shared.united.view(&self.snapshot, name)?)),
        }
    }
}

/// The table of a name.
pub(crate) enum Found<'r> {
    /// One of the moment's.
    Table(&'r Arc<TableView>),
    /// Several as one.
    United(Arc<TableView>),
}

impl Deref for Found<'_> {
    type Target = Arc<TableView>;

    fn deref(&self) -> &Arc<TableView> {
        match self {
            Self::Table(table) => table,
            Self::United(table) => table,
        }
    }
}
