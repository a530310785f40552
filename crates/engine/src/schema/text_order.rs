//! Text orders (collations) that the program registered.
//!
//! The engine itself knows only the order of bytes. The program registers one function that makes sort keys, for the
//! whole process, because segments of any database are also sorted in the background.

use std::sync::OnceLock;

use remora_index::{TextKey, TextOrder};

static KEY: OnceLock<TextKey> = OnceLock::new();

/// Tells what makes the keys of texts in orders other than that of their bytes; the first who tells is heard.
/// Call it before a database is opened: an index by an order that nothing is known of is neither made nor used,
/// and is made by a merge afterwards.
pub fn register_text_key(key: TextKey) {
    // The same function is told again by who does not know of it.
    let _ = KEY.set(key);
}

/// The order of this number; `None` as long as nobody told of any.
pub(crate) fn text_order(number: u32) -> Option<TextOrder> {
    KEY.get().map(|&key| TextOrder { number, key })
}
