//! tiedot's HTTP API over collections of JSON documents.
//!
//! A request passes `gate`, its parameters are read (`parameters`), and `endpoints` finds its handler: `collections`,
//! `documents`, `queries`, `server` or `web_tokens`. `query/` parses and evaluates tiedot's query language.

mod collections;
mod documents;
mod endpoints;
mod gate;
mod parameters;
mod queries;
mod query;
mod reply;
mod request;
mod server;
mod web_tokens;

use std::sync::Arc;

use axum::{Router, middleware};
use remora::Database;
use tokio::net::TcpListener;

use crate::{shared::ServerState, web};

/// The state of this protocol.
#[derive(Clone)]
struct TiedotService {
    shared: Arc<ServerState>,
    /// The collections of the server's database.
    library: Database,
}

/// Serves a listener until the server stops, then waits for running answers.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<ServerState>) {
    let library = shared.library.clone();
    let service = TiedotService { shared: Arc::clone(&shared), library };
    // All methods are equivalent, so paths are distinguished after the gate.
    let router = Router::new()
        .fallback(endpoints::answer)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), gate::admit))
        .with_state(service);
    web::serve(listener, router, shared).await;
}
