//! DUMP: saving in the background while requests and writes go on, loading, and what is known.

mod files;
mod load;
mod origin;
mod schedule;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use remora_protocol::line::{
    Dump, LineError, code,
    reply::{self, DumpPhase, DumpStatus},
};

pub(crate) use load::{load_dump, load_newest_dump, refuse_half_loaded};
pub(crate) use schedule::save_dumps_at_intervals;

use super::{Answer, Session, blocking};
use crate::{server::Shared, settings::Settings};

/// Where saving and loading are. One of them runs at a time.
#[derive(Default)]
pub(crate) struct DumpState {
    status: Mutex<Status>,
    saver: Mutex<Option<JoinHandle<()>>>,
    cancel: AtomicBool,
    loading: AtomicBool,
    /// A load failed behind its start: the tables are not whole until one succeeds.
    half_loaded: AtomicBool,
    /// Seconds since 1970 when one was saved last.
    last_success: AtomicU64,
    /// Dumps that failed, asked for and automatic ones.
    failures: [AtomicU64; 2],
}

/// Why a dump is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Asked,
    Schedule,
}

#[derive(Default)]
struct Status {
    shown: DumpStatus,
    begun: Option<Instant>,
}

impl DumpState {
    /// Whether a dump is being loaded, so that tables are not whole.
    pub(crate) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    /// Whether the last load failed behind its start, so that tables are not whole.
    pub(crate) fn is_half_loaded(&self) -> bool {
        self.half_loaded.load(Ordering::Acquire)
    }

    /// Seconds since 1970 when a dump was saved last; 0 if none was since the start.
    pub(crate) fn last_success(&self) -> u64 {
        self.last_success.load(Ordering::Relaxed)
    }

    /// Dumps that failed since the start: asked for ones, automatic ones.
    pub(crate) fn failures(&self) -> [u64; 2] {
        self.failures.each_ref().map(|counter| counter.load(Ordering::Relaxed))
    }

