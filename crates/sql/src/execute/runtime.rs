//! The threads in which plans run, so that a query that computes for seconds does not block other connections. Batches
//! come back through a short queue (backpressure): a client that reads slowly slows only its own query. Light queries
//! ([`crate::plan::is_light`]) do not come here.

use std::{
    future::Future,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use remora_mysql::ErrorCode;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
};

use crate::{Error, Result, state::SessionState};

/// Batches that may wait for the client.
const QUEUED: usize = 2;
/// The stack of a thread that plans: enough for the deepest accepted statement. Plans of conditions joined by AND are
/// deep chains.
const STACK_BYTES: usize = 64 << 20;
/// The most threads blocked in SLEEP or on a lock.
const MAX_WAITING: usize = 4_096;
/// The interval at which a statement checks whether it was killed.
const PATIENCE: Duration = Duration::from_millis(50);

/// The threads for each processor. What computes long without a pause, such as a sort, shares the processors with the
/// queries in the other threads.
const THREADS_PER_PROCESSOR: usize = 4;

/// The runtime with its threads; `None` if the threads cannot be created.
static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let built = Builder::new_multi_thread()
        .worker_threads(processors * THREADS_PER_PROCESSOR)
        .max_blocking_threads(MAX_WAITING)
        .thread_stack_size(STACK_BYTES)
        .thread_name("remora-sql")
        .enable_time()
        .build();
    built.inspect_err(|error| tracing::error!(%error, "no threads for queries")).ok()
});

/// A running plan, whose results arrive in a channel. Dropping it ends the plan.
pub(super) struct Running<T> {
    receiver: Receiver<Result<T>>,
    task: JoinHandle<()>,
    deadline: Option<Instant>,
    /// Set when this is dropped, so that waiting functions give up.
    ended: Arc<AtomicBool>,
}

impl<T: Send + 'static> Running<T> {
    /// Starts the future that `make` returns. It sends its results and ends. `ended` is set when this is dropped.
    pub(super) fn start<F>(
        session: &SessionState,
        ended: Arc<AtomicBool>,
        make: impl FnOnce(Sender<Result<T>>) -> F,
    ) -> Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, receiver) = channel(QUEUED);
        let missing = || Error::new(ErrorCode::Unknown, "There are no threads for queries");
        let runtime = RUNTIME.as_ref().ok_or_else(missing)?;
        let (entered, made) = (session.shared.resources.enter(), make(sender));
        let task = runtime.spawn(async move {
            let _entered = entered;
            made.await;
        });
        let limit = session.variables.max_execution_time_ms;
        let deadline = (limit > 0).then(|| Instant::now() + Duration::from_millis(limit));
        Ok(Self { receiver, task, deadline, ended })
    }

    /// The next result; `None` at the end. Error 1317 if the statement was killed, 3024 if it took too long.
    pub(super) async fn next(&mut self, session: &SessionState) -> Result<Option<T>> {
        loop {
            session.check_interrupted()?;
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Error::query_timeout());
            }
            let left = self.deadline.map(|deadline| deadline.duration_since(Instant::now()));
            let patience = left.map_or(PATIENCE, |left| left.min(PATIENCE));
            let received = tokio::time::timeout(patience, self.receiver.recv()).await;
            let Ok(received) = received else { continue };
            if received.is_none() && self.task.is_finished() {
                // The channel closed. Report the interruption, if there was one.
                self.check_end().await?;
            }
            return received.transpose();
        }
    }

    async fn check_end(&mut self) -> Result<()> {
        match (&mut self.task).await {
            Ok(()) => Ok(()),
            Err(error) if error.is_cancelled() => Err(Error::interrupted()),
            Err(error) => {
                tracing::error!(%error, "a query broke off");
                Err(Error::new(
                    ErrorCode::Unknown,
                    "The query broke off: please report this statement",
                ))
            }
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.task.abort();
    }
}
