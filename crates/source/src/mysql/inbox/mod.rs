//! The inbox of the applier: events of the stream, bounded by bytes (backpressure), and messages from all other
//! threads.

mod copy_messages;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

pub(crate) use copy_messages::{Chunk, Moment, OpenedWindow, WindowRequest};

use super::binlog::SourceEvent;
use crate::Error;

/// The most bytes of waiting events. A larger event waits alone.
const MAX_BYTES: usize = 16 << 20;
/// The most waiting events.
const MAX_EVENTS: usize = 16_384;
/// How long before the next batch the applier wakes to process waiting events.
const READ_AHEAD: Duration = Duration::from_millis(1);
/// From this many bytes on, the applier is woken before the end of a transaction.
const WAKING_BYTES: usize = 64 << 10;

/// A message to the applier that is not part of the stream.
pub(crate) enum Message {
    /// A copy requests a window.
    Window(WindowRequest),
    /// A copy reports the moment of the table that it reads whole.
    Moment(Moment),
    /// A copy has read a chunk.
    Chunk(Chunk),
    /// The copy with this number cannot continue, and why.
    CopyFailed(u64, Error),
    /// Submitted batches are visible, or one of them failed.
    Acknowledged(Option<remora_engine::Error>),
    /// New requests for tables are waiting.
    Request,
    /// The stream ended.
    Ended(Error),
}

/// The queue. Any thread may push, one thread takes.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<Waiting>,
    filled: Condvar,
    drained: Condvar,
}

/// Waiting events and messages.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Events of the stream, in order.
    pub events: VecDeque<SourceEvent>,
    /// Messages from other threads.
    pub messages: VecDeque<Message>,
    bytes: usize,
    /// The earliest time of the next batch.
    next_batch: Option<Instant>,
    closed: bool,
}

impl Inbox {
    /// Appends an event; blocks while the inbox is full; false if it is closed.
    pub fn push_event(&self, event: SourceEvent) -> bool {
        let bytes = bytes_of(&event);
        let mut state = self.state.lock();
        let full = |state: &Waiting| {
            let bytes = state.bytes.saturating_add(bytes);
            !state.events.is_empty() && (bytes > MAX_BYTES || state.events.len() >= MAX_EVENTS)
        };
        while !state.closed && full(&state) {
            // The taker may not have been notified of what is waiting.
            self.filled.notify_one();
            self.drained.wait(&mut state);
        }
        state.bytes = state.bytes.saturating_add(bytes);
        // Events inside a transaction do not wake the taker: nothing becomes visible before its end.
        let wakes = !is_middle(&event) || state.bytes >= WAKING_BYTES;
        state.events.push_back(event);
        if wakes {
            self.filled.notify_one();
        }
        !state.closed
    }

    /// Sets the earliest time of the next batch.
    pub fn set_next_batch(&self, time: Instant) {
        self.state.lock().next_batch = Some(time);
    }

    /// Waits between two transactions until shortly before the next batch. Events processed earlier would not become
    /// visible earlier, and being woken for each event of a busy source costs more than processing it.
    pub fn wait_for_next_batch(&self) {
        let next_batch = self.state.lock().next_batch;
        let left = next_batch.map(|time| time.saturating_duration_since(Instant::now()));
        if let Some(time) = left.and_then(|left| left.checked_sub(READ_AHEAD)) {
            std::thread::sleep(time);
        }
    }

    /// Appends a message. After `close` it is dropped, which also drops its reply channel.
    pub fn push(&self, message: Message) {
        let mut state = self.state.lock();
        if !state.closed {
            state.messages.push_back(message);
            self.filled.notify_one();
        }
    }

    /// Takes everything; blocks until something is there, or until the deadline.
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

    /// Takes the messages; blocks until there is one. Events stay.
    pub fn take_messages(&self) -> VecDeque<Message> {
        let mut state = self.state.lock();
        while state.messages.is_empty() {
            self.filled.wait(&mut state);
        }
        std::mem::take(&mut state.messages)
    }

    /// The number of waiting events.
    pub fn len(&self) -> usize {
        self.state.lock().events.len()
    }

    /// Refuses everything from now on and drops what is waiting.
    pub fn close(&self) {
        let mut state = self.state.lock();
        *state = Waiting { closed: true, ..Waiting::default() };
        self.drained.notify_all();
    }
}

/// The deadline after this time.
pub(crate) fn deadline_after(time: Duration) -> Option<Instant> {
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

/// The approximate memory of an event.
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
    fn event_larger_than_the_queue_wakes_the_reader() {
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
