//! Request bodies, limited in size and time.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    http::{Request, header},
};

use crate::settings::Http;

/// Why a body was not read.
pub(crate) enum BodyProblem {
    /// It exceeds `http.max_body_bytes`, or the client has disconnected.
    TooLarge,
    /// It did not arrive within `http.read_timeout_s`.
    Timeout,
}

/// Reads a whole body. One with a declared length beyond the limit is not read at all.
pub(crate) async fn read_body(
    request: Request<Body>,
    settings: &Http,
) -> Result<Vec<u8>, BodyProblem> {
    read_body_of(request, settings, settings.max_body_bytes).await
}

/// The same with another limit.
pub(crate) async fn read_body_of(
    request: Request<Body>,
    settings: &Http,
    most: usize,
) -> Result<Vec<u8>, BodyProblem> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(BodyProblem::TooLarge);
    }
    let body = to_bytes(request.into_body(), most);
    match tokio::time::timeout(Duration::from_secs(settings.read_timeout_s), body).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => Err(BodyProblem::TooLarge),
        Err(_) => Err(BodyProblem::Timeout),
    }
}