    fn count_saved(&self, trigger: Trigger, saved: bool) {
        if saved {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.last_success.store(now.as_secs(), Ordering::Relaxed);
        } else if let Some(counter) = self.failures.get(trigger as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for the dump that is being written, if one is.
    pub(crate) fn wait(&self) {
        let saver = self.saver.lock().take();
        // A saver that panicked has nothing to tell; its dump has no file.
        let _ = saver.map(JoinHandle::join);
    }

    /// Gives up the dump that is being written, if one is.
    pub(crate) fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.wait();
    }

    fn begin(&self, phase: DumpPhase, path: &Path, tables: u64) -> Answer {
        let mut status = self.status.lock();
        match status.shown.phase {
            DumpPhase::Saving => return Err(busy("A dump is being saved, try again later")),
            DumpPhase::Loading => return Err(busy("A dump is being loaded, try again later")),
            DumpPhase::Idle | DumpPhase::Completed | DumpPhase::Failed => {}
        }
        if phase == DumpPhase::Saving && self.is_half_loaded() {
            return Err(half_loaded());
        }
        let result_path = std::mem::take(&mut status.shown.result_path);
        status.begun = Some(Instant::now());
        status.shown = DumpStatus {
            phase,
            path: path.display().to_string(),
            tables_total: tables,
            result_path,
            ..DumpStatus::default()
        };
        self.loading.store(phase == DumpPhase::Loading, Ordering::Release);
        Ok(())
    }

    fn at_table(&self, table: &str) {
        let mut status = self.status.lock();
        if status.shown.current_table != table {
            let first = status.shown.current_table.is_empty();
            status.shown.tables_processed += u64::from(!first);
            table.clone_into(&mut status.shown.current_table);
        }
    }

    fn end(&self, path: &Path, result: &Result<(), String>) {
        let mut status = self.status.lock();
        self.loading.store(false, Ordering::Release);
        status.shown.elapsed = status.begun.take().map(|begun| begun.elapsed()).unwrap_or_default();
        status.shown.current_table.clear();
        match result {
            Ok(()) => {
                status.shown.phase = DumpPhase::Completed;
                status.shown.tables_processed = status.shown.tables_total;
                status.shown.result_path = path.display().to_string();
            }
            Err(error) => {
                status.shown.phase = DumpPhase::Failed;
                status.shown.error.clone_from(error);
            }
        }
    }

    fn shown(&self) -> DumpStatus {
        let status = self.status.lock();
        let mut shown = status.shown.clone();
        if let Some(begun) = status.begun {
            shown.elapsed = begun.elapsed();
        }
        shown
    }
}

impl Session {
    pub(super) fn dump(&self, command: &Dump, settings: &Settings, out: &mut Vec<u8>) -> Answer {
        let dir = &settings.dump.dir;
        match command {
            Dump::Save(file) => {
                let name = file.as_deref().unwrap_or(&settings.dump.default_filename);
                let path = files::resolve(dir, name)?;
                self.require_position()?;
                start_saving(&self.shared, path.clone(), Trigger::Asked)?;
                reply::write_dump_started(out, &path.display().to_string());
            }
            Dump::Load(file) => {
                let path = files::resolve_existing(dir, file)?;
                blocking(|| without_sources(&self.shared, || load(&self.shared, &path)))?;
                reply::write_dump_loaded(out, &path.display().to_string());
            }
            Dump::Verify(file) => {
                let path = files::resolve_existing(dir, file)?;
                blocking(|| remora_engine::dump::verify(&path))?;
                reply::write_dump_verified(out, &path.display().to_string());
            }
            Dump::Info(file) => {
                let path = files::resolve_existing(dir, file)?;
                let info = blocking(|| remora_engine::dump::info(&path))?;
                reply::write_dump_info(out, &path.display().to_string(), &shown_info(&info));
            }
            Dump::Status => reply::write_dump_status(out, &self.shared.dump.shown()),
        }
        Ok(())
    }
}

impl Session {
    /// A dump of followed tables is worth nothing if following could not go on from it.
    fn require_position(&self) -> Answer {
        let shared = &self.shared;
        let positions = shared.database.source_positions();
        let has_none = |name: &str| positions.get(name).is_none_or(str::is_empty);
        if shared.sources.all().iter().any(|one| has_none(&one.name)) {
            return Err(busy(
                "Cannot save dump without GTID position: wait until the source is connected",
            ));
        }
        Ok(())
    }
}

/// Runs `work` while no source writes; those that were followed go on behind it, from the
/// positions that are then stored.
fn without_sources(shared: &Shared, work: impl FnOnce() -> Answer) -> Answer {
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

fn shown_info(info: &remora_engine::dump::DumpInfo) -> reply::DumpInfo {
    // Names with a slash are what a source keeps beside its position.
    let sources: Vec<_> =
        info.meta.sources.iter().filter(|(name, _)| !name.contains('/')).collect();
    let gtid = match sources.as_slice() {
        [(_, position)] => (*position).clone(),
        all => {
            let shown = all.iter().map(|(name, position)| format!("{name}={position}"));
            shown.collect::<Vec<_>>().join(" ")
        }
    };
    reply::DumpInfo {
        version: 1,
        gtid,
        tables: info.tables.len() as u64,
        flags: 0,
        file_size: info.file_bytes,
        timestamp: u64::try_from(info.meta.created_micros / 1_000_000).unwrap_or(0),
        has_statistics: true,
    }
}

/// Starts a thread that writes a dump.
fn start_saving(shared: &Arc<Shared>, path: PathBuf, trigger: Trigger) -> Answer {
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

/// Writes a dump and keeps what came of it.
fn save(shared: &Shared, path: &Path, trigger: Trigger) {
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
        schedule::forget_old(&dump.dir, dump.retain);
    }
    shared.dump.count_saved(trigger, saved.is_ok());
    shared.dump.end(path, &saved.map(|_| ()));
}

/// Loads a dump; meanwhile requests about tables are answered that it is loading.
fn load(shared: &Shared, path: &Path) -> Answer {
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

/// The answer while tables are not whole.
pub(super) fn half_loaded() -> LineError {
    LineError::new(
        code::LOADING,
        "The last DUMP LOAD failed half way (see DUMP STATUS): the tables are not whole until a \
         DUMP LOAD succeeds",
    )
}

fn busy(message: &str) -> LineError {
    LineError::new(code::NOT_READY, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_loaded_tables_are_not_saved() {
        let state = DumpState::default();
        state.half_loaded.store(true, Ordering::Release);
        let path = Path::new("a.dmp");
        let refused = state.begin(DumpPhase::Saving, path, 1).unwrap_err();
        assert_eq!(refused.code, code::LOADING);
        assert!(state.begin(DumpPhase::Loading, path, 1).is_ok());
    }
}
