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
    accounts::LoginPolicy,
    requests::Caller,
    settings::{Http, Settings},
    shared::ServerState,
    web::{self, AddressRefusal, Peer, address_refusal, client_address, page_refusal},
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
        .or_else(|| origin_refusal(&shared, &settings, peer.address, &request));
    let mut response = match refused {
        Some(refusal) => refusal.into_response(),
        None if is_preflight(&request, &settings.http) => preflight(),
        None => {
            let credentials = request.headers().get(header::AUTHORIZATION);
            let credentials = credentials.and_then(|value| Credentials::parse(value.as_bytes()));
            let authenticated = match PROBES.contains(&request.uri().path()) {
                true => Ok(None),
                false => log_in(&shared, &settings, address, credentials).await,
            };
            match authenticated {
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
    match address_refusal(shared, settings, client, !PROBES.contains(&path))? {
        AddressRefusal::Network => {
            let message = "Access denied by network.allow_cidrs";
            Some(Refusal::new(StatusCode::FORBIDDEN, code::PERMISSION_DENIED, message))
        }
        AddressRefusal::Rate => Some(LineError::rate_limited().into()),
    }
}

/// Refuses cross-origin requests of web pages through a browser on this machine.
fn origin_refusal(
    shared: &ServerState,
    settings: &Settings,
    peer: IpAddr,
    request: &Request<Body>,
) -> Option<Refusal> {
    if !settings.http_is_local() {
        return None;
    }
    let why = page_refusal(shared, settings, peer, request)?;
    Some(Refusal::new(StatusCode::FORBIDDEN, code::PERMISSION_DENIED, why))
}

/// The identity that a request proves; an error is the response to a client without access.
async fn log_in(
    shared: &ServerState,
    settings: &Settings,
    address: IpAddr,
    credentials: Option<Credentials>,
) -> Result<Option<Identity>, Refusal> {
    let login_policy = LoginPolicy::of(settings);
    if !login_policy.is_required() {
        return Ok(None);
    }
    let credentials = credentials.ok_or_else(|| unauthorized(login_policy))?;
    let authenticated = authenticate(shared, settings, address, &credentials).await?;
    authenticated.map(Some).ok_or_else(|| unauthorized(login_policy))
}

/// The identity that these credentials prove, `None` if they are wrong; an error is the response to a client that must
/// wait.
pub(super) async fn authenticate(
    shared: &ServerState,
    settings: &Settings,
    address: IpAddr,
    credentials: &Credentials,
) -> Result<Option<Identity>, Refusal> {
    web::authenticate(shared, settings, address, credentials).await.map_err(
        |web::TooManyFailures| {
            let late = Refusal::from(LineError::too_many_failures());
            late.with_header(header::RETRY_AFTER, "5")
        },
    )
}

/// The response to a client that must log in.
pub(super) fn unauthorized(login_policy: LoginPolicy) -> Refusal {
    let (message, scheme) = match login_policy {
        LoginPolicy::User => ("A user and their password are needed", "Basic realm=\"remora\""),
        LoginPolicy::Token => ("A bearer token is needed", "Bearer"),
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
