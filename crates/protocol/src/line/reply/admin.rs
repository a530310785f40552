//! Replies of AUTH, DEBUG, OPTIMIZE, CONFIG and SET.

use super::{human_bytes, one_line, text};

/// The reply to AUTH with the right token.
pub fn write_auth_ok(out: &mut Vec<u8>) {
    text(out, "OK AUTHENTICATED");
}

/// The reply to DEBUG.
pub fn write_debug(out: &mut Vec<u8>, on: bool) {
    text(out, if on { "OK DEBUG_ON" } else { "OK DEBUG_OFF" });
}

/// The figures in the reply to OPTIMIZE.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptimizeReport {
    /// The number of optimized tables.
    pub tables: u64,
    /// The number of distinct terms.
    pub terms: u64,
    /// The number of posting lists stored as deltas.
    pub delta_lists: u64,
    /// The number of posting lists stored as bitmaps.
    pub bitmap_lists: u64,
    /// The size of the indexes in bytes.
    pub memory_bytes: u64,
}

/// The reply to OPTIMIZE.
pub fn write_optimized(out: &mut Vec<u8>, report: &OptimizeReport) {
    let OptimizeReport { tables, terms, delta_lists, bitmap_lists, memory_bytes } = report;
    let memory = human_bytes(*memory_bytes);
    let lists = format!("delta={delta_lists} roaring={bitmap_lists}");
    text(out, &format!("OK OPTIMIZED tables={tables} terms={terms} {lists} memory={memory}"));
}

/// The reply to CONFIG: `+OK` and the lines of a text. Empty lines are omitted, because clients
/// would take one for the end of the reply.
pub fn write_config(out: &mut Vec<u8>, shown: &str) {
    text(out, "+OK\r\n");
    for shown_line in shown.lines().filter(|shown_line| !shown_line.trim().is_empty()) {
        one_line(out, shown_line);
        text(out, "\r\n");
    }
}

/// The reply to SET: the settings, in the order of the request.
pub fn write_set(out: &mut Vec<u8>, set: &[(String, String)]) {
    match set {
        [(name, value)] => one_line(out, &format!("+OK Variable '{name}' set to '{value}'")),
        all => text(out, &format!("+OK {} variables set", all.len())),
    }
    text(out, "\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plus_ok_replies_end_their_last_line() {
        let pair = |name: &str| (name.to_owned(), "1".to_owned());
        let one = printed(|out| write_set(out, &[pair("a")]));
        assert_eq!(one, "+OK Variable 'a' set to '1'\r\n");
        let two = printed(|out| write_set(out, &[pair("a"), pair("b")]));
        assert_eq!(two, "+OK 2 variables set\r\n");
        let config = printed(|out| write_config(out, "a:\n\n  b: 1\n"));
        assert_eq!(config, "+OK\r\na:\r\n  b: 1\r\n");
    }

    #[test]
    fn optimize_is_one_line() {
        let report = OptimizeReport {
            tables: 1,
            terms: 2,
            delta_lists: 3,
            bitmap_lists: 4,
            memory_bytes: 813 << 20,
        };
        let expected = "OK OPTIMIZED tables=1 terms=2 delta=3 roaring=4 memory=813MB";
        assert_eq!(printed(|out| write_optimized(out, &report)), expected);
    }
}
