//! The endpoints: their paths, parameters and handlers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{Request, StatusCode},
    response::{IntoResponse, Response},
};

use super::{
    TiedotService, collections, documents,
    gate::Client,
    parameters::Parameters,
    queries,
    reply::Refusal,
    request::{Answer, EndpointRequest},
    server, web_tokens,
};
use crate::{counters::CommandKind, requests::blocking};

/// A path and its handler.
struct Endpoint {
    path: &'static str,
    /// All its parameters.
    parameters: &'static [&'static str],
    /// The parameter that a JSON body stands for.
    body: Option<&'static str>,
    kind: CommandKind,
    answer: fn(&EndpointRequest) -> Answer,
}

const fn endpoint(
    path: &'static str,
    parameters: &'static [&'static str],
    kind: CommandKind,
    answer: fn(&EndpointRequest) -> Answer,
) -> Endpoint {
    Endpoint { path, parameters, body: None, kind, answer }
}

impl Endpoint {
    const fn with_body(self, name: &'static str) -> Self {
        Self { body: Some(name), ..self }
    }
}

use CommandKind::{Count, Get, Info, Other, Save, Search};

const ENDPOINTS: [Endpoint; 24] = [
    endpoint("/", &[], Info, server::welcome),
    endpoint("/version", &[], Info, server::version),
    endpoint("/memstats", &[], Info, server::memory),
    // tiedot documents the number of parts, but ignores it.
    endpoint("/create", &["col", "numparts"], Other, collections::create),
    endpoint("/all", &[], Info, collections::all),
    endpoint("/rename", &["old", "new"], Other, collections::rename),
    endpoint("/drop", &["col"], Other, collections::drop),
    endpoint("/scrub", &["col"], Other, collections::scrub),
    endpoint("/sync", &[], Other, server::sync),
    endpoint("/insert", &["col", "doc"], Other, documents::insert).with_body("doc"),
    endpoint("/get", &["col", "id"], Get, documents::get),
    endpoint("/update", &["col", "id", "doc"], Other, documents::update).with_body("doc"),
    endpoint("/delete", &["col", "id"], Other, documents::delete),
    endpoint("/approxdoccount", &["col"], Count, documents::count),
    endpoint("/getpage", &["col", "page", "total"], Get, queries::page),
    endpoint("/query", &["col", "q"], Search, queries::query).with_body("q"),
    endpoint("/count", &["col", "q"], Count, queries::count).with_body("q"),
    endpoint(INDEX, &["col", "path"], Other, collections::index),
    endpoint("/unindex", &["col", "path"], Other, collections::unindex),
    endpoint("/indexes", &["col"], Info, collections::indexes),
    endpoint("/dump", &["dest"], Save, server::dump),
    endpoint("/shutdown", &[], Other, server::shutdown),
    endpoint(web_tokens::LOGIN, &["user", "pass"], Other, web_tokens::no_credentials),
    endpoint("/checkjwt", &[], Info, web_tokens::check),
];

/// The path whose answer waits until its work is done.
const INDEX: &str = "/index";

/// Answers a request.
pub(super) async fn answer(
    State(service): State<TiedotService>,
    Extension(client): Extension<Client>,
    request: Request<Body>,
) -> Response {
    match find_and_answer(service, client, request).await {
        Ok(reply) => reply.into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn find_and_answer(service: TiedotService, client: Client, request: Request<Body>) -> Answer {
    let path = request.uri().path();
    let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.path == path);
    let unknown = || Refusal::new(StatusCode::NOT_FOUND, "Invalid API endpoint");
    let endpoint = endpoint.ok_or_else(unknown)?;
    let settings = service.shared.settings.load_full();
    let mut parameters = Parameters::read(request, &settings).await?;
    parameters.check(endpoint.parameters, endpoint.body)?;
    let address = client.address;
    let caller = client.caller(service.shared);
    let request = EndpointRequest { caller, library: service.library, settings, parameters };
    if endpoint.path == web_tokens::LOGIN {
        request.caller.count_command(endpoint.kind);
        return web_tokens::log_in(&request, address).await;
    }
    let run = || catch_unwind(AssertUnwindSafe(|| (endpoint.answer)(&request)));
    let reply = blocking(run).unwrap_or_else(|_| {
        tracing::error!("{} of tiedot's API met a fault of the server", endpoint.path);
        Err(Refusal::failed("Internal error: the request met a fault of the server"))
    })?;
    request.caller.count_command(endpoint.kind);
    if endpoint.path == INDEX {
        collections::wait_for_index(&request).await?;
    }
    Ok(reply)
}
