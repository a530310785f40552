//! Words with wildcards: `*` matches any characters, `?` one character, `%` at most one.

use crate::{analysis::is_mark, settings::Settings};

/// A word with wildcards that can be expanded to keywords.
#[derive(Clone, Debug, PartialEq)]
pub struct Wildcard {
    pattern: Vec<char>,
    prefix: String,
    longest: String,
    takes_inner: bool,
    /// Whether it expands to words as written; their keywords begin with `=`.
    is_exact: bool,
}

impl Wildcard {
    /// Parses a word.
    ///
    /// # Errors
    /// A warning in Sphinx's words if its literal part is too short; then it is not expanded.
    pub fn new(word: &str, settings: &Settings) -> Result<Self, String> {
        let is_wild = |c: char| matches!(c, '*' | '?' | '%');
        // If only prefixes are indexed, a star at the start has no effect.
        let takes_inner = settings.min_infix_len() > 0;
        let pattern = if takes_inner { word } else { word.trim_start_matches('*') };
        let prefix = pattern.split(is_wild).next().unwrap_or("").to_owned();
        let longest = pattern.split(is_wild).max_by_key(|it| it.chars().count()).unwrap_or("");
        let (longest, is_run) = match prefix.is_empty() {
            true => (longest.to_owned(), true),
            false => (prefix.clone(), pattern.ends_with('*')),
        };
        let least = match takes_inner && (prefix.is_empty() || settings.min_prefix_len() == 0) {
            true => settings.min_infix_len(),
            false => settings.min_prefix_len(),
        };
        let says_length = !longest.is_empty() || word.contains('*');
        if longest.chars().count() < least as usize && says_length {
            let kind = if takes_inner && is_run { "infix" } else { "prefix" };
            return Err(format!(
                "Query word length is less than min {kind} length. word: '{word}' "
            ));
        }
        let is_exact = settings.index_exact_words();
        let prefix = if is_exact && !prefix.is_empty() { format!("={prefix}") } else { prefix };
        let pattern = pattern.chars().collect();
        Ok(Self { pattern, prefix, longest, takes_inner, is_exact })
    }

    /// Whether it expands to nothing: it has no literal part, or only prefixes are indexed and it has none.
    pub fn is_nothing(&self) -> bool {
        self.longest.is_empty() || self.prefix.is_empty() && !self.takes_inner
    }

    /// The prefix of all keywords it expands to; may be empty.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A literal part, found in all keywords it expands to: its prefix, or else the longest.
    pub fn longest_piece(&self) -> &str {
        &self.longest
    }

    /// Whether the keyword matches. Cost: at most the product of both lengths.
    pub fn matches(&self, keyword: &str) -> bool {
        let keyword = match (self.is_exact, keyword.strip_prefix('=')) {
            (true, None) => return false,
            (true, Some(written)) => written,
            (false, _) if is_mark(keyword) => return false,
            (false, _) => keyword,
        };
        // For each prefix of the pattern: whether it matches the characters read so far.
        let size = self.pattern.len();
        let mut reached = vec![false; size + 1];
        reached[0] = true;
        skip(&self.pattern, &mut reached);
        let mut next = vec![false; size + 1];
        for c in keyword.chars() {
            next.fill(false);
            for (at, &wild) in self.pattern.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match wild {
                    '*' => next[at] = true,
                    '?' | '%' => next[at + 1] = true,
                    literal => next[at + 1] |= literal == c,
                }
            }
            skip(&self.pattern, &mut next);
            std::mem::swap(&mut reached, &mut next);
        }
        reached[size]
    }
}

/// Lets `*` and `%` match nothing.
fn skip(pattern: &[char], reached: &mut [bool]) {
    for (at, wild) in pattern.iter().enumerate() {
        if matches!(wild, '*' | '%') && reached[at] {
            reached[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Wildcard {
        let (prefix, longest) = (String::new(), String::new());
        let pattern = text.chars().collect();
        Wildcard { pattern, prefix, longest, takes_inner: true, is_exact: false }
    }

    #[test]
    fn wildcards_match_keywords() {
        for (text, keyword, is_it) in [
            ("al*", "al", true),
            ("al*", "alpha", true),
            ("*pha", "alpha", true),
            ("*ph*", "alpha", true),
            ("al?ha", "alpha", true),
            ("al?ha", "alha", false),
            ("al%ha", "alha", true),
            ("al%ha", "alpha", true),
            ("al%ha", "alppha", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyycd", false),
            ("??", "日本", true),
            ("*enten*", "\u{3}sentence", false),
        ] {
            assert_eq!(pattern(text).matches(keyword), is_it, "{text} {keyword}");
        }
    }
}
