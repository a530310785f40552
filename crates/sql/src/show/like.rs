//! SHOW … LIKE: matches the first column against a pattern.

use remora_engine::Value;

/// Whether the first value matches the pattern, ignoring case. A backslash escapes the next letter.
pub(super) fn first_is_like(row: &[Value], pattern: &str) -> bool {
    let Some(Value::Text(text)) = row.first() else { return false };
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    is_like(&pattern, &text)
}

/// Likewise, with regard to case.
pub(super) fn first_is_exactly_like(row: &[Value], pattern: &str) -> bool {
    let Some(Value::Text(text)) = row.first() else { return false };
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    is_like(&pattern, &text)
}

/// Matches in one pass. After a mismatch it goes back to the last `%`.
fn is_like(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut back = None;
    while let Some(letter) = text.get(from) {
        let fits = match pattern.get(at) {
            Some('%') => {
                back = Some((at + 1, from));
                at += 1;
                continue;
            }
            Some('_') => Some(1),
            Some('\\') => pattern.get(at + 1).filter(|wanted| *wanted == letter).map(|_| 2),
            Some(wanted) => (wanted == letter).then_some(1),
            None => None,
        };
        match (fits, back) {
            (Some(length), _) => {
                at += length;
                from += 1;
            }
            (None, Some((after, taken))) => {
                back = Some((after, taken + 1));
                (at, from) = (after, taken + 1);
            }
            (None, None) => return false,
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|letter| *letter == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_mysql() {
        let like = |text: &str, pattern: &str| first_is_like(&[Value::Text(text.into())], pattern);
        assert!(like("autocommit", "AUTO%"));
        assert!(like("a_b", "a\\_b") && !like("axb", "a\\_b") && like("axb", "a_b"));
        assert!(like("aXbXc", "%x%c") && !like("aXbXc", "%x%d"));
        assert!(like("", "%%") && like("", "") && !like("", "_"));
        assert!(!like("abc", "ab"));
    }
}
