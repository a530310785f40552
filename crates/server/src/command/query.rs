//! SEARCH, COUNT, GET and FACET.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{
    Error, FacetReply, FacetRequest, Missing, Position, QueryReport, RequestPart, Schema,
    SearchReply, SearchRequest, Selection, SortBy, SourcePositions, TableVersion,
};
use remora_protocol::line::{
    Get, LineError, Search,
    reply::{self, CacheUse},
};
use remora_sql::Access;

use super::{Answer, Session, blocking};
use crate::settings::{Cache, Settings};

/// A query that can be asked again under its table's full name. Its `Debug` form is its name in the
/// cache, so queries whose replies differ must show a difference.
pub(crate) trait Query: std::fmt::Debug {
    /// The table as it was given, or its full name once that is known.
    fn table(&mut self) -> &mut String;
}

impl Query for Search {
    fn table(&mut self) -> &mut String {
        &mut self.request.selection.table
    }
}

impl Query for Selection {
    fn table(&mut self) -> &mut String {
        &mut self.table
    }
}

impl Query for FacetRequest {
    fn table(&mut self) -> &mut String {
        &mut self.selection.table
    }
}

/// How far the database was, and the version that a table then had or a newer one.
struct State {
    position: Position,
    sources: SourcePositions,
    version: TableVersion,
}

impl Session {
    pub(super) fn search(
        &self,
        mut search: Search,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        self.cached(&mut search, &settings.cache, out, |search, out| {
            let reply = self.ask_search(&search.request, settings)?;
            reply::write_search(out, &reply, search);
            Ok(reply.report)
        })
        .map(|(report, cache)| {
            self.write_applied(&report.sources, out);
            if self.debug {
                reply::write_search_debug(out, &report, &search, cache);
            }
        })
    }

    /// Asks the engine, in the way that suits what must be read.
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
        let database = &self.shared.database;
        match reads_rows {
            true => blocking(|| database.search(request)),
            false => database.search(request),
        }
    }

    pub(super) fn count(
        &self,
        mut selection: Selection,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        let database = &self.shared.database;
        self.cached(&mut selection, &settings.cache, out, |selection, out| {
            let reply = database.count(selection)?;
            reply::write_count(out, &reply);
            Ok(reply.report)
        })
        .map(|(report, cache)| {
            self.write_applied(&report.sources, out);
            if self.debug {
                reply::write_count_debug(out, &report, cache);
            }
        })
    }

    pub(super) fn facet(
        &self,
        mut request: FacetRequest,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        let database = &self.shared.database;
        let mut debug = FacetReply::default();
        // A kept reply has lost the figures that DEBUG shows.
        let caching = Cache { enabled: settings.cache.enabled && !self.debug, ..settings.cache };
        let (report, _) = self.cached(&mut request, &caching, out, |request, out| {
            let reply = database.facet(request)?;
            reply::write_facet(out, &reply);
            debug = FacetReply { values: Vec::new(), ..reply };
            Ok(debug.report.clone())
        })?;
        self.write_applied(&report.sources, out);
        if self.debug {
            reply::write_facet_debug(out, &FacetReply { report, ..debug });
        }
        Ok(())
    }

    /// Answers from the cache, whose keys are requests as they were understood, or asks and keeps
    /// the answer. A table that is not found is looked for by its bare name, which costs the usual
    /// request nothing. The table's version is read before the question is asked: an answer that is
    /// newer is kept under a version that no look-up finds.
    pub(crate) fn cached<Q: Query>(
        &self,
        query: &mut Q,
        caching: &Cache,
        out: &mut Vec<u8>,
        mut ask: impl FnMut(&Q, &mut Vec<u8>) -> Result<QueryReport, Error>,
    ) -> Result<(QueryReport, CacheUse), LineError> {
        if self.is_limited() {
            *query.table() = self.resolve(query.table(), Access::Read)?;
        }
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

    /// What is known of a query's table, which gets its full name.
    fn state_of(&self, query: &mut impl Query) -> Result<State, LineError> {
        let database = &self.shared.database;
        // Read before the version is: what was applied then is in the rows that it stands for.
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

    /// A table by its full or bare name, and its definition.
    pub(crate) fn find_table(&self, name: &str) -> Result<(String, Arc<Schema>), LineError> {
        let name = match self.is_limited() {
            true => &self.resolve(name, Access::Read)?,
            false => name,
        };
        match self.shared.database.schema(name) {
            Ok(schema) => Ok((name.to_owned(), schema)),
            Err(Error::NotFound { .. }) => {
                let table = self.resolve(name, Access::Read)?;
                let schema = self.shared.database.schema(&table)?;
                Ok((table, schema))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn get(&self, get: &Get, out: &mut Vec<u8>) -> Answer {
        let database = &self.shared.database;
        let (table, schema) = self.find_table(&get.table)?;
        let key = super::write::parse_key(&schema, &get.key)?;
        // Read before the row is: the row is of this position or a later one.
        let applied = database.source_positions();
        let row = database.get(&table, &key)?.ok_or_else(LineError::document_not_found)?;
        let shown = shown_columns(&schema, &get.fields)?;
        let columns = shown.iter().filter_map(|index| {
            Some((schema.columns.get(*index)?.name.as_str(), row.get(*index)?))
        });
        match get.fields.is_empty() {
            true => reply::write_document(out, &key, columns),
            false => reply::write_row(out, &key, columns.clone()),
        }
        self.write_applied(&applied, out);
        Ok(())
    }

    /// Names the applied position behind a reply, if the client wants it.
    fn write_applied(&self, positions: &SourcePositions, out: &mut Vec<u8>) {
        if self.position {
            reply::write_applied(out, &self.shared.sources.shown(positions));
        }
    }
}

/// The columns that a GET lists: the asked ones, all that are shown for `*`, or the indexed ones but
/// the key.
pub(crate) fn shown_columns(schema: &Schema, fields: &[String]) -> Result<Vec<usize>, LineError> {
    let all = 0..schema.columns.len();
    match fields {
        [] => {
            let filters = all.filter(|index| {
                let indexed = schema.columns.get(*index).is_some_and(|column| column.indexed);
                indexed && !schema.primary_key.contains(index)
            });
            Ok(filters.collect())
        }
        [star] if star == "*" => {
            Ok(all.filter(|index| Some(*index) != schema.hidden_key()).collect())
        }
        fields => fields.iter().map(|field| column_of(schema, field)).collect(),
    }
}

fn column_of(schema: &Schema, name: &str) -> Result<usize, LineError> {
    let exact = schema.columns.iter().position(|column| column.name == name);
    let found =
        exact.or_else(|| schema.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name)));
    found
        .ok_or_else(|| LineError::syntax(format!("Table '{}' has no column '{name}'", schema.name)))
}
