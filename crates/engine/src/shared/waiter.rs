//! Who waits for the outcome of a job of the writer.

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::{Position, Result};

/// The writer's end of a [`crate::Pending`].
pub(crate) struct Waiter(Sender<Result<Position>>);

impl Waiter {
    /// A waiter and where the outcome arrives.
    pub fn new() -> (Self, Receiver<Result<Position>>) {
        let (sender, receiver) = bounded(1);
        (Self(sender), receiver)
    }

    /// Tells the outcome.
    pub fn answer(self, outcome: Result<Position>) {
        // A caller that is gone does not want to know.
        let _ = self.0.send(outcome);
    }
}
