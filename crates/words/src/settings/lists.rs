//! List settings: names of files, and entries given instead of files.

/// Splits names of files at spaces and commas.
pub(super) fn file_names(value: &str) -> Vec<String> {
    let is_between = |c: char| c == ',' || c.is_whitespace();
    value.split(is_between).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Splits entries at `;`. A backslash escapes `;` and `\`.
pub(super) fn split(value: &str) -> Vec<String> {
    let (mut entries, mut entry) = (Vec::new(), String::new());
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next_if(|&next| next == ';' || next == '\\') {
                Some(escaped) => entry.push(escaped),
                None => entry.push(c),
            },
            ';' => entries.push(std::mem::take(&mut entry)),
            _ => entry.push(c),
        }
    }
    entries.push(entry);
    entries.retain(|entry| !entry.trim().is_empty());
    entries.iter().map(|entry| entry.trim().to_owned()).collect()
}

/// The inverse of [`split`].
pub(super) fn join(entries: &[String]) -> String {
    let escape = |entry: &String| entry.replace('\\', "\\\\").replace(';', "\\;");
    entries.iter().map(escape).collect::<Vec<_>>().join("; ")
}
