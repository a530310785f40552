//! Documents by id.

use axum::http::StatusCode;
use remora::Error;
use remora_sql::Access;
use serde_json::Value as Json;

use super::{
    reply::{Refusal, Reply, shortened},
    request::{Answer, EndpointRequest},
};

/// `/insert`
pub(super) fn insert(request: &EndpointRequest) -> Answer {
    let (name, document) = (request.require("col")?, document(request.require("doc")?)?);
    let id = request.collection(name, Access::Write)?.insert(&document)?;
    Ok(Reply::text(id.to_string()).created())
}

/// `/get`
pub(super) fn get(request: &EndpointRequest) -> Answer {
    let (name, id) = (request.require("col")?, id(request)?);
    let collection = request.collection(name, Access::Read)?;
    let mut found = None;
    collection.now().texts(&[id], &mut |_, text| {
        found = Some(text.to_owned());
        Ok(())
    })?;
    found.map(Reply::json).ok_or_else(|| missing(id))
}

/// `/update`
pub(super) fn update(request: &EndpointRequest) -> Answer {
    let (name, id) = (request.require("col")?, id(request)?);
    let document = document(request.require("doc")?)?;
    match request.collection(name, Access::Write)?.replace(id, &document) {
        Ok(()) => Ok(Reply::empty()),
        Err(Error::NotFound(_)) => Err(missing(id)),
        Err(error) => Err(error.into()),
    }
}

/// `/delete`
pub(super) fn delete(request: &EndpointRequest) -> Answer {
    let (name, id) = (request.require("col")?, id(request)?);
    match request.collection(name, Access::Write)?.delete(id)? {
        true => Ok(Reply::empty()),
        false => Err(missing(id)),
    }
}

/// `/approxdoccount`, which is exact here.
pub(super) fn count(request: &EndpointRequest) -> Answer {
    let collection = request.collection(request.require("col")?, Access::Read)?;
    Ok(Reply::text(collection.len()?.to_string()))
}

fn id(request: &EndpointRequest) -> Result<i64, Refusal> {
    let text = request.require("id")?;
    let wrong = |_| Refusal::wrong(format!("Invalid document ID '{}'.", shortened(text)));
    text.parse().map_err(wrong)
}

fn missing(id: i64) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("No such document ID {id}."))
}

/// Parses a document.
fn document(text: &str) -> Result<Json, Refusal> {
    let why = match remora::parse_document(text) {
        Ok(document @ Json::Object(_)) => return Ok(document),
        Ok(_) => "A document is an object.".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Refusal::wrong(format!("'{}' is not valid JSON document. {why}", shortened(text))))
}
