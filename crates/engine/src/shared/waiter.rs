//! A one-shot channel for the outcome of a writer's job.
//!
//! Callers sleep without spinning: many of them wait for one sync, and spinning would take the cores from working
//! threads. To wake a sleeping thread takes a system call. So callers whose batches may be committed together sleep at
//! one [`Bell`], and one call wakes them all.

use std::sync::{Arc, Condvar, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError};

use parking_lot::Mutex;

use crate::{Position, Result};

/// The writer's end of a [`crate::Pending`].
pub(crate) struct Waiter(Arc<Slot>);

/// The receiving end of a [`crate::Pending`].
pub(crate) struct Outcome(Arc<Slot>);

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    /// Where the receiver sleeps. If it is not set when the outcome is sent, the receiver has not looked at the state
    /// for the last time.
    bell: OnceLock<Arc<Bell>>,
}

#[derive(Default)]
enum State {
    #[default]
    Open,
    Answered(Result<Position>),
    /// The writer ended without an outcome.
    Over,
}

/// Wakes all threads that sleep at it. The condition variable is that of the standard library: that of `parking_lot`
/// wakes one thread, which wakes the next when it has the lock.
#[derive(Default)]
pub(crate) struct Bell {
    /// The number of threads that sleep.
    sleepers: StdMutex<usize>,
    rung: Condvar,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, usize> {
        // A number is whole even if a thread panicked.
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until `done` returns something. It is asked again whenever the bell rings.
    fn wait<T>(&self, done: impl Fn() -> Option<T>) -> T {
        let mut sleepers = self.lock();
        loop {
            if let Some(done) = done() {
                return done;
            }
            *sleepers += 1;
            sleepers = self.rung.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
            *sleepers = sleepers.saturating_sub(1);
        }
    }

    fn ring(&self) {
        let sleepers = *self.lock();
        if sleepers > 0 {
            self.rung.notify_all();
        }
    }
}

impl Waiter {
    /// Both ends of the channel.
    pub fn new() -> (Self, Outcome) {
        let slot = Arc::<Slot>::default();
        (Self(Arc::clone(&slot)), Outcome(slot))
    }

    /// Lets the receiver sleep at this bell, unless it sleeps already.
    pub fn sleep_at(&self, bell: &Arc<Bell>) {
        self.0.bell.get_or_init(|| Arc::clone(bell));
    }

    /// Sends the outcome.
    pub fn answer(self, outcome: Result<Position>) {
        self.send(outcome);
        self.ring();
    }

    /// Sends several outcomes. Cost: one system call for all receivers that sleep at one bell.
    pub fn answer_all(answers: impl Iterator<Item = (Self, Result<Position>)>) {
        let mut bells: Vec<Arc<Bell>> = Vec::new();
        for (waiter, outcome) in answers {
            waiter.send(outcome);
            if let Some(bell) = waiter.0.bell.get()
                && !bells.iter().any(|other| Arc::ptr_eq(other, bell))
            {
                bells.push(Arc::clone(bell));
            }
        }
        bells.iter().for_each(|bell| bell.ring());
    }

    fn send(&self, outcome: Result<Position>) {
        *self.0.state.lock() = State::Answered(outcome);
    }

    fn ring(&self) {
        self.0.bell.get().into_iter().for_each(|bell| bell.ring());
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        let is_unanswered = matches!(*state, State::Open);
        if is_unanswered {
            *state = State::Over;
        }
        drop(state);
        if is_unanswered {
            self.ring();
        }
    }
}

impl Outcome {
    /// Waits for the outcome; `None` if the writer ended without one, or it was taken before.
    pub fn wait(self) -> Option<Result<Position>> {
        if let Some(outcome) = self.poll() {
            return outcome;
        }
        self.0.bell.get_or_init(Arc::default).wait(|| self.poll())
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

    #[test]
    fn every_receiver_at_a_bell_gets_its_own_outcome() {
        for round in 0..200_u64 {
            let bells = [Arc::<Bell>::default(), Arc::default()];
            std::thread::scope(|scope| {
                let (mut waiters, mut receivers) = (Vec::new(), Vec::new());
                for number in 0..8_u64 {
                    let (waiter, outcome) = Waiter::new();
                    waiter.sleep_at(&bells[(number % 2) as usize]);
                    waiters.push((waiter, Ok(Position(number + round))));
                    receivers.push(scope.spawn(|| outcome.wait()));
                }
                // Some sleep already, others do not.
                let late = waiters.split_off(4);
                Waiter::answer_all(waiters.into_iter());
                late.into_iter().for_each(|(waiter, outcome)| waiter.answer(outcome));
                for (number, receiver) in (round..).zip(receivers) {
                    assert!(
                        matches!(receiver.join().unwrap(), Some(Ok(Position(at))) if at == number)
                    );
                }
            });
        }
    }
}
