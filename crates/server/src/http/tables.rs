//! Searching, counting and reading tables.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use axum::{
    Extension,
    body::Body,
    extract::{Path, Query as QueryString, State},
    http::{Request, StatusCode},
    response::{IntoResponse, Response},
};
use remora_engine::{FacetRequest, Schema, Selection, SortBy};
use remora_protocol::{
    http::{self, Columns},
    line::{LineError, Search, code},
};
use serde::Deserialize;

use super::{
    gate::Client,
    respond::{Refusal, json, no_such_path, read_json},
};
use crate::{
    counters::CommandKind,
    requests::{Caller, Query, parse_key, parse_limits, shown_columns},
    settings::{Dialect, Settings},
    shared::ServerState,
    zone,
};

/// The most bytes of a table's name in MygramDB.
const MAX_TABLE_BYTES: usize = 256;

/// `POST /tables/{table}/search`, `count` and `facet`.
pub(super) async fn query(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
    Path((table, verb)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (kind, run): (_, QueryHandler) = match verb.as_str() {
        "search" => (CommandKind::Search, search),
        "count" => (CommandKind::Count, count),
        "facet" => (CommandKind::Facet, facet),
        _ => return no_such_path(request.uri().clone()).await.into_response(),
    };
    let body = match read_json(&shared, request).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(),
    };
    let caller = client.caller(shared);
    answer(&caller, kind, &table, |settings, out| run(&caller, &table, &body, settings, out))
}

/// The query parameters of a row's address.
#[derive(Deserialize)]
pub(super) struct RowOptions {
    fields: Option<String>,
}

/// `GET /tables/{table}/{key}`
pub(super) async fn row(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
    Path((table, key)): Path<(String, String)>,
    QueryString(options): QueryString<RowOptions>,
) -> Response {
    let caller = client.caller(shared);
    answer(&caller, CommandKind::Get, &table, |settings, out| {
        let fields = options.fields.filter(|_| settings.dialect == Dialect::Remora);
        get(&caller, (&table, &key), fields.as_deref(), settings, out)
    })
}

type QueryHandler = fn(&Caller, &str, &[u8], &Settings, &mut Vec<u8>) -> Result<(), LineError>;

/// Runs a request with the same checks as the line protocol. A panic in the server's code is answered too.
fn answer(
    caller: &Caller,
    kind: CommandKind,
    table: &str,
    run: impl FnOnce(&Settings, &mut Vec<u8>) -> Result<(), LineError>,
) -> Response {
    let settings = caller.settings();
    let mut out = Vec::new();
    let answered = catch_unwind(AssertUnwindSafe(|| {
        caller.require_loaded()?;
        check_table(table, &settings)?;
        run(&settings, &mut out)?;
        caller.count_command(kind);
        Ok(())
    }));
    let fault = || {
        tracing::error!("an HTTP request about '{table}' met a fault of the server");
        LineError::new(code::INTERNAL, "Internal error: the request met a fault of the server")
    };
    match answered.unwrap_or_else(|_| Err(fault())) {
        Ok(()) => json(StatusCode::OK, out),
        Err(error) if error == LineError::bare_table_name(table) => {
            Refusal::new(StatusCode::BAD_REQUEST, code::SYNTAX, error.message).into_response()
        }
        Err(error) => Refusal::from(error).into_response(),
    }
}

/// Refuses names that MygramDB's tables cannot have.
fn check_table(table: &str, settings: &Settings) -> Result<(), LineError> {
    let fits =
        |char: char| !char.is_ascii() || char.is_ascii_alphanumeric() || "_.-".contains(char);
    let valid = table.len() <= MAX_TABLE_BYTES && table.chars().all(fits);
    match valid || settings.dialect == Dialect::Remora {
        true => Ok(()),
        false => Err(LineError::new(code::TOKEN, format!("Invalid table name: {table}"))),
    }
}

/// A query with a JSON reply, so that the cache distinguishes it from the line protocol's.
#[derive(Debug)]
struct Json<Q>(Q);

