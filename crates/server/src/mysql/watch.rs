//! Runs a statement with its time limit, and ends it when the connection is killed, the client has left or the server
//! stops.

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

use super::processes::Connection;
use crate::shared::ServerState;

/// How long a statement may take to end itself when its connection is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How soon it is seen that nobody waits for a statement any more.
const STEP: Duration = Duration::from_millis(50);

/// How a statement ended.
pub(super) enum Ended<T> {
    /// By itself.
    Done(Result<T>),
    /// It was told to, since its time was over.
    TimedOut,
    /// The connection was killed, and it did not end by itself.
    Cut,
}

/// Ends a statement when its time is over. It runs in a task of its own, since a statement may
/// keep its thread busy.
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

/// Runs a statement for at most `limit_ms` milliseconds, where that is not 0.
pub(super) async fn watched<T>(
    statement: impl Future<Output = Result<T>>,
    process: &Connection,
    interrupter: &Arc<AtomicBool>,
    limit_ms: u64,
    shared: &ServerState,
) -> Ended<T> {
    let limit =
        (limit_ms > 0).then(|| TimeLimit::new(Duration::from_millis(limit_ms), interrupter));
    let mut statement = pin!(statement);
    // What is answered at once costs no more than being asked.
    let first = poll_fn(|context| Poll::Ready(statement.as_mut().poll(context))).await;
    let result = match first {
        Poll::Ready(result) => Some(result),
        Poll::Pending => tokio::select! {
            biased;
            result = &mut statement => Some(result),
            () = killed_for_long(process) => None,
            () = unwanted(process, interrupter, shared) => None,
        },
    };
    match (result, limit) {
        (Some(Err(_)), Some(limit)) if limit.is_over.load(Relaxed) => Ended::TimedOut,
        (Some(result), _) => Ended::Done(result),
        (None, _) => Ended::Cut,
    }
}

/// Tells the statement to end when nobody waits for it any more, and leaves it as much time for that.
async fn unwanted(process: &Connection, interrupter: &AtomicBool, shared: &ServerState) {
    while !process.is_left() && !*shared.stopping.borrow() {
        sleep(STEP).await;
    }
    interrupter.store(true, Relaxed);
    sleep(GRACE).await;
}

async fn killed_for_long(process: &Connection) {
    process.killed().await;
    sleep(GRACE).await;
}
