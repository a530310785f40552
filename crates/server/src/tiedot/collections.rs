//! Collections and their indexes.

use std::time::Duration;

use remora::{Error, Field, PathIndex};
use remora_sql::Access;
use tokio::time::Instant;

use super::{
    reply::{Refusal, Reply, shortened},
    request::{Answer, EndpointRequest},
};
use crate::requests::{MAX_COLLECTION_NAME_CHARS, blocking, is_collection_name};

/// How long `/index` waits for the index to be complete. It is completed in any case.
const INDEX_PATIENCE: Duration = Duration::from_secs(30);
/// The polling interval.
const INDEX_PAUSE: Duration = Duration::from_millis(5);

/// `/create`
pub(super) fn create(request: &EndpointRequest) -> Answer {
    let name = request.require("col")?;
    check_new_name(name)?;
    request.require_right(name, Access::Define)?;
    match request.library.create_collection(name) {
        Ok(_) => Ok(Reply::empty().created()),
        Err(Error::Exists(_)) => Err(exists(name)),
        Err(error) => Err(error.into()),
    }
}

/// `/all`
pub(super) fn all(request: &EndpointRequest) -> Answer {
    request.caller.require_loaded()?;
    let mut names = request.library.collections();
    names.retain(|name| request.caller.is_visible(name));
    Ok(Reply::json(serde_json::Value::from(names).to_string()))
}

/// `/rename`
pub(super) fn rename(request: &EndpointRequest) -> Answer {
    let (old, new) = (request.require("old")?, request.require("new")?);
    check_new_name(new)?;
    request.require_right(new, Access::Define)?;
    request.collection(old, Access::Define)?;
    match request.library.rename_collection(old, new) {
        Ok(()) => Ok(Reply::empty()),
        Err(Error::Exists(_)) => Err(exists(new)),
        Err(error) => Err(error.into()),
    }
}

/// `/drop`
pub(super) fn drop(request: &EndpointRequest) -> Answer {
    let name = request.require("col")?;
    request.collection(name, Access::Define)?;
    request.library.drop_table(name)?;
    Ok(Reply::empty())
}

/// `/scrub`: frees the space of deleted documents.
pub(super) fn scrub(request: &EndpointRequest) -> Answer {
    let name = request.require("col")?;
    request.collection(name, Access::Write)?;
    let optimized = request.caller.database().optimize(Some(name));
    optimized.map_err(|error| Refusal::from(Error::from(error)))?;
    Ok(Reply::empty())
}

/// `/index`
pub(super) fn index(request: &EndpointRequest) -> Answer {
    let name = request.require("col")?;
    let path = names_of(request.require("path")?)?;
    let collection = request.collection(name, Access::Define)?;
    match collection.index(field(&path))? {
        true => Ok(Reply::empty().created()),
        false => Err(Refusal::wrong(format!("Path [{}] is already indexed", path.join(" ")))),
    }
}

/// Waits until queries use the new index, as they do after tiedot's reply.
pub(super) async fn wait_for_index(request: &EndpointRequest) -> Result<(), Refusal> {
    let deadline = Instant::now() + INDEX_PATIENCE;
    let mut stopping = request.caller.shared.stopping.subscribe();
    let is_ready = || {
        let path = names_of(request.require("path")?)?;
        let collection = request.collection(request.require("col")?, Access::Define)?;
        let mut indexes = collection.indexes()?.into_iter().filter(PathIndex::is_plain);
        Ok::<_, Refusal>(indexes.all(|it| it.is_ready || it.path.names() != path))
    };
    while !blocking(is_ready)? && Instant::now() < deadline {
        tokio::select! {
            () = tokio::time::sleep(INDEX_PAUSE) => {}
            _ = stopping.wait_for(|stopping| *stopping) => break,
        }
    }
    Ok(())
}

/// `/unindex`
pub(super) fn unindex(request: &EndpointRequest) -> Answer {
    let name = request.require("col")?;
    let path = names_of(request.require("path")?)?;
    let collection = request.collection(name, Access::Define)?;
    match collection.drop_index(field(&path))? {
        true => Ok(Reply::empty()),
        false => Err(Refusal::wrong(format!("Path [{}] is not indexed", path.join(" ")))),
    }
}

/// `/indexes`
pub(super) fn indexes(request: &EndpointRequest) -> Answer {
    let collection = request.collection(request.require("col")?, Access::Read)?;
    let indexes = collection.indexes()?;
    let plain = indexes.iter().filter(|index| index.is_plain());
    let paths: Vec<&[String]> = plain.map(|index| index.path.names()).collect();
    Ok(Reply::json(serde_json::json!(paths).to_string()))
}

/// The names of a path, separated by commas.
fn names_of(path: &str) -> Result<Vec<String>, Refusal> {
    let names: Vec<String> = path.split(',').map(str::to_owned).collect();
    match names.iter().any(String::is_empty) {
        true => Err(Refusal::wrong(format!("Path '{}' has an empty name in it.", shortened(path)))),
        false => Ok(names),
    }
}

fn field(names: &[String]) -> Field {
    remora::path(names.iter().map(String::as_str))
}

fn exists(name: &str) -> Refusal {
    Refusal::wrong(format!("Collection {} already exists", shortened(name)))
}

fn check_new_name(name: &str) -> Result<(), Refusal> {
    match is_collection_name(name) {
        true => Ok(()),
        false => Err(Refusal::wrong(format!(
            "Collection name '{}' is not valid: it has 1 to {MAX_COLLECTION_NAME_CHARS} characters, none of / \\ . # ` \
             and no space at its ends.",
            shortened(name)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_no_empty_names() {
        assert_eq!(names_of("a,b").unwrap(), ["a", "b"]);
        assert!(names_of("a,,b").is_err() && names_of(",").is_err());
    }
}