impl<Q: Query> Query for Json<Q> {
    fn selection(&mut self) -> &mut Selection {
        self.0.selection()
    }

    fn columns(&self) -> Vec<&str> {
        self.0.columns()
    }
}

/// A search, with the form of its columns.
#[derive(Debug)]
struct JsonSearch(Search, Columns);

impl Query for JsonSearch {
    fn selection(&mut self) -> &mut Selection {
        self.0.selection()
    }

    fn columns(&self) -> Vec<&str> {
        self.0.columns()
    }
}

fn search(
    caller: &Caller,
    table: &str,
    body: &[u8],
    settings: &Settings,
    out: &mut Vec<u8>,
) -> Result<(), LineError> {
    let (mut search, columns) = http::parse_search(body, table, &parse_limits(settings))?;
    let (table, schema) = caller.find_table(table)?;
    search.request.selection.table = table;
    sort_by_key(&mut search, &schema);
    if columns == Columns::Filters {
        let shown = shown_columns(&schema, &[])?;
        let names = shown.iter().filter_map(|index| schema.columns.get(*index));
        search.request.fields = names.map(|column| column.name.clone()).collect();
    }
    let mut search = JsonSearch(search, columns);
    caller.cached(&mut search, settings, out, |JsonSearch(search, columns), out| {
        let mut reply = caller.ask_search(&search.request, settings)?;
        zone::localize_hits(settings.time_zone.as_ref(), *columns, &mut reply.hits);
        http::write_search(out, &reply, search, *columns);
        Ok(reply.report)
    })?;
    Ok(())
}

/// MygramDB's clients call the key `id`, whatever its columns are called.
fn sort_by_key(search: &mut Search, schema: &Schema) {
    let has_id = schema.columns.iter().any(|column| column.name.eq_ignore_ascii_case("id"));
    for key in &mut search.request.sort {
        if !has_id && matches!(&key.by, SortBy::Column(name) if name == "id") {
            key.by = SortBy::Key;
        }
    }
}

fn count(
    caller: &Caller,
    table: &str,
    body: &[u8],
    settings: &Settings,
    out: &mut Vec<u8>,
) -> Result<(), LineError> {
    let selection: Selection = http::parse_count(body, table, &parse_limits(settings))?;
    caller.cached(&mut Json(selection), settings, out, |Json(selection), out| {
        let reply = caller.reader(settings).count(selection)?;
        http::write_count(out, &reply);
        Ok(reply.report)
    })?;
    Ok(())
}

fn facet(
    caller: &Caller,
    table: &str,
    body: &[u8],
    settings: &Settings,
    out: &mut Vec<u8>,
) -> Result<(), LineError> {
    let request: FacetRequest = http::parse_facet(body, table, &parse_limits(settings))?;
    caller.cached(&mut Json(request), settings, out, |Json(request), out| {
        let mut reply = caller.reader(settings).facet(request)?;
        zone::localize_facet(settings.time_zone.as_ref(), &mut reply);
        http::write_facet(out, &reply, &request.column);
        Ok(reply.report)
    })?;
    Ok(())
}

fn get(
    caller: &Caller,
    (table, key): (&str, &str),
    fields: Option<&str>,
    settings: &Settings,
    out: &mut Vec<u8>,
) -> Result<(), LineError> {
    let zone = settings.time_zone.as_ref();
    let (table, schema) = caller.find_table(table)?;
    let mut key = parse_key(&schema, key, zone)?;
    let mut row = caller.database().get(&table, &key)?.ok_or_else(LineError::document_not_found)?;
    let names: Vec<String> = fields
        .unwrap_or("")
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let shown = shown_columns(&schema, &names)?;
    let columns = if names.is_empty() { Columns::Filters } else { Columns::Fields };
    row.iter_mut().for_each(|value| zone::show(zone, columns, value));
    zone::localize_key(zone, &mut key);
    let values = shown
        .iter()
        .filter_map(|index| Some((schema.columns.get(*index)?.name.as_str(), row.get(*index)?)));
    http::write_document(out, &key, values, columns);
    Ok(())
}
