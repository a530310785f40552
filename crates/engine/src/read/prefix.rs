//! Texts with a prefix, as a text order (collation) compares it.

use std::ops::Bound;

use remora_index::TextOrder;

/// Appended to a letter before its sort key is made, because an order may ignore letters at the end of a text.
const BEHIND: u8 = b'x';

/// A prefix, letter by letter.
pub(super) struct CollatedPrefix {
    order: TextOrder,
    text: String,
    /// The sort key of each letter.
    keys: Vec<Vec<u8>>,
}

/// Reusable buffers.
#[derive(Default)]
pub(super) struct Scratch {
    letter: Vec<u8>,
    key: Vec<u8>,
}

impl CollatedPrefix {
    /// The letters of a text, in a text order.
    pub fn new(text: &str, order: TextOrder) -> Self {
        let mut scratch = Scratch::default();
        let key = |letter: char| {
            scratch.make_key(letter, order);
            scratch.key.clone()
        };
        let keys = text.chars().map(key).collect();
        Self { order, text: text.to_owned(), keys }
    }

    /// Whether a text has this prefix.
    pub fn begin(&self, text: &[u8], scratch: &mut Scratch) -> bool {
        if text.starts_with(self.text.as_bytes()) {
            return true;
        }
        let Ok(text) = std::str::from_utf8(text) else { return false };
        let mut letters = text.chars();
        self.keys.iter().all(|wanted| {
            letters.next().is_some_and(|letter| {
                scratch.make_key(letter, self.order);
                scratch.key == *wanted
            })
        })
    }
}

impl Scratch {
    fn make_key(&mut self, letter: char, order: TextOrder) {
        self.letter.clear();
        self.letter.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        self.letter.push(BEHIND);
        order.write_key(&self.letter, &mut self.key);
    }
}

/// The upper bound of all byte strings with this prefix.
pub(super) fn end_of(beginning: &[u8]) -> Bound<Vec<u8>> {
    let mut end = beginning.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}
