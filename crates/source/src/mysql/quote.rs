//! Quotes names and texts for SQL.

/// A name as SQL takes it: between backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as SQL takes it in any `sql_mode`: in hexadecimal digits.
pub(crate) fn quoted_text(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("_utf8mb4 x'{digits}'")
}
