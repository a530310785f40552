//! DUMP: saving in the background while requests and writes go on, loading, and what is known.

mod files;
mod load;
mod schedule;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Instant,
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
                start_saving(&self.shared, path.clone())?;
                reply::write_dump_started(out, &path.display().to_string());
            }
            Dump::Load(file) => {
                let path = files::resolve_existing(dir, file)?;
                blocking(|| load(&self.shared, &path))?;
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

fn shown_info(info: &remora_engine::dump::DumpInfo) -> reply::DumpInfo {
    let sources = info.meta.sources.iter().map(|(name, position)| format!("{name}={position}"));
    reply::DumpInfo {
        version: 1,
        gtid: sources.collect::<Vec<_>>().join(" "),
        tables: info.tables.len() as u64,
        flags: 0,
        file_size: info.file_bytes,
        timestamp: u64::try_from(info.meta.created_micros / 1_000_000).unwrap_or(0),
        has_statistics: true,
    }
}

/// Starts a thread that writes a dump.
fn start_saving(shared: &Arc<Shared>, path: PathBuf) -> Answer {
    let tables = shared.database.tables().len() as u64;
    shared.dump.begin(DumpPhase::Saving, &path, tables)?;
    shared.dump.cancel.store(false, Ordering::Relaxed);
    let saver = Arc::clone(shared);
    let name = std::thread::Builder::new().name("dump".to_owned());
    let path_of_error = path.clone();
    match name.spawn(move || save(&saver, &path)) {
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
fn save(shared: &Shared, path: &Path) {
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
    shared.dump.end(path, &saved.map(|_| ()));
}

/// Loads a dump; meanwhile requests about tables are answered that it is loading.
fn load(shared: &Shared, path: &Path) -> Answer {
    let tables = remora_engine::dump::verify(path)?.tables.len() as u64;
    shared.dump.begin(DumpPhase::Loading, path, tables)?;
    let loaded = load_dump(&shared.database, path);
    shared.cache.clear(None);
    let outcome = loaded.as_ref().map(|_| ()).map_err(ToString::to_string);
    shared.dump.end(path, &outcome);
    loaded.map(|_| ()).map_err(|error| LineError::new(code::STORAGE, error.to_string()))
}

fn busy(message: &str) -> LineError {
    LineError::new(code::NOT_READY, message)
}
