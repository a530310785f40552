//! Text orders (collations) that the program registered.
//!
//! The engine itself knows only byte order. The program registers one function that makes sort keys, for the whole
//! process, because background merges sort segments of any database.

use std::sync::OnceLock;

use remora_index::{TextKey, TextOrder};

static KEY: OnceLock<TextKey> = OnceLock::new();

/// Registers the function that makes sort keys for text orders; only the first call counts. Call it before a database
/// is opened: without it, an index in such an order is neither built nor used, and a merge builds it later.
pub fn register_text_key(key: TextKey) {
    // A repeated call registers the same function.
    let _ = KEY.set(key);
}

/// The text order with this number; `None` if no function is registered.
pub(crate) fn text_order(number: u32) -> Option<TextOrder> {
    KEY.get().map(|&key| TextOrder { number, key })
}
