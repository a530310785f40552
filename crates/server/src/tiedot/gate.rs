//! Checks of every request: address, rate, origin and login.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use remora_protocol::http::Credentials;
use remora_sql::Identity;

use super::{parameters, reply::Refusal, web_tokens};
use crate::{
    accounts::{LoginPolicy, is_web_token},
    requests::Caller,
    settings::Settings,
    shared::ServerState,
    web::{self, AddressRefusal, Peer, address_refusal, client_address, cross_site_refusal},
};

/// Paths without login: public information, and the login itself.
const PUBLIC_PATHS: [&str; 4] = ["/", "/version", "/memstats", web_tokens::LOGIN];

/// How far into a form a token is looked for, in bytes.
const TOKEN_WITHIN: usize = 64 << 10;

/// A client's identity.
#[derive(Clone)]
pub(super) struct Client {
    identity: Option<Identity>,
    /// Its address.
    pub(super) address: IpAddr,
}

impl Client {
    /// The caller for this client.
    pub(super) fn caller(self, shared: Arc<ServerState>) -> Caller {
        Caller::new(shared, self.identity)
    }
}

/// Admits a request or refuses it, and sets the headers of tiedot's replies.
pub(super) async fn admit(
    State(shared): State<Arc<ServerState>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let answering = peer.answering();
    let settings = shared.settings.load_full();
    shared.counters.request();
    let is_question = request.method() == Method::OPTIONS;
    let admitted = match check(&shared, &settings, peer.address, &request) {
        Ok(Some(mut login)) => {
            if login.credentials.is_none() {
                (request, login.credentials) = of_form(request, &settings).await;
            }
            log_in(&shared, &settings, login).await.map(Some)
        }
        Ok(None) => Ok(None),
        Err(refusal) => Err(refusal),
    };
    let mut response = match admitted {
        Ok(_) if is_question => StatusCode::NO_CONTENT.into_response(),
        Ok(identity) => {
            let address = client_address(peer.address, request.headers(), &settings.http);
            request.extensions_mut().insert(Client { identity, address });
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    set_headers(response.headers_mut());
    drop(answering);
    response
}

/// A required login.
struct Login {
    login_policy: LoginPolicy,
    address: IpAddr,
    credentials: Option<Credentials>,
}

/// The login that a request requires, if any; an error refuses the request.
fn check(
    shared: &ServerState,
    settings: &Settings,
    peer: IpAddr,
    request: &Request<Body>,
) -> Result<Option<Login>, Refusal> {
    let address = client_address(peer, request.headers(), &settings.http);
    match address_refusal(shared, settings, address, true) {
        Some(AddressRefusal::Network) => {
            return Err(Refusal::forbidden("Access denied by network.allow_cidrs"));
        }
        Some(AddressRefusal::Rate) => {
            let text = "Rate limit exceeded, try again later";
            return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, text));
        }
        None => {}
    }
    let login_policy = LoginPolicy::of(settings);
    if login_policy == LoginPolicy::Nothing {
        // Without a login only the page's origin identifies the client. A token is proof, whatever the page.
        let why = cross_site_refusal(shared, settings, peer, request);
        return why.map_or(Ok(None), |why| Err(Refusal::forbidden(why)));
    }
    // A browser sends a preflight request without the token.
    if PUBLIC_PATHS.contains(&request.uri().path()) || request.method() == Method::OPTIONS {
        return Ok(None);
    }
    Ok(Some(Login { login_policy, address, credentials: credentials(request) }))
}

/// The client's identity; an error if the login fails.
async fn log_in(
    shared: &ServerState,
    settings: &Settings,
    login: Login,
) -> Result<Identity, Refusal> {
    let credentials = login.credentials.ok_or_else(|| unauthorized(login.login_policy))?;
    if let Credentials::Bearer(token) = &credentials
        && is_web_token(token)
        && !is_web_token(settings.admin_token.as_bytes())
    {
        let authenticated = shared.logins.verify_web_token(settings, token, login.address);
        return authenticated.ok_or_else(|| unauthorized(login.login_policy));
    }
    let authenticated = web::authenticate(shared, settings, login.address, &credentials)
        .await
        .map_err(Refusal::from)?;
    authenticated.ok_or_else(|| unauthorized(login.login_policy))
}

/// A client's credentials: tiedot's `token X`, those of our HTTP, or the parameter.
fn credentials(request: &Request<Body>) -> Option<Credentials> {
    let Some(header) = request.headers().get(header::AUTHORIZATION) else {
        return parameters::token(request.uri().query()?).map(Credentials::Bearer);
    };
    let value = header.as_bytes();
    match value.split_at_checked(6) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"token ") => {
            Some(Credentials::Bearer(token.trim_ascii().to_vec()))
        }
        _ => Credentials::parse(value),
    }
}

/// The token in a form, and the request with its whole body. Of the form, no more than [`TOKEN_WITHIN`] bytes are read
/// for it: the client may be anyone.
async fn of_form(request: Request, settings: &Settings) -> (Request, Option<Credentials>) {
    if parameters::media_type(request.headers()) != parameters::FORM {
        return (request, None);
    }
    let (head, body) = request.into_parts();
    let (mut begin, mut rest, mut problem) = (Vec::new(), body.into_data_stream(), None);
    let patience = Duration::from_secs(settings.http.read_timeout_s);
    let read = async {
        while begin.len() < TOKEN_WITHIN {
            match rest.next().await {
                Some(Ok(bytes)) => begin.extend_from_slice(&bytes),
                Some(Err(error)) => {
                    problem = Some(error);
                    return false;
                }
                None => return true,
            }
        }
        false
    };
    let is_all = tokio::time::timeout(patience, read).await.unwrap_or(false);
    let token = parameters::token_of_form(&begin, is_all).map(Credentials::Bearer);
    // A form that broke off is none: its reader gets the error in its place.
    let begin = stream::iter([Ok(Bytes::from(begin))].into_iter().chain(problem.map(Err)));
    (Request::from_parts(head, Body::from_stream(begin.chain(rest))), token)
}

fn unauthorized(login_policy: LoginPolicy) -> Refusal {
    let text = match login_policy {
        LoginPolicy::User => {
            "A user and their password are needed (Authorization: Basic), or a token of /getjwt (Bearer)"
        }
        _ => "The token is needed: Authorization: token ..., or the parameter access_token",
    };
    Refusal::new(StatusCode::UNAUTHORIZED, text)
}

fn set_headers(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CACHE_CONTROL, "must-revalidate"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type, Authorization"),
        // Errors repeat what was sent; no browser may take that for HTML.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
