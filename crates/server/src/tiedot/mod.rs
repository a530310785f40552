//! tiedot's HTTP API over collections of JSON documents.
//!
//! A request passes `gate` (who may ask), its parameters are read (`parameters`), and `endpoints` finds what answers it:
//! `collections`, `documents`, `queries`, `server` or `web_tokens`. `query/` reads and evaluates tiedot's query language.

mod collections;
mod documents;
mod endpoints;
mod gate;
mod parameters;
mod queries;
mod query;
mod reply;
mod server;
mod web_tokens;

use std::sync::Arc;

use axum::{Router, middleware};
use remora::Database;
use tokio::net::TcpListener;

use crate::{shared::ServerState, web};

/// What the requests of this door share.
#[derive(Clone)]
struct Side {
    shared: Arc<ServerState>,
    /// The collections of the server's database.
    library: Database,
}

/// Answers on a listener until the server stops, then lets what is being answered end.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<ServerState>) {
    let library = Database::over(shared.database.clone());
    let side = Side { shared: Arc::clone(&shared), library };
    // Each verb is as good as another, so paths are told apart behind the gate.
    let router = Router::new()
        .fallback(endpoints::answer)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), gate::admit))
        .with_state(side);
    web::serve(listener, router, shared).await;
}
