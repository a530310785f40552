//! Checks of every request: address, rate, origin and login; each protocol answers refusals in its own form.

use std::{net::IpAddr, time::Instant};

use axum::{
    body::Body,
    http::{HeaderMap, Request},
};
use remora_protocol::http::Credentials;
use remora_sql::Identity;

use super::origin;
use crate::{
    accounts::verify_token,
    counters::Denial,
    requests::blocking,
    settings::{Http, Settings},
    shared::ServerState,
};

/// Why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressRefusal {
    /// It is in none of the permitted networks.
    Network,
    /// It exceeds its rate limit.
    Rate,
}

/// The client has failed to log in so often that it must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyFailures;

/// Why this client's address is refused, if it is.
pub(crate) fn address_refusal(
    shared: &ServerState,
    settings: &Settings,
    client: IpAddr,
    is_limited: bool,
) -> Option<AddressRefusal> {
    let allowed = settings.allow_cidrs.as_deref();
    if !allowed.is_none_or(|list| list.iter().any(|cidr| cidr.contains(client))) {
        shared.counters.deny(Denial::Network, true);
        return Some(AddressRefusal::Network);
    }
    let limits = &settings.rate_limiting;
    let is_limited = limits.enable && is_limited;
    if is_limited && !shared.limiter.admit(client, limits, Instant::now()) {
        shared.counters.deny(Denial::Rate, true);
        return Some(AddressRefusal::Rate);
    }
    None
}

/// Why a request is refused that a foreign web page may have caused through a browser on this machine. Trusted proxies
/// check this themselves.
pub(crate) fn page_refusal(
    shared: &ServerState,
    settings: &Settings,
    peer: IpAddr,
    request: &Request<Body>,
) -> Option<String> {
    origin_refusal_of(shared, settings, peer, || {
        origin::refusal(request, settings.http.cors_allow_origin.as_deref())
    })
}

/// As [`page_refusal`], for protocols whose GET requests may write: pages can cause those without scripts, and browsers
/// then send no `Origin`.
pub(crate) fn cross_site_refusal(
    shared: &ServerState,
    settings: &Settings,
    peer: IpAddr,
    request: &Request<Body>,
) -> Option<String> {
    origin_refusal_of(shared, settings, peer, || {
        let allowed = settings.http.cors_allow_origin.as_deref();
        origin::refusal(request, allowed).or_else(|| origin::embedding_refusal(request))
    })
}

fn origin_refusal_of(
    shared: &ServerState,
    settings: &Settings,
    peer: IpAddr,
    check: impl FnOnce() -> Option<String>,
) -> Option<String> {
    if settings.http.trusted_proxies.iter().any(|cidr| cidr.contains(peer)) {
        return None;
    }
    let why = check()?;
    shared.counters.deny(Denial::Network, true);
    Some(why)
}

/// The identity that these credentials prove, `None` if they are wrong.
pub(crate) async fn authenticate(
    shared: &ServerState,
    settings: &Settings,
    address: IpAddr,
    credentials: &Credentials,
) -> Result<Option<Identity>, TooManyFailures> {
    let logins = &shared.logins;
    let attempt =
        logins.failures.begin_attempt(Some(address), Instant::now()).ok_or(TooManyFailures)?;
    if !attempt.wait.is_zero() {
        tokio::time::sleep(attempt.wait).await;
    }
    let address = Some(address);
    let authenticated = match credentials {
        Credentials::Bearer(token) => verify_token(settings, token, address),
        Credentials::Basic { user, password } => {
            blocking(|| logins.verify_password(settings, user, password, address))
        }
    };
    match authenticated {
        Some(_) => attempt.succeeded(),
        None => attempt.failed(Instant::now()),
    }
    Ok(authenticated)
}

/// The client's address: the last one in `X-Forwarded-For` that is not a trusted proxy, if the connection comes from a
/// trusted proxy; otherwise the connection's. Earlier entries are the client's own claim.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, http: &Http) -> IpAddr {
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

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

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
