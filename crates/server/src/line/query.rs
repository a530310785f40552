//! SEARCH, COUNT, GET and FACET.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{
    Error, FacetReply, FacetRequest, Missing, Position, QueryReport, RequestPart, Schema,
    SearchReply, SearchRequest, Selection, SortBy, SourcePositions, TableVersion, Value,
};
use remora_mysql::Zone;
use remora_protocol::{
    http::Columns,
    line::{
        Get, LineError, Search,
        reply::{self, CacheUse},
    },
};
use remora_sql::{Access, DeclaredNumbers};

use super::{Answer, Session, blocking};
use crate::{
    settings::{Cache, Settings},
    zone,
};

/// A query that can be asked again under its table's full name. Its `Debug` form is its name in the
/// cache, so queries whose replies differ must show a difference.
pub(crate) trait Query: std::fmt::Debug {
    /// Which rows it is about.
    fn selection(&mut self) -> &mut Selection;

    /// The table as it was given, or its full name once that is known.
    fn table(&mut self) -> &mut String {
        &mut self.selection().table
    }
}

impl Query for Search {
    fn selection(&mut self) -> &mut Selection {
        &mut self.request.selection
    }
}

impl Query for Selection {
    fn selection(&mut self) -> &mut Selection {
        self
    }
}

impl Query for FacetRequest {
    fn selection(&mut self) -> &mut Selection {
        &mut self.selection
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
        let zone = settings.time_zone.as_ref();
        self.cached(&mut search, settings, out, |search, out| {
            let mut reply = self.ask_search(&search.request, settings)?;
            zone::show_hits(zone, Columns::Fields, &mut reply.hits);
            self.show_declared(&search.request.selection.table, &mut reply);
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

    /// Makes the numbers of columns that are declared with a form of their own the texts that their
    /// source shows.
    fn show_declared(&self, table: &str, reply: &mut SearchReply) {
        if reply.field_names.is_empty() {
            return;
        }
        let Ok(schema) = self.shared.database.schema(table) else { return };
        let Some(numbers) = DeclaredNumbers::of(&schema) else { return };
        let place = |name: &String| schema.columns.iter().position(|c| c.name == *name);
        let places: Vec<Option<usize>> = reply.field_names.iter().map(place).collect();
        for hit in &mut reply.hits {
            for (value, place) in hit.fields.iter_mut().zip(&places) {
                if let Some(text) = place.and_then(|place| numbers.text(place, value)) {
                    *value = Value::Text(text.into());
                }
            }
        }
    }

    pub(super) fn count(
        &self,
        mut selection: Selection,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        let database = &self.shared.database;
        self.cached(&mut selection, settings, out, |selection, out| {
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
        let zone = settings.time_zone.as_ref();
        let (report, _) = self.cached_as(&mut request, &caching, zone, out, |request, out| {
            let mut reply = database.facet(request)?;
            zone::show_facet(zone, &mut reply);
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
        settings: &Settings,
        out: &mut Vec<u8>,
        ask: impl FnMut(&Q, &mut Vec<u8>) -> Result<QueryReport, Error>,
    ) -> Result<(QueryReport, CacheUse), LineError> {
        self.cached_as(query, &settings.cache, settings.time_zone.as_ref(), out, ask)
    }

    fn cached_as<Q: Query>(
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

    /// Reads the times of a query's filter by the configured zone. Asks for the table's definition
    /// only if there is something to do.
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

    pub(super) fn get(&self, get: &Get, settings: &Settings, out: &mut Vec<u8>) -> Answer {
        let (database, zone) = (&self.shared.database, settings.time_zone.as_ref());
        let (table, schema) = self.find_table(&get.table)?;
        let mut key = super::write::parse_key(&schema, &get.key, zone)?;
        // Read before the row is: the row is of this position or a later one.
        let applied = database.source_positions();
        let mut row = database.get(&table, &key)?.ok_or_else(LineError::document_not_found)?;
        let shown = shown_columns(&schema, &get.fields)?;
        let form = if get.fields.is_empty() { Columns::Filters } else { Columns::Fields };
        row.iter_mut().for_each(|value| zone::show(zone, form, value));
        zone::show_key(zone, &mut key);
        if form == Columns::Fields
            && let Some(numbers) = DeclaredNumbers::of(&schema)
        {
            for (place, value) in row.iter_mut().enumerate() {
                if let Some(text) = numbers.text(place, value) {
                    *value = Value::Text(text.into());
                }
            }
        }
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
