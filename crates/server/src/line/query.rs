//! SEARCH, COUNT, GET and FACET.

use remora_engine::{FacetReply, FacetRequest, SearchReply, Selection, SourcePositions, Value};
use remora_protocol::{
    http::Columns,
    line::{Get, LineError, Search, reply},
};
use remora_sql::DeclaredNumbers;

use super::Session;
use crate::{
    requests::{Answer, parse_key, shown_columns},
    settings::{Cache, Settings},
    zone,
};

impl Session {
    pub(super) fn search(
        &self,
        mut search: Search,
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Answer {
        let zone = settings.time_zone.as_ref();
        self.caller
            .cached(&mut search, settings, out, |search, out| {
                let mut reply = self.caller.ask_search(&search.request, settings)?;
                zone::localize_hits(zone, Columns::Fields, &mut reply.hits);
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

    /// Replaces numbers of columns with special declared types by the texts that their source shows.
    fn show_declared(&self, table: &str, reply: &mut SearchReply) {
        if reply.field_names.is_empty() {
            return;
        }
        let Ok(schema) = self.caller.shared.database.schema(table) else { return };
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
        self.caller
            .cached(&mut selection, settings, out, |selection, out| {
                let reply = self.caller.reader(settings).count(selection)?;
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
        let mut debug = FacetReply::default();
        // A cached reply lacks the statistics of DEBUG.
        let caching = Cache { enabled: settings.cache.enabled && !self.debug, ..settings.cache };
        let zone = settings.time_zone.as_ref();
        let (report, _) =
            self.caller.cached_as(&mut request, &caching, zone, out, |request, out| {
                let mut reply = self.caller.reader(settings).facet(request)?;
                zone::localize_facet(zone, &mut reply);
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

    pub(super) fn get(&self, get: &Get, settings: &Settings, out: &mut Vec<u8>) -> Answer {
        let (database, zone) = (&self.caller.shared.database, settings.time_zone.as_ref());
        let (table, schema) = self.caller.find_table(&get.table)?;
        let mut key = parse_key(&schema, &get.key, zone)?;
        // Read before the row, so that the row is of this position or a later one.
        let applied = database.source_positions();
        let mut row = database.get(&table, &key)?.ok_or_else(LineError::document_not_found)?;
        let shown = shown_columns(&schema, &get.fields)?;
        let form = if get.fields.is_empty() { Columns::Filters } else { Columns::Fields };
        row.iter_mut().for_each(|value| zone::show(zone, form, value));
        zone::localize_key(zone, &mut key);
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

    /// Appends the applied position to a reply, if the client wants it.
    fn write_applied(&self, positions: &SourcePositions, out: &mut Vec<u8>) {
        if self.position {
            reply::write_applied(out, &self.caller.shared.sources.applied_text(positions));
        }
    }
}
