//! Runs a statement with its time limit, and interrupts it if the connection is killed, the client has disconnected or
//! the server stops.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use remora_sql::Result;
use tokio::{task::JoinHandle, time::sleep};

use super::processes::ListedConnection;
use crate::shared::ServerState;

/// How long a statement may take to end after its connection was killed.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is checked whether the client is still there.
const STEP: Duration = Duration::from_millis(50);

/// How a statement ended.
pub(super) enum Ended<T> {
    /// By itself.
    Done(Result<T>),
    /// Interrupted, because its time was up.
    TimedOut,
    /// Abandoned: the connection was killed, and the statement did not end in time.
    Abandoned,
}

/// Interrupts a statement when its time is up. Runs in a task of its own, because a statement may occupy its thread.
struct TimeLimit {
    task: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl TimeLimit {
    fn new(limit: Duration, interrupter: &Arc<AtomicBool>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, interrupter) = (Arc::clone(&is_over), Arc::clone(interrupter));
        let task = tokio::spawn(async move {
            sleep(limit).await;
            over.store(true, Relaxed);
            interrupter.store(true, Relaxed);
        });
        Self { task, is_over }
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a statement for at most `limit_ms` milliseconds, if that is not 0.
pub(super) async fn run_watched<T>(
    statement: impl Future<Output = Result<T>>,
    process: &ListedConnection,
    interrupter: &Arc<AtomicBool>,
    limit_ms: u64,
    shared: &ServerState,
) -> Ended<T> {
    let limit =
        (limit_ms > 0).then(|| TimeLimit::new(Duration::from_millis(limit_ms), interrupter));
    let mut statement = pin!(statement);
    // A statement that completes at once needs no watching.
    let first = poll_fn(|context| Poll::Ready(statement.as_mut().poll(context))).await;
    let result = match first {
        Poll::Ready(result) => Some(result),
        Poll::Pending => tokio::select! {
            biased;
            result = &mut statement => Some(result),
            () = killed_past_grace(process) => None,
            () = interrupt_unneeded(process, interrupter, shared) => None,
        },
    };
    match (result, limit) {
        (Some(Err(_)), Some(limit)) if limit.is_over.load(Relaxed) => Ended::TimedOut,
        (Some(result), _) => Ended::Done(result),
        (None, _) => Ended::Abandoned,
    }
}

/// Interrupts the statement when its client has disconnected or the server stops, and then waits for the grace time.
async fn interrupt_unneeded(
    process: &ListedConnection,
    interrupter: &AtomicBool,
    shared: &ServerState,
) {
    while !process.is_disconnected() && !*shared.stopping.borrow() {
        sleep(STEP).await;
    }
    interrupter.store(true, Relaxed);
    sleep(GRACE).await;
}

async fn killed_past_grace(process: &ListedConnection) {
    process.killed().await;
    sleep(GRACE).await;
}
