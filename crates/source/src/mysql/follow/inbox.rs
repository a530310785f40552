//! What waits for the applier: the stream's events, bounded by bytes, and what everyone else has
//! to say to it.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use crate::{
    Error,
    mysql::{
        binlog::SourceEvent,
        copy::{Chunk, WindowRequest},
    },
};

/// Bytes of events that wait; one event larger than that waits alone.
const MAX_BYTES: usize = 16 << 20;
/// Events that wait.
const MAX_EVENTS: usize = 16_384;

/// A message to the applier that is not of the stream.
pub(crate) enum Message {
    /// A copy wants to read a chunk.
    Window(WindowRequest),
    /// A copy has read a chunk.
    Chunk(Chunk),
    /// A copy cannot go on: what its table is called there, its number, and why.
    CopyFailed(u64, Error),
    /// What was submitted is visible, or one of it failed.
    Acknowledged(Option<remora_engine::Error>),
    /// Look at the orders.
    Order,
    /// The stream ended.
    Ended(Error),
}

/// The queue. Any thread may push, one takes.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<Waiting>,
    filled: Condvar,
    drained: Condvar,
}

/// What waits.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Of the stream, in its order.
    pub events: VecDeque<SourceEvent>,
    /// From everyone else.
    pub messages: VecDeque<Message>,
    bytes: usize,
    closed: bool,
}

impl Inbox {
    /// Appends an event, waiting while too much waits; false if nobody takes any more.
    pub fn push_event(&self, event: SourceEvent) -> bool {
        let bytes = bytes_of(&event);
        let mut state = self.state.lock();
        let full = |state: &Waiting| {
            let bytes = state.bytes.saturating_add(bytes);
            !state.events.is_empty() && (bytes > MAX_BYTES || state.events.len() >= MAX_EVENTS)
        };
        while !state.closed && full(&state) {
            self.drained.wait(&mut state);
        }
        state.bytes = state.bytes.saturating_add(bytes);
        state.events.push_back(event);
        self.filled.notify_one();
        !state.closed
    }

    /// Appends a message; after the end it is dropped, and so tells whoever waits for an answer.
    pub fn push(&self, message: Message) {
        let mut state = self.state.lock();
        if !state.closed {
            state.messages.push_back(message);
            self.filled.notify_one();
        }
    }

    /// Everything that waits; blocks until something does, or until the deadline.
    pub fn take(&self, deadline: Option<Instant>) -> Waiting {
        let mut state = self.state.lock();
        while state.events.is_empty() && state.messages.is_empty() {
            match deadline {
                None => self.filled.wait(&mut state),
                Some(deadline) if self.filled.wait_until(&mut state, deadline).timed_out() => break,
                Some(_) => {}
            }
        }
        let closed = state.closed;
        let taken = std::mem::replace(&mut *state, Waiting { closed, ..Waiting::default() });
        self.drained.notify_all();
        taken
    }

    /// Events that wait.
    pub fn len(&self) -> usize {
        self.state.lock().events.len()
    }

    /// Refuses everything from now on and drops what waits.
    pub fn close(&self) {
        let mut state = self.state.lock();
        *state = Waiting { closed: true, ..Waiting::default() };
        self.drained.notify_all();
    }
}

/// Waits no longer than that for something to wait.
pub(crate) fn within(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

fn bytes_of(event: &SourceEvent) -> usize {
    const SMALL: usize = 128;
    match event {
        SourceEvent::Rows { body, .. } => body.len().saturating_add(SMALL),
        SourceEvent::Statement { sql, .. } => sql.len().saturating_add(SMALL),
        _ => SMALL,
    }
}
