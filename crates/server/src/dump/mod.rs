//! Dumps of a running server: saved in the background while requests and writes continue, also at intervals, and loaded
//! while no source writes. [`load_dump`] loads one into a database without a server.

mod files;
mod load;
mod origin;
mod schedule;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use remora_protocol::line::{LineError, code, reply::DumpPhase};

pub(crate) use files::{resolve, resolve_existing};
pub(crate) use load::{load_dump, load_newest_dump, refuse_half_loaded};
pub(crate) use schedule::save_dumps_at_intervals;

use crate::shared::{ServerState, Trigger, busy};

/// Runs `work` while no source writes. Sources that were followed then continue from the positions stored by then.
pub(crate) fn without_sources(
    shared: &ServerState,
    work: impl FnOnce() -> Result<(), LineError>,
) -> Result<(), LineError> {
    use remora_source::mysql::State;
    let stopped = |state: &State| matches!(state, State::Stopped | State::Failed(_));
    let all = shared.sources.all().iter();
    let followed: Vec<_> = all.filter(|one| !stopped(&one.source.status().state)).collect();
    let refused = |error: remora_source::Error| busy(&error.to_string());
    followed.iter().try_for_each(|one| one.source.stop()).map_err(refused)?;
    let answer = work();
    followed.iter().try_for_each(|one| one.source.resume()).map_err(refused)?;
    answer
}

/// Refuses to dump followed tables without a position, because following could not continue from the dump.
pub(crate) fn require_positions(shared: &ServerState) -> Result<(), LineError> {
    let positions = shared.database.source_positions();
    let has_none = |name: &str| positions.get(name).is_none_or(str::is_empty);
    if shared.sources.all().iter().any(|one| has_none(&one.name)) {
        return Err(busy(
            "Cannot save dump without GTID position: wait until the source is connected",
        ));
    }
    Ok(())
}

/// Starts a thread that writes a dump.
pub(crate) fn start_saving(
    shared: &Arc<ServerState>,
    path: PathBuf,
    trigger: Trigger,
) -> Result<(), LineError> {
    let tables = shared.database.tables().len() as u64;
    shared.dump.begin(DumpPhase::Saving, &path, tables)?;
    shared.dump.cancel.store(false, Ordering::Relaxed);
    let saver = Arc::clone(shared);
    let name = std::thread::Builder::new().name("dump".to_owned());
    let path_of_error = path.clone();
    match name.spawn(move || save(&saver, &path, trigger)) {
        Ok(handle) => *shared.dump.saver.lock() = Some(handle),
        Err(error) => {
            let error = format!("cannot start a thread: {error}");
            shared.dump.end(&path_of_error, &Err(error.clone()));
            return Err(busy(&error));
        }
    }
    Ok(())
}

/// Writes a dump and records the result.
fn save(shared: &ServerState, path: &Path, trigger: Trigger) {
    let mut progress = |at: &remora_engine::dump::DumpProgress<'_>| shared.dump.at_table(at.table);
    let saved = files::make_directory(path).map_err(|error| error.to_string()).and_then(|()| {
        let dump = &shared.dump;
        let saved = shared.database.dump(&[], path, &mut progress, &dump.cancel);
        saved.map_err(|error| error.to_string())
    });
    match &saved {
        Ok(info) => {
            tracing::info!(path = %path.display(), rows = info.rows, "a dump was saved");
        }
        Err(error) => tracing::error!("the dump {} failed: {error}", path.display()),
    }
    if trigger == Trigger::Schedule && saved.is_ok() {
        let dump = &shared.settings.load().dump;
        schedule::delete_old_dumps(&dump.dir, dump.retain);
    }
    shared.dump.count_saved(trigger, saved.is_ok());
    shared.dump.end(path, &saved.map(|_| ()));
}

/// Loads a dump. Meanwhile requests about tables get an error.
pub(crate) fn load(shared: &ServerState, path: &Path) -> Result<(), LineError> {
    let tables = origin::verify(shared, path)?;
    shared.dump.begin(DumpPhase::Loading, path, tables)?;
    let loaded = load_dump(&shared.database, path);
    shared.cache.clear(None);
    let outcome = loaded.as_ref().map(|_| ()).map_err(ToString::to_string);
    let half_loaded = loaded.is_err() && load::is_half_loaded(&shared.database.path());
    shared.dump.half_loaded.store(half_loaded, Ordering::Release);
    shared.dump.end(path, &outcome);
    loaded.map(|_| ()).map_err(|error| LineError::new(code::STORAGE, error.to_string()))
}
