//! Orders of texts that are not those of their bytes.

use std::fmt;

/// Adds the key of a text in the order of a number: bytes that compare as the texts do in that order. The same
/// text has the same key for ever, since segments hold what was sorted by it.
pub type TextKey = fn(order: u32, text: &[u8], key: &mut Vec<u8>);

/// How texts are ordered, other than by their bytes.
#[derive(Clone, Copy)]
pub struct TextOrder {
    /// The number of the order.
    pub number: u32,
    /// What makes the keys.
    pub key: TextKey,
}

impl TextOrder {
    /// Writes the key of a text over what the buffer held.
    pub fn write_key(&self, text: &[u8], key: &mut Vec<u8>) {
        key.clear();
        (self.key)(self.number, text, key);
    }
}

/// Orders of one number are one.
impl PartialEq for TextOrder {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for TextOrder {}

impl fmt::Debug for TextOrder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TextOrder({})", self.number)
    }
}
