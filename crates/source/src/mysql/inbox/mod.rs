//! The inbox of the applier: events of the stream, bounded by bytes (backpressure), and messages of all other threads.

mod copy_messages;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

pub(crate) use copy_messages::{Chunk, Moment, Opened, WindowRequest};

use super::binlog::SourceEvent;
use crate::Error;

/// Bytes of events that wait; one event larger than that waits alone.
const MAX_BYTES: usize = 16 << 20;
/// Events that wait.
const MAX_EVENTS: usize = 16_384;
/// How long before a batch the stream is read again: what came meanwhile is read in less.
const READ_AHEAD: Duration = Duration::from_millis(1);
/// From so many bytes of events on, the applier need not wait for the end of a transaction.
const WAKING_BYTES: usize = 64 << 10;

/// A message to the applier that is not of the stream.
pub(crate) enum Message {
    /// A copy wants to read a chunk.
    Window(WindowRequest),
    /// A copy has the moment of which it reads its table whole.
    Moment(Moment),
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
    /// When the next batch can be submitted.
    next_batch: Option<Instant>,
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
            // The taker may not have been woken for what waits.
            self.filled.notify_one();
            self.drained.wait(&mut state);
        }
        state.bytes = state.bytes.saturating_add(bytes);
        // The middle of a transaction wakes nobody: nothing becomes visible before its end.
        let wakes = !is_middle(&event) || state.bytes >= WAKING_BYTES;
        state.events.push_back(event);
        if wakes {
            self.filled.notify_one();
        }
        !state.closed
    }

    /// No batch is submitted before this time.
    pub fn set_next_batch(&self, time: Instant) {
        self.state.lock().next_batch = Some(time);
    }

    /// Waits between two transactions until shortly before a batch can be submitted: nothing that
    /// is read sooner becomes visible sooner, and being woken for each event of a busy source costs
    /// more than reading it.
    pub fn rest(&self) {
        let next_batch = self.state.lock().next_batch;
        let left = next_batch.map(|time| time.saturating_duration_since(Instant::now()));
        if let Some(time) = left.and_then(|left| left.checked_sub(READ_AHEAD)) {
            std::thread::sleep(time);
        }
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
        let (closed, next_batch) = (state.closed, state.next_batch);
        let rest = Waiting { closed, next_batch, ..Waiting::default() };
        let taken = std::mem::replace(&mut *state, rest);
        self.drained.notify_all();
        taken
    }

    /// The messages that wait; blocks until there is one. Events wait on.
    pub fn take_messages(&self) -> VecDeque<Message> {
        let mut state = self.state.lock();
        while state.messages.is_empty() {
            self.filled.wait(&mut state);
        }
        std::mem::take(&mut state.messages)
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

fn is_middle(event: &SourceEvent) -> bool {
    match event {
        SourceEvent::Begin { .. }
        | SourceEvent::AlsoCovers(_)
        | SourceEvent::TableMap(_)
        | SourceEvent::Rows { .. } => true,
        SourceEvent::Statement { .. }
        | SourceEvent::Commit { .. }
        | SourceEvent::Rollback { .. }
        | SourceEvent::Abandoned
        | SourceEvent::File { .. }
        | SourceEvent::Heartbeat { .. } => false,
    }
}

/// About as many bytes as an event takes.
pub(super) fn bytes_of(event: &SourceEvent) -> usize {
    const SMALL: usize = 128;
    match event {
        SourceEvent::Rows { body, .. } => body.len().saturating_add(SMALL),
        SourceEvent::Statement { query, .. } => query.sql.len().saturating_add(SMALL),
        _ => SMALL,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::mysql::{
        binlog::{RowsKind, RowsVersion, TableMap},
        coordinates::Coordinates,
    };

    fn rows(bytes: usize) -> SourceEvent {
        let table = Arc::new(TableMap::default());
        SourceEvent::Rows {
            table,
            kind: RowsKind::Insert,
            version: RowsVersion::V2,
            body: vec![0; bytes].into(),
        }
    }

    #[test]
    fn an_event_larger_than_the_queue_wakes_who_was_not_woken_before() {
        let inbox = Inbox::default();
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                let mut taken = 0;
                while taken < 3 {
                    taken += inbox.take(None).events.len();
                }
            });
            assert!(inbox.push_event(rows(1)));
            assert!(inbox.push_event(rows(MAX_BYTES + 1)));
            assert!(inbox.push_event(SourceEvent::Commit { end: Coordinates::default() }));
            taker.join().unwrap();
        });
    }
}
