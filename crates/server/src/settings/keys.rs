//! Messages about unknown keys: which one, where, and which known one is similar.

/// The most known keys in a message.
const MAX_LISTED: usize = 25;

/// The line (from 1) of a byte offset in `text`.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// A parser's message as one sentence; for an unknown field, the most similar known one is added.
///
/// serde writes ``unknown field `a`, expected one of `b`, `c` ``: the first quoted name is the
/// unknown one, the others are known.
pub(super) fn explain(message: &str) -> String {
    let message = message.trim();
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next().filter(|_| message.starts_with("unknown field")) {
        None => message.lines().collect::<Vec<_>>().join(" "),
        Some(unknown) => unknown_key(unknown, &quoted_or_listed(message, names.collect())),
    }
}

/// Some parsers list the known names without quotes.
fn quoted_or_listed<'m>(message: &'m str, quoted: Vec<&'m str>) -> Vec<&'m str> {
    if !quoted.is_empty() {
        return quoted;
    }
    let listed = message.split_once("expected one of ").map_or("", |(_, rest)| rest);
    listed.lines().next().unwrap_or("").split(", ").filter(|name| !name.is_empty()).collect()
}

/// The message that a key is unknown, with the most similar known one.
pub(super) fn unknown_key(unknown: &str, known: &[&str]) -> String {
    match nearest(unknown, known.iter().copied()) {
        Some(name) => format!("unknown key '{unknown}': did you mean '{name}'?"),
        None if known.is_empty() || known.len() > MAX_LISTED => format!("unknown key '{unknown}'"),
        None => format!("unknown key '{unknown}': known here are {}", known.join(", ")),
    }
}

/// The most similar known name, if it is similar enough.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |other: &str| edit_distance(&name.to_lowercase(), &other.to_lowercase());
    known
        .map(|other| (distance(other), other))
        .filter(|(edits, other)| *edits <= other.len().max(name.len()) / 2)
        .min()
        .map(|(_, other)| other)
}

/// The Levenshtein distance in bytes.
fn edit_distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, a) in left.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, b) in right.bytes().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(nearest("lissten", ["data", "listen", "limits"].into_iter()), Some("listen"));
        assert_eq!(nearest("zzz", ["data", "listen"].into_iter()), None);
    }

    #[test]
    fn names_the_key_that_was_meant() {
        assert_eq!(
            explain("unknown field `lissten`, expected one of `data`, `listen`"),
            "unknown key 'lissten': did you mean 'listen'?"
        );
        assert_eq!(
            explain("unknown field `lissten`, expected one of data, listen"),
            "unknown key 'lissten': did you mean 'listen'?"
        );
        assert_eq!(explain("invalid type\nexpected a string"), "invalid type expected a string");
    }
}
