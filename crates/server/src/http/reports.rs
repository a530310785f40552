//! The server itself: health, statistics, settings and maintenance.

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
    http::{self, ConfigSummary, Credentials},
    line::{LineError, code},
};
use remora_sql::Access;
use serde_json::json;

use super::{
    gate::{self, Client},
    respond::{Refusal, read_json, value},
};
use crate::{
    accounts::LoginPolicy, counters::CommandKind, report, requests::blocking, shared::ServerState,
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
pub(super) async fn ready(State(shared): State<Arc<ServerState>>) -> Response {
    let mut readiness = report::readiness(&shared);
    // Probes need no login, so error texts, which may name tables and rows, are removed.
    if LoginPolicy::of(&shared.settings.load()).is_required() {
        readiness.replication.iter_mut().for_each(|status| status.last_error.clear());
    }
    let status = match readiness.is_ready() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    value(status, &http::readiness(&readiness, timestamp()))
}

/// `GET /health/detail`
pub(super) async fn detail(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
) -> Response {
    let caller = client.caller(Arc::clone(&shared));
    if let Err(error) = caller.require_everything() {
        return Refusal::from(error).into_response();
    }
    let all = &|_: &str| true;
    let (info, readiness) = blocking(|| (report::info(&shared, all), report::readiness(&shared)));
    value(StatusCode::OK, &http::health_detail(&info, &readiness, timestamp()))
}

/// `GET /info`
pub(super) async fn info(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
) -> Response {
    shared.counters.command(CommandKind::Info);
    let caller = client.caller(Arc::clone(&shared));
    let is_visible = &|table: &str| caller.is_visible(table);
    let (info, tables) =
        blocking(|| (report::info(&shared, is_visible), report::tables(&shared, is_visible)));
    value(StatusCode::OK, &http::info(&info, &tables))
}

/// `GET /config`
pub(super) async fn config(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
) -> Response {
    if let Err(error) = client.caller(Arc::clone(&shared)).require_everything() {
        return Refusal::from(error).into_response();
    }
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
pub(super) async fn replication(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
) -> Response {
    if let Err(error) = client.caller(Arc::clone(&shared)).require_everything() {
        return Refusal::from(error).into_response();
    }
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
pub(super) async fn metrics(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
) -> Response {
    let caller = client.caller(Arc::clone(&shared));
    let is_visible = &|table: &str| caller.is_visible(table);
    let text = blocking(|| http::write_metrics(&report::metrics(&shared, is_visible)));
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// `POST /optimize`
pub(super) async fn optimize(
    State(shared): State<Arc<ServerState>>,
    Extension(client): Extension<Client>,
    request: Request<Body>,
) -> Response {
    let credentials = request.headers().get(header::AUTHORIZATION);
    let credentials = credentials.and_then(|value| Credentials::parse(value.as_bytes()));
    let body = match read_json(&shared, request).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(),
    };
    if let Err(refusal) = require_token(&shared, &client, credentials).await {
        return refusal.into_response();
    }
    let caller = client.caller(shared);
    let resolve = |table: String| caller.resolve(&table, Access::Write);
    let table = match http::parse_optimize(&body).and_then(|table| table.map(resolve).transpose()) {
        Ok(table) => table,
        Err(error) => return Refusal::from(error).into_response(),
    };
    caller.count_command(CommandKind::Other);
    let mut line = Vec::new();
    match caller.optimize(table.as_deref(), &mut line) {
        Ok(()) => value(StatusCode::OK, &http::optimized(&String::from_utf8_lossy(&line))),
        Err(error) if error.code == code::PERMISSION_DENIED => Refusal::from(error).into_response(),
        Err(error) => Refusal::with_status(error, StatusCode::SERVICE_UNAVAILABLE).into_response(),
    }
}

/// With a MygramDB file the token protects only this; otherwise the client has logged in already.
async fn require_token(
    shared: &ServerState,
    client: &Client,
    credentials: Option<Credentials>,
) -> Result<(), Refusal> {
    let settings = shared.settings.load_full();
    let login_policy = LoginPolicy::of(&settings);
    if login_policy != LoginPolicy::TokenForAdministration {
        return Ok(());
    }
    let token = credentials.filter(|credentials| matches!(credentials, Credentials::Bearer(_)));
    let token = token.ok_or_else(|| gate::unauthorized(login_policy))?;
    let authenticated = gate::authenticate(shared, &settings, client.address, &token).await?;
    authenticated.map(|_| ()).ok_or_else(|| gate::unauthorized(login_policy))
}

fn timestamp() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
