//! The state that callers, the writer thread and the merge threads of an open database share, with the queue in which
//! batches and definitions wait for the writer.

mod large;
mod prebuilt;
mod prepared;
mod queue;
mod transactions;
mod waiter;
mod watchers;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use remora_index::segment::Segment;

pub(crate) use large::{Built, LargeCommit};
pub(crate) use prebuilt::KeyRecording;
pub use prebuilt::PrebuiltSegments;
pub(crate) use prepared::{PreparedBatch, PreparedChange, PreparedTable, UniqueValue, key_hash};
pub(crate) use queue::{Definitions, Job, TakenJobs, WatchOrder, WriteQueue};
pub(crate) use transactions::{CommitPrecondition, OpenTransactions, ProtectedKeys};
pub(crate) use waiter::{Outcome, Waiter};
pub(crate) use watchers::{Watcher, Watchers};

use crate::{
    Error, Options, Result,
    indexing::Indexers,
    snapshot::{Published, Snapshot, United},
    storage::{
        feed::read_registrations, lock::DirectoryLock, segment_files::SegmentFiles, store::Store,
    },
};

/// The state of one open database.
pub(crate) struct DatabaseState {
    /// The data directory.
    pub directory: PathBuf,
    /// The settings of the database.
    pub options: Options,
    /// The queue of the writer.
    pub queue: WriteQueue,
    /// The threads that index large batches.
    pub indexers: Indexers,
    /// The open transactions.
    pub transactions: OpenTransactions,
    /// The watchers of changes.
    pub watchers: Watchers,
    /// The published snapshot.
    pub published: Published,
    /// The cached definitions of tables that are read as one.
    pub united: United,
    /// The segment files. Locked during a checkpoint, so that only one runs at a time; `None` once the directory
    /// is released.
    pub files: Mutex<Option<SegmentFiles>>,
    /// Bytes of indexed text not yet in files, plus bytes of the log since the last checkpoint.
    pub unsaved_bytes: AtomicU64,
    /// Why the last checkpoint failed; `None` if it succeeded.
    pub checkpoint_failure: Mutex<Option<String>>,
    /// The number of running merges.
    pub merging: AtomicUsize,
    /// Whether the directory is released: every call returns [`Error::Closed`].
    pub closed: AtomicBool,
    store: RwLock<Option<Arc<dyn Store>>>,
    lock: Mutex<Option<DirectoryLock>>,
}

impl DatabaseState {
    /// The state of a database after recovery.
    pub fn new(
        directory: PathBuf,
        options: Options,
        store: Arc<dyn Store>,
        lock: Option<DirectoryLock>,
        recovered: (Snapshot, SegmentFiles),
    ) -> Result<Self> {
        let (snapshot, files) = recovered;
        let watchers = Watchers::stored(read_registrations(&*store.snapshot())?);
        Ok(Self {
            directory,
            queue: WriteQueue::new(options.queue_bytes),
            options,
            indexers: Indexers::start()?,
            transactions: OpenTransactions::default(),
            watchers,
            published: Published::new(snapshot),
            united: United::default(),
            files: Mutex::new(Some(files)),
            unsaved_bytes: AtomicU64::new(0),
            checkpoint_failure: Mutex::new(None),
            merging: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            store: RwLock::new(Some(store)),
            lock: Mutex::new(lock),
        })
    }

    /// The row store, while the database is open.
    pub fn store(&self) -> Result<Arc<dyn Store>> {
        self.store.read().clone().ok_or(Error::Closed)
    }

    /// Returns an error once the database is closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Rejects all writes from now on, because one could not be made durable or a thread needed for writes died.
    /// Reads continue. Returns the error as callers get it. A full disk does not poison: it is only reported to
    /// the writer, which continues when there is space.
    pub fn poison(&self, error: &Error) -> Error {
        let error = match error {
            Error::Full(_) => {
                self.queue.wake();
                return error.clone();
            }
            Error::Poisoned(_) => error.clone(),
            other => Error::Poisoned(other.to_string()),
        };
        tracing::error!(%error, directory = %self.directory.display(), "writes stop");
        self.queue.fail(&error);
        self.published.stop(error.clone());
        error
    }

    /// As [`SegmentFiles::save_ahead`].
    pub fn save_ahead(&self, segment: &Arc<Segment>) -> Result<Option<Arc<Segment>>> {
        self.files.lock().as_mut().ok_or(Error::Closed)?.save_ahead(segment)
    }

    /// The error with which writes are rejected.
    pub fn refusal(&self) -> Error {
        self.published.stopped().unwrap_or(Error::Closed)
    }

    /// Releases the directory. A running read may continue with the snapshot that it holds, but
    /// cannot read the row store any more.
    pub fn release(&self) {
        self.closed.store(true, Ordering::Release);
        // Waits for a running checkpoint; a later one finds nothing.
        *self.files.lock() = None;
        self.published.clear();
        *self.store.write() = None;
        *self.lock.lock() = None;
    }
}

/// Poisons the database if the thread that holds it panics, so that nobody waits for that thread forever.
pub(crate) struct PoisonOnPanic<'s>(pub &'s DatabaseState, pub &'static str);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(&Error::Poisoned(format!("the {} thread panicked", self.1)));
        }
    }
}
