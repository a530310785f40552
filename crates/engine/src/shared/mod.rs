//! The state that callers, the writer thread and the merge threads of an open database share, with the queue in which
//! batches and definitions wait for the writer.

mod indexed_ahead;
mod large;
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

pub use indexed_ahead::IndexedAhead;
pub(crate) use indexed_ahead::Moment;
pub(crate) use large::{Built, LargeCommit};
pub(crate) use prepared::{PreparedBatch, PreparedChange, PreparedTable, UniqueValue, key_hash};
pub(crate) use queue::{Definitions, Job, Taken, WatchOrder, WriteQueue};
pub(crate) use transactions::{OpenTransactions, ProtectedKeys, Since};
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

/// One open database.
pub(crate) struct DatabaseState {
    /// The data directory.
    pub directory: PathBuf,
    /// Its settings.
    pub options: Options,
    /// What waits for the writer.
    pub queue: WriteQueue,
    /// The threads that index large batches.
    pub indexers: Indexers,
    /// The transactions that have begun and not ended.
    pub transactions: OpenTransactions,
    /// Who is to be told of changes.
    pub watchers: Watchers,
    /// What readers see.
    pub published: Published,
    /// Tables that are read as one.
    pub united: United,
    /// The segment files. Held during a checkpoint, so there is one at a time; `None` once the
    /// directory is given up.
    pub files: Mutex<Option<SegmentFiles>>,
    /// Bytes of indexed text that are in no file yet, and of the log behind the last checkpoint.
    pub unsaved_bytes: AtomicU64,
    /// Why the last checkpoint failed; `None` if it did not.
    pub checkpoint_failure: Mutex<Option<String>>,
    /// How many merges run.
    pub merging: AtomicUsize,
    /// Whether the directory is given up: every call answers [`Error::Closed`].
    pub closed: AtomicBool,
    store: RwLock<Option<Arc<dyn Store>>>,
    lock: Mutex<Option<DirectoryLock>>,
}

impl DatabaseState {
    /// A database that was just recovered.
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
            options,
            queue: WriteQueue::default(),
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

    /// An error once the database is closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Refuses all writes from now on: one could not be made durable, or a thread that writes need
    /// died. Reads go on. The error is handed back as the callers get it. Of a full disk the writer is
    /// only told: it goes on when there is room.
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

    /// Why the writer takes nothing any more.
    pub fn refusal(&self) -> Error {
        self.published.stopped().unwrap_or(Error::Closed)
    }

    /// Gives the directory up. A read that has begun may go on in what it has pinned; rows of the
    /// store it reads no more.
    pub fn release(&self) {
        self.closed.store(true, Ordering::Release);
        // A checkpoint that has begun ends first; a later one finds nothing.
        *self.files.lock() = None;
        self.published.clear();
        *self.store.write() = None;
        *self.lock.lock() = None;
    }
}

/// Poisons the database when the thread that holds it panics, so that nobody waits for it in vain.
pub(crate) struct PoisonOnPanic<'s>(pub &'s DatabaseState, pub &'static str);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(&Error::Poisoned(format!("the {} thread panicked", self.1)));
        }
    }
}
