//! Checks of every request: address, rate, origin and login.

use std::{net::IpAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use remora_protocol::{
    http::Credentials,
    line::{LineError, code},
};
use remora_sql::Identity;

use super::respond::Refusal;
use crate::{
    accounts::Demand,
    requests::Caller,
    settings::{Http, Settings},
    shared::ServerState,
    web::{self, Peer, Refused, client_address, refused_address, refused_page},
};

/// Probes are exempt from rate limits, so that a busy server is not taken for dead.
const PROBES: [&str; 3] = ["/health", "/health/live", "/health/ready"];

/// The client, behind its proxies, and its identity.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: IpAddr,
    pub(super) identity: Option<Identity>,
}

impl Client {
    /// The caller for this client.
    pub(super) fn caller(self, shared: Arc<ServerState>) -> Caller {
        Caller::new(shared, self.identity)
    }
}

/// Admits a request or refuses it, and sets the headers for web pages.
pub(super) async fn admit(
    State(shared): State<Arc<ServerState>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let answering = peer.answering();
    let settings = shared.settings.load_full();
    let address = client_address(peer.address, request.headers(), &settings.http);
    let refused = refusal(&shared, &settings, address, request.uri().path())
        .or_else(|| foreign(&shared, &settings, peer.address, &request));
    let mut response = match refused {
        Some(refusal) => refusal.into_response(),
        None if is_preflight(&request, &settings.http) => preflight(),
        None => {
            let given = request.headers().get(header::AUTHORIZATION);
            let given = given.and_then(|value| Credentials::parse(value.as_bytes()));
            let proved = match PROBES.contains(&request.uri().path()) {
                true => Ok(None),
                false => log_in(&shared, &settings, address, given).await,
            };
            match proved {
                Ok(identity) => {
                    request.extensions_mut().insert(Client { address, identity });
                    next.run(request).await
                }
                Err(refusal) => refusal.into_response(),
            }
        }
    };
    allow_origin(&mut response, &settings.http);
    drop(answering);
    response
}

fn refusal(
    shared: &ServerState,
    settings: &Settings,
    client: IpAddr,
    path: &str,
) -> Option<Refusal> {
    if !path.starts_with("/health") {
        shared.counters.request();
    }
    match refused_address(shared, settings, client, !PROBES.contains(&path))? {
        Refused::Network => {
            let message = "Access denied by network.allow_cidrs";
            Some(Refusal::new(StatusCode::FORBIDDEN, code::PERMISSION_DENIED, message))
        }
        Refused::Rate => Some(LineError::rate_limited().into()),
    }
}

/// Refuses cross-origin requests of web pages through a browser on this machine.
fn foreign(
    shared: &ServerState,
    settings: &Settings,
    peer: IpAddr,
    request: &Request<Body>,
) -> Option<Refusal> {
    if !settings.http_is_local() {
        return None;
    }
    let why = refused_page(shared, settings, peer, request)?;
    Some(Refusal::new(StatusCode::FORBIDDEN, code::PERMISSION_DENIED, why))
}

/// The identity that a request proves; an error is the response to a client without access.
async fn log_in(
    shared: &ServerState,
    settings: &Settings,
    address: IpAddr,
    given: Option<Credentials>,
) -> Result<Option<Identity>, Refusal> {
    let demand = Demand::of(settings);
    if !demand.is_for_all() {
        return Ok(None);
    }
    let given = given.ok_or_else(|| unauthorized(demand))?;
    let proved = prove(shared, settings, address, &given).await?;
    proved.map(Some).ok_or_else(|| unauthorized(demand))
}

/// The identity that these credentials prove, `None` if they are wrong; an error is the response to a client that must
/// wait.
pub(super) async fn prove(
    shared: &ServerState,
    settings: &Settings,
    address: IpAddr,
    given: &Credentials,
) -> Result<Option<Identity>, Refusal> {
    web::prove(shared, settings, address, given).await.map_err(|web::NotHeard| {
        let late = Refusal::from(LineError::too_many_failures());
        late.with_header(header::RETRY_AFTER, "5")
    })
}

/// The response to a client that must log in.
pub(super) fn unauthorized(demand: Demand) -> Refusal {
    let (message, scheme) = match demand {
        Demand::User => ("A user and their password are needed", "Basic realm=\"remora\""),
        Demand::Token => ("A bearer token is needed", "Bearer"),
        _ => ("Administrative endpoint requires a valid bearer token", "Bearer"),
    };
    Refusal::new(StatusCode::UNAUTHORIZED, code::PERMISSION_DENIED, message)
        .with_header(header::WWW_AUTHENTICATE, scheme)
}

fn is_preflight(request: &Request<Body>, http: &Http) -> bool {
    request.method() == Method::OPTIONS && http.cors_allow_origin.is_some()
}

fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed = HeaderValue::from_static("Content-Type, Authorization");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    response
}

fn allow_origin(response: &mut Response, http: &Http) {
    let origin = http.cors_allow_origin.as_deref();
    if let Some(Ok(origin)) = origin.map(HeaderValue::from_str) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
}
