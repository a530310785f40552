//! Answers queries from the result cache, or computes and caches them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{
    Deadline, Error, FacetRequest, Missing, Position, QueryReport, Reader, RequestPart, Schema,
    SearchReply, SearchRequest, Selection, SortBy, SourcePositions, TableVersion, is_computed_name,
};
use remora_mysql::Zone;
use remora_protocol::line::{LineError, Search, reply::CacheUse};
use remora_sql::Access;

use super::{Caller, blocking};
use crate::{
    settings::{Cache, Settings},
    zone,
};

/// A query that can be repeated with its table's full name. Its `Debug` form is its cache key, so queries with
/// different replies must have different forms.
pub(crate) trait Query: std::fmt::Debug {
    /// The selected rows.
    fn selection(&mut self) -> &mut Selection;

    /// The columns that it names outside of its filter.
    fn columns(&self) -> Vec<&str>;

    /// The table's name as given, or its full name once that is known.
    fn table(&mut self) -> &mut String {
        &mut self.selection().table
    }
}

impl Query for Search {
    fn selection(&mut self) -> &mut Selection {
        &mut self.request.selection
    }

    fn columns(&self) -> Vec<&str> {
        let sorted = self.request.sort.iter().filter_map(|key| match &key.by {
            SortBy::Column(name) | SortBy::TextKey(name, _) => Some(name.as_str()),
            SortBy::Key | SortBy::Score => None,
        });
        sorted.chain(self.request.fields.iter().map(String::as_str)).collect()
    }
}

impl Query for Selection {
    fn selection(&mut self) -> &mut Selection {
        self
    }

