//! Words with wildcards: `*` any run of characters, `?` one, `%` none or one.

use crate::settings::Settings;

/// A word with wildcards that may be expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Wildcard {
    pattern: Vec<char>,
    prefix: String,
    longest: String,
    takes_inner: bool,
    /// Words are looked for as they are written: those keywords begin with `=`.
    is_exact: bool,
}

impl Wildcard {
    /// The pattern of a word.
    ///
    /// # Errors
    /// A warning, in Sphinx's words, where too little of it is literal: it is not expanded then.
    pub fn new(word: &str, settings: &Settings) -> Result<Self, String> {
        let is_wild = |c: char| matches!(c, '*' | '?' | '%');
        // Where only beginnings are looked for, a star in front means nothing.
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

    /// Whether it stands for no keyword: nothing of it is literal, or only beginnings are looked for.
    pub fn is_nothing(&self) -> bool {
        self.longest.is_empty() || self.prefix.is_empty() && !self.takes_inner
    }

    /// What the keywords begin with; it may be empty.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The longest run of characters that the keywords hold.
    pub fn longest_piece(&self) -> &str {
        &self.longest
    }

    /// Whether the pattern stands for the keyword. Time is the product of their lengths at most.
    pub fn matches(&self, keyword: &str) -> bool {
        let keyword = match (self.is_exact, keyword.strip_prefix('=')) {
            (true, None) => return false,
            (true, Some(written)) => written,
            (false, _) => keyword,
        };
        // Which beginnings of the pattern stand for what was read of the keyword.
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

/// Adds what is reached by wildcards that stand for nothing.
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
    fn a_pattern_stands_for_what_it_says() {
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
        ] {
            assert_eq!(pattern(text).matches(keyword), is_it, "{text} {keyword}");
        }
    }
}
