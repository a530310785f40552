//! Savepoints. In a transaction over several storage engines the source logs rows before it is known whether they are
//! rolled back to a savepoint. So rows after a savepoint are held back until the transaction ends.

use std::collections::VecDeque;

use super::SourceEvent;

/// The most bytes of rows that are held back. Beyond that they are emitted, and rolling them back is an error.
const MAX_HELD_BYTES: usize = 256 << 20;

/// The savepoints of a transaction, and the events after the first of them.
#[derive(Debug, Default)]
pub struct Savepoints {
    /// Names, each with the number of events held when it was set.
    names: Vec<(String, usize)>,
    held: VecDeque<SourceEvent>,
    bytes: usize,
}

impl Savepoints {
    /// Sets a savepoint, replacing one of the same name.
    pub fn set(&mut self, name: &str) {
        let name = canonical(name);
        self.names.retain(|(other, _)| *other != name);
        self.names.push((name, self.held.len()));
    }

    /// Drops the events after the savepoint; false if some were already emitted.
    pub fn roll_back_to(&mut self, name: &str) -> bool {
        let name = canonical(name);
        let Some(at) = self.names.iter().position(|(other, _)| *other == name) else {
            return false;
        };
        self.names.truncate(at + 1);
        if let Some((_, held)) = self.names.last() {
            self.held.truncate(*held);
        }
        true
    }

    /// Emits an event, or holds it back if there is a savepoint.
    pub fn hold(&mut self, event: SourceEvent, ready: &mut VecDeque<SourceEvent>) {
        if self.names.is_empty() {
            return ready.push_back(event);
        }
        if let SourceEvent::Rows { body, .. } = &event {
            self.bytes = self.bytes.saturating_add(body.len());
        }
        self.held.push_back(event);
        if self.bytes > MAX_HELD_BYTES {
            self.names.clear();
            ready.append(&mut self.release());
        }
    }

    /// All events that were held back.
    pub fn release(&mut self) -> VecDeque<SourceEvent> {
        self.bytes = 0;
        std::mem::take(&mut self.held)
    }
}

/// Names are compared without case and without quotes.
fn canonical(name: &str) -> String {
    name.trim().trim_matches('`').to_lowercase()
}
