//! The server itself: health, figures, settings, and its upkeep.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderValue, Request, StatusCode, header},
    response::{IntoResponse, Response},
};
use remora_protocol::{
    http::{self, ConfigSummary},
    line::{LineError, code},
};
use serde_json::json;

use super::{
    gate::Client,
    respond::{Refusal, read_json, value},
};
use crate::{
    command::{Session, blocking, is_equal, report},
    counters::CommandKind,
    server::Shared,
};

/// `GET /health`
pub(super) async fn health() -> Response {
    value(StatusCode::OK, &json!({ "status": "ok", "timestamp": timestamp() }))
}

/// `GET /health/live`
pub(super) async fn live() -> Response {
    value(StatusCode::OK, &json!({ "status": "alive", "timestamp": timestamp() }))
}

/// `GET /health/ready`
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let readiness = report::readiness(&shared);
    let status = match readiness.is_ready() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    value(status, &http::readiness(&readiness, timestamp()))
}

/// `GET /health/detail`
pub(super) async fn detail(State(shared): State<Arc<Shared>>) -> Response {
    let (info, readiness) = blocking(|| (report::info(&shared), report::readiness(&shared)));
    value(StatusCode::OK, &http::health_detail(&info, &readiness, timestamp()))
}

/// `GET /info`
pub(super) async fn info(State(shared): State<Arc<Shared>>) -> Response {
    shared.counters.command(CommandKind::Info);
    let (info, tables) = blocking(|| (report::info(&shared), report::tables(&shared)));
    value(StatusCode::OK, &http::info(&info, &tables))
}

/// `GET /config`
pub(super) async fn config(State(shared): State<Arc<Shared>>) -> Response {
    shared.counters.command(CommandKind::Config);
    let settings = shared.settings.load_full();
    let summary = ConfigSummary {
        mysql: !settings.sources.is_empty(),
        database: settings.sources.iter().any(|source| source.database.is_some()),
        cors: settings.http.cors_allow_origin.is_some(),
        tcp: !settings.listen.line.is_empty(),
        allow_cidrs: settings.allow_cidrs.as_ref().is_some_and(|list| !list.is_empty()),
    };
    value(StatusCode::OK, &http::config(&summary))
}

/// `GET /replication/status`
pub(super) async fn replication(State(shared): State<Arc<Shared>>) -> Response {
    shared.counters.command(CommandKind::ReplicationStatus);
    match report::readiness(&shared).replication {
        Some(status) => value(StatusCode::OK, &http::replication(&status)),
        None => {
            let error = LineError::new(code::NOT_IMPLEMENTED, "Replication not configured");
            Refusal::from(error).into_response()
        }
    }
}

/// `GET /metrics`
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let text = blocking(|| http::write_metrics(&report::metrics(&shared)));
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// `POST /optimize`
pub(super) async fn optimize(
    State(shared): State<Arc<Shared>>,
    Extension(Client(client)): Extension<Client>,
    request: Request<Body>,
) -> Response {
    let bearer = request.headers().get(header::AUTHORIZATION).cloned();
    let body = match read_json(&shared, request).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(),
    };
    if !may_administrate(&shared, bearer.as_ref()) {
        return unauthorized();
    }
    let session = Session::new(shared, Some(client));
    let table = match http::parse_optimize(&body)
        .and_then(|table| table.map(|table| session.resolve(&table)).transpose())
    {
        Ok(table) => table,
        Err(error) => return Refusal::from(error).into_response(),
    };
    session.count_command(CommandKind::Other);
    let mut line = Vec::new();
    match session.optimize(table.as_deref(), &mut line) {
        Ok(()) => value(StatusCode::OK, &http::optimized(&String::from_utf8_lossy(&line))),
        Err(error) => Refusal::with_status(error, StatusCode::SERVICE_UNAVAILABLE).into_response(),
    }
}

fn may_administrate(shared: &Shared, authorization: Option<&HeaderValue>) -> bool {
    let settings = shared.settings.load();
    let given = authorization.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let token = settings.admin_token.as_bytes();
    token.is_empty() || given.is_some_and(|given| is_equal(given, token))
}

fn unauthorized() -> Response {
    let message = "Administrative endpoint requires a valid bearer token";
    let refusal = Refusal::new(StatusCode::UNAUTHORIZED, code::PERMISSION_DENIED, message);
    let mut response = refusal.into_response();
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    response
}

fn timestamp() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
