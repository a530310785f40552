//! Quotes names and texts for SQL.

/// A name in backquotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as an SQL literal in hexadecimal digits, which is valid in any `sql_mode`.
pub(crate) fn quoted_text(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("_utf8mb4 x'{digits}'")
}
