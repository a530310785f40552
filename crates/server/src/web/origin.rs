//! Which web pages may send requests to a server that is only reachable from this machine.
//!
//! A browser on this machine sends requests for any page it shows. `Origin` names the page's site. But a page may come
//! from a name that its owner resolves to this machine (DNS rebinding); then only `Host` reveals it. So `Host` must be
//! an address or `localhost`.

use std::net::IpAddr;

use axum::{
    body::Body,
    http::{Request, header, uri::Authority},
};

/// Why a request is refused; `None` if it is not.
pub(crate) fn refusal(request: &Request<Body>, allowed_origin: Option<&str>) -> Option<String> {
    let headers = request.headers();
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = request.uri().authority().map(Authority::as_str).or_else(|| text(header::HOST));
    // HTTP/1.0 requests have none, but browsers do not send those.
    if let Some(host) = host
        && !is_local(host)
    {
        return Some(format!(
            "This server answers under localhost or its address, not under '{}': a proxy in front of \
             it belongs in http.trusted_proxies",
            shortened(host)
        ));
    }
    let origin = text(header::ORIGIN)?;
    let is_own = origin.split_once("://").is_some_and(|(_, place)| Some(place) == host);
    if is_own || allowed_origin == Some(origin) {
        return None;
    }
    Some(format!(
        "Web pages of '{}' may not ask: http.cors_allow_origin names the one that may",
        shortened(origin)
    ))
}

/// Why a request is refused that a foreign page causes without a script, for example by loading an image. Browsers send
/// `Sec-Fetch-Site`, or `Referer` if they are old. Requests with an `Origin` were checked by that.
pub(crate) fn embedding_refusal(request: &Request<Body>) -> Option<String> {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) {
        return None;
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_foreign = match (text("sec-fetch-site"), text("referer")) {
        (Some(site), _) => !matches!(site, "same-origin" | "none"),
        (None, Some(page)) => {
            let place = page.split_once("://").and_then(|(_, rest)| rest.split('/').next());
            place != text("host")
        }
        (None, None) => false,
    };
    is_foreign.then(|| "Web pages of other places may not ask, nor link to what is here".to_owned())
}

/// Whether `HOST[:PORT]` is a loopback address or `localhost`.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// The beginning of a client's input for a message.
fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(uri: &str, headers: &[(&str, &str)], allowed: Option<&str>) -> bool {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        refusal(&request.body(Body::empty()).unwrap(), allowed).is_some()
    }

    #[test]
    fn hosts_are_addresses_or_localhost() {
        for host in [
            "localhost",
            "localhost:9308",
            "LOCALHOST.:1",
            "127.0.0.1:9308",
            "[::1]:9308",
            "10.0.0.7",
        ] {
            assert!(!is_refused("/info", &[("host", host)], None), "{host}");
        }
        for host in
            ["evil.example:9308", "localhost.evil.example", "127.0.0.1.evil.example", "", "a@b"]
        {
            assert!(is_refused("/info", &[("host", host)], None), "{host}");
        }
        assert!(!is_refused("/info", &[], None));
        let host = [("host", "localhost")];
        assert!(is_refused("http://evil.example/info", &host, None));
        assert!(!is_refused("http://127.0.0.1:9308/info", &host, None));
    }

    #[test]
    fn origins_are_the_servers_own_or_the_allowed_one() {
        let from = |origin, allowed| {
            is_refused("/info", &[("host", "localhost:9308"), ("origin", origin)], allowed)
        };
        let page = "https://example.com";
        assert!(!from("http://localhost:9308", None) && !from(page, Some(page)));
        for origin in [page, "null", "http://localhost:80", "https://example.com.evil.example"] {
            assert!(from(origin, None), "{origin}");
        }
        assert!(from("https://other.example", Some(page)));
    }

    #[test]
    fn cross_origin_pages_cannot_embed() {
        let is_refused = |headers: &[(&str, &str)]| {
            let mut request =
                Request::builder().uri("/drop?col=a").header("host", "localhost:8080");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            embedding_refusal(&request.body(Body::empty()).unwrap()).is_some()
        };
        for own in [("sec-fetch-site", "none"), ("sec-fetch-site", "same-origin")] {
            assert!(!is_refused(&[own]), "{own:?}");
        }
        assert!(!is_refused(&[]) && !is_refused(&[("referer", "http://localhost:8080/all")]));
        for other in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("referer", "http://evil.example/localhost:8080"),
            ("referer", "http://localhost:80/"),
            ("referer", "localhost:8080"),
        ] {
            assert!(is_refused(&[other]), "{other:?}");
        }
    }
}
