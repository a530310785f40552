//! The server itself: tiedot's information and maintenance.

use remora::Error;
use remora_protocol::line::reply::DumpPhase;

use super::{
    reply::{Refusal, Reply, shortened},
    request::{Answer, EndpointRequest},
};
use crate::{dump, process::MemoryFigures, shared::Trigger};

/// `/`
pub(super) fn welcome(_: &EndpointRequest) -> Answer {
    Ok(Reply::text("Welcome to tiedot's HTTP API, served by Remora"))
}

/// `/version`: the API's version number.
pub(super) fn version(_: &EndpointRequest) -> Answer {
    Ok(Reply::text("6"))
}

/// `/memstats`: the fields of Go's memory statistics that exist here.
pub(super) fn memory(_: &EndpointRequest) -> Answer {
    let figures = MemoryFigures::read();
    let body = serde_json::json!({ "Alloc": figures.resident, "Sys": figures.resident_peak });
    Ok(Reply::json(body.to_string()))
}

/// `/sync`: acknowledged changes are durable according to the settings; this also writes indexes to files.
pub(super) fn sync(request: &EndpointRequest) -> Answer {
    request.caller.require_everything()?;
    request.caller.require_loaded()?;
    let done = request.caller.database().checkpoint();
    done.map_err(|error| Refusal::from(Error::from(error)))?;
    Ok(Reply::empty())
}

/// `/dump`: saves a dump in the dump directory, like DUMP SAVE; answers when it is complete.
pub(super) fn dump(request: &EndpointRequest) -> Answer {
    require_administrator(request, "/dump")?;
    let name = request.require("dest")?;
    let dir = &request.settings.dump.dir;
    let path = dump::resolve(dir, name).map_err(|error| Refusal::wrong(error.message))?;
    if path.symlink_metadata().is_ok() {
        let text = format!("Destination file {} already exists", shortened(name));
        return Err(Refusal::failed(text));
    }
    let shared = &request.caller.shared;
    dump::require_positions(shared)?;
    dump::start_saving(shared, path, Trigger::Asked)?;
    shared.dump.wait();
    let status = shared.dump.report();
    match status.phase {
        DumpPhase::Failed => Err(Refusal::failed(status.error)),
        _ => Ok(Reply::empty()),
    }
}

/// `/shutdown`
pub(super) fn shutdown(request: &EndpointRequest) -> Answer {
    require_administrator(request, "/shutdown")?;
    tracing::info!("a client of tiedot's API asks the server to stop");
    request.caller.shared.stop_asked.notify_one();
    Ok(Reply::empty())
}

/// Refuses clients without a login, and those with limited rights.
fn require_administrator(request: &EndpointRequest, path: &str) -> Result<(), Refusal> {
    if request.settings.admin_token.is_empty() {
        return Err(Refusal::forbidden(format!(
            "{path} is refused: it needs auth.admin_token in the server's settings, and a client that \
             logs in with it"
        )));
    }
    Ok(request.caller.require_everything()?)
}
