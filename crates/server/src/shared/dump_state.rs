//! The state of saving and loading dumps.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::JoinHandle,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use remora_protocol::line::{
    LineError, code,
    reply::{DumpPhase, DumpStatus},
};

/// The state of saving and loading dumps. Only one of them runs at a time.
#[derive(Default)]
pub(crate) struct DumpState {
    status: Mutex<Status>,
    pub(crate) saver: Mutex<Option<JoinHandle<()>>>,
    pub(crate) cancel: AtomicBool,
    loading: AtomicBool,
    /// A load failed after it had begun: tables are incomplete until one succeeds.
    pub(crate) half_loaded: AtomicBool,
    /// When a dump was last saved, in seconds since 1970.
    last_success: AtomicU64,
    /// Failed dumps: requested and automatic ones.
    failures: [AtomicU64; 2],
}

/// The reason for a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    Asked,
    Schedule,
}

#[derive(Default)]
struct Status {
    report: DumpStatus,
    begun: Option<Instant>,
}

impl DumpState {
    /// Whether a dump is being loaded, so that tables are incomplete.
    pub(crate) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    /// Whether the last load failed after it had begun, so that tables are incomplete.
    pub(crate) fn is_half_loaded(&self) -> bool {
        self.half_loaded.load(Ordering::Acquire)
    }

    /// When a dump was last saved since the start, in seconds since 1970; 0 if none was.
    pub(crate) fn last_success(&self) -> u64 {
        self.last_success.load(Ordering::Relaxed)
    }

    /// Failed dumps since the start: requested and automatic ones.
    pub(crate) fn failures(&self) -> [u64; 2] {
        self.failures.each_ref().map(|counter| counter.load(Ordering::Relaxed))
    }

    pub(crate) fn count_saved(&self, trigger: Trigger, saved: bool) {
        if saved {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.last_success.store(now.as_secs(), Ordering::Relaxed);
        } else if let Some(counter) = self.failures.get(trigger as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for a dump in progress.
    pub(crate) fn wait(&self) {
        let saver = self.saver.lock().take();
        // If the thread panicked, its dump has no file, and there is nothing to report.
        let _ = saver.map(JoinHandle::join);
    }

    /// Cancels a dump in progress.
    pub(crate) fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.wait();
    }

    pub(crate) fn begin(
        &self,
        phase: DumpPhase,
        path: &Path,
        tables: u64,
    ) -> Result<(), LineError> {
        let mut status = self.status.lock();
        match status.report.phase {
            DumpPhase::Saving => return Err(busy("A dump is being saved, try again later")),
            DumpPhase::Loading => return Err(busy("A dump is being loaded, try again later")),
            DumpPhase::Idle | DumpPhase::Completed | DumpPhase::Failed => {}
        }
        if phase == DumpPhase::Saving && self.is_half_loaded() {
            return Err(half_loaded());
        }
        let result_path = std::mem::take(&mut status.report.result_path);
        status.begun = Some(Instant::now());
        status.report = DumpStatus {
            phase,
            path: path.display().to_string(),
            tables_total: tables,
            result_path,
            ..DumpStatus::default()
        };
        self.loading.store(phase == DumpPhase::Loading, Ordering::Release);
        Ok(())
    }

    pub(crate) fn at_table(&self, table: &str) {
        let mut status = self.status.lock();
        if status.report.current_table != table {
            let first = status.report.current_table.is_empty();
            status.report.tables_processed += u64::from(!first);
            table.clone_into(&mut status.report.current_table);
        }
    }

    pub(crate) fn end(&self, path: &Path, result: &Result<(), String>) {
        let mut status = self.status.lock();
        self.loading.store(false, Ordering::Release);
        status.report.elapsed =
            status.begun.take().map(|begun| begun.elapsed()).unwrap_or_default();
        status.report.current_table.clear();
        match result {
            Ok(()) => {
                status.report.phase = DumpPhase::Completed;
                status.report.tables_processed = status.report.tables_total;
                status.report.result_path = path.display().to_string();
            }
            Err(error) => {
                status.report.phase = DumpPhase::Failed;
                status.report.error.clone_from(error);
            }
        }
    }

    pub(crate) fn report(&self) -> DumpStatus {
        let status = self.status.lock();
        let mut report = status.report.clone();
        if let Some(begun) = status.begun {
            report.elapsed = begun.elapsed();
        }
        report
    }
}

/// The error while tables are incomplete.
pub(crate) fn half_loaded() -> LineError {
    LineError::new(
        code::LOADING,
        "The last DUMP LOAD failed half way (see DUMP STATUS): the tables are not whole until a \
         DUMP LOAD succeeds",
    )
}

/// The error while dumps cannot be saved or loaded.
pub(crate) fn busy(message: &str) -> LineError {
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
