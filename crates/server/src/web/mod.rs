//! Code shared by the protocols over HTTP: connections and their timeouts (`listener`), bodies (`body`), origins of web
//! pages (`origin`), and address, rate and login (`gate`).

mod body;
mod gate;
mod listener;
mod origin;

use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;

pub(crate) use body::{BodyProblem, read_body, read_body_of};
pub(crate) use gate::{
    AddressRefusal, TooManyFailures, address_refusal, authenticate, client_address,
    cross_site_refusal, page_refusal,
};
pub(crate) use listener::Peer;

use crate::shared::ServerState;
use listener::HttpListener;

/// Serves a listener until the server stops, then waits for running answers.
pub(crate) async fn serve(listener: TcpListener, router: Router, shared: Arc<ServerState>) {
    let mut stopping = shared.stopping.subscribe();
    let service = router.into_make_service_with_connect_info::<Peer>();
    let stopped = async move {
        // An error means that the server has been dropped.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    };
    let listener = HttpListener::new(listener, shared);
    // It never fails: a failed accept is retried.
    let _ = axum::serve(listener, service).with_graceful_shutdown(stopped).await;
}
