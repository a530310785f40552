//! Marks of sentences, paragraphs and zones in texts, which are indexed like keywords: each takes a position.
//!
//! In a text without its HTML tags a [`PARAGRAPH_CODE`] stands for a paragraph, and the name of a zone between two
//! [`ZONE_CODE`]s for its beginning, or with a `/` in front for its end. The ends of sentences are found by signs.
//!
//! ```text
//! mark := U+3 "sentence" | U+3 "paragraph" | U+4 ["/"] zone
//! ```

use std::borrow::Cow;

/// The mark of the end of a sentence. Paragraphs and zones end sentences too.
pub(crate) const SENTENCE: &str = "\u{3}sentence";
/// The mark between two paragraphs. Zones divide paragraphs too.
pub(crate) const PARAGRAPH: &str = "\u{3}paragraph";

/// Stands for a paragraph in a text without tags.
pub(super) const PARAGRAPH_CODE: char = '\u{3}';
/// Stands before and behind the name of a zone in a text without tags.
pub(super) const ZONE_CODE: char = '\u{4}';

/// The kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Sentence,
    Paragraph,
    Zone,
}

/// The marks of the beginnings and ends of a zone; the name is in lower case.
pub(crate) fn of_zone(name: &str) -> (String, String) {
    (format!("{ZONE_CODE}{name}"), format!("{ZONE_CODE}/{name}"))
}

/// Whether an indexed keyword is a mark, which no query names.
#[must_use]
pub fn is_mark(keyword: &str) -> bool {
    keyword.starts_with([PARAGRAPH_CODE, ZONE_CODE])
}

/// Calls `each` with the marks that are indexed for a mark in the text; `zone` is the mark of a zone.
pub(super) fn indexed(kind: MarkKind, zone: &str, mut each: impl FnMut(&str)) {
    each(SENTENCE);
    if kind != MarkKind::Sentence {
        each(PARAGRAPH);
    }
    if kind == MarkKind::Zone && !zone.is_empty() {
        each(zone);
    }
}

/// Replaces the text between codes of marks.
pub(super) fn replaced_between<'t>(
    text: &'t str,
    replaced: impl Fn(&'t str) -> Cow<'t, str>,
) -> Cow<'t, str> {
    if !text.contains([PARAGRAPH_CODE, ZONE_CODE]) {
        return replaced(text);
    }
    let mut out = String::with_capacity(text.len());
    for_each_piece(text, |piece, code| {
        out.push_str(&replaced(piece));
        out.push_str(code);
    });
    Cow::Owned(out)
}

/// The text with a space for each code of a mark.
pub(super) fn without(text: String) -> String {
    if !text.contains([PARAGRAPH_CODE, ZONE_CODE]) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for_each_piece(&text, |piece, code| {
        out.push_str(piece);
        out.push_str(if code.is_empty() { "" } else { " " });
    });
    out
}

/// Calls `each` with each piece of text and the code behind it, which is empty at the end.
fn for_each_piece<'t>(text: &'t str, mut each: impl FnMut(&'t str, &'t str)) {
    let mut rest = text;
    while let Some(at) = rest.find([PARAGRAPH_CODE, ZONE_CODE]) {
        let (before, code) = rest.split_at(at);
        let name = code.strip_prefix(ZONE_CODE).and_then(|name| name.find(ZONE_CODE));
        let (code, behind) = code.split_at(name.map_or(1, |length| length + 2));
        each(before, code);
        rest = behind;
    }
    each(rest, "");
}

/// Whether a sentence ends with the sign at `at`, as Sphinx decides. `word` is what was read of the word before it, in
/// lower case, and has so many characters.
///
/// A dot ends none before a letter, a digit or a comma; before a space and a small letter, also in parentheses; and
/// after what looks like an initial or a title: one capital, a capital and another character (but of two capitals
/// only MR, MS and DR), MRS and DRS.
pub(super) fn ends_sentence(text: &[u8], at: usize, word: &str, length: u32) -> bool {
    let byte = |at: Option<usize>| at.and_then(|at| text.get(at)).copied().unwrap_or(0);
    let (behind, before) = (|by: usize| byte(Some(at + by)), |by: usize| byte(at.checked_sub(by)));
    match byte(Some(at)) {
        b'?' | b'!' => return true,
        b'.' => {}
        _ => return false,
    }
    let next = behind(1);
    if next.is_ascii_alphanumeric() || matches!(next, b'-' | b'_' | b',') {
        return false;
    }
    let goes_on =
        behind(2).is_ascii_lowercase() || behind(2) == b'(' && behind(3).is_ascii_lowercase();
    if matches!(next, b' ' | b'\t' | b'\n' | b'\r') && goes_on {
        return false;
    }
    let is_short = match length {
        1 => before(1).is_ascii_uppercase(),
        2 => {
            before(2).is_ascii_uppercase() && !before(1).is_ascii_uppercase()
                || matches!([before(2), before(1)], [b'M', b'R'] | [b'M', b'S'] | [b'D', b'R'])
        }
        3 => word == "mrs" || word == "drs",
        _ => false,
    };
    !is_short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_end_sentences_but_for_abbreviations() {
        for (before, word, behind, is_end) in [
            ("the", "end", ". Then", true),
            ("the", "end", ".", true),
            ("the", "end", "? then", true),
            ("the", "end", "!then", true),
            ("the", "end", ".then", false),
            ("the", "end", ".5", false),
            ("the", "end", "., then", false),
            ("the", "end", ". then", false),
            ("the", "end", ".  then", true),
            ("the", "end", ". (then", false),
            ("the", "end", ". (Then", true),
            ("the", "end", ". 5", true),
            ("John", "D", ". Doe", false),
            ("John", "d", ". Doe", true),
            ("by", "Mr", ". Doe", false),
            ("by", "MR", ". Doe", false),
            ("by", "AB", ". Doe", true),
            ("by", "A5", ". Doe", false),
            ("by", "Mrs", ". Doe", false),
            ("by", "Drs", ". Doe", false),
            ("by", "Mrt", ". Doe", true),
        ] {
            let text = format!("{before} {word}{behind}");
            let at = before.len() + 1 + word.len();
            let (folded, length) = (word.to_lowercase(), word.chars().count() as u32);
            assert_eq!(ends_sentence(text.as_bytes(), at, &folded, length), is_end, "{text}");
        }
    }

    #[test]
    fn texts_between_marks_are_replaced() {
        let upper = |text: &'static str| Cow::Owned(text.to_uppercase());
        let text = "a\u{3}b\u{4}h1\u{4}c\u{4}d";
        assert_eq!(replaced_between(text, upper), "A\u{3}B\u{4}h1\u{4}C\u{4}D");
        assert_eq!(replaced_between("ab", upper), "AB");
        assert_eq!(without(text.to_owned()), "a b c d");
    }
}
