//! Orders of texts other than byte order (collations).

use std::fmt;

/// Appends the sort key of a text in the order of this number. Sort keys compare by bytes as the texts
/// compare in that order. The key of a text must never change, because segments store documents sorted by it.
pub type TextKey = fn(order: u32, text: &[u8], key: &mut Vec<u8>);

/// An order of texts (a collation) other than byte order.
#[derive(Clone, Copy)]
pub struct TextOrder {
    /// The number of the order.
    pub number: u32,
    /// The function that makes sort keys.
    pub key: TextKey,
}

impl TextOrder {
    /// Replaces the contents of `key` with the sort key of a text.
    pub fn write_key(&self, text: &[u8], key: &mut Vec<u8>) {
        key.clear();
        (self.key)(self.number, text, key);
    }
}

/// Orders are equal if their numbers are.
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