    fn columns(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl Query for FacetRequest {
    fn selection(&mut self) -> &mut Selection {
        &mut self.selection
    }

    fn columns(&self) -> Vec<&str> {
        vec![&self.column]
    }
}

/// The database's position, and a table's version that is not older.
struct State {
    position: Position,
    sources: SourcePositions,
    version: TableVersion,
}

impl Caller {
    /// Runs a search, in a blocking section if it may read much.
    pub(crate) fn ask_search(
        &self,
        request: &SearchRequest,
        settings: &Settings,
    ) -> Result<SearchReply, Error> {
        if !settings.bm25.enable && request.sort.iter().any(|key| key.by == SortBy::Score) {
            let message = "SORT _score requires BM25 to be enabled: set bm25.enable to true";
            return Err(Error::Request { part: RequestPart::Sort, message: message.to_owned() });
        }
        let reads_rows = !request.fields.is_empty()
            || request.highlight.is_some()
            || request.selection.fuzzy.is_some();
        let reader = self.reader(settings);
        match reads_rows {
            true => blocking(|| reader.search(request)),
            false => reader.search(request),
        }
    }

    /// The newest snapshot, whose searches end when the time of a query is over.
    pub(crate) fn reader(&self, settings: &Settings) -> Reader {
        let reader = self.shared.database.reader();
        match settings.limits.max_query_time().and_then(Deadline::after) {
            Some(deadline) => reader.with_interrupt(Arc::new(deadline)),
            None => reader,
        }
    }

    /// Answers from the cache, or computes and caches the answer. The key is the parsed request. A table that is not
    /// found is then looked up by its bare name, so the usual case costs nothing. The table's version is read before
    /// the query runs: an answer that is newer is cached under a version that no lookup finds.
    pub(crate) fn cached<Q: Query>(
        &self,
        query: &mut Q,
        settings: &Settings,
        out: &mut Vec<u8>,
        ask: impl FnMut(&Q, &mut Vec<u8>) -> Result<QueryReport, Error>,
    ) -> Result<(QueryReport, CacheUse), LineError> {
        self.cached_as(query, &settings.cache, settings.time_zone.as_ref(), out, ask)
    }

    pub(crate) fn cached_as<Q: Query>(
        &self,
        query: &mut Q,
        caching: &Cache,
        zone: Option<&Zone>,
        out: &mut Vec<u8>,
        mut ask: impl FnMut(&Q, &mut Vec<u8>) -> Result<QueryReport, Error>,
    ) -> Result<(QueryReport, CacheUse), LineError> {
        if self.is_limited() {
            *query.table() = self.resolve(query.table(), Access::Read)?;
        }
        refuse_computed(query)?;
        self.read_times(query, zone)?;
        let (state, key) = match caching.enabled {
            true => (Some(self.state_of(query)?), format!("{query:?}").into_bytes()),
            false => (None, Vec::new()),
        };
        if let Some(state) = &state
            && let Some(found) = self.find_cached(&key, state, caching, out)
        {
            return Ok(found);
        }
        let start = out.len();
        let report = match ask(query, out) {
            Err(Error::NotFound { what: Missing::Table, .. }) => {
                *query.table() = self.resolve(query.table(), Access::Read)?;
                ask(query, out)
            }
            answer => answer,
        }?;
        let Some(state) = state else { return Ok((report, CacheUse::Disabled)) };
        let body = out.get(start..).unwrap_or_default();
        let cost = report.total_time;
        self.shared.cache.keep(&key, query.table(), state.version, body, cost, caching);
        Ok((report, CacheUse::Miss { reason: "not_found", cost }))
    }

    /// Converts the times in a query's filter from the configured zone. Reads the table's definition only if necessary.
    fn read_times(&self, query: &mut impl Query, zone: Option<&Zone>) -> Result<(), LineError> {
        if zone.is_none_or(Zone::is_utc) || query.selection().filter.is_none() {
            return Ok(());
        }
        let (table, schema) = self.find_table(query.table())?;
        *query.table() = table;
        if let Some(filter) = &mut query.selection().filter {
            zone::filter_in_utc(zone, &schema, filter);
        }
        Ok(())
    }

    /// The state of a query's table. The query gets the table's full name.
    fn state_of(&self, query: &mut impl Query) -> Result<State, LineError> {
        let database = &self.shared.database;
        // Read before the version, so that rows of that version include everything applied at this position.
        let (position, sources) = (database.position(), database.source_positions());
        let version = match database.table_version(query.table()) {
            Err(Error::NotFound { .. }) => {
                *query.table() = self.resolve(query.table(), Access::Read)?;
                database.table_version(query.table())
            }
            version => version,
        }?;
        Ok(State { position, sources, version })
    }

    fn find_cached(
        &self,
        key: &[u8],
        state: &State,
        caching: &Cache,
        out: &mut Vec<u8>,
    ) -> Option<(QueryReport, CacheUse)> {
        let start = Instant::now();
        let found = self.shared.cache.find(key, state.version, caching)?;
        out.extend_from_slice(&found.body);
        let report = QueryReport {
            position: state.position,
            sources: state.sources.clone(),
            total_time: start.elapsed(),
            ..QueryReport::default()
        };
        let saved: Duration = found.cost.saturating_sub(report.total_time);
        Some((report, CacheUse::Hit { age: found.kept_at.elapsed(), saved }))
    }
}

/// Refuses a query that names a hidden column of a functional key, as if it did not exist.
fn refuse_computed(query: &mut impl Query) -> Result<(), LineError> {
    let in_filter = query.selection().filter.as_ref().and_then(|filter| {
        let is_computed = |name: &&str| is_computed_name(name);
        filter.columns().into_iter().find(is_computed).map(str::to_owned)
    });
    let beside = || query.columns().into_iter().find(|name| is_computed_name(name));
    match in_filter.or_else(|| beside().map(str::to_owned)) {
        None => Ok(()),
        Some(name) => Err(no_column(query.table(), &name)),
    }
}

/// The columns that GET returns: the requested ones, all visible ones for `*`, or the indexed ones without the key.
pub(crate) fn shown_columns(schema: &Schema, fields: &[String]) -> Result<Vec<usize>, LineError> {
    let all = 0..schema.columns.len();
    match fields {
        [] => {
            let filters = all.filter(|index| {
                let indexed = schema.columns.get(*index).is_some_and(|column| column.indexed);
                indexed && !schema.primary_key.contains(index) && !schema.is_hidden(*index)
            });
            Ok(filters.collect())
        }
        [star] if star == "*" => Ok(all.filter(|index| !schema.is_hidden(*index)).collect()),
        fields => fields.iter().map(|field| column_of(schema, field)).collect(),
    }
}

fn column_of(schema: &Schema, name: &str) -> Result<usize, LineError> {
    if is_computed_name(name) {
        return Err(no_column(&schema.name, name));
    }
    let exact = schema.columns.iter().position(|column| column.name == name);
    let found =
        exact.or_else(|| schema.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name)));
    found.ok_or_else(|| no_column(&schema.name, name))
}

fn no_column(table: &str, name: &str) -> LineError {
    LineError::syntax(format!("Table '{table}' has no column '{name}'"))
}
