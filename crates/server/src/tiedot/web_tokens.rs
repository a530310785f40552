//! tiedot's way to log in: a JSON web token for a user's name and password.

use std::net::IpAddr;

use axum::http::{HeaderValue, StatusCode};
use remora_protocol::http::Credentials;

use super::{
    endpoints::{Answer, Ask},
    reply::{Refusal, Reply},
};
use crate::{accounts::Demand, web};

/// Where a token is asked for; whoever asks has not logged in yet.
pub(super) const LOGIN: &str = "/getjwt";

/// `/getjwt`: the token of the user who is named and whose password is right.
pub(super) async fn log_in(ask: &Ask, address: IpAddr) -> Answer {
    require_accounts(ask)?;
    let (user, password) = (ask.require("user")?, ask.require("pass")?);
    let given =
        Credentials::Basic { user: user.to_owned(), password: password.as_bytes().to_vec() };
    let (shared, settings) = (&ask.caller.shared, &ask.settings);
    let proved = web::prove(shared, settings, address, &given).await?;
    proved.ok_or_else(wrong)?;
    let token = shared.logins.web_token(settings, user, address);
    let header = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
    let header = header.ok_or_else(|| Refusal::failed("No token can be made for this user"))?;
    Ok(Reply::empty().with_authorization(header))
}

/// The answer of an endpoint that [`log_in`] answers, which waits.
pub(super) fn unproved(_: &Ask) -> Answer {
    Err(wrong())
}

/// `/checkjwt`: who comes here has proved who they are.
pub(super) fn check(ask: &Ask) -> Answer {
    require_accounts(ask)?;
    Ok(Reply::empty())
}

fn wrong() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "The user or the password is wrong")
}

fn require_accounts(ask: &Ask) -> Result<(), Refusal> {
    if Demand::of(&ask.settings).is_for_all() {
        return Ok(());
    }
    let text =
        "Invalid API endpoint: nobody logs in here, neither [[users]] nor auth.admin_token are set";
    Err(Refusal::new(StatusCode::NOT_FOUND, text))
}
