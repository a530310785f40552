//! What every request passes: who may ask, how often, and from which web page.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use remora_protocol::line::{LineError, code};

use super::{listener::Peer, respond::Refusal};
use crate::{
    counters::Denial,
    server::Shared,
    settings::{Http, Settings},
};

/// Probes are never refused for their rate: a server that is only busy must not be taken for dead.
const PROBES: [&str; 3] = ["/health", "/health/live", "/health/ready"];

/// The client that asks, behind its proxies.
#[derive(Clone, Copy)]
pub(super) struct Client(pub(super) IpAddr);

/// Admits a request or answers why not, and sets the headers that web pages need.
pub(super) async fn admit(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let answering = peer.answering();
    let settings = shared.settings.load_full();
    let client = client_address(peer.address, request.headers(), &settings.http);
    let mut response = match refusal(&shared, &settings, client, request.uri().path()) {
        Some(refusal) => refusal.into_response(),
        None if is_preflight(&request, &settings.http) => preflight(),
        None => {
            request.extensions_mut().insert(Client(client));
            next.run(request).await
        }
    };
    allow_origin(&mut response, &settings.http);
    drop(answering);
    response
}

fn refusal(shared: &Shared, settings: &Settings, client: IpAddr, path: &str) -> Option<Refusal> {
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
    use crate::session::Cidr;

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
