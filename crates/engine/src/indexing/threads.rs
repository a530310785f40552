//! A thread pool that indexes large batches in parallel, while callers prepare the next ones and the writer
//! commits earlier ones.

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use remora_index::segment::Segment;

use super::RowIndexer;
use crate::{Error, Result, Schema, encode::FittedRow};

/// How long an idle thread waits before it ends.
const IDLE: Duration = Duration::from_secs(1);
/// The most threads of the pool.
const THREADS_MAX: usize = 16;

/// The pool. Its threads end when it is dropped and no task waits.
pub(crate) struct Indexers(Sender<Task>);

/// A task: the rows of a batch that become one segment.
struct Task {
    schema: Arc<Schema>,
    /// The rows with their keys, ascending.
    rows: Vec<(Vec<u8>, FittedRow)>,
    text_bytes: usize,
    segment: Sender<Result<Option<Arc<Segment>>>>,
}

/// A segment under construction.
pub(crate) struct Indexing(Receiver<Result<Option<Arc<Segment>>>>);

impl Indexers {
    /// Starts one thread for each core.
    pub fn start() -> Result<Self> {
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
        let (sender, tasks) = bounded::<Task>(threads);
        for _ in 0..threads {
            let tasks = tasks.clone();
            thread::Builder::new().name("remora-index".to_owned()).spawn(move || run(&tasks))?;
        }
        Ok(Self(sender))
    }

    /// Submits rows with their keys, in ascending order, that have so many bytes of text to index. Blocks while
    /// every thread has its next task already (backpressure).
    pub fn index(
        &self,
        schema: &Arc<Schema>,
        rows: Vec<(Vec<u8>, FittedRow)>,
        text_bytes: usize,
    ) -> Indexing {
        let (segment, outcome) = bounded(1);
        // If no thread is left, waiting for the segment fails.
        let _ = self.0.send(Task { schema: Arc::clone(schema), rows, text_bytes, segment });
        Indexing(outcome)
    }
}

impl Indexing {
    /// For tests: a segment that is under construction until the sender sends it.
    #[cfg(test)]
    pub fn under_way() -> (Self, Sender<Result<Option<Arc<Segment>>>>) {
        let (segment, outcome) = bounded(1);
        (Self(outcome), segment)
    }

    /// Whether the segment is not finished.
    pub fn is_under_way(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits for the segment; `None` if there are no rows.
    pub fn wait(self) -> Result<Option<Arc<Segment>>> {
        let died = |_| Err(Error::Poisoned("a thread that indexes panicked".to_owned()));
        self.0.recv().unwrap_or_else(died)
    }
}

/// Starts a thread for each burst of tasks, which ends when idle: the allocator keeps freed memory for a thread
/// while it exists.
fn run(tasks: &Receiver<Task>) {
    for task in tasks {
        let first = Mutex::new(Some(task));
        let work = || {
            let next = || first.lock().take().or_else(|| tasks.recv_timeout(IDLE).ok());
            std::iter::from_fn(next).for_each(Task::run);
        };
        thread::scope(|scope| {
            let builder = thread::Builder::new().name("remora-indexing".to_owned());
            if builder.spawn_scoped(scope, work).is_err() {
                // No thread could be started: run the task in this one.
                first.lock().take().into_iter().for_each(Task::run);
            }
        });
    }
}

impl Task {
    fn run(self) {
        let Self { schema, rows, text_bytes, segment } = self;
        // The caller may have stopped waiting.
        let _ = segment.send(index(&schema, rows, text_bytes));
    }
}

fn index(
    schema: &Schema,
    rows: Vec<(Vec<u8>, FittedRow)>,
    text_bytes: usize,
) -> Result<Option<Arc<Segment>>> {
    let mut indexer = RowIndexer::new(schema);
    indexer.reserve_text(text_bytes);
    for (key, row) in rows {
        indexer.add_fitted(&key, &row)?;
    }
    Ok(indexer.finish()?.map(Arc::new))
}
