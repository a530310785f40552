//! A one-shot channel for the outcome of a writer's job.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::{Position, Result};

/// The writer's end of a [`crate::Pending`].
pub(crate) struct Waiter(Arc<Slot>);

/// The receiving end of a [`crate::Pending`]. It sleeps without spinning. Many callers wait for one
/// sync, and spinning would take the cores from working threads.
pub(crate) struct Outcome(Arc<Slot>);

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
enum State {
    #[default]
    Open,
    Answered(Result<Position>),
    /// The writer ended without an outcome.
    Over,
}

impl Waiter {
    /// Both ends of the channel.
    pub fn new() -> (Self, Outcome) {
        let slot = Arc::<Slot>::default();
        (Self(Arc::clone(&slot)), Outcome(slot))
    }

    /// Sends the outcome.
    pub fn answer(self, outcome: Result<Position>) {
        *self.0.state.lock() = State::Answered(outcome);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if matches!(*state, State::Open) {
            *state = State::Over;
        }
        drop(state);
        self.0.changed.notify_one();
    }
}

impl Outcome {
    /// Waits for the outcome; `None` if the writer ended without one, or it was taken before.
    pub fn wait(self) -> Option<Result<Position>> {
        let mut state = self.0.state.lock();
        while matches!(*state, State::Open) {
            self.0.changed.wait(&mut state);
        }
        state.take()
    }

    /// What [`Outcome::wait`] would return now; `None` if it would wait.
    pub fn poll(&self) -> Option<Option<Result<Position>>> {
        let mut state = self.0.state.lock();
        (!matches!(*state, State::Open)).then(|| state.take())
    }
}

impl State {
    fn take(&mut self) -> Option<Result<Position>> {
        match std::mem::replace(self, Self::Over) {
            Self::Answered(outcome) => Some(outcome),
            Self::Open | Self::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_returned_once_and_a_missing_one_is_detected() {
        let (waiter, outcome) = Waiter::new();
        assert!(outcome.poll().is_none());
        waiter.answer(Ok(Position(7)));
        assert!(matches!(outcome.poll(), Some(Some(Ok(Position(7))))));
        assert!(matches!(outcome.poll(), Some(None)));
        assert!(outcome.wait().is_none());

        let (waiter, outcome) = Waiter::new();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| outcome.wait());
            drop(waiter);
            assert!(waits.join().unwrap().is_none());
        });
    }
}
