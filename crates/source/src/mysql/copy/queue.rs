//! The queue of copies that wait for a worker.

use std::{collections::VecDeque, time::Duration};

use parking_lot::{Condvar, Mutex};

use super::CopyTask;

/// The queue of one session. All methods may be called from any thread.
#[derive(Default)]
pub(crate) struct CopyQueue {
    state: Mutex<WaitingCopies>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingCopies {
    tasks: VecDeque<CopyTask>,
    closed: bool,
}

impl CopyQueue {
    /// Appends a copy.
    pub fn push(&self, task: CopyTask) {
        self.state.lock().tasks.push_back(task);
        // Pausing workers wait for the same condition variable, and one of them alone would not take the task.
        self.changed.notify_all();
    }

    /// The next copy; blocks until there is one. `None` when the session ends.
    pub fn take(&self) -> Option<CopyTask> {
        let mut state = self.state.lock();
        while state.tasks.is_empty() && !state.closed {
            self.changed.wait(&mut state);
        }
        if state.closed { None } else { state.tasks.pop_front() }
    }

    /// Ends the session for all waiting threads.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for this time, or until the session ends; true if it has ended.
    pub fn pause(&self, time: Duration) -> bool {
        let deadline = std::time::Instant::now() + time;
        let mut state = self.state.lock();
        while !state.closed {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.closed
    }
}
