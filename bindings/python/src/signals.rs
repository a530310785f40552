//! Ctrl+C while a statement runs.
//!
//! Python runs the handlers of signals in its main thread alone, when that is not within a call. So a statement of the
//! main thread runs in a thread of its own, while the main thread waits and looks after signals, unless statements of
//! the same text were quick before: those run where they are asked for, which saves a change of threads.

use std::{
    cell::Cell,
    collections::HashSet,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, sync_channel},
    },
    thread,
    time::Duration,
};

use pyo3::{prelude::*, sync::PyOnceLock};
use remora::Canceller;

use crate::errors::{InternalError, OperationalError};

/// How often the main thread looks after signals.
const STEP: Duration = Duration::from_millis(20);
/// A statement that takes no longer runs where it is asked for the next time.
const QUICK: Duration = Duration::from_millis(2);
/// Texts of quick statements that are remembered, and the longest of them.
const MAX_QUICK: usize = 256;
const MAX_QUICK_BYTES: usize = 16 << 10;

/// Statements that were quick, by their texts.
#[derive(Default)]
pub(crate) struct Quick {
    texts: HashSet<String>,
}

impl Quick {
    pub fn has(&self, text: &str) -> bool {
        self.texts.contains(text)
    }

    /// A statement took so long.
    pub fn note(&mut self, text: &str, took: Duration) {
        let is_known = self.has(text);
        if took > QUICK {
            if is_known {
                self.texts.remove(text);
            }
        } else if !is_known && text.len() <= MAX_QUICK_BYTES {
            if self.texts.len() >= MAX_QUICK {
                self.texts.clear();
            }
            self.texts.insert(text.to_owned());
        }
    }
}

/// Whether this thread is the one that runs the handlers of signals.
///
/// # Errors
/// Those of Python's `threading`.
pub(crate) fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    thread_local! {
        static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    if let Some(known) = IS_MAIN.get() {
        return Ok(known);
    }
    static THREADING: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let threading = THREADING.get_or_try_init(py, || py.import("threading").map(Bound::unbind))?;
    let threading = threading.bind(py);
    let is_main = threading.call_method0("main_thread")?.getattr("ident")?;
    let is_main = is_main.eq(threading.call_method0("get_ident")?)?;
    IS_MAIN.set(Some(is_main));
    Ok(is_main)
}

/// Runs `work` in a thread of its own, ends it by `canceller` where a handler of a signal raises an exception, and
/// gives that. `work` is told whether it is to end, which it asks between statements. Called without the interpreter.
///
/// # Errors
/// What a handler raised; `OperationalError` if the system gives no thread, `InternalError` if `work` broke off.
pub(crate) fn watched<T: Send>(
    canceller: &Canceller,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let ends = AtomicBool::new(false);
    let (sender, receiver) = sync_channel(1);
    let (ended, raised) = thread::scope(|scope| {
        let (ends, mut raised) = (&ends, None);
        let work = move || {
            // Whoever waits takes it.
            let _ = sender.send(work(ends));
        };
        let worker =
            match thread::Builder::new().name("remora-call".to_owned()).spawn_scoped(scope, work) {
                Ok(worker) => worker,
                Err(error) => return (Err(OperationalError::new_err(error.to_string())), None),
            };
        let ended = loop {
            match receiver.recv_timeout(STEP) {
                Ok(ended) => break Ok(ended),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(InternalError::new_err("the call broke off: please report it"));
                }
            }
            if raised.is_none() {
                raised = Python::attach(|py| py.check_signals()).err();
            }
            if raised.is_some() {
                // Each time: a statement that was about to begin has forgotten it.
                ends.store(true, Ordering::Relaxed);
                canceller.cancel();
            }
        };
        // What it broke off with is told above.
        let _ = worker.join();
        (ended, raised)
    });
    match raised {
        Some(raised) => Err(raised),
        None => ended,
    }
}
