//! HTTP: the requests of the line protocol as JSON, and reports for operators.
//!
//! A request arrives through `web`, passes `gate`, and reaches its handler: `tables`, or `reports` for the server
//! itself. `remora_protocol::http` converts it to an engine request, and a [`Caller`](crate::requests::Caller) answers
//! it as on the line protocol.

mod gate;
mod reports;
mod respond;
mod tables;

use std::sync::Arc;

use axum::{
    Router, middleware,
    routing::{get, post},
};
use tokio::net::TcpListener;

use crate::{shared::ServerState, web};

/// Serves a listener until the server stops, then waits for running answers.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<ServerState>) {
    let router = router(&shared);
    web::serve(listener, router, shared).await;
}

fn router(shared: &Arc<ServerState>) -> Router {
    Router::new()
        .route("/tables/{table}/{key}", get(tables::row).post(tables::query))
        .route("/info", get(reports::info))
        .route("/health", get(reports::health))
        .route("/health/live", get(reports::live))
        .route("/health/ready", get(reports::ready))
        .route("/health/detail", get(reports::detail))
        .route("/config", get(reports::config))
        .route("/replication/status", get(reports::replication))
        .route("/optimize", post(reports::optimize))
        .route("/metrics", get(reports::metrics))
        .fallback(respond::no_such_path)
        .method_not_allowed_fallback(respond::no_such_method)
        .layer(middleware::from_fn_with_state(Arc::clone(shared), gate::admit))
        .with_state(Arc::clone(shared))
}
