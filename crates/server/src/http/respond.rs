//! Responses: JSON bodies and statuses. Reads request bodies within limits.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use remora_protocol::{
    http,
    line::{LineError, code},
};

use crate::{
    shared::ServerState,
    web::{BodyProblem, read_body},
};

/// An error response. Its status depends on the error's code.
pub(super) struct Refusal {
    status: StatusCode,
    error: LineError,
    /// An additional header for the client.
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    /// An error with an explicit status.
    pub(super) fn new(status: StatusCode, code: u16, message: impl Into<String>) -> Self {
        Self::with_status(LineError::new(code, message), status)
    }

    /// An error under a status that differs from its code's.
    pub(super) fn with_status(error: LineError, status: StatusCode) -> Self {
        Self { status, error, header: None }
    }

    /// Adds a header to the response.
    pub(super) fn with_header(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }
}

impl From<LineError> for Refusal {
    fn from(error: LineError) -> Self {
        let status = StatusCode::from_u16(http::status(&error));
        Self::with_status(error, status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = Vec::new();
        http::write_error(&mut body, &self.error);
        let mut response = json(self.status, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// A JSON response.
pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = (status, body).into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response of a JSON value.
pub(super) fn value(status: StatusCode, value: &serde_json::Value) -> Response {
    json(status, value.to_string().into_bytes())
}

/// Reads a request's body, which must be JSON.
pub(super) async fn read_json(
    shared: &ServerState,
    request: Request<Body>,
) -> Result<Vec<u8>, Refusal> {
    require_json(request.headers())?;
    let settings = shared.settings.load_full();
    let (most, patience) = (settings.http.max_body_bytes, settings.http.read_timeout_s);
    read_body(request, &settings.http).await.map_err(|problem| {
        let (status, message) = match problem {
            BodyProblem::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("The body takes more than {most} bytes, the limit of max_body_bytes"),
            ),
            BodyProblem::Timeout => {
                (StatusCode::REQUEST_TIMEOUT, format!("The body did not come within {patience} s"))
            }
        };
        Refusal::new(status, code::BAD_REQUEST, message)
    })
}

/// Requires `application/json`, in any case and with any parameters.
fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let message = "Content-Type must be application/json";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::BAD_REQUEST, message))
}

/// The response to an unknown path.
pub(super) async fn no_such_path(uri: Uri) -> Refusal {
    let message = format!("No such path: {}; see docs/http.md", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, code::NOT_FOUND, message)
}

/// The response to an unsupported method.
pub(super) async fn no_such_method(method: Method, uri: Uri) -> Refusal {
    let message = format!("{} does not take {method}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, code::BAD_REQUEST, message)
}
