//! Savepoints: in a transaction over several storage engines, the source logs rows before it knows whether they are
//! rolled back to a savepoint. So rows after a savepoint are held back until the transaction ends.

use std::collections::VecDeque;

use super::SourceEvent;

/// Bytes of rows that are held back; beyond, they are told, and rolling them back is refused.
const MAX_HELD_BYTES: usize = 256 << 20;

/// The savepoints of a transaction and what came after the first of them.
#[derive(Debug, Default)]
pub struct Savepoints {
    /// Names, each with how many events were held when it was set.
    names: Vec<(String, usize)>,
    held: VecDeque<SourceEvent>,
    bytes: usize,
}

impl Savepoints {
    /// Sets a savepoint; one of the same name is moved.
    pub fn set(&mut self, name: &str) {
        let name = canonical(name);
        self.names.retain(|(other, _)| *other != name);
        self.names.push((name, self.held.len()));
    }

    /// Forgets what came after the savepoint; whether that was all still held.
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

    /// Tells an event, or holds it back if there is a savepoint.
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

    /// Everything that was held back.
    pub fn release(&mut self) -> VecDeque<SourceEvent> {
        self.bytes = 0;
        std::mem::take(&mut self.held)
    }
}

/// Names are compared without regard to case, and are quoted or not.
fn canonical(name: &str) -> String {
    name.trim().trim_matches('`').to_lowercase()
}
