//! tiedot's login: a JSON web token for a user's name and password.

use std::net::IpAddr;

use axum::http::{HeaderValue, StatusCode};
use remora_protocol::http::Credentials;

use super::{
    reply::{Refusal, Reply},
    request::{Answer, EndpointRequest},
};
use crate::{accounts::LoginPolicy, web};

/// The path of the login, which needs no login itself.
pub(super) const LOGIN: &str = "/getjwt";

/// `/getjwt`: a token for a user with the right password.
pub(super) async fn log_in(request: &EndpointRequest, address: IpAddr) -> Answer {
    require_accounts(request)?;
    let (user, password) = (request.require("user")?, request.require("pass")?);
    let credentials =
        Credentials::Basic { user: user.to_owned(), password: password.as_bytes().to_vec() };
    let (shared, settings) = (&request.caller.shared, &request.settings);
    let authenticated = web::authenticate(shared, settings, address, &credentials).await?;
    authenticated.ok_or_else(wrong)?;
    let token = shared.logins.web_token(settings, user, address);
    let header = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
    let header = header.ok_or_else(|| Refusal::failed("No token can be made for this user"))?;
    Ok(Reply::empty().with_authorization(header))
}

/// The placeholder for [`log_in`], which is asynchronous.
pub(super) fn no_credentials(_: &EndpointRequest) -> Answer {
    Err(wrong())
}

/// `/checkjwt`: only clients with a valid login get here.
pub(super) fn check(request: &EndpointRequest) -> Answer {
    require_accounts(request)?;
    Ok(Reply::empty())
}

fn wrong() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "The user or the password is wrong")
}

fn require_accounts(request: &EndpointRequest) -> Result<(), Refusal> {
    if LoginPolicy::of(&request.settings).is_required() {
        return Ok(());
    }
    let text =
        "Invalid API endpoint: nobody logs in here, neither [[users]] nor auth.admin_token are set";
    Err(Refusal::new(StatusCode::NOT_FOUND, text))
}
