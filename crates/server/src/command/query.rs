//! SEARCH, COUNT, GET and FACET.

use std::time::{Duration, Instant};

use remora_engine::{
    Error, FacetReply, FacetRequest, Missing, Position, QueryReport, Schema, Selection,
};
use remora_protocol::line::{
    Get, LineError, Search, code,
    reply::{self, CacheUse},
};

use super::{Answer, Session, blocking};
use crate::settings::{Cache, Settings};

/// A query that can be asked again under its table's full name.
trait Query: std::fmt::Debug {
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

impl Session {
    pub(super) fn search(
        &self,
        mut search: Search,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        if search.returns_score() && !settings.bm25.enable {
            return Err(LineError::new(
                code::SORT,
                "SORT _score requires BM25 to be enabled: set bm25.enable to true",
            ));
        }
        let database = &self.shared.database;
        let reads_rows = !search.request.fields.is_empty()
            || search.request.highlight.is_some()
            || search.request.selection.fuzzy.is_some();
        self.cached(&mut search, &settings.cache, out, |search, out| {
            let reply = match reads_rows {
                true => blocking(|| database.search(&search.request)),
                false => database.search(&search.request),
            }?;
            reply::write_search(out, &reply, search);
            Ok(reply.report)
        })
        .map(|(report, cache)| {
            if self.debug {
                reply::write_search_debug(out, &report, &search, cache);
            }
        })
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
        if self.debug {
            reply::write_facet_debug(out, &FacetReply { report, ..debug });
        }
        Ok(())
    }

    /// Answers from the cache, whose keys are requests as they were understood, or asks and keeps the answer. A table that is not found is looked
    /// for by its bare name, which costs the usual request nothing.
    fn cached<Q: Query>(
        &self,
        query: &mut Q,
        caching: &Cache,
        out: &mut Vec<u8>,
        mut ask: impl FnMut(&Q, &mut Vec<u8>) -> Result<QueryReport, Error>,
    ) -> Result<(QueryReport, CacheUse), LineError> {
        let key = caching.enabled.then(|| format!("{query:?}").into_bytes());
        if let Some(found) = key.as_ref().and_then(|key| self.find_cached(key, caching, out)) {
            return Ok(found);
        }
        let start = out.len();
        let report = match ask(query, out) {
            Err(Error::NotFound { what: Missing::Table, .. }) => {
                *query.table() = self.resolve(query.table())?;
                ask(query, out)
            }
            answer => answer,
        }?;
        let Some(key) = key else { return Ok((report, CacheUse::Disabled)) };
        let body = out.get(start..).unwrap_or_default();
        let (cache, cost) = (&self.shared.cache, report.total_time);
        cache.keep(&key, query.table(), report.position, body, cost, caching);
        Ok((report, CacheUse::Miss { reason: "not_found", cost }))
    }

    fn find_cached(
        &self,
        key: &[u8],
        caching: &Cache,
        out: &mut Vec<u8>,
    ) -> Option<(QueryReport, CacheUse)> {
        let start = Instant::now();
        let position: Position = self.shared.database.position();
        let found = self.shared.cache.find(key, position, caching)?;
        out.extend_from_slice(&found.body);
        let report = QueryReport { position, total_time: start.elapsed(), ..Default::default() };
        let saved: Duration = found.cost.saturating_sub(report.total_time);
        Some((report, CacheUse::Hit { age: found.kept_at.elapsed(), saved }))
    }

    pub(super) fn get(&self, get: &Get, out: &mut Vec<u8>) -> Answer {
        let database = &self.shared.database;
        let (table, schema) = match database.schema(&get.table) {
            Ok(schema) => (get.table.clone(), schema),
            Err(Error::NotFound { .. }) => {
                let table = self.resolve(&get.table)?;
                let schema = database.schema(&table)?;
                (table, schema)
            }
            Err(error) => return Err(error.into()),
        };
        let key = super::write::parse_key(&schema, &get.key)?;
        let row = database.get(&table, &key)?.ok_or_else(LineError::document_not_found)?;
        let shown = shown_columns(&schema, get)?;
        let columns = shown.iter().filter_map(|index| {
            Some((schema.columns.get(*index)?.name.as_str(), row.get(*index)?))
        });
        match get.fields.is_empty() {
            true => reply::write_document(out, &key, columns),
            false => reply::write_row(out, &key, columns.clone()),
        }
        Ok(())
    }
}

/// The columns that a GET lists: the asked ones, all for `*`, or the indexed ones but the key.
fn shown_columns(schema: &Schema, get: &Get) -> Result<Vec<usize>, LineError> {
    let all = 0..schema.columns.len();
    match get.fields.as_slice() {
        [] => {
            let filters = all.filter(|index| {
                let indexed = schema.columns.get(*index).is_some_and(|column| column.indexed);
                indexed && !schema.primary_key.contains(index)
            });
            Ok(filters.collect())
        }
        [star] if star == "*" => Ok(all.collect()),
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
