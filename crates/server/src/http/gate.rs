//! What every request passes: who may ask, how often, from which web page, and who it is.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use remora_protocol::{
    http::Credentials,
    line::{LineError, code},
};
use remora_sql::Identity;

use super::{listener::Peer, origin, respond::Refusal};
use crate::{
    accounts::{Demand, prove_token},
    counters::Denial,
    requests::{Caller, blocking},
    settings::{Http, Settings},
    shared::ServerState,
};

/// Probes are never refused for their rate: a server that is only busy must not be taken for dead.
const PROBES: [&str; 3] = ["/health", "/health/live", "/health/ready"];

/// The client that asks, behind its proxies, and who it has proved to be.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: IpAddr,
    pub(super) identity: Option<Identity>,
}

impl Client {
    /// A caller of this client.
    pub(super) fn caller(self, shared: Arc<ServerState>) -> Caller {
        Caller::new(shared, self.identity)
    }
}

/// Admits a request or answers why not, and sets the headers that web pages need.
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
    let allowed = settings.allow_cidrs.as_deref();
    if !allowed.is_none_or(|list| list.iter().any(|cidr| cidr.contains(client))) {
        shared.counters.deny(Denial::Network, true);
        let message = "Access denied by network.allow_cidrs";
        return Some(Refusal::new(StatusCode::FORBIDDEN, code::PERMISSION_DENIED, message));
    }
    let limits = &settings.rate_limiting;
    let limited = limits.enable && !PROBES.contains(&path);
    if limited && !shared.limiter.admit(client, limits, Instant::now()) {
        shared.counters.deny(Denial::Rate, true);
        return Some(LineError::rate_limited().into());
    }
    None
}

/// Refuses what a web page of somewhere else asks through a browser on this machine.
fn foreign(
    shared: &ServerState,
    settings: &Settings,
    peer: IpAddr,
    request: &Request<Body>,
) -> Option<Refusal> {
    let is_proxy = settings.http.trusted_proxies.iter().any(|cidr| cidr.contains(peer));
    if is_proxy || !settings.http_is_local() {
        return None;
    }
    let why = origin::refusal(request, settings.http.cors_allow_origin.as_deref())?;
    shared.counters.deny(Denial::Network, true);
    Some(Refusal::new(StatusCode::FORBIDDEN, code::PERMISSION_DENIED, why))
}

/// Who asks, by what the request proves; an error is the response to one who may not.
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

/// Whom these credentials prove, `None` where they are wrong; an error is the response to one who is
/// not listened to.
pub(super) async fn prove(
    shared: &ServerState,
    settings: &Settings,
    address: IpAddr,
    given: &Credentials,
) -> Result<Option<Identity>, Refusal> {
    let logins = &shared.logins;
    let Some(attempt) = logins.failures.begin(Some(address), Instant::now()) else {
        let late = Refusal::from(LineError::too_many_failures());
        return Err(late.with_header(header::RETRY_AFTER, "5"));
    };
    if !attempt.wait.is_zero() {
        tokio::time::sleep(attempt.wait).await;
    }
    let address = Some(address);
    let proved = match given {
        Credentials::Bearer(token) => prove_token(settings, token, address),
        Credentials::Basic { user, password } => {
            blocking(|| logins.prove_password(settings, user, password, address))
        }
    };
    match proved {
        Some(_) => attempt.succeeded(),
        None => attempt.failed(Instant::now()),
    }
    Ok(proved)
}

/// The response to a client that has to log in.
pub(super) fn unauthorized(demand: Demand) -> Refusal {
    let (message, scheme) = match demand {
        Demand::User => ("A user and their password are needed", "Basic realm=\"remora\""),
        Demand::Token => ("A bearer token is needed", "Bearer"),
        _ => ("Administrative endpoint requires a valid bearer token", "Bearer"),
    };
    Refusal::new(StatusCode::UNAUTHORIZED, code::PERMISSION_DENIED, message)
        .with_header(header::WWW_AUTHENTICATE, scheme)
}

/// The last address of `X-Forwarded-For` that is no trusted proxy, if the connection comes from
/// one; else where the connection comes from. What stands before is the client's own claim.
fn client_address(peer: IpAddr, headers: &HeaderMap, http: &Http) -> IpAddr {
    let is_trusted = |address: IpAddr| http.trusted_proxies.iter().any(|c| c.contains(address));
    if !is_trusted(peer) {
        return peer;
    }
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    let hops = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.rsplit(','));
    let mut client = peer;
    for hop in hops {
        let Ok(address) = hop.trim().parse() else { break };
        client = address;
        if !is_trusted(address) {
            break;
        }
    }
    client
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Cidr;

    #[test]
    fn forwarded_addresses_are_believed_from_proxies_alone() {
        let proxies = vec![Cidr::parse("10.0.0.0/8").unwrap()];
        let http = Http { trusted_proxies: proxies, ..Http::default() };
        let seen = |peer: &str, forwarded: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in forwarded {
                headers.append("x-forwarded-for", HeaderValue::from_str(line).unwrap());
            }
            client_address(peer.parse().unwrap(), &headers, &http).to_string()
        };
        assert_eq!(seen("192.0.2.1", &["203.0.113.5"]), "192.0.2.1");
        assert_eq!(seen("10.0.0.1", &["203.0.113.5"]), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4, 203.0.113.5, 10.0.0.2"]), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4", "203.0.113.5"]), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4, nonsense"]), "10.0.0.1");
        assert_eq!(seen("10.0.0.1", &[]), "10.0.0.1");
    }
}
