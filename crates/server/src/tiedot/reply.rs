//! Replies: texts and JSON with their statuses.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use remora::Error;
use remora_protocol::line::{LineError, code};

use crate::web::TooManyFailures;

/// The most characters of a client's input that a reply repeats.
const SHOWN_CHARS: usize = 200;

/// A reply to a request.
pub(super) struct Reply {
    status: StatusCode,
    kind: &'static str,
    body: Vec<u8>,
    /// The client's new token.
    authorization: Option<HeaderValue>,
}

impl Reply {
    /// 200 without a body.
    pub(super) fn empty() -> Self {
        Self::text("")
    }

    /// Status 200 with a text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, "text/plain", text.into().into_bytes())
    }

    /// Status 200 with JSON.
    pub(super) fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::new(StatusCode::OK, "application/json", body.into())
    }

    fn new(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Self {
        Self { status, kind, body, authorization: None }
    }

    /// Adds an `Authorization` header.
    pub(super) fn with_authorization(self, value: HeaderValue) -> Self {
        Self { authorization: Some(value), ..self }
    }

    /// Sets status 201.
    pub(super) fn created(self) -> Self {
        Self { status: StatusCode::CREATED, ..self }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        if let Some(value) = self.authorization {
            headers.insert(header::AUTHORIZATION, value);
            // Pages of other origins may read it.
            let shown = HeaderValue::from_static("Authorization");
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, shown);
        }
        response
    }
}

/// An error reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// Status 400: the request is wrong.
    pub(super) fn wrong(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(super) fn forbidden(text: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, text)
    }

    /// Status 500: an internal error.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Request(_) | Error::NotFound(_) | Error::Exists(_) => StatusCode::BAD_REQUEST,
            Error::Conflict(_) | Error::Changed(_) => StatusCode::CONFLICT,
            Error::Busy(_) | Error::InUse(_) | Error::Full(_) | Error::Closed => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<TooManyFailures> for Refusal {
    fn from(_: TooManyFailures) -> Self {
        let text = "Too many failed logins, try again later";
        Self::new(StatusCode::TOO_MANY_REQUESTS, text)
    }
}

impl From<LineError> for Refusal {
    fn from(error: LineError) -> Self {
        let status = match error.code {
            code::PERMISSION_DENIED => StatusCode::FORBIDDEN,
            code::LOADING | code::NOT_READY => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut text = self.text;
        // tiedot's errors end so.
        text.push('\n');
        let reply = Reply::new(self.status, "text/plain; charset=utf-8", text.into_bytes());
        let mut response = reply.into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            // Clients that know no other scheme ask their user for a name and a password.
            let scheme = HeaderValue::from_static("Basic realm=\"remora\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// The beginning of a client's input, without control characters.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN_CHARS).map(|it| if it.is_control() { ' ' } else { it }).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
